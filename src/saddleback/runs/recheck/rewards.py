"""How far an observed mean may be from the truth, by other means than :mod:`saddleback.certificates`."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array

_BISECTIONS = 100


def reward_error(mean: Array, noise: Array, n: Array, level: float, rare: NDArray[np.int64] | None) -> Array:
    """How far above its observed ``mean`` in [0, 1] the truth may lie: where it is ``rare`` from that, else from its noise."""
    L, spare = math.log(2 / level), np.maximum(n - 1, 1)
    plain = np.where(n < 2, 1.0, np.sqrt(2 * (noise**2 * n / spare) * L / n) + 7 * L / (3 * spare))
    low, high = np.array(mean), np.ones_like(mean)
    for _ in range(_BISECTIONS):  # n·kl(mean, q) = log 1/level
        q = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.where(mean > 0, mean * np.log(mean / q), 0.0)
            apart += np.where(mean < 1, (1 - mean) * np.log((1 - mean) / (1 - q)), 0.0)
        low, high = np.where(n * apart <= math.log(1 / level), (q, high), (low, q))
    chosen = np.minimum(plain, high - mean) if rare is None else np.where(rare == 1, high - mean, plain)
    return np.asarray(np.minimum(chosen, 1.0))
