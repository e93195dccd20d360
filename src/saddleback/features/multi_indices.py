"""Multi-indices c ∈ {0, 1, …}^k for products of one function a coordinate: how many there are, and which."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def count(num: int, order: int, degree: int | None) -> int:
    """How many c have c_j ≤ ``order``, and Σ c_j ≤ ``degree`` where it is given."""
    if degree is None:
        return int((order + 1) ** num)
    degree = min(degree, num * order)  # no sum is larger
    ways = [1] + [0] * degree  # of reaching each sum with the coordinates so far
    for _ in range(num):
        ways = [sum(ways[max(0, s - order) : s + 1]) for s in range(degree + 1)]
    return sum(ways)


def multi_indices(num: int, order: int, degree: int | None) -> NDArray[np.int64]:
    """All of them, ``(count, num)``, by Σ c_j and then as in a dictionary: the constant c = 0 comes first."""
    most = num * order if degree is None else degree
    found = np.zeros((1, 0), dtype=np.int64)
    for _ in range(num):
        longer = np.hstack([np.repeat(found, order + 1, axis=0), np.tile(np.arange(order + 1), len(found))[:, None]])
        found = longer[longer.sum(axis=1) <= most]
    keys = [found[:, j] for j in reversed(range(num))]
    return np.asarray(found[np.lexsort([*keys, found.sum(axis=1)])])
