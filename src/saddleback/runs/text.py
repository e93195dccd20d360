"""Answers and certificates as tables a newcomer understands, for a terminal or a log.

Everything fits eighty columns and nothing is cut: numbers take at most nine characters and are never broken, names and
ranges may go over several lines. What users named themselves is printed as it is, brackets included.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.certificates import Average, Averages, Certificate
from saddleback.certificates.assumptions import Assumptions
from saddleback.certificates.certificate import ROUNDING, SUSPECTED
from saddleback.problem.cmdp import CMDP
from saddleback.runs.answer import Answer, MemberReport
from saddleback.runs.constraint_report import shown_prices
from saddleback.runs.contradiction import ConflictReport, conflict_sentences
from saddleback.runs.numbers import (
    add_row,
    at_most,
    confidence,
    count,
    empty_table,
    in_unit,
    limits_in,
    number,
    percent,
    sentence,
    wanted,
)
from saddleback.runs.verdict import Status
from saddleback.runs.words import empty_bound, slack_by_ranges, slack_sentence, standing, whole_range

_WIDTH = 100
_MOST_MEMBERS = 6
_MOST_COLUMNS = 3  # constraints that fit beside each other in the table of members


def print_solution(console: Console, solution: Answer, check: Mapping[str, Any] | None = None) -> None:
    """The answer first, then what is proved, the truth where it is known, the members, and what to keep in mind."""
    problem, certificate = solution.problem, solution.certificate
    colour = {Status.SOLVED: "green", Status.INFEASIBLE: "red", Status.REFUTED: "red"}.get(solution.status, "yellow")
    headline = f"[bold]{escape(problem.name)}[/bold]: [{colour}]{solution.status.value}[/{colour}]."
    console.print(f"{headline} {escape(sentence(solution.message))}")
    if solution.max_slack is not None:
        slack = solution.max_slack
        told = slack_sentence(problem, slack, exact=False) if solution.samples else slack_by_ranges(problem, slack)
        console.print(escape(told))
    if problem.num_constraints > 1:  # of one the verdict says it all
        print_conflict(console, problem, solution.conflict)
    if solution.mixture is not None:
        console.print(_answer_table(solution))
        console.print(_units(solution))
    if certificate is not None:
        strict = solution.settings.get("feasibility") == "strict"
        print_certificate(console, problem, certificate, strict=strict, total=solution.samples)
    if solution.mixture is None:
        return
    if check is not None:
        console.print(_truth_table(solution, check))
    console.print(_members_table(solution))
    if any(_missed(solution, member) for member in solution.members) and len(solution.members) > 1:
        console.print(
            "'(misses)': played alone, this policy would not meet the constraint, by the estimates. Limits and verdicts are about "
            "the mixture, on average over the draw."
        )
    console.print(
        f"{solution.samples:,} simulator calls, {count(solution.settings['coreset'], 'state-action pair')} sampled, "
        f"{count(solution.settings['iterations'], 'dual iteration')}; solver {solution.settings['solver']}, "
        f"evaluator {solution.settings['evaluator']}, seed {solution.settings['seed']}."
    )
    for remark in solution.remarks:
        console.print(f"Note: {escape(remark.text)}.")


def print_conflict(console: Console, problem: CMDP, conflict: Sequence[ConflictReport]) -> None:
    """Which constraints contradict one another, one line each, in the user's units."""
    if not conflict:
        return
    known = conflict[0].label == "exact"
    how = "computed on the known table" if known else "estimates from the samples, not proved"
    console.print(f"What the constraints leave to one another ({how}):")
    for text in conflict_sentences(problem, conflict):
        console.print(f"  - {escape(text)}", highlight=False)


def as_text(solution: Answer) -> str:
    """What the command line prints, without colours."""
    console = Console(file=io.StringIO(), width=_WIDTH)
    with console.capture() as printed:
        print_solution(console, solution)
    return printed.get().rstrip("\n")


def as_html(solution: Answer) -> str:
    """The same for a notebook: one preformatted block."""
    console = Console(file=io.StringIO(), width=_WIDTH, record=True)
    print_solution(console, solution)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def _limits(solution: Answer) -> list[str]:
    """The proved limits of reward and constraints, if there are any."""
    certificate = solution.certificate
    if certificate is None or certificate.value is None:
        return []
    rows = zip(solution.problem.units, certificate.constraints, strict=True)
    return [
        limits_in(solution.problem.reward_unit, certificate.value),
        *(limits_in(unit, limits) for unit, limits in rows),
    ]


def _answer_table(solution: Answer) -> RichTable:
    proved = _limits(solution)
    head = "proved limits" if proved else "likely range"
    table = empty_table(
        "The policy, in your units", ["quantity", "wanted"], ["estimate", head, "slack", "price"], ranges=[head]
    )
    problem, found = solution.problem, zip(solution.problem.units, solution.constraints, strict=True)
    likely = ["", *("" if c.low is None else limits_in(unit, (c.low, c.high)) for unit, c in found)]
    limits = proved or likely
    add_row(table, problem.objective, problem.wanted, in_unit(problem.reward_unit, solution.value), limits[0], "", "")
    # Where no mixture is feasible there are no prices.
    prices: Sequence[float | None] = shown_prices(problem, solution.multipliers)
    prices = prices or [None] * len(solution.constraints)
    rows = zip(problem.constraints, problem.units, solution.constraints, limits[1:], prices, strict=True)
    for asked, unit, c, within, price in rows:
        cells = in_unit(unit, c.value), within, in_unit(unit, c.slack), number(price)
        add_row(table, c.name, wanted(asked, unit), *cells)
    return table


def _units(solution: Answer) -> str:
    problem, settings = solution.problem, solution.settings
    units = values_are(problem)
    if _limits(solution):
        return f"{units} 'Proved limits' come from fresh samples: see below."
    sure = confidence(1 - settings["delta"])
    return f"{units} 'Likely range' is measured from the samples at {sure} confidence; it is not a proof."


def values_are(problem: CMDP) -> str:
    """What the numbers of an answer mean, and for constraints that were given per step what that is and is not."""
    words, steps = f"Values are {problem.criterion.words}", [c for c in problem.constraints if c.units == "per-step"]
    if not steps:
        return f"{words}."
    H, b, unit = problem.horizon, steps[0].threshold, steps[0].unit(problem.horizon)
    return (
        f"{words}; those of a limit 'per step' are such totals divided by {H:.4g}: averages in which early steps count most. "
        f"{number(b)} per step is a total of {number(unit.total(b))}."
    )


def _truth_table(solution: Answer, check: Mapping[str, Any]) -> RichTable:
    """What the policy is really worth, and the best that any policy is, from the known transition probabilities."""
    table = empty_table("The truth, from the known table", ["quantity", "wanted"], ["truth", "optimum"])
    best = check["optimum"]
    problem = solution.problem
    rewards = (in_unit(problem.reward_unit, found["value"]) for found in (check, best))
    add_row(table, problem.objective, problem.wanted, *rewards)
    optima = best["constraints"] or [None] * problem.num_constraints  # empty where no policy meets the constraints
    for c, unit, value, optimum in zip(problem.constraints, problem.units, check["constraints"], optima, strict=True):
        add_row(table, c.name, wanted(c, unit), in_unit(unit, value), in_unit(unit, optimum))
    return table


def _members_table(solution: Answer) -> RichTable:
    order = sorted(solution.members, key=lambda m: -m.weight)
    problem, wide = solution.problem, len(solution.constraints) > _MOST_COLUMNS
    names = [f"{c.name} ({wanted(c, unit)})" for c, unit in zip(problem.constraints, problem.units, strict=True)]
    heads = ["constraints it misses"] if wide else names
    title = "One policy, played in every episode"
    if len(order) > 1:
        title = f"A mixture of {len(order)} policies, one drawn at the start of each episode"
    table = empty_table(title, [], ["weight", solution.problem.objective, *heads], ranges=heads)
    for member in order[:_MOST_MEMBERS]:
        missed, shown = (
            _missed(solution, member),
            zip(problem.units, problem.constraints, member.constraints, strict=True),
        )
        cells = [in_unit(unit, value) + (" (misses)" if c.name in missed else "") for unit, c, value in shown]
        if wide:
            cells = [", ".join(missed) or "none"]
        add_row(table, f"{member.weight:.4f}", in_unit(problem.reward_unit, member.value), *cells)
    rest = order[_MOST_MEMBERS:]
    if rest:
        add_row(table, f"{sum(m.weight for m in rest):.4f}", f"{len(rest)} more", *[""] * len(heads))
    return table


def _missed(solution: Answer, member: MemberReport) -> list[str]:
    """The constraints that a member of the mixture would miss by itself."""
    rows = zip(solution.constraints, member.constraints, strict=True)
    return [c.name for c, value in rows if (value < c.threshold if c.sense == ">=" else value > c.threshold)]


def print_certificate(
    console: Console, problem: CMDP, certificate: Certificate, *, strict: bool = False, total: int | None = None
) -> None:
    """The proved limits, the verdict, what both assume, and what they cost (of ``total`` simulator calls)."""
    if certificate.value is None:
        console.print(escape(_room(problem, certificate)))
    else:
        console.print(_table(problem, certificate))
        console.print(escape(_verdict(problem, certificate, strict)))
    if certificate.averages is not None:
        console.print(_averages_table(problem, certificate, certificate.averages))
    _print_linearity(console, certificate)
    for remark in certificate.contradictions:
        console.print(f"[red]Contradiction:[/red] {escape(sentence(remark.text))}")
    console.print(escape(_fine_print(certificate, total)))
    for remark in certificate.remarks:
        if remark.kind != "not-linear":  # said above
            console.print(f"Note: {escape(remark.text)}.")


def _table(problem: CMDP, certificate: Certificate) -> RichTable:
    title = f"What is proved, with {confidence(certificate.confidence)} confidence"
    table = empty_table(title, ["statement"], ["limits"], ranges=["limits"])
    table.add_column("verdict", overflow="fold")
    assert certificate.value is not None
    known = whole_range(problem, certificate.value)
    add_row(table, f"{problem.objective} of this policy", limits_in(problem.reward_unit, certificate.value), known)
    verdicts = _constraint_verdicts(problem, certificate)
    rows = zip(problem.constraints, problem.units, certificate.constraints, verdicts, strict=True)
    for c, unit, limits, word in rows:
        add_row(table, f"{c.name} {wanted(c, unit)}", limits_in(unit, limits), word)
    top, gap = certificate.upper_bound, certificate.gap
    known = empty_bound(problem, top)
    add_row(table, f"{problem.objective} of the best policy", at_most(top, problem.minimise), known)
    add_row(table, "what this policy loses to it", at_most(gap), "")
    return table


def _averages_table(problem: CMDP, certificate: Certificate, found: Averages) -> RichTable:
    """The discounted averages that the limits are about, and beside them plain averages over time."""
    first, long_run = average_heads(found)
    title = "Averages over time, estimated and not proved (± two standard errors)"
    table = empty_table(
        title, ["quantity", "wanted"], ["discounted", first, long_run], ranges=["discounted", first, long_run]
    )
    limits = dict(zip((c.name for c in problem.constraints), certificate.constraints, strict=False))
    for c, unit in zip(problem.constraints, problem.units, strict=True):
        for row in (row for row in found.constraints if row.name == c.name):
            cells = limits_in(unit, limits.get(c.name)), average(row.first), average(row.long_run)
            add_row(table, c.name, wanted(c, unit), *cells)
    return table


def average_heads(found: Averages) -> tuple[str, str]:
    """What the columns of the two averages are called."""
    steps = "first step" if found.first_steps == 1 else f"first {found.first_steps:,} steps"
    if found.long_run_steps is None:
        return steps, "long run"
    begin, end = found.long_run_steps
    return steps, f"steps {begin:,} to {end - 1:,}"


def average(found: Average | None) -> str:
    """An estimate with two standard errors, or a dash."""
    return "–" if found is None else f"{number(found.mean)} ± {found.error * 2:.1g}"


def _constraint_verdicts(problem: CMDP, certificate: Certificate) -> list[str]:
    if certificate.contradictions:
        return ["in doubt"] * problem.num_constraints
    words, thresholds, units = [], problem.user_thresholds().tolist(), problem.units
    for i, (c, b, limits) in enumerate(zip(problem.constraints, thresholds, certificate.constraints, strict=True)):
        allowed = certificate.allowance[i] if certificate.allowance else 0.0
        kind, least, most = standing(
            limits, c.sense, b, allowed, ROUNDING * problem.horizon * abs(float(problem.scale[1 + i]))
        )
        said = {"holds": "holds", "fails": f"fails, by {limits_in(units[i], (least, most))}"}
        words.append(said.get(kind, f"{kind}: missed by at most {in_unit(units[i], most)}"))
    return words


def _verdict(problem: CMDP, certificate: Certificate, strict: bool) -> str:
    each = "the constraint" if problem.num_constraints == 1 else "every constraint"
    allowed = " up to what was allowed" if any(certificate.allowance) else ""
    if certificate.contradictions:
        return f"Nothing is decided, for what was found cannot all be true: {SUSPECTED}."
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
        return "Not proved: the fresh samples leave it possible that some policy meets the constraints; allow more `--samples`."
    chance = ""  # by arithmetic
    if certificate.samples:
        chance = f" with {confidence(certificate.confidence)} confidence"
    sure = f"Proved{chance}: no policy meets the constraints"
    if problem.num_constraints > 1:
        missed = f"{percent(-room / problem.horizon)} or more of the range of its values"
        return f"{sure} together; every policy misses one of them by {missed}."
    missed = problem.units[0].say(-room * abs(float(problem.scale[1])), number)
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
    beside = "" if certificate.averages is None else f", {certificate.averages.samples:,} into the averages over time"
    spent = f"{certificate.proof_samples:,}{of_all} simulator calls went into this proof{beside}."
    if not certificate.samples:
        spent = "The proof needed no simulator call."
    if not certificate.assumes:
        return spent
    of_values = next(iter(certificate.assumes.values()))
    bound, report, tested = certificate.assumes.get("upper_bound"), certificate.linearity, ""
    if report is not None and report.passed:
        tested = f" ({'tested, not refuted' if report.samples else 'too few samples to test it'})"
    parts = bound.parts if isinstance(bound, Assumptions) else ()
    more = [part.text + (tested if part.kind == "linear" else "") for part in parts if part.kind != "bounded"]
    beyond = f"; the bound on the best policy also needs {' and '.join(more)}" if more else ""
    return f"{spent} It assumes {of_values}{beyond}."
