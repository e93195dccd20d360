"""Linear programs through HiGHS, of which only the basis is believed, and the master problems of column generation.

    min costᵀx   subject to   A x = a  (the first rows),   A x ≥ a  (the others),   x ≥ 0

HiGHS forgets matrix entries below ``small_matrix_value`` (1e-9 by default; 1e-12, asked for here, is the least it allows)
and then calls the answer to that other program optimal. Small transition probabilities matter when H is large, so its
numbers are not used: a basis names the columns C that may be positive and the rows R that hold with equality, and

    A[R, C] x_C = a_R,        A[R, C]ᵀ y_R = cost_C

is solved again with the matrix as given. Whether that vertex is optimal is for the caller to check.

**Master problems** (§2): the best mixture of the policies seen so far, and what it leaves to ask. Column k is a policy with reward y_k and slacks x_k = V_c − b, both at their lower limits:

    best_reward     max_w Σ_k w_k y_k   s.t.  Σ_k w_k x_ki ≥ 0,  Σ w = 1,  w ≥ 0      prices q = (1, λ),  λ ≥ 0
    largest_slack   max_w min_i width_i·Σ_k w_k x_ki                                  prices q = (0, μ),  Σ μ_i/width_i = 1

Prices are the dual's: no column is worth more than the value, q·(y_k, x_k) ≤ value, and a policy that is would improve it.
For one constraint both are closed forms, the first being the height at x = 0 of the concave hull of the points (x_k, y_k);
for several they are small linear programs. At most m+1 weights are positive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from saddleback.errors import NumericalError
from saddleback.problem.spaces import Array

SMALLEST_ENTRY = 1e-12
_TOLERANCES = (1e-10, 1e-9, 1e-7)  # absolute, and 1e-10 is HiGHS's tightest; tried in this order
_SIZES = (1e3, 1.0)  # so values are passed with about this size, and the first tolerance is 1e-13 of them; or less, if
# HiGHS gives up with "excessive dual values"
_BASIC = highspy.HighsBasisStatus.kBasic
_SHORT = 1e-9  # of the largest slack: how far rounding may push a mixture below a threshold


@dataclass(frozen=True)
class LinearProgram:
    """The program above: ``matrix`` A, ``right`` a, of which the first ``num_equal`` rows are equations.

    ``num_free`` columns at the end may be negative. ``size`` is the size of a typical value of the optimum.
    """

    cost: Array
    matrix: scipy.sparse.csc_array
    right: Array
    num_equal: int
    size: float
    num_free: int = 0


class Vertex(NamedTuple):
    """x, and the multipliers y of the "≥" rows, which are ≥ 0: the least cost rises with their right-hand sides."""

    columns: Array
    multipliers: Array


def vertices(program: LinearProgram, columns: NDArray[np.int64], rows: NDArray[np.int64]) -> Iterator[Vertex]:
    """The vertex HiGHS calls optimal, at each tolerance in turn; it starts from basic ``columns`` and slack ``rows``."""
    equation = np.arange(len(program.right)) < program.num_equal
    for size, tolerance in itertools.product(_SIZES, _TOLERANCES):
        model = _model(program, size)
        lower = np.asarray(model.row_lower_)
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("small_matrix_value", SMALLEST_ENTRY)
        solver.setOptionValue("primal_feasibility_tolerance", tolerance)
        solver.setOptionValue("dual_feasibility_tolerance", tolerance)
        # A feasible region without interior must not look empty: HiGHS gets ten tolerances of room, the vertex gets none.
        model.row_lower_ = np.where(equation, lower, lower - 10 * tolerance)
        solver.passModel(model)
        solver.setBasis(_basis(program, columns, rows))
        solver.run()
        if solver.getModelStatus() == highspy.HighsModelStatus.kOptimal:
            basis = solver.getBasis()
            C = np.flatnonzero([status == _BASIC for status in basis.col_status])
            R = np.flatnonzero([status != _BASIC for status in basis.row_status])
            try:
                lu = splu(program.matrix[:, C].tocsr()[R].tocsc())  # A[R, C]
            except RuntimeError:  # singular
                continue
            x, y = np.zeros(len(program.cost)), np.zeros(len(program.right))
            x[C] = lu.solve(program.right[R])
            y[R] = lu.solve(program.cost[C], "T")  # type: ignore[call-overload]  # the stubs do not know "T"
            yield Vertex(x, np.maximum(y[program.num_equal :], 0.0))


def _model(program: LinearProgram, size: float) -> highspy.HighsLp:
    """The program as HiGHS wants it, with values of about this size."""
    num_row, num_col = program.matrix.shape
    scale = size / program.size
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = num_row, num_col
    model.col_cost_ = scale * program.cost
    model.col_lower_ = np.where(np.arange(num_col) < num_col - program.num_free, 0.0, -np.inf)
    model.col_upper_ = np.full(num_col, np.inf)
    model.row_lower_ = scale * program.right
    model.row_upper_ = np.where(np.arange(num_row) < program.num_equal, scale * program.right, np.inf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_ = program.matrix.indptr, program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    return model


def _basis(program: LinearProgram, columns: NDArray[np.int64], rows: NDArray[np.int64]) -> highspy.HighsBasis:
    def statuses(num: int, basic: NDArray[np.int64]) -> list[highspy.HighsBasisStatus]:
        chosen = set(basic.tolist())
        return [_BASIC if i in chosen else highspy.HighsBasisStatus.kLower for i in range(num)]

    num_row, num_col = program.matrix.shape
    basis = highspy.HighsBasis()
    basis.col_status, basis.row_status = statuses(num_col, columns), statuses(num_row, rows)
    basis.valid = True
    return basis


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
