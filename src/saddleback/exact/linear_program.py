"""Linear programs through HiGHS, of which only the basis is believed.

    min costᵀx   subject to   A x = a  (the first rows),   A x ≥ a  (the others),   x ≥ 0

HiGHS forgets matrix entries below ``small_matrix_value`` (1e-9 by default; 1e-12, asked for here, is the least it allows)
and then calls the answer to that other program optimal. Small transition probabilities matter when H is large, so its
numbers are not used: a basis names the columns C that may be positive and the rows R that hold with equality, and

    A[R, C] x_C = a_R,        A[R, C]ᵀ y_R = cost_C

is solved again with the matrix as given. Whether that vertex is optimal is for the caller to check.
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

from saddleback.problem.spaces import Array

SMALLEST_ENTRY = 1e-12
_TOLERANCES = (1e-10, 1e-9, 1e-7)  # absolute, and 1e-10 is HiGHS's tightest; tried in this order
_SIZES = (1e3, 1.0)  # so values are passed with about this size, and the first tolerance is 1e-13 of them; or less, if
# HiGHS gives up with "excessive dual values"
_BASIC = highspy.HighsBasisStatus.kBasic


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
