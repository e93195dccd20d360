"""The trade-off that a finished run has kept: the policies that its solve had priced, without a new sample or any code.

    F̂(b) = max Σ_i w_i V̂_r^i   s.t.   Σ_i w_i V̂_c^i ≥ b      over the columns of ``frontier.json``

These are the columns with which the run's own frontier was found at evenly spread thresholds, so between its ends F̂ is as good as
there: the largest gap of those points is what every point says of itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from saddleback.errors import InputError, require
from saddleback.method.oracles import simplex_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.runs.run_folder import Run
from saddleback.solving.frontier import Frontier
from saddleback.solving.prepared import Prepared

_MOST_POINTS = 10_000


@dataclass(frozen=True)
class _Column:
    """Stands for a policy that was not kept: it is known by its number."""

    number: int
    num_actions: int

    def key(self) -> bytes:
        """The number."""
        return str(self.number).encode()


@dataclass(frozen=True)
class _Stored:
    """What a frontier asks of a solve's parts: a problem, how many samples there were, and an oracle, which is this too."""

    problem: CMDP
    columns: list[tuple[_Column, Array]]
    asked: Array
    samples: int

    @property
    def oracle(self) -> _Stored:
        """Answers from the columns alone."""
        return self

    @property
    def num_solver_calls(self) -> int:
        """Nobody is asked."""
        return 0

    def prefetch(self, mixing: Array) -> None:
        """There is nobody to ask."""

    def __call__(self, mixing: Array) -> tuple[_Column, Array]:
        """The best column."""
        return max(self.columns, key=lambda column: float(column[1] @ mixing))


def stored_frontier(
    run: Run,
    problem: CMDP,
    constraint: str | int | None = None,
    num_points: int = 20,
    thresholds: Sequence[float] | None = None,
) -> Frontier:
    """The frontier of a run at ``num_points`` thresholds of one constraint, or at ``thresholds`` (discounted totals)."""
    kept = run.drawings.frontier
    if kept is None:
        remedy = "run `saddleback frontier` with the problem itself, which draws samples for it"
        raise InputError("RUN", "must hold a frontier", f"{run.path}, which has none", remedy)
    names, curves = [c.name for c in problem.constraints], {curve.constraint: curve for curve in kept.curves}
    width = len(kept.columns[0]) == 1 + len(names) and curves.keys() <= set(names)
    require(
        width, str(run.path / "frontier.json"), "must speak of the constraints of the problem", "others", "solve again"
    )
    name = (
        next(iter(curves)) if constraint is None else names[constraint] if isinstance(constraint, int) else constraint
    )
    if name not in curves:
        remedy = "choose one of them, or run `saddleback frontier` with the problem itself"
        raise InputError("constraint", f"must be one of {', '.join(curves)}, which the run has kept", name, remedy)
    rule = f"must be 2 to {_MOST_POINTS:,}"
    require(2 <= num_points <= _MOST_POINTS, "points", rule, num_points, "use 20")
    columns = [(_Column(k, problem.num_actions), np.array(x, dtype=np.float64)) for k, x in enumerate(kept.columns)]
    calls = run.solution.samples - (0 if run.certificate is None else run.certificate.samples)
    points = curves[name].points
    parts = _Stored(problem, columns, _prices(problem, [p.multiplier for p in points]), max(0, calls))
    curve = Frontier(cast(Prepared, cast(Any, parts)), names.index(name), 1e-4 * problem.horizon)
    ends = points[0].threshold, points[-1].threshold  # from what costs nothing to what can just be met
    first, last = ends if problem.constraints[curve.constraint].sense == ">=" else ends[::-1]
    wanted = np.linspace(first, last, num_points).tolist() if thresholds is None else list(thresholds)
    gap = max(p.gap for p in points)
    curve.points = [replace(p, gap=max(gap, p.gap)) for p in curve.at_all(wanted)]
    return curve


def _prices(problem: CMDP, multipliers: Sequence[float]) -> Array:
    """Mixing points (1, λ) at which the run asked, as far as the points tell; with several constraints, none."""
    if problem.num_constraints > 1:
        return np.eye(1 + problem.num_constraints)[:1]
    scale = abs(float(problem.scale[1])) / problem.reward_span
    return np.array([simplex_point([max(0.0, x) * scale]) for x in multipliers])
