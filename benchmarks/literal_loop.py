"""The literal loop against the same loop written bare in NumPy: gather, mean, d × |C| product, Φθ, max.

random-linear with S = 500, A = 5, d = 10; 10⁵ samples in all; T = 200; 20 dual iterations, none of them remembered.
"""

from __future__ import annotations

import numpy as np

from benchmarks.timing import Row, ratio
from saddleback.instances.zoo import make
from saddleback.method.duals import ProjectedDescent
from saddleback.method.framework import Oracle, run
from saddleback.runs.settings import Method
from saddleback.solving.prepare import prepare

T, K = 200, 20
STATES, SAMPLES = 500, 100_000


def rows() -> list[Row]:
    instance = make("random-linear", states=STATES, actions=5, dim=10)
    problem = instance.problem
    size = prepare(problem, instance.simulator, SAMPLES, 0, Method(mode="literal", resolution=0)).design.size
    M = SAMPLES // (2 * size) // T
    parts = prepare(
        problem, instance.simulator, 2 * size * M * T, 0, Method(batch_size=M, mode="literal", resolution=0)
    )
    A, B = parts.solver_buffer, parts.evaluation_buffer
    assert A is not None and A.num_batches == T
    dual = ProjectedDescent(problem.thresholds, 20.0, 0.5, K)

    def ours() -> object:
        oracle = Oracle(parts.oracle._solve, parts.oracle._evaluate)
        return run(oracle, dual).values

    phi = instance.table.phi
    S, actions, d = phi.shape
    Phi = np.ascontiguousarray(phi.reshape(-1, d))
    solver_samples = A.support[A.batches.index].reshape(T, size, M)
    evaluation_samples = B.support[B.batches.index].reshape(T, size, M)
    operator, gamma = parts.design.operator, problem.gamma
    u = A.utilities(problem)
    start, weights = problem.start.states, problem.start.weights

    def bare() -> object:
        lam, total = 0.0, 0.0
        for _ in range(K):
            box = (u[:, 0] + lam * u[:, 1]) / (1 + lam)
            theta, top, V = np.zeros(d), np.zeros(S), np.zeros(S)
            for t in range(T):
                z = box + gamma * V[solver_samples[t]].mean(axis=1)
                theta = theta + operator @ z
                new = (Phi @ theta).reshape(S, actions).max(axis=1)
                V, top = new - top, new
            pi = (Phi @ theta).reshape(S, actions).argmax(axis=1)
            phi_pi = phi[np.arange(S), pi]
            V2, mean = np.zeros((S, 2)), np.zeros((d, 2))
            for t in range(T):
                omega = operator @ (u + gamma * V2[evaluation_samples[t]].mean(axis=1))
                V2 = phi_pi @ omega
                mean += omega / T
            values = weights @ (phi_pi[start] @ mean)
            lam = min(max(lam - 0.5 * (values[1] - problem.thresholds[0]), 0.0), 20.0)
            total += values[1] / K
        return total

    check = float(np.asarray(ours())[1]), float(bare())  # type: ignore[arg-type]
    assert abs(check[0] - check[1]) < 1e-8, f"the two loops disagree: {check}"
    measured, seconds, reference = ratio(ours, bare)
    return [
        Row(
            f"literal solve, T={T}, M={M}, |C|={size}, {K} dual iterations / bare NumPy",
            measured,
            1.5,
            1.0,
            seconds,
            reference,
        )
    ]
