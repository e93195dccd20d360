"""What every named problem is handed out as, and what is reachable on its table: the values of its unconstrained optima.

By these :func:`landmarks` thresholds are placed and judged; ties go to the lowest action. They are no answer to the constrained
problem, only what is needed to say "midway between V_c of the unconstrained optimum and max V_c" and to tell a user how a
threshold compares with what is reachable.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from saddleback.exact.bellman import Model
from saddleback.exact.policy_iteration import optimum, solve_dense
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import rounded
from saddleback.problem.policies import Policy
from saddleback.problem.signals import total_of, with_limits
from saddleback.problem.spaces import Array
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table

_DENSE = 1000  # states up to which the equations are solved at once
_DIGITS = 10  # of a threshold, which is part of the problem and must not depend on the processor


@dataclass(frozen=True, eq=False)
class Instance:
    """A problem with its simulator; ``table``, ``known`` and ``true_values`` are for checking answers only.

    ``known`` holds numbers in the user's units: for problems with a table the values at the unconstrained optimum, the
    best reachable value of each constraint and, for one constraint, its distance ``zeta`` from the threshold (negative:
    infeasible). Where there is no table but a closed form, ``true_values(policy)`` gives V_r(ρ), V_c(ρ), … ``(1+m,)`` of
    a stationary policy.
    """

    name: str
    problem: CMDP
    simulator: GenerativeModel
    table: Table | None
    summary: str
    known: dict[str, float]
    true_values: Callable[[Policy], Array] | None = None

    @classmethod
    def of_table(cls, table: Table, summary: str) -> Instance:
        """The instance a table describes in full."""
        return cls(table.name, table.problem(), table.simulator(), table, summary, landmarks(table))

    def with_limits(self, limits: Mapping[str, float]) -> Instance:
        """The same with other limits of the constraints named, each in the unit in which the limit was given."""
        if not limits:
            return self
        problem = dataclasses.replace(self.problem, constraints=with_limits(self.problem.constraints, limits))
        totals = np.array([total_of(c, c.threshold, problem.horizon) for c in problem.constraints])
        table = None if self.table is None else dataclasses.replace(self.table, thresholds=totals)
        known = dict(self.known)
        if "zeta" in known:  # of the one constraint
            c = problem.constraints[0]
            room = known[f"best_{c.name}"] - float(totals[0])
            known["zeta"] = room if c.sense == ">=" else -room
        return dataclasses.replace(self, problem=problem, table=table, known=known)


def landmarks(table: Table) -> dict[str, float]:
    """Numbers in the user's units: see :class:`Instance`."""
    free, *best = _values_at(table, np.eye(1 + len(table.names)))
    known = {"unconstrained_value": float(free[0])}
    for i, (name, sense) in enumerate(zip(table.names, table.senses, strict=True), start=1):
        known |= {f"unconstrained_{name}": float(free[i]), f"best_{name}": float(best[i - 1][i])}
        if len(table.names) == 1:
            room = known[f"best_{name}"] - float(table.thresholds[0])
            known["zeta"] = room if sense == ">=" else -room
    return known


def midway(table: Table) -> Table:
    """The table with thresholds for its "≥" constraints halfway from the unconstrained optimum to their maximum.

    One constraint: b = (V_c(π_r) + max V_c)/2. Several maxima may exclude one another, so with m > 1 the maximiser π_c of
    Σ_i c_i takes the maximum's place: b_i = min((V_{c_i}(π_r) + V_{c_i}(π_c))/2, V_{c_i}(π_c)). Where V_{c_i} differs
    between the two policies for every i, all slacks are positive at a mixture with weight in (1/2, 1) on π_c. The
    constraints must have ranges of one width.
    """
    m = len(table.names)
    at_reward, at_sum = _values_at(table, np.array([[1.0] + m * [0.0], [0.0] + m * [1.0]]))[:, 1:]
    return dataclasses.replace(table, thresholds=rounded(np.minimum((at_reward + at_sum) / 2, at_sum), _DIGITS))


def _values_at(table: Table, prices: Array) -> Array:
    """V_r, V_{c_1} … ``(k, 1+m)`` in the user's units, of the best policy for each row of ``prices``."""
    problem, S = table.problem(), table.num_states
    model, signals = Model.of(table, problem), np.stack([table.reward, *table.constraints], axis=2)
    values = []
    for q in prices:
        actions, swept = optimum(model, q)
        if S > _DENSE:
            values.append(problem.values_of(swept))
        else:  # free of the rounding that shifts and spans bring
            V = solve_dense(model.chain(actions), signals[np.arange(S), actions], "N")
            values.append(table.rho @ V)
    return np.array(values) + 0.0  # no −0
