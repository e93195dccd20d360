"""Small problems and buffers that the tests share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saddleback.designs.design import Design, full_design, weighted_design
from saddleback.method.oracles import DescentTerms, Needs, OracleErrors, needs_of
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.problem.cmdp import CMDP
from saddleback.runs.work_folder import owned
from saddleback.sampling.batches import Parts, SampleBatches
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import CountedBuffer as Buffer
from saddleback.sampling.counted_buffer import cut
from saddleback.simulators.table import Table
from saddleback.theory.meta_theorem import Guarantee, guarantee_of


def random_table(seed: int, S: int = 6, A: int = 3, gamma: float = 0.8, m: int = 1, d: int | None = None) -> Table:
    """A random table with utilities in [0, 1]; with ``d`` its transitions and rewards are linear in simplex features."""
    rng = np.random.default_rng(seed)
    if d is None:
        phi, P = None, rng.dirichlet(np.full(S, 0.5), (S, A))
        reward, constraints = rng.random((S, A)), rng.random((m, S, A))
    else:
        phi = rng.dirichlet(np.full(d, 0.5), (S, A))
        P = phi @ rng.dirichlet(np.full(S, 0.5), d)
        P /= P.sum(axis=-1, keepdims=True)
        reward, constraints = phi @ rng.random(d), np.array([phi @ rng.random(d) for _ in range(m)])
    b = np.full(m, 0.4 / (1 - gamma))
    ranges = ((0.0, 1.0),) * m
    rho = rng.dirichlet(np.ones(S))
    return Table.of(P, reward, constraints, b, gamma=gamma, rho=rho, phi=phi, reward_range=(0.0, 1.0), ranges=ranges)


def needs_by_name(name: str) -> Needs:
    """What the solver of that name needs for a table."""
    return needs_of(SOLVERS[name](), random_table(0).problem())


def descent_guarantee(
    *,
    upper: float,
    step_size: float,
    num_iterations: int,
    zeta: float,
    solver_error: float,
    evaluation_error: float,
    **rest: float,
) -> Guarantee:
    """What the theorem promises, all of its arguments by name."""
    terms = DescentTerms(upper, step_size, num_iterations, zeta)
    return guarantee_of(terms, OracleErrors(solver_error, evaluation_error), **rest)


def random_design(problem: CMDP, seed: int) -> Design:
    """All pairs with random positive weights."""
    states, actions = problem.pairs()
    phi = problem.required_features().at(states, actions)
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(states))) + 1e-3
    return weighted_design(states, actions, phi, weights / weights.sum())


def sampled(table: Table, problem: CMDP, design: Design, N: int, T: int, seed: int = 0, stream: int = 0) -> Buffer:
    """A buffer of ``N`` samples a pair in ``T`` batches."""
    return cut(collect(table.simulator(), problem, design, N, seed=seed, stream=stream), problem, design, T)


def tabular_buffer(table: Table, N: int, T: int, seed: int = 0, stream: int = 0) -> tuple[CMDP, Buffer]:
    """The tabular problem and a buffer over every pair."""
    problem = table.problem()
    return problem, sampled(table, problem, full_design(*problem.pairs()), N, T, seed, stream)


class NoiselessBuffer(Buffer):
    """P̂ = P: means are expectations under the true table. For identities only."""

    P: np.ndarray

    @classmethod
    def of(cls, table: Table, problem: CMDP, design: Design, T: int) -> NoiselessBuffer:
        """T batches, each of them exact."""
        S = table.num_states
        sizes = np.ones(design.size, dtype=np.int64)
        batches = SampleBatches(np.zeros((T, design.size), dtype=np.intp), Parts(sizes))
        buffer = cls(design, problem.features, batches, sizes, np.arange(S), None, 0)
        rows = design.states * table.num_actions + design.actions
        buffer.P = table.P.toarray()[rows]
        return buffer

    def average(self, value: object) -> np.ndarray:
        return self.expect(0, value)

    def expect(self, t: int, value: object) -> np.ndarray:
        return self.P @ self.at_support(value)  # type: ignore[arg-type]


def chain_under(table: Table, probabilities: np.ndarray) -> np.ndarray:
    """P_π, dense ``(S, S)``."""
    S, A = table.num_states, table.num_actions
    return np.einsum("sa,sat->st", probabilities, table.P.toarray().reshape(S, A, S))


def begun_and_killed(place: Path, *request: Any) -> None:
    """Leave a run as one that is killed when it has written its request: verb, target, settings, options."""
    with owned(place) as work:
        work.begin(*request)
