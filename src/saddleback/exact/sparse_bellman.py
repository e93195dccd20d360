"""Compiled twins of the Bellman sweeps in :mod:`saddleback.exact.bellman`: one pass over the memory each.

    greedy     (T_q V)(s) = max_a [□_q(s, a) + γ P(·|s, a)ᵀV], its maximiser, and min and max of T_qV − V
    rows_of    P_π and u_π, copied so that the sweeps which follow read memory in order
    sweep      (T_π V)(s) = u_π(s) + γ P_π(·|s)ᵀV for every utility at once, and min and max of T_πV − V
    push       d ↦ ρ + γ P_πᵀ d

Rows of P are numbered s·A + a and given as CSR arrays with 32-bit indices. Importing this file imports numba; compiled
code is kept on disk. The kernels run on one thread and release the interpreter's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.numerics import compiled
from saddleback.problem.spaces import Array

Index = NDArray[Any]


@compiled()
def greedy(
    indptr: Index, indices: Index, data: Array, box: Array, gamma: float, V: Array, actions: Index, tie: float
) -> tuple[Array, Index, float, float]:
    """T_qV ``(S,)``, the policy, min and max of T_qV − V; ``actions`` within ``tie`` of the best stay."""
    S = V.shape[0]
    A = box.shape[0] // S
    best, chosen = np.empty(S), np.empty(S, dtype=np.int32)
    low, high = np.inf, -np.inf
    at = indptr[0]
    for s in range(S):
        top, lead, arg, kept = -np.inf, -np.inf, 0, -np.inf
        for a in range(A):
            row = s * A + a
            end = indptr[row + 1]
            total = 0.0
            for j in range(at, end):
                total += data[j] * V[indices[j]]
            at = end
            Q = box[row] + gamma * total
            top = max(top, Q)
            if lead + tie < Q:  # of actions that are equal up to rounding the first
                lead, arg = Q, a
            if a == actions[s]:
                kept = Q
        best[s] = top
        chosen[s] = arg if top - kept > tie else actions[s]
        change = top - V[s]
        low, high = min(low, change), max(high, change)
    return best, chosen, low, high


@compiled()
def rows_of(
    indptr: Index, indices: Index, data: Array, utilities: Array, actions: Index
) -> tuple[Index, Index, Array, Array]:
    """P_π as CSR arrays and u_π ``(S, k)``."""
    S = actions.shape[0]
    A = (indptr.shape[0] - 1) // S
    starts = np.empty(S + 1, dtype=indptr.dtype)
    starts[0] = 0
    for s in range(S):
        row = s * A + actions[s]
        starts[s + 1] = starts[s] + indptr[row + 1] - indptr[row]
    columns, chances = np.empty(starts[S], dtype=indices.dtype), np.empty(starts[S])
    u = np.empty((S, utilities.shape[1]))
    for s in range(S):
        row = s * A + actions[s]
        shift = indptr[row] - starts[s]
        for j in range(starts[s], starts[s + 1]):
            columns[j] = indices[j + shift]
            chances[j] = data[j + shift]
        for i in range(u.shape[1]):
            u[s, i] = utilities[row, i]
    return starts, columns, chances, u


@compiled()
def sweep(
    indptr: Index, indices: Index, data: Array, utilities: Array, gamma: float, V: Array, q: Array, new: Array
) -> tuple[Array, Array]:
    """T_πV into ``new`` ``(S, k)``; min and max of T_πV − V for every utility and for their mixture q, ``(k+1,)``."""
    S, k = V.shape
    low, high = np.full(k + 1, np.inf), np.full(k + 1, -np.inf)
    if k == 2:  # reward and one constraint: sums that stay in registers
        l0, h0, l1, h1, l2, h2 = np.inf, -np.inf, np.inf, -np.inf, np.inf, -np.inf
        for s in range(S):
            total0, total1 = 0.0, 0.0
            for j in range(indptr[s], indptr[s + 1]):
                p, x = data[j], indices[j]
                total0 += p * V[x, 0]
                total1 += p * V[x, 1]
            new[s, 0] = utilities[s, 0] + gamma * total0
            new[s, 1] = utilities[s, 1] + gamma * total1
            change0, change1 = new[s, 0] - V[s, 0], new[s, 1] - V[s, 1]
            change2 = q[0] * change0 + q[1] * change1
            l0, h0, l1, h1 = min(l0, change0), max(h0, change0), min(l1, change1), max(h1, change1)
            l2, h2 = min(l2, change2), max(h2, change2)
        low[0], low[1], low[2], high[0], high[1], high[2] = l0, l1, l2, h0, h1, h2
        return low, high
    total = np.empty(k)
    for s in range(S):
        total[:] = 0.0
        for j in range(indptr[s], indptr[s + 1]):
            p, x = data[j], indices[j]
            for i in range(k):
                total[i] += p * V[x, i]
        mixed = 0.0
        for i in range(k):
            new[s, i] = utilities[s, i] + gamma * total[i]
            change = new[s, i] - V[s, i]
            mixed += q[i] * change
            low[i], high[i] = min(low[i], change), max(high[i], change)
        low[k], high[k] = min(low[k], mixed), max(high[k], mixed)
    return low, high


@compiled()
def push(indptr: Index, indices: Index, data: Array, gamma: float, rho: Array, d: Array) -> Array:
    """ρ + γP_πᵀd ``(S,)``."""
    new = rho.copy()
    for s in range(d.shape[0]):
        if d[s] != 0.0:
            mass = gamma * d[s]
            for j in range(indptr[s], indptr[s + 1]):
                new[indices[j]] += mass * data[j]
    return new
