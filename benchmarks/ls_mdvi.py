"""One LS-MDVI solve against what the memory allows, and sixteen multipliers against one; one thread.

20,000 states, 10 actions, d = 20, 60 coreset pairs, T = 100, M = 2,000: 1.2·10⁷ samples. The reference does, compiled and
written here anew, only what no solve can do without: one gather-and-mean of all samples, and T times max_a(Φθ). The samples are
made up (uniform next states); the clock starts at a buffer nobody has used, so that what a first solve prepares is counted.
"""

from __future__ import annotations

import dataclasses
import sys

import numba
import numpy as np

from benchmarks.timing import Row, ratio
from saddleback.designs.design import weighted_design
from saddleback.features import FeatureMatrix
from saddleback.method.solvers import LSMDVI
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.batches import SampleBatches
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import Samples
from saddleback.sampling.counted_buffer import cut

S, A, d, C, T, M = 20_000, 10, 20, 60, 100, 2_000
K = 16


def rows() -> list[Row]:
    problem, buffer = synthetic()
    held = buffer.batches
    assert isinstance(held, SampleBatches), "uniform next states repeat too seldom to be counted"
    print(f"LS-MDVI: {held.index.size:.3g} samples at {held.index.itemsize:.1f} bytes each")
    one, many = np.array([[0.5, 0.5]]), np.column_stack([np.linspace(0, 1, K), np.linspace(1, 0, K)])
    solver, rng = LSMDVI(), np.random.default_rng(1)

    def solve(mixing: np.ndarray) -> object:
        return solver.solve(problem, dataclasses.replace(buffer), mixing)

    assert problem.features is not None
    Phi = np.ascontiguousarray(problem.features.all(buffer.support)).reshape(-1, d)
    index, V, theta = held.index.reshape(T, C, M), rng.random(len(buffer.support)), rng.random(d)
    np.testing.assert_allclose(gather(index[:1], V)[0], V[index[0]].mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(maximum(Phi, theta, A), (Phi @ theta).reshape(-1, A).max(axis=1), rtol=1e-12)

    def necessary() -> object:
        return gather(index, V), [maximum(Phi, theta, A) for _ in range(T)]

    floor = ratio(lambda: solve(one), necessary)
    several = ratio(lambda: solve(many), lambda: solve(one))
    size = f"{held.index.size:.2g} samples"
    return [
        Row(f"LS-MDVI, {size} / one gather-and-mean + T max(Φθ), compiled", floor[0], 1.5, 1.2, *floor[1:]),
        Row(f"LS-MDVI, {size}, {K} multipliers in one call / one", several[0], 6.0, 3.0, *several[1:]),
    ]


def synthetic() -> tuple[CMDP, Buffer]:
    rng = np.random.default_rng(0)
    phi = rng.exponential(size=(S, A, d))
    phi /= phi.sum(axis=2, keepdims=True)
    problem = CMDP(
        gamma=0.95,
        start=Start.over_all(np.full(S, 1 / S)),
        num_actions=A,
        states=FiniteStates(S),
        reward=phi @ rng.random(d),
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", phi @ rng.random(d), ">=", 5.0, range=(0.0, 1.0))],
        features=FeatureMatrix(phi),
    )
    states, actions = rng.integers(0, S, C), rng.integers(0, A, C)
    design = weighted_design(states, actions, phi[states, actions], np.full(C, 1 / C))
    samples = Samples([rng.integers(0, S, T * M, dtype=np.int32) for _ in range(C)], None)
    return problem, cut(samples, problem, design, T)


@numba.njit
def gather(index: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Mean of V over the last axis of ``index``; several sums at once, as a processor can add faster than it waits."""
    T, C, M = index.shape
    out = np.empty((T, C))
    for t in range(T):
        for x in range(C):
            row = index[t, x]
            even, odd, third, fourth = 0.0, 0.0, 0.0, 0.0
            for i in range(0, M - M % 4, 4):
                even += V[row[i]]
                odd += V[row[i + 1]]
                third += V[row[i + 2]]
                fourth += V[row[i + 3]]
            for i in range(M - M % 4, M):
                even += V[row[i]]
            out[t, x] = (even + odd + third + fourth) / M
    return out


@numba.njit(fastmath=True)
def maximum(Phi: np.ndarray, theta: np.ndarray, A: int) -> np.ndarray:
    """max over each A rows of Φθ, without storing Φθ."""
    n = len(Phi) // A
    out = np.empty(n)
    for s in range(n):
        best = -np.inf
        for a in range(A):
            row, dot = Phi[s * A + a], 0.0
            for j in range(len(theta)):
                dot += row[j] * theta[j]
            best = max(best, dot)
        out[s] = best
    return out


if __name__ == "__main__":
    sys.stdout.writelines(f"{row}\n" for row in rows())
