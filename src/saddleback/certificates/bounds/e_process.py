"""Upper limits for (P V)(x) that are monotone in V, so that optimism may pass through them.

At a pair x with independent next states s'_1..s'_n, a fixed function V and a fixed stake g < 1/(max V − (PV)(x)),

    E_x(V, μ) = Π_i (1 − g (V(s'_i) − μ)),        P(E_x(V, (PV)(x)) ≥ 1/δ) ≤ δ        (Markov: the product has mean one)

so with probability 1 − δ

    (PV)(x) ≤ U_x(V) := sup{μ : E_x(V, μ) ≤ 1/δ}.

U_x is monotone (a larger V makes the factors smaller, so a larger μ is allowed) and U_x(V + k) = U_x(V) + k. The event is
one event about the fixed V in question, which need not be known: :mod:`.tabular` uses it for the
unknown V* with a V that was computed from the same samples. With g = √(2 log(1/δ)/(nσ²)) the limit is
P̂V + √(2σ² log(1/δ)/n) to first order, as in Bernstein's inequality; σ is guessed from other samples, and a bad guess costs
width, never validity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from saddleback.errors import NumericalError
from saddleback.problem.spaces import Array

_NEWTON_STEPS = 100
_MOST_OF_CAPITAL = 0.9


class Bets:
    """The samples of every pair as frequencies ``(c, n)`` and counts ``(c,)``, the stakes ``(c,)``, and log(1/δ) of a pair."""

    def __init__(
        self, frequencies: sparse.csr_array, counts: NDArray[np.int64], stakes: Array, log_inverse_delta: float
    ):
        self._frequencies, self._columns = frequencies, frequencies.indices
        self._first = frequencies.indptr[:-1].astype(np.intp)
        self._row = np.repeat(np.arange(len(counts)), np.diff(frequencies.indptr))
        self._weights = frequencies.data * counts[self._row]
        self._stakes, self._goal = stakes, log_inverse_delta

    def upper(self, V: Array) -> Array:
        """U_x(V) for every pair, V over the buffer's support ``(n,)``."""
        mean = np.asarray(self._frequencies @ V)
        centred = V[self._columns] - mean[self._row]
        g = self._stakes
        # μ = mean + z, and z such that every factor is positive: V may vary by more than the stakes were made for.
        z = np.maximum(0.0, np.maximum.reduceat(centred, self._first) - 0.99 / g)
        for _ in range(_NEWTON_STEPS):
            factor = 1.0 - g[self._row] * (centred - z[self._row])
            log_wealth = np.add.reduceat(self._weights * np.log(factor), self._first)
            slope = g * np.add.reduceat(self._weights / factor, self._first)
            # Concave and rising: from the left Newton never jumps too far, and a start beyond the root is a limit too.
            step = np.maximum((self._goal - log_wealth) / slope, 0.0)
            z += step
            if np.all(step <= 1e-12 * (1e-3 + z)):
                return np.asarray(mean + z * (1 + 1e-9))
        raise NumericalError("the upper limits of the means did not settle; draw more samples.")

    def lower(self, V: Array) -> Array:
        """The mirror image, a lower limit of (PV)(x)."""
        return -self.upper(-V)


def stakes(spread: Array, counts: NDArray[np.int64], log_inverse_delta: float, span: float) -> Array:
    """g for a guessed standard deviation ``spread`` of V at each pair, where V is known to vary by at most ``span``."""
    wanted = np.sqrt(2 * log_inverse_delta / counts) / np.maximum(spread, 1e-12)
    return np.minimum(wanted, _MOST_OF_CAPITAL / max(span, 1e-12))


def expected_width(spread: Array, counts: Array | NDArray[np.int64], log_inverse_delta: float, span: float) -> Array:
    """What U_x(V) − P̂V will be, about, for V of that spread and span."""
    beta = log_inverse_delta / counts
    g = np.minimum(np.sqrt(2 * beta) / np.maximum(spread, 1e-12), _MOST_OF_CAPITAL / max(span, 1e-12))
    return np.asarray(beta / g + g * spread**2 / 2)
