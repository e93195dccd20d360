"""What a certificate proves, as a table and a few sentences."""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.certificates import Certificate
from saddleback.problem.cmdp import CMDP
from saddleback.runs.numbers import at_most, between, confidence, number
from saddleback.runs.tables import add_row, empty_table, sentence

_ROUNDING = 1e-9


def print_certificate(
    console: Console, problem: CMDP, certificate: Certificate, *, strict: bool = False, total: int | None = None
) -> None:
    """The proved limits, the verdict, what both assume, and what they cost (of ``total`` simulator calls)."""
    if certificate.value is None:
        console.print(escape(_room(problem, certificate)))
    else:
        console.print(_table(problem, certificate))
        console.print(escape(_verdict(problem, certificate, strict)))
    _print_linearity(console, certificate)
    console.print(escape(_fine_print(certificate, total)))
    for remark in certificate.remarks:
        if remark.kind not in ("not-linear", "warning-linearity"):  # said above
            console.print(f"Note: {escape(remark.text)}.")


def _table(problem: CMDP, certificate: Certificate) -> RichTable:
    title = f"What is proved, with {confidence(certificate.confidence)} confidence"
    table = empty_table(title, ["statement"], ["limits"], ranges=["limits"])
    table.add_column("verdict", overflow="fold")
    assert certificate.value is not None
    ends = (float(problem.values_of(np.full(1 + problem.num_constraints, x))[0]) for x in (0.0, problem.horizon))
    (least, most), rounding = sorted(ends), _ROUNDING * problem.reward_span
    least, most = least + rounding, most - rounding
    low, high = certificate.value
    known = "vacuous: the whole range" if low <= least and high >= most else ""
    add_row(table, f"{problem.objective} of this policy", between(certificate.value), known)
    verdicts = _constraint_verdicts(problem, certificate)
    rows = zip(problem.constraints, problem.user_thresholds(), certificate.constraints, verdicts, strict=True)
    for c, b, limits, word in rows:
        add_row(table, f"{c.name} {c.sense} {number(float(b))}", between(limits), word)
    top, gap = certificate.upper_bound, certificate.gap
    known = ""
    if top is not None and (top <= least if problem.minimise else top >= most):
        known = f"vacuous: the {problem.wanted} there is"
    add_row(table, f"{problem.objective} of the best policy", at_most(top, problem.minimise), known)
    add_row(table, "what this policy loses to it", at_most(gap), "")
    return table


def _constraint_verdicts(problem: CMDP, certificate: Certificate) -> list[str]:
    words = []
    thresholds, allowance = problem.user_thresholds().tolist(), certificate.allowance
    for i, (c, b, (low, high)) in enumerate(zip(problem.constraints, thresholds, certificate.constraints, strict=True)):
        # How far the limits lie on the wrong side of the threshold: at most, and at least.
        most, least = (b - low, b - high) if c.sense == ">=" else (high - b, low - b)
        rounding = _ROUNDING * abs(float(problem.scale[1 + i]))
        if most <= rounding:
            words.append("holds")
        elif least > rounding:
            words.append(f"fails, by {number(least)} to {number(most)}")
        else:
            word = "allowed" if i < len(allowance) and most <= allowance[i] else "open"
            words.append(f"{word}: missed by at most {number(most)}")
    return words


def _verdict(problem: CMDP, certificate: Certificate, strict: bool) -> str:
    each = "the constraint" if problem.num_constraints == 1 else "every constraint"
    allowed = " up to what was allowed" if any(certificate.allowance) else ""
    if certificate.feasible == "certified":
        return f"Feasible: {each} is proved to hold{allowed}."
    if certificate.feasible == "refuted":
        return f"Not feasible: this policy is proved to miss a constraint{allowed and ' by more than was allowed'}."
    remedy = "" if strict else ", and a strict solve leaves room for a proof"
    return f"Feasibility is open: the limits do not settle whether {each} holds{allowed}; more samples narrow them{remedy}."


def _room(problem: CMDP, certificate: Certificate) -> str:
    """The proof that nothing is feasible, or that there is none."""
    room = certificate.slack_bound
    if room is None:
        return "Nothing is proved: there were too few samples for a bound."
    if not certificate.infeasible:
        return "Not proved: the fresh samples leave it possible that some policy meets the constraints; draw more."
    chance = ""  # by arithmetic
    if certificate.samples:
        chance = f" with {confidence(certificate.confidence)} confidence"
    sure = f"Proved{chance}: no policy meets the constraints"
    if problem.num_constraints > 1:
        missed = f"{number(-room)} or more in utilities (signals scaled to lie between 0 and 1)"
        return f"{sure} together; every policy misses one of them by {missed}."
    missed = number(-room * abs(float(problem.scale[1])))
    return f"{sure}; every policy misses '{problem.constraints[0].name}' by {missed} or more."


def _print_linearity(console: Console, certificate: Certificate) -> None:
    report = certificate.linearity
    if report is None or report.passed:
        return
    console.print(
        "[yellow]The problem is not linear in its features.[/yellow] So there is no bound on the best policy, and the "
        "estimates may be off; the limits of this policy's own reward and constraints do not depend on it. What failed:"
    )
    for failure in report.failures:
        console.print(f"  - {escape(sentence(failure.meaning))}")


def _fine_print(certificate: Certificate, total: int | None) -> str:
    of_all = "" if total is None else f" of the {total:,}"
    spent = f"{certificate.samples:,}{of_all} simulator calls went into this proof."
    if not certificate.samples:
        spent = "The proof needed no simulator call."
    if not certificate.assumes:
        return spent
    of_values = next(iter(certificate.assumes.values()))
    more = [part for part in certificate.assumes.get("upper_bound", "").split("; ") if part and part not in of_values]
    report = certificate.linearity
    if report is not None and report.passed:
        said = "tested, not refuted" if report.samples else "too few samples to test it"
        more = [f"{part} ({said})" if "linear in" in part else part for part in more]
    beyond = f"; the bound on the best policy also needs {' and '.join(more)}" if more else ""
    return f"{spent} It assumes {of_values}{beyond}."
