"""What a solve leaves behind for its report: the frontier of every constraint, the dual's path, the design.

No simulator call is made: the frontier comes from the samples and the policies that the solve has left in memory. For one
constraint the stored columns *are* the frontier (its upper hull), so that the page can answer at any threshold; for several
the page moves between the stored points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.errors import InputError, NumericalError
from saddleback.runs.drawings_file import (
    DESIGN,
    DUAL,
    FRONTIER,
    MOST_COLUMNS,
    design_fields,
    frontier_fields,
    trace_fields,
)
from saddleback.solving.frontier import Frontier, FrontierPoint, frontier
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution

_POINTS_OF_ONE, _POINTS_OF_SEVERAL = 81, 21  # several constraints take a linear program a point
_MOST_CURVES = 4
_MOST_PAIRS = 50_000  # of a table: beyond, a curve costs more than it is worth at the end of every solve
_MOST_ROUNDS = 4


def drawings_of(solution: Solution) -> dict[str, Any]:
    """The files for a report, by name: those that there is something to say in."""
    found: dict[str, Any] = {}
    if solution.trace is not None and len(solution.trace.multipliers):
        found[DUAL] = trace_fields(solution.trace)
    parts = solution.prepared
    if not isinstance(parts, Prepared):
        return found
    found[DESIGN] = design_fields(parts.design)
    try:
        curves = _frontier(parts, 1 - float(solution.settings.get("delta", 0.05)))
    except (InputError, NumericalError):  # a picture less, never a run less
        curves = None
    return found if curves is None else {**found, FRONTIER: curves}


def _frontier(parts: Prepared, confidence: float) -> dict[str, Any] | None:
    problem = parts.problem
    if parts.hints is not None or (problem.num_states or 0) * problem.num_actions > _MOST_PAIRS:
        return None  # the samples are elsewhere, or many
    curves = []
    for i in range(min(problem.num_constraints, _MOST_CURVES)):
        try:
            curves.append(_curve(parts, i))
        except (InputError, NumericalError):  # the other constraints leave no room: there is no curve to draw
            continue
    curves = [(curve, points) for curve, points in curves if len(points) >= 2]
    known = parts.oracle.columns
    if not curves or len(known) > MOST_COLUMNS:
        return None
    index = {policy.key(): i for i, (policy, _) in enumerate(known)}
    rows: list[dict[str, Any]] = [
        {
            "constraint": problem.constraints[curve.constraint].name,
            "points": [_row(point, index) for point in points],
        }
        for curve, points in curves
    ]
    used = {k for row in rows for point in row["points"] for k in point["members"]}
    limits = []
    for k, (policy, _) in enumerate(known):
        within = parts.interval(policy, confidence) if k in used else None
        limits.append(None if within is None else [within.low.tolist(), within.high.tolist()])
    return frontier_fields(confidence, [values.tolist() for _, values in known], limits, rows)


def _curve(parts: Prepared, constraint: int) -> tuple[Frontier, list[FrontierPoint]]:
    """The frontier at evenly spread thresholds and at the one that was asked for, each with the policies of all others."""
    single = parts.problem.num_constraints == 1
    curve = frontier(parts, constraint, _POINTS_OF_ONE if single else _POINTS_OF_SEVERAL)
    thresholds = {point.threshold for point in curve.points}
    asked = float(parts.problem.user_thresholds()[constraint])
    try:
        curve.at(asked)
        thresholds.add(asked)
    except InputError:  # out of reach
        pass
    found, points = 0, curve.points
    for _ in range(_MOST_ROUNDS):
        points = curve.at_all(np.array(sorted(thresholds)))
        if len(parts.oracle.columns) == found:
            break
        found = len(parts.oracle.columns)
    return curve, points


def _row(point: FrontierPoint, index: dict[bytes, int]) -> dict[str, Any]:
    return {
        "threshold": point.threshold,
        "value": point.value,
        "constraints": list(point.constraints),
        "multiplier": point.multiplier,
        "gap": point.gap,
        "members": [index[member.key()] for member in point.mixture.members],
        "weights": point.mixture.weights.tolist(),
    }
