"""Random feasible tables in odd units, for the tests of this folder."""

from __future__ import annotations

import numpy as np

from saddleback.exact import best_policy, policy_values
from saddleback.problem.policies import TabularPolicy
from saddleback.simulators.table import Table


def random_table(
    seed: int, *, m: int = 1, S: int = 12, A: int = 3, gamma: float = 0.9, tightness: float = 0.6
) -> Table:
    """Sparse random P, rewards of size 500 around 40, constraints of sizes 1e-3, 1, 1e4 and 50 with both senses.

    Thresholds lie between the values of the unconstrained optimum (tightness 0) and those of a policy that a random
    direction of the constraints likes best (tightness 1), so a policy exists that meets all of them.
    """
    rng = np.random.default_rng(np.random.SeedSequence([20260, seed]))
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            P[s, a, rng.choice(S, 4, replace=False)] = rng.dirichlet(np.ones(4))
    scale = np.array([1e-3, 1.0, 1e4, 50.0])[:m, None, None]
    parts = {
        "P": P,
        "reward": 40 + 500 * rng.normal(size=(S, A)),
        "constraints": scale * (rng.normal(size=(m, S, A)) + 3),
        "gamma": gamma,
        "rho": rng.dirichlet(np.ones(S)),
        "senses": [(">=", "<=")[int(i)] for i in rng.integers(0, 2, m)],
    }
    loose = Table.of(**parts, thresholds=np.zeros(m))
    free, _ = best_policy(loose, np.eye(1 + m)[0])
    good, _ = best_policy(loose, np.concatenate([[0.0], rng.dirichlet(np.ones(m))]))
    at = [policy_values(loose, policy)[1:] for policy in (free, good)]
    return Table.of(**parts, thresholds=(1 - tightness) * at[0] + tightness * at[1])


def degenerate_tables(seed: int) -> dict[str, Table]:
    """A small table with ties, constants, deterministic moves, one state or one action, in units from 1e-3 to 1e3, five times.

    Thresholds lie, in the paper's units, in the ``middle`` between the values of two good policies, at the ``edge`` (those
    of a policy that is best for some mixture of the constraints), below both (``slack``), or above what can be reached, by
    0.01·H (``infeasible``) or 1e-6·H (``barely infeasible``).
    """
    rng = np.random.default_rng(np.random.SeedSequence([4711, seed]))
    S, A, m = int(rng.choice([1, 2, 3, 10, 40, 150])), int(rng.choice([1, 2, 3, 5])), int(rng.integers(1, 5))
    kind = rng.choice(["smooth", "ties", "deterministic", "constant"])
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            k = 1 if kind == "deterministic" else min(S, int(rng.integers(1, 4)))
            P[s, a, rng.choice(S, k, replace=False)] = rng.dirichlet(np.ones(k))
    signals = rng.normal(size=(1 + m, S, A)) if kind == "smooth" else rng.integers(0, 3, (1 + m, S, A)).astype(float)
    if kind == "constant":
        signals[:] = signals[:, :1, :1]
    signals *= 10.0 ** rng.integers(-3, 4, (1 + m, 1, 1))
    parts = {
        "P": P,
        "reward": signals[0],
        "constraints": signals[1:],
        "gamma": float(rng.choice([0.0, 0.5, 0.9, 0.99, 0.999])),
        "rho": rng.dirichlet(np.ones(S)) if rng.random() < 0.5 else np.eye(S)[0],
        "senses": [(">=", "<=")[int(i)] for i in rng.integers(0, 2, m)],
    }
    loose = Table.of(**parts, thresholds=np.zeros(m))
    problem = loose.problem()
    H = problem.horizon
    good = best_policy(loose, np.concatenate([[0.0], rng.dirichlet(np.ones(m))]))[1][1:]
    free = best_policy(loose, np.eye(1 + m)[0])[1][1:]
    best = np.array([best_policy(loose, row)[1][1 + i] for i, row in enumerate(np.eye(1 + m)[1:])])
    t = rng.random()
    units = {
        "middle": (1 - t) * free + t * good,
        "edge": good,
        "slack": np.minimum(free, good) - 0.01 * H,
        "infeasible": best + 0.01 * H * np.eye(m)[0],
        "barely infeasible": best + 1e-6 * H * np.eye(m)[0],
    }
    scale, base = problem.scale[1:], problem.base[1:] * H
    return {where: Table.of(**parts, thresholds=unit * scale + base) for where, unit in units.items()}


def random_policy(table: Table, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    return TabularPolicy.stochastic(rng.dirichlet(np.ones(table.num_actions), size=table.num_states))
