"""The frontier as a table on the terminal, and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape

from saddleback.runs.numbers import between, confidence, number
from saddleback.runs.tables import add_row, empty_table
from saddleback.solving.frontier import Frontier


def print_frontier(console: Console, curve: Frontier) -> None:
    """Threshold, best reward, price and mixture, one row per threshold."""
    problem = curve.problem
    moving = problem.constraints[curve.constraint]
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the best {problem.objective} against '{escape(moving.name)}' {moving.sense} threshold "
        f"(discounted totals), from {curve.parts.samples:,} simulator calls."
    )
    proved = curve.band is not None
    columns = [
        f"{moving.name} {moving.sense}",
        problem.objective,
        "proved limits" if proved else "gap",
        "price",
        "mixture",
    ]
    table = empty_table(None, [], columns, ranges=["proved limits", "mixture"])
    for point in curve.points:
        mixture = " + ".join(f"{w:.3f}" for w in sorted(point.mixture.weights, reverse=True))
        known = between((point.low, point.high)) if proved else number(point.gap)
        add_row(table, number(point.threshold), number(point.value), known, number(point.multiplier), mixture)
    console.print(table)
    spent = "cost added" if problem.minimise else "reward lost"
    console.print(f"Price is {spent} per unit of threshold.")
    if curve.band is None:
        console.print("Estimates, not proofs; `--certificate-samples` draws a confidence band.")
        return
    below, above = ("high", "low") if problem.minimise else ("low", "high")
    console.print(
        f"The true curve lies within the proved limits at every threshold, with {confidence(curve.band.confidence)} "
        f"confidence, from {curve.band.samples:,} further calls; a dash: no policy is proved to meet that threshold. Below "
        f"this assumes {curve.band.assumes[below]}; above, {curve.band.assumes[above]}."
    )


def frontier_json(curve: Frontier) -> dict[str, Any]:
    """The frontier as one JSON-ready object."""
    out = {
        "constraint": curve.problem.constraints[curve.constraint].name,
        "samples": curve.parts.samples,
        "points": [point.to_json() for point in curve.points],
        "breakpoints": curve.breakpoints() if curve.problem.num_constraints == 1 else None,
    }
    return out if curve.band is None else {**out, "band": curve.band.to_json()}
