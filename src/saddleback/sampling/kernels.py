"""Compiled twins of the hot loops, each tested equal to its readable original; importing them imports numba.

    gather_means              (P̂_t V)(x) = (1/M_x) Σ_i V[index[i]],  i = offsets[x] … offsets[x+1] − 1, in one pass
    fused_maximum             V(s) = max_a ⟨φ(s,a), θ⟩ at every state of φ (n, A, d): Q is never written to memory
    gathered_maximum_means    (P̂_t V)(x), with V evaluated at the samples of one batch alone

In ``gather_means`` four sums run side by side, since one alone would wait for each addition to end. Positions are unsigned
and not checked: whoever calls knows that they lie in V. A maximum with one θ is a loop over the rows of φ at the speed of
memory; several are matrix products small enough for the cache and below the 2¹⁸ multiplications at which OpenBLAS starts
threads. Sums are within M·2⁻⁵³ · mean|V|, or d·2⁻⁵³ · Σ_j|φ_j θ_j|, of the exact ones, as numpy's are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.numerics import compiled
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Array

_ROWS, _PRODUCTS = 512, 1 << 18  # most rows of φ, and most multiplications, in one matrix product
_FEW = 4  # columns up to which gathered rows are read where they lie; above it copying them for a product pays
_REORDER = {"reassoc", "contract", "nsz"}  # a sum may be vectorised; infinities and NaN keep their meaning


def gather_means(index: NDArray[np.uint32], offsets: NDArray[np.int64], V: Array) -> Array:
    """The mean of V over each pair's samples, ``(c,)`` for V ``(n,)``, ``(c, k)`` for V ``(n, k)``."""
    V = np.ascontiguousarray(V, dtype=np.float64)
    if V.ndim == 1:
        return np.asarray(_gather_one(index, offsets, V))
    if V.shape[1] == 1:
        return np.asarray(_gather_one(index, offsets, V[:, 0]))[:, None]
    return np.asarray(_gather_several(index, offsets, V))


@compiled()
def _gather_one(index: NDArray[Any], offsets: NDArray[Any], V: Array) -> Array:
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


@compiled()
def _gather_several(index: NDArray[Any], offsets: NDArray[Any], V: Array) -> Array:
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


def fused_maximum(phi: Array, theta: Array) -> Array:
    """max_a of ``phi @ theta``: ``(n,)`` or ``(n, k)`` for a C-contiguous ``phi`` ``(n, A, d)``."""
    n, A, d = phi.shape
    rows, theta = phi.reshape(n * A, d), np.ascontiguousarray(theta, dtype=np.float64)
    if not np.isfinite(theta).all():  # compiled comparisons would lose a NaN
        return maximum_over_actions((rows @ theta).reshape(n, A, *theta.shape[1:]))
    if theta.ndim == 2 and theta.shape[1] > 1:
        return np.asarray(_maximum_several(rows, A, theta))
    return np.asarray(_maximum_one(rows, A, theta.reshape(d))).reshape(n, *theta.shape[1:])


def gathered_maximum_means(phi: Array, index: NDArray[np.uint32], offsets: NDArray[np.int64], theta: Array) -> Array:
    """The mean of max_a ``phi @ theta`` over each pair's samples, ``(c, k)`` for ``theta`` ``(d, k)``."""
    n, A, d = phi.shape
    theta = np.ascontiguousarray(theta, dtype=np.float64)
    if not np.isfinite(theta).all():  # no mean over samples would be finite
        return np.full((len(offsets) - 1, theta.shape[1]), np.nan)
    if theta.shape[1] <= _FEW:
        return np.asarray(_gathered_few(phi.reshape(n * A, d), A, index, offsets, np.ascontiguousarray(theta.T)))
    return np.asarray(_gathered_many(phi.reshape(n * A, d), A, index, offsets, theta))


@compiled(fastmath=_REORDER)
def _maximum_one(phi: Array, A: int, theta: Array) -> Array:
    n, d = phi.shape[0] // A, phi.shape[1]
    V = np.empty(n)
    for s in range(n):
        top = -np.inf
        for row in range(s * A, (s + 1) * A):
            Q = 0.0
            for j in range(d):
                Q += phi[row, j] * theta[j]
            top = max(top, Q)
        V[s] = top
    return V


@compiled()
def _maximum_several(phi: Array, A: int, theta: Array) -> Array:
    n, k = phi.shape[0] // A, theta.shape[1]
    step = max(1, min(_ROWS, _PRODUCTS // (phi.shape[1] * k)) // A)  # states in one product
    V, Q = np.empty((n, k)), np.empty((step * A, k))
    for first in range(0, n, step):
        last = min(n, first + step)
        np.dot(phi[first * A : last * A], theta, Q[: (last - first) * A])
        for s in range(first, last):
            _row_maxima(Q, (s - first) * A, A, V[s])
    return V


@compiled(fastmath=_REORDER)
def _gathered_few(phi: Array, A: int, index: NDArray[Any], offsets: NDArray[Any], columns: Array) -> Array:
    c, d, k = offsets.shape[0] - 1, phi.shape[1], columns.shape[0]
    means = np.zeros((c, k))
    for x in range(c):
        for i in range(offsets[x], offsets[x + 1]):
            first = np.int64(index[i]) * A
            for j in range(k):
                top = -np.inf
                for row in range(first, first + A):
                    Q = 0.0
                    for m in range(d):
                        Q += phi[row, m] * columns[j, m]
                    top = max(top, Q)
                means[x, j] += top
        for j in range(k):
            means[x, j] /= offsets[x + 1] - offsets[x]
    return means


@compiled()
def _gathered_many(phi: Array, A: int, index: NDArray[Any], offsets: NDArray[Any], theta: Array) -> Array:
    c, d, k = offsets.shape[0] - 1, phi.shape[1], theta.shape[1]
    step = max(1, min(_ROWS, _PRODUCTS // (d * k)) // A)  # samples in one product
    rows, Q, V, means = np.empty((step * A, d)), np.empty((step * A, k)), np.empty(k), np.zeros((c, k))
    for x in range(c):
        for first in range(offsets[x], offsets[x + 1], step):
            num = min(offsets[x + 1] - first, step)
            for i in range(num):
                s = np.int64(index[first + i])
                rows[i * A : (i + 1) * A] = phi[s * A : (s + 1) * A]
            np.dot(rows[: num * A], theta, Q[: num * A])
            for i in range(num):
                _row_maxima(Q, i * A, A, V)
                for j in range(k):
                    means[x, j] += V[j]
        for j in range(k):
            means[x, j] /= offsets[x + 1] - offsets[x]
    return means


@compiled()
def _row_maxima(Q: Array, row: int, A: int, V: Array) -> None:
    """V ← max of the rows ``row`` … ``row + A − 1`` of Q."""
    for j in range(V.shape[0]):
        V[j] = Q[row, j]
    for a in range(1, A):
        for j in range(V.shape[0]):
            V[j] = max(V[j], Q[row + a, j])
