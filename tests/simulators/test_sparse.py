"""scipy.sparse tables: never made dense, index arrays not trusted, every fault named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from saddleback.errors import InputError
from saddleback.problem.cmdp import Constraint
from saddleback.simulators import from_sparse
from simulators.one_problem import known, options, queue_table


def ring(S: int, step: int) -> scipy.sparse.csr_array:
    """Forward by ``step`` or not at all, with equal chances."""
    s = np.arange(S)
    rows, columns = np.concatenate([s, s]), np.concatenate([s, (s + step) % S])
    return scipy.sparse.csr_array((np.full(2 * S, 0.5), (rows, columns)), shape=(S, S))


def test_a_large_table_is_never_made_dense() -> None:
    """200,000 states: dense it would take 640 GB."""
    S = 200_000
    cost = [Constraint("moves", lambda s, a: 1.0 * (a == 1), "<=", 3.0)]
    table = from_sparse(
        [ring(S, 1), ring(S, 7)], lambda s, a: 1.0 * (s < 10), cost, gamma=0.9, rho=np.full(S, 1 / S), name="ring"
    )
    assert table.P.nnz == 4 * S and table.P.shape == (2 * S, S)
    drawn = table.simulator().sample(np.array([3, 3, S - 1]), np.array([0, 1, 1]), np.random.default_rng(0)).next_states
    assert drawn[0] in (3, 4) and drawn[1] in (3, 10) and drawn[2] in (S - 1, 6)
    assert np.flatnonzero(table.P[[2 * 3 + 1]].toarray()).tolist() == [3, 10]


def test_the_caller_s_matrices_are_left_alone() -> None:
    messy = scipy.sparse.coo_array(([0.25, 0.25, 0.5, 1.0], ([0, 0, 0, 1], [1, 1, 0, 1])), shape=(2, 2))
    rows = messy.tocsr(copy=True)
    table = from_sparse(
        [messy], np.zeros((2, 1)), [Constraint("c", np.zeros((2, 1)), "<=", 1.0)], gamma=0.5, rho=[1.0, 0.0]
    )
    assert table.P.toarray().tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert messy.nnz == 4 and rows.nnz == messy.tocsr().nnz


def broken(name: str, at: int, value: int) -> scipy.sparse.csr_array:
    matrix = queue_table().P.copy()
    getattr(matrix, name)[at] = value
    return matrix


QUEUE = queue_table()
SQUARE = scipy.sparse.csr_array(np.eye(11))
REFUSED: dict[str, tuple[Any, list[str]]] = {
    "far index": (broken("indices", 3, 10**6), ["P", "well-formed"]),
    "negative index": (broken("indices", 3, -5), ["P", "well-formed"]),
    "pointer": (broken("indptr", 4, 10**6), ["P", "well-formed"]),
    "in a list": ([SQUARE, broken("indices", 3, 10**6)], ["P[1]", "well-formed"]),
    "odd shape": (QUEUE.P[:21], ["P", "(S·A, S)", "(21, 11)"]),
    "not square": ([SQUARE, SQUARE[:5]], ["P[1]", "(11, 11)", "(5, 11)"]),
    "dense": ([np.eye(11), np.eye(11)], ["P", "ndarray", "Table.of"]),
    "nothing": ([], ["P", "one an action"]),
    "float32": (QUEUE.P.astype(np.float32), ["P", "float64", "float32"]),
    "row sum": (QUEUE.P * 0.9, ["P[state 0, action 0]", "sum to 1", "0.9"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_is_refused(fault: str) -> None:
    P, words = REFUSED[fault]
    with pytest.raises(InputError) as caught:
        from_sparse(P, QUEUE.reward, known(QUEUE), **options(QUEUE))
    for word in words:
        assert word in str(caught.value)
