"""Intervals for the mean of bounded independent variables, without any other assumption.

    Maurer-Pontil      x̄ ± [√(2 v̂ log(4/δ)/n) + 7 (b−a) log(4/δ) / (3(n−1))]
    betting            {μ :  max_t Π_{i≤t} (1 + λ_i (x_i − μ)) < 2/δ   and   max_t Π_{i≤t} (1 − λ'_i (x_i − μ)) < 2/δ}

*Betting* (hedged capital): whoever bets the share λ_i of his capital on "x_i exceeds μ" cannot expect to gain when the
mean is μ, so by Ville's inequality he multiplies his capital by 2/δ at any time with probability at most δ/2. The means at
which one of the two players would have done so are excluded. λ_i may depend on x_1..x_{i−1}; with
λ_i = √(2 log(2/δ) / (n σ̂²_{i−1})), cut so that the capital stays positive, the width approaches the central limit's,
√(2 σ² log(2/δ)/n), and the range matters to second order only. Both capitals are monotone in μ, so each end is found by
bisection, and rounded outwards.

*Chernoff*, for rare events: of n variables in [0, 1] with the mean μ, the average x̄ < μ has n·kl(x̄, μ) ≥ L with probability e^{−L}
at most, kl(p, q) = p log(p/q) + (1−p) log((1−p)/(1−q)). Where nothing was seen this leaves L/n, Maurer and Pontil 7L/3n.

*Sums of means* with unequal ranges. Let Y = Σ_y g̅_y be a sum of means of n independent variables g_y(s'), g_y of range R_y,
V its variance, V̂ = Σ_y s²_y/n with the unbiased sample variances s²_y, and β = max_y R_y/(n−1). Each of

    Y − EY ≤ √(2VL) + βL/3                          Bernstein: no summand exceeds its mean by more than R_y/n
    √V ≤ √(V̂ + β²L/2) + β√(L/2)                      below

fails with probability at most e^{−L}; together  Y − EY ≤ t(V̂, β, L) := √(2V̂L + β²L²) + 4βL/3.  The second is the
argument of Maurer and Pontil for unequal ranges: replacing one sample of y lowers s²_y by at most R_y²/n, and the squares of
those losses over all samples of y sum to at most R_y² s²_y/(n−1). So Z = V̂/β² loses at most 1 by one replacement, and its
squared losses sum to at most Z: Z is self-bounding, P(EZ − Z ≥ τ) ≤ exp(−τ²/(2EZ)), and E V̂ = V; solve for √V.

*Upper limits for (PV)(x) that are monotone in V*, so that optimism may pass through them. At a pair x with independent next states s'_1..s'_n, a fixed function V and a fixed stake g < 1/(max V − (PV)(x)),

    E_x(V, μ) = Π_i (1 − g (V(s'_i) − μ)),        P(E_x(V, (PV)(x)) ≥ 1/δ) ≤ δ        (Markov: the product has mean one)

so with probability 1 − δ

    (PV)(x) ≤ U_x(V) := sup{μ : E_x(V, μ) ≤ 1/δ}.

U_x is monotone (a larger V makes the factors smaller, so a larger μ is allowed) and U_x(V + k) = U_x(V) + k. The event is
one event about the fixed V in question, which need not be known: :mod:`saddleback.certificates.bounds.tabular` uses it for the unknown
V* with a V that was computed from the same samples. With g = √(2 log(1/δ)/(nσ²)) the limit is
P̂V + √(2σ² log(1/δ)/n) to first order, as in Bernstein's inequality; σ is guessed from other samples, and a bad guess costs
width, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import rel_entr

from saddleback.errors import NumericalError, require
from saddleback.problem.spaces import Array

_MOST_OF_CAPITAL = 0.75  # the largest loss a single bet may bring
_PRIOR_VARIANCE = 0.01  # of the unit range: the first bets' guess, worth one sample
_BISECTIONS = 40
_CHERNOFF_BISECTIONS = 60
_NEWTON_STEPS = 100
_MOST_OF_A_STAKE = 0.9


class Bounds(NamedTuple):
    """Lower and upper limit of a mean."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance of the limits."""
        return (self.high - self.low) / 2


Method = Callable[[Array, float, float, float], Bounds]
"""An interval at confidence 1 − δ from ``(x, low, high, delta)``, where every x lies in [low, high]."""


def maurer_pontil(x: Array, low: float, high: float, delta: float) -> Bounds:
    """The empirical-Bernstein interval of Maurer and Pontil, two-sided at 1 − δ."""
    _check(x, low, high, delta)
    n = len(x)
    if n < 2:
        return Bounds(low, high)
    h = maurer_pontil_half_width(float(x.var(ddof=1)), n, high - low, delta)
    centre = float(x.mean())
    return Bounds(max(low, centre - h), min(high, centre + h))


def maurer_pontil_half_width(variance: float, n: int, span: float, delta: float) -> float:
    """√(2 v̂ L/n) + 7 (b−a) L / (3(n−1)) with L = log(4/δ); one-sided at δ/2."""
    L = math.log(4 / delta)
    return math.sqrt(2 * variance * L / n) + 7 * span * L / (3 * (n - 1))


def chernoff_upper(mean: Array, counts: NDArray[np.int64], log_inverse_delta: float) -> Array:
    """sup{μ : n·kl(x̄, μ) ≤ L} for averages of variables in [0, 1], one-sided at e^{−L}; rounded outwards."""
    p = np.clip(mean, 0.0, 1.0)
    low, high, most = p, np.ones_like(p), log_inverse_delta / counts
    for _ in range(_CHERNOFF_BISECTIONS):
        q = (low + high) / 2
        inside = rel_entr(p, q) + rel_entr(1 - p, 1 - q) <= most
        low, high = np.where(inside, q, low), np.where(inside, high, q)
    return np.asarray(high)


def betting(x: Array, low: float, high: float, delta: float) -> Bounds:
    """The hedged-capital interval, two-sided at 1 − δ."""
    _check(x, low, high, delta)
    span = high - low
    if span == 0:
        return Bounds(low, high)
    y = np.clip((x - low) / span, 0.0, 1.0)
    below, above = _lower_limit(y, delta / 2), 1.0 - _lower_limit(1.0 - y, delta / 2)
    return Bounds(low + span * below, low + span * above)


def deviation_limit(variance: Array | float, largest: Array | float, log_term: float) -> Array:
    """t(V̂, β, L): what a weighted sum of sample means exceeds its mean by with probability at most 2e^{−L}."""
    L = log_term
    return np.asarray(np.sqrt(2 * variance * L + (largest * L) ** 2) + 4 / 3 * largest * L)


BY_NAME: Final[dict[str, Method]] = {"betting": betting, "empirical-bernstein": maurer_pontil}


def _lower_limit(y: Array, delta: float) -> float:
    """The least mean in [0, 1] that betting on "more than that" does not exclude at level δ."""
    n = len(y)
    bets = _bets(y, delta)
    need = math.log(1 / delta)

    def excluded(mean: float) -> bool:
        stake = np.minimum(bets, _MOST_OF_CAPITAL / mean)
        return bool(np.cumsum(np.log1p(stake * (y - mean))).max() >= need)

    centre, spread = float(y.mean()), math.sqrt(float(y.var()) * need / n) + need / n
    low, high = max(0.0, centre - 8 * spread), min(1.0, centre + spread)
    if low > 0 and not excluded(low):
        low = 0.0
    if high <= 0 or (low == 0.0 and not excluded(1e-300)):
        return 0.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= 1e-6 * spread:
            break
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low  # excluded, so a limit; what lies between low and high is left inside the interval


def _bets(y: Array, delta: float) -> Array:
    """λ_i from what was seen before i, ``(n,)``."""
    n = len(y)
    count = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(y)) / (count + 1)
    variances = (_PRIOR_VARIANCE + np.cumsum((y - means) ** 2)) / (count + 1)
    before = np.concatenate([[_PRIOR_VARIANCE], variances[:-1]])
    return np.sqrt(2 * math.log(1 / delta) / (n * np.maximum(before, 1e-12)))


def _check(x: Array, low: float, high: float, delta: float) -> None:
    require(len(x) >= 1, "x", "must hold at least one value", 0, "draw more samples")
    require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, "0.05 means 95 % confidence")
    slack = 1e-9 * max(1.0, high - low)
    least, most = float(x.min()), float(x.max())
    rule, remedy = f"must lie in [{low:g}, {high:g}]", "declare the true range: the interval depends on it"
    require(low - slack <= least and most <= high + slack, "x", rule, (least, most), remedy)


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
    return np.minimum(wanted, _MOST_OF_A_STAKE / max(span, 1e-12))


def expected_width(spread: Array, counts: Array | NDArray[np.int64], log_inverse_delta: float, span: float) -> Array:
    """What U_x(V) − P̂V will be, about, for V of that spread and span."""
    beta = log_inverse_delta / counts
    g = np.minimum(np.sqrt(2 * beta) / np.maximum(spread, 1e-12), _MOST_OF_A_STAKE / max(span, 1e-12))
    return np.asarray(beta / g + g * spread**2 / 2)
