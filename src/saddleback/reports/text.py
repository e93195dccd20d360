"""What the verbs print besides a solution: what a simulator check found, a true optimum, a frontier, proofs side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from saddleback.errors import plain_text
from saddleback.problem.cmdp import CMDP
from saddleback.runs.constraint_report import shown_best, shown_price, shown_prices
from saddleback.runs.contradiction import ConflictReport
from saddleback.runs.numbers import (
    add_row,
    at_most,
    between,
    confidence,
    duration,
    empty_table,
    in_unit,
    limits_in,
    number,
    room_in_units,
    wanted,
)
from saddleback.runs.words import slack_sentence

if TYPE_CHECKING:  # whoever calls has loaded what is printed, and no verb needs all of it
    from saddleback.certificates import Certificate
    from saddleback.exact import ExactAnswer
    from saddleback.runs.recheck import Check
    from saddleback.runs.run_folder import Run
    from saddleback.simulators.checks import Report
    from saddleback.solving.frontier import Frontier


def print_check(console: Console, problem: CMDP, report: Report) -> None:
    """The findings first, then a verdict and what was measured on the way."""
    from saddleback.simulators.checks.probe import FALSE_ALARM

    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    for finding in report.findings:
        say(
            f"{finding.severity} ({finding.check}): {finding.message}",
            "red" if finding.severity == "error" else "yellow",
        )
    for skipped in report.skipped:
        say(f"not checked: {skipped}.")
    warnings = len(report.findings) - report.errors
    counts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((report.errors, "error"), (warnings, "warning"))]
    verdict = ", ".join(counts) if report.findings else "no mistake found"
    say(f"{problem.name}: {verdict} in {report.calls:,} simulator calls.")
    for constraint, unit in zip(problem.constraints, problem.units, strict=True):
        both = unit.say(unit.total(constraint.threshold), "{:g}".format, both=True)
        say(f"  {constraint.name} {constraint.sense} {both}")
    if report.rank is not None:
        say(f"  {report.dim} features of rank {report.rank}, condition number {report.condition:.2g}")
    for words, seconds in (("alone", report.seconds_alone), ("in a batch", report.seconds_in_batch)):
        if math.isfinite(seconds):
            million = 1e6 * seconds
            total = duration(million) if million >= 120 else f"{million:.1f} s"  # seconds, however quick the machine
            say(f"  {million:,.3g} µs a call {words}, so a million take {total}")
    if report.tests:
        say(
            f"  {report.tests} groups of random tests; all together accuse a sound simulator with probability {FALSE_ALARM:g}"
        )


def print_exact(console: Console, problem: CMDP, answer: ExactAnswer, conflict: Sequence[ConflictReport] = ()) -> None:
    """The known answer of a table, or what contradicts what."""
    name = f"[bold]{escape(problem.name)}[/bold]"
    if answer.status != "optimal":
        far = escape(slack_sentence(problem, answer.max_slack, exact=True))
        console.print(f"{name}: [red]infeasible[/red]. {far}")
        from saddleback.runs.text import print_conflict

        print_conflict(console, problem, conflict)
        return
    console.print(f"{name}: optimal value {in_unit(problem.reward_unit, answer.value)} (discounted total).")
    price = "price (reward per unit of threshold)"
    table = empty_table(None, ["constraint", "wanted"], ["value", price], ranges=[price])
    prices = shown_prices(problem, answer.multipliers.tolist())
    for c, unit, v, p in zip(problem.constraints, problem.units, answer.constraint_values, prices, strict=True):
        add_row(table, c.name, wanted(c, unit), in_unit(unit, float(v)), number(p))
    console.print(table)
    console.print(
        f"Slater constant (room left by the constraints): {room_in_units(problem, answer.slater)}. {answer.seconds:.3f} s."
    )


def print_exact_frontier(
    console: Console, problem: CMDP, constraint: int, points: Sequence[tuple[float, ExactAnswer]]
) -> None:
    """Threshold, best reward and price, one row per threshold; a dash where no policy meets it."""
    moving = problem.constraints[constraint]
    unit = problem.units[constraint]
    what = "an average per step" if unit.per_step else "a discounted total"
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the best {problem.objective} (discounted total) against "
        f"'{escape(moving.name)}' {moving.sense} threshold ({what}), from the known table."
    )
    table = empty_table(None, [], [f"{moving.name} {moving.sense}", problem.objective, "price"])
    for threshold, answer in points:
        met = answer.status == "optimal"
        price = shown_price(problem, constraint, float(answer.multipliers[constraint])) if met else None
        value = in_unit(problem.reward_unit, answer.value if met else None)
        add_row(table, in_unit(unit, threshold), value, number(price))
    console.print(table)
    spent = "cost added" if problem.minimise else "reward lost"
    console.print(f"Price is {spent} per unit of threshold; a dash: no policy meets that threshold.")


def print_frontier(console: Console, curve: Frontier, of_run: bool = False) -> None:
    """Threshold, best reward, price and mixture, one row per threshold; ``of_run`` where a finished run had kept it."""
    from saddleback.certificates.certificate import SUSPECTED

    problem, unit, rewards = curve.problem, curve.unit, curve.problem.reward_unit
    moving = problem.constraints[curve.constraint]
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the best {problem.objective} against '{escape(moving.name)}' {moving.sense} threshold "
        f"({unit.plural}), from {curve.parts.samples:,} simulator calls."
    )
    proved = curve.band is not None
    columns = [
        f"{moving.name}{unit.suffix} {moving.sense}",
        problem.objective,
        "proved limits" if proved else "gap",
        "price",
        "mixture",
    ]
    table = empty_table(None, [], columns, ranges=["proved limits", "mixture"])
    rows = dict[tuple[str, ...], None]()  # rows that read the same are one
    for point in curve.points:
        mixture = " + ".join(f"{w:.3f}" for w in sorted(point.mixture.weights, reverse=True))
        known = limits_in(rewards, (point.low, point.high)) if proved else in_unit(rewards, point.gap)
        price = number(shown_price(problem, curve.constraint, point.multiplier))
        best = number(shown_best(problem, curve.constraint, point.value, point.multiplier))
        rows[in_unit(unit, point.threshold), best, known, price, mixture] = None
    for row in rows:
        add_row(table, *row)
    console.print(table)
    if len(rows) == 1 < len(curve.points):
        name = f"'{escape(moving.name)}'"
        console.print(
            f"{name} does not bind: the best {problem.objective} is had at the last threshold that can be met."
        )
    spent = "cost added" if problem.minimise else "reward lost"
    gap = "" if proved else " Gap bounds what another mixture could add, by the same estimates."
    console.print(f"Price is {spent} per unit of threshold.{gap}")
    if curve.band is None and of_run:
        console.print("Estimates, not proofs, from the policies that the run has kept; no sample was drawn for them.")
        return
    if curve.band is None:
        console.print("Estimates, not proofs; `--certificate-samples` draws a confidence band.")
        return
    below, above = (curve.band.assumes[end] for end in (("high", "low") if problem.minimise else ("low", "high")))
    needs = f"This assumes {below}." if below == above else f"Below this assumes {below}; above, {above}."
    console.print(
        f"The true curve lies within the proved limits at every threshold, with {confidence(curve.band.confidence)} "
        f"confidence, from {curve.band.samples:,} further calls; a dash: no policy is proved to meet that threshold. "
        f"{needs}"
    )
    for remark in curve.band.contradictions:
        console.print(f"[red]Contradiction:[/red] {escape(remark.text)}, so there is no bound above. {SUSPECTED}.")


def frontier_json(curve: Frontier) -> dict[str, Any]:
    """The frontier as one JSON-ready object."""
    out = {
        "constraint": curve.problem.constraints[curve.constraint].name,
        "units": curve.unit.name,
        "samples": curve.parts.samples,
        "points": [point.to_json(curve.unit) for point in curve.points],
        "breakpoints": curve.breakpoints() if curve.problem.num_constraints == 1 else None,
    }
    return out if curve.band is None else {**out, "band": curve.band.to_json()}


def print_recertified(console: Console, problem: CMDP, run: Run, proof: Certificate, pilot: int) -> None:
    """The new proof, and what the stored one had said."""
    from saddleback.runs.text import print_certificate

    console.print(
        f"[bold]{escape(problem.name)}[/bold], {escape(plain_text(str(run.path), 1000))}: "
        f"{proof.samples + pilot:,} new simulator calls with seed {proof.seed}, {pilot:,} of them a pilot."
    )
    strict = run.request.get("feasibility") == "strict"
    print_certificate(console, problem, proof, strict=strict, total=proof.samples + pilot)
    stored = run.certificate
    if stored is None or stored.value is None or proof.value is None:
        return
    table = empty_table("Beside the stored proof", ["limits of"], ["stored", "new"], ranges=["stored", "new"])
    add_row(table, problem.objective, between(stored.value), between(proof.value))
    for c, unit, old, new in zip(
        problem.constraints, problem.units, stored.constraints, proof.constraints, strict=True
    ):
        add_row(table, c.name + unit.suffix, limits_in(unit, old), limits_in(unit, new))
    tops = (at_most(top, problem.minimise) for top in (stored.upper_bound, proof.upper_bound))
    add_row(table, f"best {problem.objective}", *tops)
    add_row(table, "confidence", confidence(stored.confidence), confidence(proof.confidence))
    console.print(table)


def print_recheck(console: Console, run: Run, checks: Sequence[Check]) -> None:
    """One row per check, what failed in words, and what could not be checked."""
    from saddleback.runs.recheck import NOT_CHECKED

    path = escape(plain_text(str(run.path), 1000))
    table = empty_table(f"{path}: the stored proof, computed again", ["statement", "outcome"], [])
    table.add_column("detail", overflow="fold")
    for check in checks:
        add_row(table, check.name, check.word, check.detail)
    console.print(table)
    bad, open_ = sum(not c.passed for c in checks), [c.name for c in checks if c.word == "not checked"]
    followed = len(checks) - len(open_)
    if bad:
        console.print(f"[red]{bad} of {len(checks)} statements do not follow from the stored numbers.[/red]")
    else:
        console.print(f"[green]All {followed} statements that could be checked follow from the stored numbers.[/green]")
    if open_:
        console.print(
            f"Not checked: {escape(', '.join(open_))}; `saddleback certify` without --recheck draws new samples."
        )
    console.print(
        f"{'Nor are' if open_ else 'Not checked are'} {'; '.join(NOT_CHECKED)}. Rollouts or counts replaced as a whole cannot be told from others."
    )
