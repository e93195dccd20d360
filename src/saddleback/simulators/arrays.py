"""Arrays that users have as a :class:`Table`: signals of all pairs, constraints, actions that do not exist; scipy's and QuantEcon's.

**scipy.sparse** (:func:`from_sparse`): a list of A matrices ``(S, S)``, or one ``(S·A, S)`` with row s·A + a. Nothing is ever made
dense but the signals, which have one number a pair.

**QuantEcon** (:func:`from_quantecon`): the arrays of ``DiscreteDP`` in both of their forms; QuantEcon itself is not needed.

    R[s, a], Q[s, a, s']                             −inf in R where a is infeasible in s
    R[i], Q[i, s'] (dense or sparse), s_indices[i], a_indices[i]        one row a feasible pair

    from_quantecon(ddp.R, ddp.Q, ddp.beta, ddp.s_indices, ddp.a_indices, rho=…, constraints=[…])

**Actions that do not exist.** A table has A actions in every state. Where a state has fewer, an action that does not exist
*stands for the lowest one that does*: it has the same transitions and the same signals, so no value changes and no policy
gains; costs given there are not looked at. :func:`stand_ins` says which action each one stands for, to read a policy in the
model's own terms.
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
from saddleback.simulators.table import Table, as_numbers, checked_csr


def signal_array(name: str, signal: Any, num_states: int, num_actions: int) -> Array:
    """A signal at all pairs ``(S, A)``, from an array or a function ``(states, actions) -> (n,)``."""
    S, A = num_states, num_actions
    if signal is None:
        remedy = "give an array (S, A) or a function (states, actions) -> (n,)"
        raise InputError(name, "must be known for a table", None, remedy)
    if callable(signal):
        signal = signal(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))
        rule, remedy = f"must return an array ({S * A},) for {S * A} pairs", "vectorise it over states and actions"
        require(np.shape(signal) == (S * A,), name, rule, f"shape {np.shape(signal)}", remedy)
        return as_numbers(name, signal).reshape(S, A)
    values = as_numbers(name, signal)
    require(values.shape == (S, A), name, f"must have shape {(S, A)}", values.shape, "give one value a pair")
    return values


def table_of(
    P: Any,
    reward: Array,
    costs: Sequence[Array],
    constraints: Sequence[Constraint],
    *,
    gamma: float,
    rho: ArrayLike,
    **more: Any,
) -> Table:
    """The table whose constraints have these arrays ``costs``, one ``(S, A)`` a constraint, and these declarations."""
    require(len(constraints) > 0, "constraints", "must hold at least one constraint", 0, "add a Constraint")
    if any(c.range is not None for c in constraints):
        more["ranges"] = tuple(c.range for c in constraints)
    if any(c.units == "per-step" for c in constraints):
        more["units"] = tuple(c.units for c in constraints)
    H = 1.0 / (1.0 - gamma) if gamma < 1 else 1.0  # a gamma of 1 is refused by the table
    return Table.of(
        P,
        reward,
        np.stack(list(costs)),
        [c.unit(H).total(c.threshold) for c in constraints],
        gamma=gamma,
        rho=rho,
        senses=[c.sense for c in constraints],
        names=[c.name for c in constraints],
        **more,
    )


def stand_ins(feasible: ArrayLike) -> NDArray[np.int64]:
    """The action that each action means, ``(S, A)``: itself where it is feasible, else the state's lowest feasible one."""
    possible = np.asarray(feasible, dtype=bool)
    require(possible.ndim == 2, "feasible", "must have shape (S, A)", possible.shape, "give one flag a pair")
    stuck = np.flatnonzero(~possible.any(axis=1))
    if stuck.size:
        remedy = "give it one, such as staying where it is"
        raise InputError(f"state {stuck[0]}", "must have a feasible action", f"none ({stuck.size} such)", remedy)
    return np.where(possible, np.arange(possible.shape[1]), possible.argmax(axis=1)[:, None])


def from_sparse(
    P: Any,
    reward: Any,
    constraints: Sequence[Constraint],
    *,
    gamma: float,
    rho: ArrayLike,
    name: str = "sparse",
    **more: Any,
) -> Table:
    """A table from sparse transition matrices, one an action or all in one.

    ``reward`` and the signals of ``constraints`` are arrays ``(S, A)`` or functions ``(states, actions) -> (n,)``. Other
    options are those of :class:`Table` (``reward_range``, ``phi``, ``state_names``).
    """
    if scipy.sparse.issparse(P):
        rows = checked_csr("P", P)
        S = rows.shape[1]
        rule, remedy = "must have shape (S·A, S)", "stack the actions so that row s*A + a is P(· | s, a)"
        require(S > 0 and rows.shape[0] > 0 and rows.shape[0] % S == 0, "P", rule, rows.shape, remedy)
        A = rows.shape[0] // S
    else:
        rows, S, A = _interleaved(P)
    costs = [signal_array(c.name, c.signal, S, A) for c in constraints]
    return table_of(
        rows, signal_array("reward", reward, S, A), costs, constraints, gamma=gamma, rho=rho, name=name, **more
    )


def _interleaved(P: Any) -> tuple[scipy.sparse.csr_array, int, int]:
    """The matrices of a list, one an action, as one with row s·A + a."""
    matrices = list(P)
    good = len(matrices) > 0 and all(map(scipy.sparse.issparse, matrices))
    rule = "must be a sparse matrix or a list of them, one an action"
    require(good, "P", rule, [type(m).__name__ for m in matrices[:3]], "use Table.of for dense arrays")
    checked = [checked_csr(f"P[{a}]", m) for a, m in enumerate(matrices)]
    S, A = checked[0].shape[1], len(checked)
    for a, m in enumerate(checked):
        require(m.shape == (S, S), f"P[{a}]", f"must have shape {(S, S)}", m.shape, "index it [s, s']")
    stacked = scipy.sparse.csr_array(scipy.sparse.vstack(checked, format="csr"))  # row a·S + s
    order = (np.arange(A) * S + np.arange(S)[:, None]).ravel()
    return scipy.sparse.csr_array(stacked[order]), S, A


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
    rule, remedy = f"must have shape ({len(R)}, S)", "give one row a feasible pair"
    require(rows.ndim == 2 and rows.shape[0] == len(R) and min(rows.shape) > 0, "Q", rule, rows.shape, remedy)
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
    good = x.shape == (length,) and x.dtype.kind in "iu"
    rule = f"must be {length} whole numbers"
    require(good, name, rule, "None" if given is None else f"{x.dtype} {x.shape}", "give one a row of R")
    for i in np.flatnonzero((x < 0) | (x >= (x.max() + 1 if below is None else below)))[:1]:
        raise InputError(f"{name}[{i}]", f"must lie in [0, {below or 'A'})", x[i], "number states and actions from 0")
    return x.astype(np.int64)


def _cost(c: Constraint, source: NDArray[np.int64], means: NDArray[np.int64], num_rows: int | None) -> Array:
    """A constraint's signal at all pairs, that of its stand-in where an action is infeasible."""
    signal: Any = c.signal
    if num_rows is not None and not callable(signal) and np.shape(signal) == (num_rows,):
        return as_numbers(c.name, signal)[source]
    return np.take_along_axis(signal_array(c.name, c.signal, *source.shape), means, axis=1)
