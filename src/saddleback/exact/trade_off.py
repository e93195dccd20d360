"""§2, what the constraints of a known table leave to one another: the best of one under the others, and the frontier.

    reach_i(K)   max_π V_{c_i}^π(ρ)   s.t.  V_{c_j}^π(ρ) ≥ b_j for j ∈ K       a problem whose reward is c_i
    F_i(b)       max_π V_r^π(ρ)       s.t.  V_{c_i}^π(ρ) ≥ b, the others held   the same table with another threshold

Each is one exact solve (:func:`~saddleback.exact.occupancy_lp.solve_exactly` or
:func:`~saddleback.exact.column_generation.solve_by_columns`), checked as those are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from saddleback.exact.occupancy_lp import ExactAnswer
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

Solve = Callable[[Table], ExactAnswer]

_EDGE = 1e-9  # of H: the last threshold is met by one policy only, up to rounding


def constraint_reach(table: Table, constraint: int, others: Sequence[int], solve: Solve) -> float | None:
    """The best total of one constraint, in the user's units, over policies that meet the ``others``; None where none does."""
    i, held = constraint, list(others)
    if not held:
        alone = _with_constraints(table, [i])
        return float(solve(alone).reachable[0])
    signal = table.problem().signals[1 + i]
    changed = dataclasses.replace(
        _with_constraints(table, held),
        reward=table.constraints[i],
        reward_range=(signal.low, signal.high),
        minimise=table.senses[i] == "<=",
    )
    answer = solve(changed)
    return answer.value if answer.status == "optimal" else None


def frontier_ends(table: Table, constraint: int, solve: Solve) -> tuple[float, float] | None:
    """Totals of one constraint: where the others alone bind, and the last that can be met; None where nothing can be."""
    i, others = constraint, [j for j in range(len(table.names)) if j != constraint]
    tight = constraint_reach(table, i, others, solve)
    if tight is None:
        return None
    signal, H = table.problem().signals[1 + i], table.problem().horizon
    never_binds = (signal.low if table.senses[i] == ">=" else signal.high) * H
    free = solve(with_threshold(table, i, never_binds))
    return float(free.constraint_values[i]), tight


def exact_frontier(
    table: Table, constraint: int, thresholds: Sequence[float] | int, solve: Solve
) -> list[tuple[float, ExactAnswer]]:
    """The exact answer at each threshold (a discounted total), or at so many, evenly spread where the constraint matters."""
    if isinstance(thresholds, int):
        ends = frontier_ends(table, constraint, solve)
        if ends is None:
            return []
        edge = _EDGE * table.problem().horizon * abs(float(table.problem().scale[1 + constraint]))
        free, tight = ends[0], ends[1] - np.sign(ends[1] - ends[0]) * edge
        totals: list[float] = np.linspace(free, tight, thresholds).tolist()
    else:
        totals = [float(b) for b in thresholds]
    return [(b, solve(with_threshold(table, constraint, b))) for b in totals]


def with_threshold(table: Table, constraint: int, threshold: float) -> Table:
    """The table with another threshold, a discounted total, for one constraint."""
    totals: Array = np.array(table.thresholds, dtype=np.float64)
    totals[constraint] = threshold
    return dataclasses.replace(table, thresholds=totals)


def _with_constraints(table: Table, kept: list[int]) -> Table:
    return dataclasses.replace(
        table,
        constraints=table.constraints[kept],
        thresholds=table.thresholds[kept],
        senses=tuple(table.senses[j] for j in kept),
        names=tuple(table.names[j] for j in kept),
        ranges=None if table.ranges is None else tuple(table.ranges[j] for j in kept),
    )
