"""§2, the master problems of column generation: the best mixture of the policies seen so far, and what it leaves to ask.

Column k is a policy with reward y_k and slacks x_k = V_c − b, both at their lower limits:

    best_reward     max_w Σ_k w_k y_k   s.t.  Σ_k w_k x_ki ≥ 0,  Σ w = 1,  w ≥ 0      prices q = (1, λ),  λ ≥ 0
    largest_slack   max_w min_i width_i·Σ_k w_k x_ki                                  prices q = (0, μ),  Σ μ_i/width_i = 1

Prices are the dual's: no column is worth more than the value, q·(y_k, x_k) ≤ value, and a policy that is would improve it.
For one constraint both are closed forms, the first being the height at x = 0 of the concave hull of the points (x_k, y_k);
for several they are small linear programs. At most m+1 weights are positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from saddleback.errors import NumericalError
from saddleback.exact.linear_program import LinearProgram, vertices
from saddleback.problem.spaces import Array

_SHORT = 1e-9  # of the largest slack: how far rounding may push a mixture below a threshold


class Master(NamedTuple):
    """``weights`` ``(n,)`` of the columns, the ``value`` they reach, and ``prices`` ``(1+m,)`` of reward and slacks."""

    weights: Array
    value: float
    prices: Array


def best_reward(rewards: Array, slacks: Array) -> Master:
    """The mixture with the most reward and no negative slack; some mixture of the columns ``(n,)``, ``(n, m)`` has none."""
    n, m = slacks.shape
    if m == 1:
        return _hull(slacks[:, 0], rewards)
    matrix, right = np.vstack([np.ones(n), slacks.T]), np.append(1.0, np.zeros(m))
    w, lam = _vertex(-rewards, matrix, right, num_free=0)
    short = np.maximum(-(w @ slacks), 0.0)  # rounding, charged at its price
    return Master(w, float(w @ rewards - lam @ short), np.append(1.0, lam))


def largest_slack(slacks: Array, widths: Array) -> Master:
    """The mixture whose smallest slack, counted in ``widths`` ``(m,)``, is largest."""
    n, m = slacks.shape
    scaled = slacks * widths
    if m == 1:
        best = int(np.argmax(scaled[:, 0]))
        return Master(np.eye(n)[best], float(scaled[best, 0]), np.append(0.0, widths))
    unit = float(widths.max())  # z counts in the largest width
    matrix = np.vstack([np.append(np.ones(n), 0.0), np.column_stack([scaled.T / unit, -np.ones(m)])])
    w, mu = _vertex(np.append(np.zeros(n), -1.0), matrix, np.append(1.0, np.zeros(m)), num_free=1)
    return Master(w, float((w @ scaled).min()), np.append(0.0, mu / mu.sum() * widths))


def _hull(x: Array, y: Array) -> Master:
    """Points (x, y), one of them with x ≥ 0: the greatest height of their concave hull over x ≥ 0."""
    w = np.zeros(len(x))
    left, right = np.flatnonzero(x < 0), np.flatnonzero(x >= 0)
    top = right[np.argmax(y[right])]
    if not np.any(y[left] > y[top]):
        w[top] = 1.0
        return Master(w, float(y[top]), np.array([1.0, 0.0]))
    # Between i on the left and j on the right the line crosses x = 0 where i has the part x_j/(x_j − x_i).
    part = x[right] / (x[right] - x[left][:, None])
    height = y[right] + part * (y[left][:, None] - y[right])
    i, j = np.unravel_index(int(np.argmax(height)), height.shape)
    w[left[i]], w[right[j]] = part[i, j], 1.0 - part[i, j]
    lam = float(((y[left] - height[i, j]) / -x[left]).max())  # the least price at which no column is worth more
    return Master(w, float(height[i, j]), np.array([1.0, max(lam, 0.0)]))


def _vertex(cost: Array, matrix: Array, right: Array, num_free: int) -> tuple[Array, Array]:
    """Weights (without the free column) and the multipliers of the slack rows."""
    n, columns = len(cost) - num_free, scipy.sparse.csc_array(matrix)
    slacks = matrix[1:, :n]
    best = int(np.argmax(slacks.min(axis=0)))
    loose = 1 + np.argsort(slacks[:, best])[num_free:]  # with z, the tightest row holds with equality
    program = LinearProgram(cost, columns, right, num_equal=1, size=1.0, num_free=num_free)
    for x, multipliers in vertices(program, np.append(best, np.arange(n, n + num_free)), loose):
        w = np.maximum(x[:n], 0.0)  # rounding may leave them a little below zero
        w /= w.sum()
        if num_free or float((slacks @ w).min()) >= -_SHORT * float(np.abs(slacks).max()):
            return w, multipliers
    raise NumericalError("the master problem of column generation could not be solved; try the linear program.")
