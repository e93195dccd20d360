"""§3, the saddle point (eq:saddle) over finitely many policies: the small programs behind duals, frontier and Slater's ζ.

A *column* is what is known of one policy, (V_r, V_{c_1}, …, V_{c_m}). Over the columns seen so far

    master:   max_w min_{λ≥0} Σ_i w_i [V_r^i + λᵀ(V_c^i − b)]      the best feasible mixture, and its prices
    game:     max_w min_j Σ_i w_i (V_{c_j}^i − b_j)                the largest smallest slack, and its prices
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import NumericalError
from saddleback.problem.numerics import PRICE_DIGITS, TIE, first_largest, on_grid, rounded
from saddleback.problem.spaces import Array

_CORNER = 10  # times the rounding: the end of a frontier is asked for a rounding error inside of the last policy


class Master(NamedTuple):
    """Weights over the columns, the value Z, and the prices λ̂ ``(m,)``."""

    weights: Array
    value: float
    multipliers: Array


def solve_master(columns: Array, target: Array) -> Master | None:
    """The best feasible mixture of ``columns`` ``(k, 1+m)``, or None when there is none; at most m + 1 weights.

    Values are compared to nine digits: which of two policies that are worth the same is mixed must not depend on the processor.
    """
    if len(target) == 1:
        return _hull_master(columns, float(target[0]))
    # Every column duplicated many times over would slow the program down and change nothing.
    _, first = np.unique(on_grid(columns), axis=0, return_index=True)
    distinct = columns[first]
    answer = _linprog(
        -distinct[:, 0], A_ub=-distinct[:, 1:].T, b_ub=-target, A_eq=np.ones((1, len(distinct))), b_eq=[1.0]
    )
    if answer is None:
        return None
    weights = np.zeros(len(columns))
    weights[first] = np.maximum(answer.x, 0.0)
    weights /= weights.sum()
    prices = rounded(np.maximum(-answer.ineqlin.marginals, 0.0), PRICE_DIGITS)
    return Master(weights, float(weights @ columns[:, 0]), prices)


def upper_bound(columns: Array, priced: Array, target: Array, value: float) -> tuple[Array, float]:
    """The priced λ ``(q, m)`` with the smallest D(λ), and D(λ) − ``value``, never negative."""
    lagrangian = columns[:, :1] + columns[:, 1:] @ priced.T  # (k, q)
    bounds = lagrangian.max(axis=0) - priced @ target
    k = int(first_largest(-bounds))
    return priced[k], max(0.0, float(bounds[k] - value))


def matrix_game(payoff: Array) -> tuple[Array, Array, float]:
    """Weights over the rows of ``payoff`` that maximise the smallest column, the columns' prices, and the value."""
    payoff = on_grid(payoff)
    k, m = payoff.shape
    answer = _linprog(
        np.append(np.zeros(k), -1.0),
        A_ub=np.hstack([-payoff.T, np.ones((m, 1))]),
        b_ub=np.zeros(m),
        A_eq=np.append(np.ones(k), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0, None)] * k + [(None, None)],
    )
    if answer is None:
        raise NumericalError("the matrix game between policies and constraints was not solved.")
    prices = np.maximum(-answer.ineqlin.marginals, 0.0)
    weights = np.maximum(answer.x[:k], 0.0)
    return weights / weights.sum(), rounded(prices / prices.sum(), PRICE_DIGITS), float(answer.x[k])


def _hull_master(columns: Array, b: float) -> Master | None:
    """m = 1 without a linear program: the point at b of the upper hull of (V_c, V_r), from its two neighbours.

    Which two is decided on rounded values; where they meet b, by the values themselves.
    """
    (r, c), (exact_r, exact_c) = on_grid(columns).T, columns.T
    close = TIE * float(np.abs(columns).max())
    meets = exact_c >= b - close  # a threshold at the very edge is met
    inside = np.flatnonzero(meets)
    if not inside.size:
        return None
    weights = np.zeros(len(columns))
    top = int(inside[np.lexsort((-c[inside], -r[inside]))[0]])  # the best feasible column by itself
    outside = np.flatnonzero(~meets & (r > r[top]))
    if not outside.size:
        weights[top] = 1.0
        return Master(weights, float(exact_r[top]), np.zeros(1))
    # The segment between an infeasible i and a feasible j whose height at b is largest.
    i, j = (ends.ravel() for ends in np.meshgrid(outside, inside, indexing="ij"))
    slope = (r[j] - r[i]) / np.maximum(c[j] - c[i], close)  # which rounding may have made equal
    at_corner = c[j] - b <= _CORNER * close
    height = np.where(at_corner, r[j], r[i] + (b - c[i]) * slope)
    best = first_largest(height)
    if at_corner[best]:  # all segments to it are as high: the steepest is the hull's, and its price supports it
        corner = np.flatnonzero(j == j[best])
        best = corner[first_largest(-slope[corner])]
    i0, j0 = int(i[best]), int(j[best])
    w = min(max(float((b - exact_c[i0]) / (exact_c[j0] - exact_c[i0])), 0.0), 1.0)
    weights[i0], weights[j0] = 1.0 - w, w
    price = max(0.0, float((exact_r[i0] - exact_r[j0]) / (exact_c[j0] - exact_c[i0])))
    return Master(weights, float(weights @ exact_r), rounded([price], PRICE_DIGITS))


def _linprog(cost: Array, **program: Any) -> Any | None:
    """The dual simplex's vertex, or None when the program is infeasible."""
    from scipy.optimize import linprog  # a tenth of a second to import, needed for several constraints only

    answer = linprog(cost, method="highs-ds", **program)
    if answer.status == 2:
        return None
    if answer.status != 0:
        raise NumericalError(f"the master program of the dual was not solved: {answer.message}")
    return answer
