"""The one form that every error bound of this package has, and its inverse.

With y = 1/√M and everything else (T, γ, δ, …) fixed, each f_mdp and f_eva is

    f(y) = (a₀ + a₁y + a₂y²) / (1 − cy),      infinite unless cy < 1

    bound                    a₀      a₁                          a₂                        c
    linear, solver           γH²/T   γH²Γ√(2L₂/T)                0                         2k
    linear, evaluator        γH²/T   γH²(Γ√(L₂/2T) − k/T)        0                         2k       k = γHΓ√(L₁/2) = κ/y
    Hoeffding, solver        γH²/T   γH²√(2L/T)                  0                         0
    Hoeffding, evaluator     γH²/T   γH²√(L/2T)                  0                         0
    Bernstein                see :mod:`~saddleback.theory.bernstein`

where they come from is told in :mod:`~saddleback.theory.errors`. Each rises with y (a₁ + ca₀ ≥ 0 ≤ a₂), so the fewest
samples that give an error f > a₀ follow from a quadratic equation:

    a₂y² + (a₁ + cf)y = f − a₀,      y = 2(f − a₀) / (p + √(p² + 4a₂(f − a₀))),   p = a₁ + cf,   M = ⌈1/y²⌉.

T and the logarithm of the number of problems may be arrays: a plan looks at thousands of (T, f) at once. T may be any real
number from 1 on; ``log_T`` stands for log T where logarithms ask for it. All coefficients fall with T at a fixed
``log_T``, so that those of (T, log(T + 1)) are limits for ⌈T⌉.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddleback.problem.spaces import Array

_TINY = 1e-150  # stands for a zero that is divided by (γ = 0: no error whatever M is)


class Coefficients(NamedTuple):
    """a₀, a₁, a₂ and c, arrays of one shape."""

    bias: Array
    slope: Array
    curvature: Array
    widening: Array

    def error(self, samples_per_iteration: float | Array) -> Array:
        """f for a given M."""
        y = 1 / np.sqrt(samples_per_iteration)
        room = 1 - self.widening * y
        f = (self.bias + (self.slope + self.curvature * y) * y) / np.where(room > 0, room, 1.0)
        return np.where(room > 0, f, np.inf)

    def samples(self, error: Array) -> Array:
        """The least M with f ≤ ``error``, a whole number; infinite where no M is enough."""
        rest = error - self.bias
        room = np.maximum(rest, 0.0)
        p = self.slope + self.widening * error
        y = 2 * room / np.maximum(p + np.sqrt(p * p + 4 * self.curvature * room), _TINY)
        y = np.clip(y, _TINY, 1.0)  # M ≥ 1
        return np.where(rest > 0, np.ceil(1 / (y * y)), np.inf)


def log_ratio(*counts: float, delta: float) -> float:
    """log(∏counts/δ), also where the product exceeds the floating-point range."""
    return sum(map(math.log, counts)) - math.log(delta)


def linear_solver(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, lebesgue: float, coreset_size: int, delta: float
) -> Coefficients:
    """LS-MDVI."""
    H, Gamma, L2 = 1 / (1 - gamma), lebesgue, log_ratio(8, coreset_size, delta=delta) + log_problems
    k = gamma * H * Gamma * np.sqrt((L2 + log_T) / 2)  # L₁ = L₂ + log T
    return _coefficients(gamma * H * H / T, gamma * H * H * Gamma * np.sqrt(2 * L2 / T), 0.0, 2 * k)


def linear_evaluation(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, lebesgue: float, coreset_size: int, delta: float
) -> Coefficients:
    """LS-PE."""
    H, Gamma, L2 = 1 / (1 - gamma), lebesgue, log_ratio(8, coreset_size, delta=delta) + log_problems
    k = gamma * H * Gamma * np.sqrt((L2 + log_T) / 2)
    return _coefficients(gamma * H * H / T, gamma * H * H * (Gamma * np.sqrt(L2 / (2 * T)) - k / T), 0.0, 2 * k)


def hoeffding_solver(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-MDVI."""
    H, L = 1 / (1 - gamma), log_ratio(4, num_pairs, delta=delta) + log_problems
    return _coefficients(gamma * H * H / T, gamma * H * H * np.sqrt(2 * L / T), 0.0, 0.0)


def hoeffding_evaluation(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-PE."""
    H, L = 1 / (1 - gamma), log_ratio(4, num_pairs, delta=delta) + log_problems
    return _coefficients(gamma * H * H / T, gamma * H * H * np.sqrt(L / (2 * T)), 0.0, 0.0)


def _coefficients(bias: Array, slope: Array, curvature: float | Array, widening: float | Array) -> Coefficients:
    return Coefficients(*np.broadcast_arrays(bias, slope, curvature, widening))
