"""§3, observed rewards: mean and variance of what the simulator returned, pair by pair, from sums block after block.

    mean = base + Σ(x − base)/n,     variance = Σ(x − base)²/n − (Σ(x − base)/n)²

The sums are taken around the base of each signal, lest a large offset cost the digits of the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array


def signal_sums(signals: Array, base: Array) -> tuple[Array, Array]:
    """Σ (x − base) and Σ (x − base)² of the rows of ``signals`` ``(n, k)``, ``(k,)`` each."""
    x = signals - base
    return x.sum(axis=0), (x**2).sum(axis=0)


@dataclass(frozen=True)
class SignalMoments:
    """Sums so far: ``base`` is ``(k,)``, empty where nothing is observed; ``sums`` and ``squares`` are ``(c, k)``."""

    base: Array
    sums: Array
    squares: Array

    @classmethod
    def none(cls, num_pairs: int, base: Array) -> SignalMoments:
        """Before the first block."""
        return cls(base, *np.zeros((2, num_pairs, len(base))))

    def add(self, pair: int, sums: Array, squares: Array) -> None:
        """The sums of one more block of a pair."""
        self.sums[pair] += sums
        self.squares[pair] += squares

    def add_held(self, counts: NDArray[np.int64], means: Array, variances: Array) -> None:
        """What was known of ``counts`` samples of every pair before."""
        n, x = counts[:, None], means - self.base
        self.sums[...] += n * x
        self.squares[...] += n * (variances + x**2)

    def means_and_variances(self, counts: NDArray[np.int64]) -> tuple[Array, Array] | tuple[None, None]:
        """Of ``counts`` samples of every pair, ``(c, k)`` each; None where nothing is observed."""
        if not len(self.base):
            return None, None
        n = counts[:, None]
        means = self.sums / n
        return means + self.base, np.maximum(self.squares / n - means**2, 0.0)
