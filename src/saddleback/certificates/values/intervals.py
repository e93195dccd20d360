"""Intervals for the mean of bounded independent variables, without any other assumption.

    Maurer-Pontil      x̄ ± [√(2 v̂ log(4/δ)/n) + 7 (b−a) log(4/δ) / (3(n−1))]
    betting            {μ :  max_t Π_{i≤t} (1 + λ_i (x_i − μ)) < 2/δ   and   max_t Π_{i≤t} (1 − λ'_i (x_i − μ)) < 2/δ}

*Betting* (hedged capital): whoever bets the share λ_i of his capital on "x_i exceeds μ" cannot expect to gain when the
mean is μ, so by Ville's inequality he multiplies his capital by 2/δ at any time with probability at most δ/2. The means at
which one of the two players would have done so are excluded. λ_i may depend on x_1..x_{i−1}; with
λ_i = √(2 log(2/δ) / (n σ̂²_{i−1})), cut so that the capital stays positive, the width approaches the central limit's,
√(2 σ² log(2/δ)/n), and the range matters to second order only. Both capitals are monotone in μ, so each end is found by
bisection, and rounded outwards.

*Sums of means* with unequal ranges. Let Y = Σ_y g̅_y be a sum of means of n independent variables g_y(s'), g_y of range R_y,
V its variance, V̂ = Σ_y s²_y/n with the unbiased sample variances s²_y, and β = max_y R_y/(n−1). Each of

    Y − EY ≤ √(2VL) + βL/3                          Bernstein: no summand exceeds its mean by more than R_y/n
    √V ≤ √(V̂ + β²L/2) + β√(L/2)                      below

fails with probability at most e^{−L}; together  Y − EY ≤ t(V̂, β, L) := √(2V̂L + β²L²) + 4βL/3.  The second is the
argument of Maurer and Pontil for unequal ranges: replacing one sample of y lowers s²_y by at most R_y²/n, and the squares of
those losses over all samples of y sum to at most R_y² s²_y/(n−1). So Z = V̂/β² loses at most 1 by one replacement, and its
squared losses sum to at most Z: Z is self-bounding, P(EZ − Z ≥ τ) ≤ exp(−τ²/(2EZ)), and E V̂ = V; solve for √V.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from saddleback.errors import require
from saddleback.problem.spaces import Array

_MOST_OF_CAPITAL = 0.75  # the largest loss a single bet may bring
_PRIOR_VARIANCE = 0.01  # of the unit range: the first bets' guess, worth one sample
_BISECTIONS = 40


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
    require(
        low - slack <= least and most <= high + slack,
        "x",
        f"must lie in [{low:g}, {high:g}]",
        (least, most),
        "declare the true range: the interval depends on it",
    )
