"""Runs of the real oracles on simulated buffers, beside the errors that were proved for them beforehand.

Buffers hold counts: M next states of a pair are one multinomial draw, so that an M of millions costs no more than one of
ten. Solver and evaluator have buffers of their own, from disjoint streams.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from helpers import random_table
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.designs.design import Design
from saddleback.exact import best_policy, mixture_values, solve_exactly, state_values
from saddleback.method.duals import ColumnGeneration
from saddleback.method.evaluators import LSPE, TabularPE
from saddleback.method.framework import Oracle, run
from saddleback.method.solvers import LSMDVI, TabularMDVI
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, as_table
from saddleback.sampling.batches import CountBatches, Parts
from saddleback.sampling.counted_buffer import CountedBuffer as Buffer
from saddleback.simulators.generative_model import Stream, generator
from saddleback.simulators.table import Table
from saddleback.theory import Plan
from saddleback.theory.errors import (
    linear_evaluation_error,
    linear_solver_error,
    tabular_evaluation_error,
    tabular_solver_error,
)

SIGMA = np.array([[0.5, 0.5]])  # □ = (r + c)/2


@dataclass(frozen=True)
class Case:
    """A table and the sizes of both buffers; ``methods`` are the bounds that must be the smaller ones there."""

    table: Callable[[], Table]
    num_iterations: int
    samples_per_iteration: int
    methods: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class Run:
    """True errors, at the worst state for the solver and at ρ for the evaluator, and the proved ones."""

    solver: float
    evaluation: float
    solver_bound: float
    evaluation_bound: float


def generous(seed: int, gamma: float, d: int | None = None) -> Table:
    """A random table that pays between 0.9 and 1: values near H, where an evaluator's bias γHV/T is nearly γH²/T."""
    table = random_table(seed, gamma=gamma, d=d)
    r, c = (0.9 + 0.1 * np.asarray(u) for u in (table.reward, table.constraints))
    return rebuilt(table, r, c)


def rebuilt(table: Table, reward: np.ndarray, constraints: np.ndarray) -> Table:
    S, A = table.num_states, table.num_actions
    P = table.P.toarray().reshape(S, A, S)
    return Table.of(P, reward.reshape(S, A), constraints.reshape(-1, S, A), table.thresholds, gamma=table.gamma,
                    rho=table.rho, phi=table.phi, reward_range=(0.0, 1.0), ranges=((0.0, 1.0),))  # fmt: skip


def delayed(steps: int = 10, gamma: float = 0.9) -> Table:
    """Action 0 pays a little at once and goes back; action 1 walks to the last state, which pays 1 for ever."""
    S = steps + 1
    P, r = np.zeros((S, 2, S)), np.zeros((S, 2))
    for s in range(S):
        P[s, 0, 0], r[s, 0] = 1.0, 0.25
        P[s, 1, min(s + 1, S - 1)] = 1.0
    P[S - 1, :, :], r[S - 1] = np.eye(S)[S - 1], 1.0
    return Table.of(P, r, r[None], np.array([0.0]), gamma=gamma, rho=np.eye(S)[0],
                    reward_range=(0.0, 1.0), ranges=((0.0, 1.0),))  # fmt: skip


def close_calls(gamma: float = 0.9) -> Table:
    """Twenty actions with the same transitions and nearly the same rewards, so that noise chooses among them."""
    rng = np.random.default_rng(7)
    S, A = 6, 20
    P = np.repeat(rng.dirichlet(np.full(S, 0.3), size=(S, 1)), A, axis=1)
    r = rng.integers(0, 2, (S, 1)) * 0.9 + 0.1 * rng.random((S, A))
    return Table.of(P, r, r[None], np.array([0.0]), gamma=gamma, rho=np.full(S, 1 / S),
                    reward_range=(0.0, 1.0), ranges=((0.0, 1.0),))  # fmt: skip


def counted(table: Table, problem: CMDP, design: Design, T: int, M: int, key: tuple[int, int]) -> Buffer:
    """A buffer of M samples of every pair in each of T batches."""
    seed, stream = key
    rows = table.P.toarray()[design.states * table.num_actions + design.actions]
    draws = np.stack([generator(seed, stream, x, 0).multinomial(M, p, size=T) / M for x, p in enumerate(rows)], axis=1)
    sizes = np.full(design.size, M, dtype=np.int64)
    return Buffer(
        design, problem.features, CountBatches(draws, Parts(sizes)), sizes, np.arange(table.num_states), None, 0
    )


def one_run(case: Case, seed: int, delta: float) -> Run:
    """Solve for SIGMA, evaluate the answer on the other buffer, and compare with the truth."""
    table, T, M = case.table(), case.num_iterations, case.samples_per_iteration
    problem = table.problem()
    linear = problem.features is not None
    design = DESIGNS["frank-wolfe" if linear else "full"]().design(problem)
    A = counted(table, problem, design, T, M, (seed, Stream.SOLVER))
    B = counted(table, problem, design, T, M, (seed, Stream.EVALUATION))
    policy = as_table((LSMDVI() if linear else TabularMDVI()).solve(problem, A, SIGMA)[0], table.num_states)
    estimate = (LSPE() if linear else TabularPE()).evaluate(problem, B, policy)
    values, best = state_values(table, policy), state_values(table, best_policy(table, SIGMA[0])[0])
    f_m, f_e = bounds(case, problem.gamma, design, delta)
    return Run(float(((best - values) @ SIGMA[0]).max()), float(np.abs(estimate - table.rho @ values).max()), f_m, f_e)


def bounds(case: Case, gamma: float, design: Design, delta: float) -> tuple[float, float]:
    """f_mdp for one reward and f_eva for one policy and two rewards."""
    T, M = case.num_iterations, case.samples_per_iteration
    if design.operator is not None:
        shared: dict[str, Any] = {
            "gamma": gamma,
            "delta": delta,
            "lebesgue": min(design.lebesgue, math.sqrt(design.leverage_bound)),
            "coreset_size": design.size,
        }
        return (
            linear_solver_error(T, M, num_problems=1, **shared),
            linear_evaluation_error(T, M, num_problems=2, **shared),
        )
    shared = {"gamma": gamma, "delta": delta, "num_pairs": design.size}
    f_m, f_e = (
        tabular_solver_error(T, M, num_problems=1, **shared),
        tabular_evaluation_error(T, M, num_problems=2, **shared),
    )
    assert f_m == tabular_solver_error(T, M, num_problems=1, **shared, method=case.methods[0])
    assert f_e == tabular_evaluation_error(T, M, num_problems=2, **shared, method=case.methods[1])
    return f_m, f_e


def carry_out(table: Table, design: Design, plan: Plan, seed: int) -> tuple[float, float]:
    """Draw what a plan says, run column generation on it, and return the true loss and violation of the mixture."""
    problem, m = table.problem(), len(table.thresholds)
    linear = problem.features is not None
    (T, M), (T_e, M_e) = plan.solver, plan.evaluation
    A = counted(table, problem, design, T, M, (seed, Stream.SOLVER))
    B = counted(table, problem, design, T_e, M_e, (seed, Stream.EVALUATION))
    solver, evaluator = (LSMDVI(), LSPE()) if linear else (TabularMDVI(), TabularPE())

    def solve(sigmas: np.ndarray) -> list[Policy]:
        return [as_table(policy, table.num_states) for policy in solver.solve(problem, A, sigmas)]

    oracle = Oracle(solve, lambda policy: evaluator.evaluate(problem, B, policy), plan.resolution)
    assert plan.tolerance is not None
    dual = ColumnGeneration(problem.thresholds + plan.target_shift, plan.tolerance)
    truth = problem.unit_values_of(mixture_values(table, run(oracle, dual).mixture))
    exact = solve_exactly(table)
    best = problem.unit_values_of(np.array([exact.value, *exact.constraint_values]))[0]
    assert m == 1
    return float(best - truth[0]), float(problem.thresholds[0] - truth[1])
