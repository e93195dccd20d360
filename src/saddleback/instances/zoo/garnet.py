"""Random sparse tables ("garnets"): from every pair a few random successors with random probabilities.

Successors are distinct and uniform, their probabilities uniform on the simplex, reward and constraint signals independent
and uniform on [0, 1], the start uniform. The thresholds lie midway between V_c of the unconstrained optimum and max V_c
(several constraints: :func:`saddleback.instances.instance.midway`).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import at_least, require
from saddleback.instances.instance import Instance, midway
from saddleback.instances.zoo._building import Count, Discount, Seed, effort, memory
from saddleback.simulators.table import Table

_MOST_COMPARED = 1e9  # about three seconds


def garnet(
    *,
    states: Count = 50,
    actions: Count = 4,
    successors: int = 5,
    gamma: Discount = 0.9,
    constraints: Count = 1,
    seed: Seed = 0,
) -> Instance:
    """A random sparse table.

    states: number of states S
    actions: number of actions A
    successors: distinct next states of every pair
    gamma: discount factor
    constraints: number of constraints m, each ">=" and named c1, c2, ...
    seed: of the random table
    """
    S, A, m = states, actions, constraints
    at_least("successors", successors, 1, S)
    memory("states", S * A * (successors + m + 2), "use fewer states, actions or successors")
    fewer = "use fewer states, actions, successors or constraints, or a smaller gamma"
    effort("states", S, S * A * successors, gamma, fewer, 1 + m)
    rule = f"must give at most {_MOST_COMPARED:.0e} comparisons of successors, S*A*successors^2/2"
    compared = S * A * successors**2 / 2
    require(compared <= _MOST_COMPARED, "successors", rule, f"{compared:.0e}", fewer)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    indices = _distinct_columns(S * A, S, successors, rng)
    chance = rng.standard_exponential((S * A, successors))
    chance /= chance.sum(axis=1, keepdims=True)  # uniform on the simplex
    indptr = np.arange(0, S * A * successors + 1, successors)
    P = scipy.sparse.csr_array((chance.ravel(), indices.ravel(), indptr), shape=(S * A, S))
    P.sort_indices()
    reward, signals = rng.random((S, A)), rng.random((m, S, A))
    table = Table.of(
        P,
        reward,
        signals,
        np.zeros(m),  # until midway
        gamma=gamma,
        rho=np.full(S, 1 / S),
        names=[f"c{i + 1}" for i in range(m)],
        reward_range=(0.0, 1.0),
        ranges=((0.0, 1.0),) * m,
        name="garnet",
    )
    summary = f"a random table: {S} states, {A} actions, {successors} successors, {m} constraint(s), seed {seed}"
    return Instance.of_table(midway(table), summary)


def _distinct_columns(rows: int, num: int, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``count`` distinct numbers below ``num`` in every row, every subset equally likely (Floyd's rule, all rows at once)."""
    chosen = np.empty((rows, count), dtype=np.int64)
    for i, top in enumerate(range(num - count, num)):
        pick = rng.integers(0, top + 1, size=rows)
        taken = np.any(chosen[:, :i] == pick[:, None], axis=1)
        chosen[:, i] = np.where(taken, top, pick)  # top itself cannot have been chosen before
    return chosen
