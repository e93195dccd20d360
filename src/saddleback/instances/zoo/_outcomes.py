"""Models whose chance has a few outcomes: s' = step(s, a, k) with probability p_k, k = 1..K, whatever the pair.

Sampling needs no table and no memory that grows with the states; writing the table down, for checks, is one call of
``step`` for each outcome.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.generative_model import GenerativeModel

Step = Callable[[States, Actions, NDArray[np.int64]], States]

TABLE_STATES = 5000
"""States up to which an instance carries its table; a larger table is built on request only."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """``step(states, actions, outcomes)``, vectorised and deterministic; ``chances`` ``(K,)`` sum to one."""

    num_states: int
    num_actions: int
    chances: Array
    step: Step

    def sample(self, states: States, actions: Actions, rng: np.random.Generator) -> States:
        """One next state per pair."""
        k = np.searchsorted(np.cumsum(self.chances)[:-1], rng.random(len(states)), side="right")
        return self.step(states, actions, k)

    def simulator(self) -> GenerativeModel:
        """Gen."""
        return GenerativeModel(self.sample, FiniteStates(self.num_states))

    def matrix(self) -> scipy.sparse.csr_array:
        """P ``(S·A, S)``, row s·A + a; outcomes that lead to the same state are added up."""
        S, A, K = self.num_states, self.num_actions, len(self.chances)
        pairs = np.arange(S * A)
        following = np.empty((S * A, K), dtype=np.int32)
        for k in range(K):
            following[:, k] = self.step(pairs // A, pairs % A, np.full(S * A, k))
        P = scipy.sparse.csr_array(
            (np.tile(self.chances, S * A), following.ravel(), np.arange(0, S * A * K + 1, K)), shape=(S * A, S)
        )
        P.sum_duplicates()
        return P


def product(*laws: Array) -> tuple[Array, NDArray[np.int64]]:
    """Independent laws as one: chances ``(K,)`` and, for each outcome, the outcome of each law, ``(K, len(laws))``."""
    grid = np.stack(np.meshgrid(*(np.arange(len(law)) for law in laws), indexing="ij"), axis=-1).reshape(-1, len(laws))
    chances = np.prod([law[grid[:, i]] for i, law in enumerate(laws)], axis=0)
    return np.asarray(chances), grid
