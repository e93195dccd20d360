"""Maps of states alone, ψ: S → R^k, from which :class:`~saddleback.features.per_action.PerAction` makes φ(s, a).

    product(s, Θ) = ψ(s)ᵀΘ       what solvers ask for, by the shortest way: a matrix product, or a gather of Θ's rows
    held(s)                      ψ at these states, computed once: a map over their positions 0 … n−1

A map with ``constant`` has the constant 1 in its span by construction. One given by its rows ``at(states)`` inherits the
other two from :class:`StateMap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from saddleback.errors import InputError, require
from saddleback.features.base import as_rows
from saddleback.problem.spaces import Array, Features, States


@runtime_checkable
class StateFeatures(Protocol):
    """ψ, vectorised over states."""

    @property
    def dim(self) -> int:
        """k."""
        ...

    @property
    def constant(self) -> bool:
        """Whether some ω has ψ(s)ᵀω = 1 for all s, by construction."""
        ...

    def at(self, states: States, /) -> Array:
        """ψ(s), float64 ``(n, k)``."""
        ...

    def product(self, states: States, theta: Array) -> Array:
        """ψ(s)ᵀΘ, ``(n, m)`` for ``theta`` ``(k, m)``."""
        ...

    def held(self, states: States) -> StateFeatures:
        """ψ over the positions 0 … n−1 of these states."""
        ...


class StateMap:
    """A map that has ``dim``, ``constant`` and ``at``."""

    def product(self: StateFeatures, states: States, theta: Array) -> Array:
        """ψ(s)ᵀΘ."""
        return np.asarray(self.at(states) @ theta)

    def held(self: StateFeatures, states: States) -> StateFeatures:
        """The rows at these states, kept as a matrix."""
        return StateMatrix(np.ascontiguousarray(self.at(states)), constant=self.constant)


@dataclass(frozen=True, eq=False)
class StateMatrix(StateMap):
    """ψ(s) = ``psi[s]``, float64 ``(S, k)``; also what a dense map holds."""

    psi: Array
    constant: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        psi = np.asarray(self.psi)
        require(psi.ndim == 2, "psi", "must have shape (S, k)", psi.shape, "give one vector a state")
        require(psi.dtype == np.float64, "psi", "must be float64", str(psi.dtype), "convert it where it is made")
        _check_finite(psi, np.arange(len(psi)))

    @property
    def dim(self) -> int:
        """k."""
        return int(self.psi.shape[1])

    def at(self, states: States) -> Array:
        """Rows of the matrix."""
        return np.asarray(self.psi[states])


@dataclass(frozen=True, eq=False)
class StateFunction(StateMap):
    """ψ by a vectorised function ``states -> (n, k)``."""

    function: Callable[[States], Array]
    dim: int
    constant: bool = field(default=False, kw_only=True)

    def at(self, states: States) -> Array:
        """Rows ``(n, k)``, checked on every call."""
        psi = as_rows(self.function(states), len(states), self.dim, "states", "states")
        _check_finite(psi, states)
        return psi


def spans_constant(features: Features | StateFeatures) -> bool:
    """Whether the map says that 1 is in its span by construction."""
    return bool(getattr(features, "constant", False))


def _check_finite(psi: Array, states: Any) -> None:
    finite = np.isfinite(psi).all(axis=1)
    if not finite.all():
        i = int(np.argmin(finite))
        raise InputError("features", "must be finite", f"{psi[i]} at state {states[i]}", "mend the map")
