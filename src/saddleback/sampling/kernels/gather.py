"""Compiled twin of gather and mean in :mod:`saddleback.sampling.batches`: P̂_t V on the coreset in one pass over the samples.

    means[x] = (1/M_x) Σ_i V[index[i]],     i = offsets[x] … offsets[x+1] − 1

Four sums run side by side, since one alone would wait for each addition to end. Positions are unsigned, so that no test
for negative ones is made, and are not checked: whoever calls knows that they lie in V. Sums are taken in another order
than numpy's; either is within M·2⁻⁵³ · mean|V| of the exact mean.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array


def gather_means(index: NDArray[np.uint32], offsets: NDArray[np.int64], V: Array) -> Array:
    """The mean of V over each pair's samples, ``(c,)`` for V ``(n,)``, ``(c, k)`` for V ``(n, k)``."""
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim == 1:
        return np.asarray(_one(index, offsets, V))
    if V.shape[1] == 1:
        return np.asarray(_one(index, offsets, V[:, 0]))[:, None]
    return np.asarray(_several(index, offsets, V))


@numba.njit(cache=True, nogil=True)
def _one(index: NDArray[Any], offsets: NDArray[Any], V: Array) -> Array:
    c = offsets.shape[0] - 1
    means = np.empty(c)
    for x in range(c):
        first, last = offsets[x], offsets[x + 1]
        whole = last - (last - first) % 4
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for i in range(first, whole, 4):
            s0 += V[index[i]]
            s1 += V[index[i + 1]]
            s2 += V[index[i + 2]]
            s3 += V[index[i + 3]]
        for i in range(whole, last):
            s0 += V[index[i]]
        means[x] = ((s0 + s1) + (s2 + s3)) / (last - first)
    return means


@numba.njit(cache=True, nogil=True)
def _several(index: NDArray[Any], offsets: NDArray[Any], V: Array) -> Array:
    c, k = offsets.shape[0] - 1, V.shape[1]
    means = np.zeros((c, k))
    for x in range(c):
        first, last = offsets[x], offsets[x + 1]
        whole = last - (last - first) % 4
        for i in range(first, whole, 4):
            i0, i1, i2, i3 = index[i], index[i + 1], index[i + 2], index[i + 3]
            for j in range(k):
                means[x, j] += (V[i0, j] + V[i1, j]) + (V[i2, j] + V[i3, j])
        for i in range(whole, last):
            i0 = index[i]
            for j in range(k):
                means[x, j] += V[i0, j]
        for j in range(k):
            means[x, j] /= last - first
    return means
