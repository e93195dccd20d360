"""The best mixture of a few policies under one "≤" constraint: the upper envelope of points (cost, reward) at a limit.

max Σ_i w_i R_i   s.t.  Σ_i w_i C_i ≤ b,  w a probability vector:       one point, or two of them on either side of b
"""

from __future__ import annotations

import math

import numpy as np

from saddleback.problem.spaces import Array


def best_mixture(costs: Array, rewards: Array, limit: float) -> tuple[float, float]:
    """The value and the multiplier (reward per unit of limit); NaN both where no mixture meets the limit."""
    best, slope = -math.inf, 0.0
    for i in np.flatnonzero(costs <= limit):
        if rewards[i] > best:
            best, slope = float(rewards[i]), 0.0
        for j in np.flatnonzero((costs > limit) & (rewards > rewards[i])):
            steep = float((rewards[j] - rewards[i]) / (costs[j] - costs[i]))
            mixed = float(rewards[i] + steep * (limit - costs[i]))
            if mixed > best:
                best, slope = mixed, steep
    return (math.nan, math.nan) if best == -math.inf else (best, slope)
