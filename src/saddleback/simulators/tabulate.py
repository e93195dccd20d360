"""From what users write to the arrays of a :class:`Table`: signals of all pairs, constraints, actions that do not exist.

**Actions that do not exist.** A table has A actions in every state. Where a state has fewer, an action that does not exist
*stands for the lowest one that does*: it has the same transitions and the same signals, so no value changes and no policy
gains. :func:`stand_ins` says which action each one stands for, to read a policy in the model's own terms.
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


def signal_array(name: str, signal: Any, num_states: int, num_actions: int) -> Array:
    """A signal at all pairs ``(S, A)``, from an array or a function ``(states, actions) -> (n,)``."""
    S, A = num_states, num_actions
    if signal is None:
        remedy = "give an array (S, A) or a function (states, actions) -> (n,)"
        raise InputError(name, "must be known for a table", None, remedy)
    if callable(signal):
        signal = signal(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))
        require(
            np.shape(signal) == (S * A,),
            name,
            f"must return an array ({S * A},) for {S * A} pairs",
            f"shape {np.shape(signal)}",
            "vectorise it over states and actions",
        )
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
    H = 1.0 / (1.0 - gamma) if gamma < 1 else 1.0  # a gamma of 1 is refused by the table
    return Table.of(
        P,
        reward,
        np.stack(list(costs)),
        [c.threshold * (H if c.units == "per-step" else 1.0) for c in constraints],
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


def checked_csr(name: str, matrix: Any) -> scipy.sparse.csr_array:
    """A sparse matrix whose index arrays can be trusted: scipy takes rows from any, and reads foreign memory."""
    require(matrix.dtype == np.float64, name, "must be float64", str(matrix.dtype), "convert it where it is made")
    try:
        csr: scipy.sparse.csr_array = scipy.sparse.csr_array(matrix)
        csr.check_format(full_check=True)
    except ValueError as error:
        raise InputError(name, "must be a well-formed sparse matrix", str(error), "build it anew") from None
    return csr
