"""Limits of a mean in [0, 1], computed again as docs/certificate.md has them."""

from __future__ import annotations

import math

import numpy as np

from saddleback.problem.spaces import Array
from saddleback.runs.evidence_file import RolloutValues

_BISECTIONS = 60


def expected_number(rollouts: RolloutValues) -> Array:
    """How many rollouts were expected in all when the wave of each was planned; where there are no waves, as many as there are."""
    n = len(rollouts.values)
    if rollouts.waves is None:
        return np.full(n, float(n))
    ends = np.cumsum(rollouts.waves[:, 0])
    return np.asarray(rollouts.waves[np.searchsorted(ends, np.arange(n), side="right"), 1], dtype=float)


def lower_limit(y: Array, delta: float, expected: Array | None = None) -> float:
    """The least mean in [0, 1] at which the player's capital never grows 1/δ-fold; ``expected`` is how many values each bet counts on."""
    need, numbers = math.log(1 / delta), np.full(len(y), float(len(y))) if expected is None else expected
    stakes, total, squares = np.empty(len(y)), 0.5, 0.01
    for i, (x, n) in enumerate(zip(y.tolist(), numbers.tolist(), strict=True)):
        stakes[i] = math.sqrt(2 * need / (n * max(squares / (i + 1), 1e-12)))
        total += x
        squares += (x - total / (i + 2)) ** 2

    def excluded(mean: float) -> bool:
        growth = 1 + np.minimum(stakes, 0.75 / mean) * (y - mean)
        return float(np.cumsum(np.log(growth)).max()) >= need

    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def maurer_pontil(y: Array, delta: float) -> tuple[float, float]:
    """Both limits of the mean, for a number of variables that was fixed."""
    n, L = len(y), math.log(4 / delta)
    if n < 2:
        return 0.0, 1.0
    half = math.sqrt(2 * float(y.var(ddof=1)) * L / n) + 7 * L / (3 * (n - 1))
    return max(0.0, float(y.mean()) - half), min(1.0, float(y.mean()) + half)
