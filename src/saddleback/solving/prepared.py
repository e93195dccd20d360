"""What a solve rests on once its samples are there: the problem as the oracles see it, buffers, parts, and O(σ).

Everything after sampling is a pure function of this; asked under another problem it costs no simulator call.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.method.framework import Oracle
from saddleback.method.oracles import Evaluator, Interval, Solver
from saddleback.method.solvers.plug_in import fixed_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import GreedyPolicy, Policy, as_table
from saddleback.problem.remarks import Remark
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

_TABLE_STATES = (
    200_000  # finite problems up to this size keep policies as action tables, so that equal ones are merged,
)
_TABLE_PAIRS = 1 << 27  # unless their actions cannot be listed


@dataclass(frozen=True)
class Prepared:
    """Everything after sampling: a pure function of (problem, buffers)."""

    problem: CMDP
    design: Design
    solver_buffer: Buffer | None
    evaluation_buffer: Buffer
    solver: Solver
    evaluator: Evaluator
    oracle: Oracle
    samples: int
    names: dict[str, str]
    remarks: tuple[Remark, ...]
    resolution: int | None
    explored: int = 0
    hints: tuple[Buffer, ...] | None = None
    """Smaller buffers in memory that guide a certificate where the samples themselves are elsewhere."""

    def interval(self, policy: Policy, confidence: float) -> Interval:
        """The evaluator's measured limits for one policy."""
        return self.evaluator.interval(self.problem, self.evaluation_buffer, policy, confidence)

    def optimum(self, sigma: Array) -> float:
        """The best value at ρ of □_σ on the estimated model of the evaluation buffer: errs upwards. H where unknown."""
        problem = self.problem
        theta, converged = fixed_point(problem, self.evaluation_buffer, sigma[None], 1e-7, 20_000)
        if not converged[0]:
            return problem.horizon
        at_start = problem.required_features().maximum(problem.start.states, np.ascontiguousarray(theta[:, 0]))
        return min(float(problem.start.weights @ at_start), problem.horizon)

    def on(self, problem: CMDP) -> Prepared:
        """The same samples under another reward, other constraints or thresholds: no new simulator call.

        States, actions, features and discount must be the same; new signals must be known functions or arrays.
        """
        same = (problem.num_actions, problem.states, problem.gamma) == (
            self.problem.num_actions,
            self.problem.states,
            self.problem.gamma,
        )
        require(
            same, "problem", "must keep states, actions and discount to reuse samples", problem.name, "solve afresh"
        )
        ours, theirs = self.problem.required_features(), problem.features
        require(
            theirs is None or theirs.dim == ours.dim,
            "features",
            f"must be the {ours.dim} that the samples were drawn for",
            None if theirs is None else theirs.dim,
            "leave them out, or solve afresh",
        )
        if self.solver_buffer is None:
            raise InputError("reuse", "must not be asked of interactive oracles", self.names["solver"], "solve afresh")
        if np.any(problem.observed):
            raise InputError("reuse", "must not be asked for observed signals", problem.name, "give known functions")
        problem = dataclasses.replace(problem, features=self.problem.features, candidates=self.problem.candidates)
        oracle = oracle_of(
            problem, self.solver, self.solver_buffer, self.evaluator, self.evaluation_buffer, self.resolution
        )
        # A problem chosen after these samples were seen is not independent of them: no grid, no a-priori guarantee.
        return dataclasses.replace(self, problem=problem, oracle=oracle, samples=0, resolution=None)


def canonical(problem: CMDP, policy: Policy) -> Policy:
    """Allowed actions only; and small finite problems keep tables: two θ's with the same actions are one policy."""
    policy = problem.permitted(policy)
    S = problem.num_states
    listed = S is not None and S <= _TABLE_STATES and S * problem.num_actions <= _TABLE_PAIRS
    if S is not None and listed and isinstance(policy, GreedyPolicy):
        return as_table(policy, S)
    return policy


def oracle_of(
    problem: CMDP, solver: Solver, solver_buffer: Buffer, evaluator: Evaluator, buffer: Buffer, resolution: int | None
) -> Oracle:
    """O(σ) on two buffers, which may be one."""

    def solve(sigmas: Array) -> list[Policy]:
        return [canonical(problem, policy) for policy in solver.solve(problem, solver_buffer, sigmas)]

    return Oracle(solve, lambda policy: evaluator.evaluate(problem, buffer, policy), resolution)
