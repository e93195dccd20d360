"""Random feasible tables in odd units, for the tests of this folder."""

from __future__ import annotations

import numpy as np

from saddleback.exact import best_policy, policy_values
from saddleback.policy import TabularPolicy
from saddleback.simulators.table import Table


def random_table(
    seed: int, *, m: int = 1, S: int = 12, A: int = 3, gamma: float = 0.9, tightness: float = 0.6
) -> Table:
    """Sparse random P, rewards of size 500 around 40, constraints of sizes 1e-3, 1 and 1e4 with both senses.

    Thresholds lie between the values of the unconstrained optimum (tightness 0) and those of a policy that a random
    direction of the constraints likes best (tightness 1), so a policy exists that meets all of them.
    """
    rng = np.random.default_rng(np.random.SeedSequence([20260, seed]))
    P = np.zeros((S, A, S))
    for s in range(S):
        for a in range(A):
            P[s, a, rng.choice(S, 4, replace=False)] = rng.dirichlet(np.ones(4))
    scale = np.array([1e-3, 1.0, 1e4])[:m, None, None]
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


def random_policy(table: Table, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    return TabularPolicy.stochastic(rng.dirichlet(np.ones(table.num_actions), size=table.num_states))
