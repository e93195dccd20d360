"""Problems with their truth: true errors, from the table that the algorithms never see; in the paper's units, where values lie in [0, H]."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from saddleback import zoo
from saddleback.exact import best_policy, mixture_values, policy_values, solve_exactly
from saddleback.problem.policies import Policy
from saddleback.simulators.table import Table
from saddleback.solving.solution import Solution
from studies.measuring import Array


class Truth:
    """What is true of a table: the constrained optimum, and the best policy for one fixed mixture of the rewards.

    ``problem`` and ``simulator`` are what an algorithm may see; ``seed`` made the table and is to draw the samples too.
    """

    def __init__(self, table: Table, seed: int = 0):
        self.table, self.seed = table, seed
        self.problem, self.simulator = table.problem(), table.simulator()
        answer = solve_exactly(table)
        self.best = self.problem.unit_values_of(np.array([answer.value, *answer.constraint_values]))
        m = self.problem.num_constraints
        self.mixing: Array = np.full(1 + m, 1 / (1 + m))  # σ: reward and constraints in equal parts
        self.policy, self.policy_values = best_policy(table, self.mixing)

    def with_seed(self, seed: int) -> Truth:
        """The same table, other samples."""
        other = copy.copy(self)
        other.seed = seed
        return other

    def solver_error(self, policy: Policy) -> float:
        """V* − V^π for the fixed mixture □_σ."""
        values = self.problem.unit_values_of(policy_values(self.table, policy))
        return float(self.mixing @ (self.policy_values - values))

    def evaluation_error(self, estimate: Array) -> float:
        """|V̂ − V| at ρ, root mean square over reward and constraints, for the fixed policy that is best for □_σ."""
        return float(np.sqrt(((estimate - self.policy_values) ** 2).mean()))

    def loss_and_violation(self, solution: Solution) -> tuple[float, float]:
        """V* − V and the worst b − V_c of the returned mixture (either may be negative); infinite without an answer."""
        if solution.mixture is None:
            return math.inf, math.inf
        values = self.problem.unit_values_of(mixture_values(self.table, solution.mixture))
        return float(self.best[0] - values[0]), float((self.problem.thresholds - values[1:]).max())

    def constrained_error(self, solution: Solution) -> float:
        """max(V* − V, violation): what relaxed feasibility asks to be at most ε."""
        return max(self.loss_and_violation(solution))

    def strict_error(self, solution: Solution) -> float:
        """V* − V where the constraint truly holds; infinite where it does not, or where the run says it is not sure."""
        loss, violation = self.loss_and_violation(solution)
        return loss if solution.status.value == "solved" and violation <= 1e-9 else math.inf


def random_problems(name: str, number: int, least_room: float = 0.0, **parameters: Any) -> list[Truth]:
    """The first ``number`` seeds whose problem leaves room ζ ≥ ``least_room``·H, each with its truth."""
    found: list[Truth] = []
    for seed in itertools.count():
        instance = zoo.make(name, seed=seed, **parameters)
        assert instance.table is not None
        if instance.known["zeta"] >= least_room * instance.problem.horizon:
            found.append(Truth(instance.table, seed))
        if len(found) == number:
            break
    return found


def hard_problem(seed: int, **parameters: Any) -> Truth:
    """The lower-bound instance; its table is given the features, without which it would be a tabular problem."""
    instance = zoo.make("hard-instance", seed=seed, **parameters)
    assert instance.table is not None
    phi = instance.problem.required_features().all(np.arange(instance.table.num_states))
    return Truth(dataclasses.replace(instance.table, phi=phi), seed)
