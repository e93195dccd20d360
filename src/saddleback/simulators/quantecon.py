"""QuantEcon's arrays (``DiscreteDP``) as a table, in both of their forms. QuantEcon itself is not needed.

    R[s, a], Q[s, a, s']                             −inf in R where a is infeasible in s
    R[i], Q[i, s'] (dense or sparse), s_indices[i], a_indices[i]        one row a feasible pair

    from_quantecon(ddp.R, ddp.Q, ddp.beta, ddp.s_indices, ddp.a_indices, rho=…, constraints=[…])

An infeasible action stands for the lowest feasible action of its state (:mod:`saddleback.simulators.tabulate`): R = −inf
is no reward, and a table needs a law for every pair. Costs given at infeasible pairs are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, require
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table, as_numbers
from saddleback.simulators.tabulate import checked_csr, signal_array, stand_ins, table_of


def from_quantecon(
    R: Any,
    Q: Any,
    beta: float,
    s_indices: ArrayLike | None = None,
    a_indices: ArrayLike | None = None,
    *,
    rho: ArrayLike,
    constraints: Sequence[Constraint],
    name: str = "quantecon",
    **more: Any,
) -> Table:
    """A table from the arguments of ``quantecon.markov.DiscreteDP``; ``beta`` is the discount.

    A constraint's signal is an array ``(S, A)``, a function ``(states, actions) -> (n,)`` or, in the second form, an array
    with one entry a row of ``R``.
    """
    rewards = as_numbers("R", R)
    if s_indices is None and a_indices is None:
        require(rewards.ndim == 2, "R", "must have shape (S, A)", rewards.shape, "or give s_indices and a_indices")
        S, A = rewards.shape
        for s, a in np.argwhere(np.isnan(rewards) | (rewards == np.inf))[:1]:
            raise InputError(f"R[{s}, {a}]", "must be finite, or -inf if infeasible", rewards[s, a], "mend R")
        rows = _product_rows(Q, S, A)
        source = np.where(rewards > -np.inf, np.arange(S * A).reshape(S, A), -1)
    else:
        source, rows = _pair_rows(rewards, Q, s_indices, a_indices)
        S, A = source.shape
    means = stand_ins(source >= 0)
    source = np.take_along_axis(source, means, axis=1)
    costs = [_cost(c, source, means, len(rewards) if rewards.ndim == 1 else None) for c in constraints]
    P = scipy.sparse.csr_array(rows[source.ravel()])
    return table_of(P, rewards.ravel()[source], costs, constraints, gamma=beta, rho=rho, name=name, **more)


def _product_rows(Q: Any, S: int, A: int) -> scipy.sparse.csr_array:
    dense = as_numbers("Q", Q)
    require(dense.shape == (S, A, S), "Q", f"must have shape {(S, A, S)}", dense.shape, "index it [s, a, s']")
    return scipy.sparse.csr_array(dense.reshape(S * A, S))


def _pair_rows(R: Array, Q: Any, s_indices: Any, a_indices: Any) -> tuple[NDArray[np.int64], scipy.sparse.csr_array]:
    """Which row each pair has (−1: none), ``(S, A)``, and the rows."""
    require(R.ndim == 1, "R", "must have one entry a feasible pair", R.shape, "leave s_indices and a_indices out")
    rows = checked_csr("Q", Q) if scipy.sparse.issparse(Q) else scipy.sparse.csr_array(as_numbers("Q", Q))
    require(
        rows.ndim == 2 and rows.shape[0] == len(R) and min(rows.shape) > 0,
        "Q",
        f"must have shape ({len(R)}, S)",
        rows.shape,
        "give one row a feasible pair",
    )
    S = rows.shape[1]
    s, a = _indices("s_indices", s_indices, len(R), S), _indices("a_indices", a_indices, len(R), None)
    for i in np.flatnonzero(~np.isfinite(R))[:1]:
        raise InputError(f"R[{i}]", "must be finite", R[i], "leave infeasible pairs out of this form")
    A = int(a.max()) + 1
    require(10 * len(R) >= A, "a_indices", "must be numbered from 0 on", A - 1, "leave no gaps between actions")
    source = np.full((S, A), -1, dtype=np.int64)
    source[s, a] = np.arange(len(R))
    for i in np.flatnonzero(source[s, a] != np.arange(len(R)))[:1]:
        raise InputError(f"s_indices[{i}], a_indices[{i}]", "must be a pair of its own", (s[i], a[i]), "give each once")
    return source, rows


def _indices(name: str, given: Any, length: int, below: int | None) -> NDArray[np.int64]:
    x = np.asarray(given)
    require(
        x.shape == (length,) and x.dtype.kind in "iu",
        name,
        f"must be {length} whole numbers",
        "None" if given is None else f"{x.dtype} {x.shape}",
        "give one a row of R",
    )
    for i in np.flatnonzero((x < 0) | (x >= (x.max() + 1 if below is None else below)))[:1]:
        raise InputError(f"{name}[{i}]", f"must lie in [0, {below or 'A'})", x[i], "number states and actions from 0")
    return x.astype(np.int64)


def _cost(c: Constraint, source: NDArray[np.int64], means: NDArray[np.int64], num_rows: int | None) -> Array:
    """A constraint's signal at all pairs, that of its stand-in where an action is infeasible."""
    signal: Any = c.signal
    if num_rows is not None and not callable(signal) and np.shape(signal) == (num_rows,):
        return as_numbers(c.name, signal)[source]
    return np.take_along_axis(signal_array(c.name, c.signal, *source.shape), means, axis=1)
