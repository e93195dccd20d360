"""What every named problem of the zoo is handed out as."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from saddleback.instances.landmarks import landmarks
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table


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
