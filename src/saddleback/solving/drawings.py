"""What a solve leaves behind for its report: the frontier of every constraint, the dual's path, the design.

No simulator call is made: the frontier comes from the samples and the policies that the solve has left in memory. For one
constraint the stored columns *are* the frontier (its upper hull), so that the page can answer at any threshold; for several
the page moves between the stored points.
"""

from __future__ import annotations

import numpy as np

from saddleback.errors import InputError, NumericalError
from saddleback.runs.drawings_file import (
    MOST_COLUMNS,
    CurveRecord,
    DesignRecord,
    Drawings,
    DualRecord,
    FrontierRecord,
    PointRecord,
)
from saddleback.solving.frontier import Frontier, FrontierPoint, frontier
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution

_POINTS_OF_ONE, _POINTS_OF_SEVERAL = 81, 21  # several constraints take a linear program a point
_MOST_CURVES = 4
_MOST_PAIRS = 50_000  # of a table: beyond, a curve costs more than it is worth at the end of every solve
_MOST_ROUNDS = 4


def drawings_of(solution: Solution) -> Drawings:
    """The files for a report: those that there is something to say in."""
    trace, parts = solution.trace, solution.prepared
    dual = None if trace is None or not len(trace.multipliers) else DualRecord.of(trace.multipliers, trace.values)
    if not isinstance(parts, Prepared):
        return Drawings(dual=dual)
    try:
        curves = _frontier(parts, 1 - solution.settings.get("delta", 0.05))
    except (InputError, NumericalError):  # a picture less, never a run less
        curves = None
    return Drawings(curves, dual, DesignRecord.of(parts.design))


def _frontier(parts: Prepared, confidence: float) -> FrontierRecord | None:
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
    rows = [
        CurveRecord(problem.constraints[curve.constraint].name, [_row(point, index) for point in points])
        for curve, points in curves
    ]
    used = {k for row in rows for point in row.points for k in point.members}
    limits: list[tuple[list[float], list[float]] | None] = []
    for k, (policy, _) in enumerate(known):
        within = parts.interval(policy, confidence) if k in used else None
        limits.append(None if within is None else (within.low.tolist(), within.high.tolist()))
    columns = [values.tolist() for _, values in known]
    return FrontierRecord("saddleback-frontier/1", confidence, columns, limits, rows)


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


def _row(point: FrontierPoint, index: dict[bytes, int]) -> PointRecord:
    members, weights = [index[member.key()] for member in point.mixture.members], point.mixture.weights.tolist()
    constraints = list(point.constraints)
    return PointRecord(point.threshold, point.value, constraints, point.multiplier, point.gap, members, weights)
