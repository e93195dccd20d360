"""Feature maps of pairs, φ: S × A → R^d, and of states alone, ψ: S → R^k: what follows from their rows, and the plainest maps.

    all       φ(s, ·)                  at(states, actions) of every action
    values    ⟨φ(s, ·), θ⟩             all() times θ
    maximum   max_a ⟨φ(s, a), θ⟩       of values(); ties go to the first action in argmax

A map of pairs inherits these from :class:`FeatureMap` and writes anew those for which it knows a shorter way. Maps of states are
what :class:`~saddleback.features.per_action.PerAction` makes φ(s, a) of:

    product(s, Θ) = ψ(s)ᵀΘ       what solvers ask for, by the shortest way: a matrix product, or a gather of Θ's rows
    held(s)                      ψ at these states, computed once: a map over their positions 0 … n−1

One with ``constant`` has the constant 1 in its span by construction; one given by its rows ``at(states)`` inherits the other two
from :class:`StateMap`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from saddleback.errors import InputError, require
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Actions, Array, Features, States, unmasked
from saddleback.problem.user_code import Guarded, calling, frozen, lent, received

MOST_FEATURES = 20_000
"""Dimension above which a map is refused: a design works with d × d matrices, and this one takes 3 GB."""


def check_dimension(dim: int, remedy: str) -> int:
    """``dim``, refused above :data:`MOST_FEATURES` before anything of that size is built."""
    require(dim <= MOST_FEATURES, "features", f"must be at most {MOST_FEATURES} in number", dim, remedy)
    return dim


class FeatureMap:
    """A map that has ``dim``, ``num_actions`` and ``at``; it goes through all the actions unless it says otherwise."""

    @property
    def direct(self) -> bool:
        """Whether ``maximum`` and ``argmax`` must be used instead of ``all``."""
        return False

    def all(self: Features, states: States) -> Array:
        """φ(s, ·), ``(n, A, d)``."""
        n, A = len(states), self.num_actions
        return self.at(np.repeat(states, A, axis=0), np.tile(np.arange(A), n)).reshape(n, A, self.dim)

    def values(self: Features, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩, ``(n, A)`` or ``(n, A, k)``."""
        return np.asarray(self.all(states) @ theta)

    def maximum(self: Features, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩, ``(n,)`` or ``(n, k)``."""
        return maximum_over_actions(self.values(states, theta))

    def argmax(self: Features, states: States, theta: Array) -> Actions:
        """The first maximising action, ``(n,)``."""
        return first_largest(self.values(states, theta), axis=1)


@dataclass(frozen=True, eq=False)
class FeatureMatrix(FeatureMap):
    """φ(s, a) = ``phi[s, a]``, float64 ``(S, A, d)``."""

    phi: Array

    def __post_init__(self) -> None:
        phi = frozen(unmasked("phi", self.phi))
        object.__setattr__(self, "phi", phi)
        require(phi.ndim == 3, "phi", "must have shape (S, A, d)", phi.shape, "give one vector a pair")
        require(phi.dtype == np.float64, "phi", "must be float64", str(phi.dtype), "convert it where it is made")
        bad = np.argwhere(~np.isfinite(phi))
        if bad.size:
            s, a, j = bad[0]
            raise InputError(f"phi[{s}, {a}, {j}]", "must be finite", phi[s, a, j], "remove NaN and infinities")

    @property
    def num_actions(self) -> int:
        """A."""
        return int(self.phi.shape[1])

    @property
    def dim(self) -> int:
        """d."""
        return int(self.phi.shape[2])

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        return np.asarray(self.phi[states, actions])

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``."""
        return np.asarray(self.phi[states])


@dataclass(frozen=True, eq=False)
class FeatureFunction(FeatureMap):
    """φ by a vectorised function ``function(states, actions) -> (n, d)``."""

    function: Callable[[States, Actions], Array]
    dim: int
    num_actions: int

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``, checked on every call."""
        with calling("the features", len(states), failed):
            found = self.function(lent(states), lent(actions))
            phi = as_rows(found, len(states), self.dim, "pairs", "states and actions")
        _check_finite(phi, states, actions)
        return phi


def failed(said: str) -> InputError:
    """The error for a user's function of states that failed."""
    return InputError("features", "must not fail for a state of the problem", f"a function that {said}", "mend the map")


def as_rows(found: Array, number: int, dim: int, of: str, over: str) -> Array:
    """A copy of what a user's function has returned, refused unless it is float64 ``(number, dim)``."""
    rows = received(found)
    good = rows.shape == (number, dim) and rows.dtype == np.float64
    rule = f"must return a float64 array {(number, dim)} for {number} {of}"
    require(good, "features", rule, f"{rows.dtype} {rows.shape}", f"vectorise the function over {over}")
    return rows


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
        return StateMatrix.over(np.ascontiguousarray(self.at(states)), self.constant)


@dataclass(frozen=True, eq=False)
class StateMatrix(StateMap):
    """ψ(s) = ``psi[s]``, float64 ``(S, k)``; also what a dense map holds."""

    psi: Array
    constant: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        psi = frozen(unmasked("psi", self.psi))
        object.__setattr__(self, "psi", psi)
        require(psi.ndim == 2, "psi", "must have shape (S, k)", psi.shape, "give one vector a state")
        require(psi.dtype == np.float64, "psi", "must be float64", str(psi.dtype), "convert it where it is made")
        _check_finite(psi, np.arange(len(psi)))

    @classmethod
    def over(cls, psi: Array, constant: bool) -> StateMatrix:
        """The map over rows that are ours, which need not be copied."""
        _check_finite(psi, np.arange(len(psi)))
        matrix = object.__new__(cls)
        for name, value in (("psi", psi), ("constant", constant)):
            object.__setattr__(matrix, name, value)
        return matrix

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
        with calling("the features", len(states), failed):
            psi = as_rows(self.function(lent(states)), len(states), self.dim, "states", "states")
        _check_finite(psi, states)
        return psi


def spans_constant(features: Features | StateFeatures) -> bool:
    """Whether the map says that 1 is in its span by construction."""
    return bool(getattr(features, "constant", False))


def _check_finite(rows: Array, states: Any, actions: Any = None) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        i = int(np.argmin(finite))
        where = f"state {states[i]}" + ("" if actions is None else f", action {actions[i]}")
        raise InputError("features", "must be finite", f"{rows[i]} at {where}", "mend the map")


class GuardedStateFeatures(Guarded):
    """A user's :class:`StateFeatures`."""

    @property
    def dim(self) -> int:
        """k."""
        return int(self.inner.dim)

    @property
    def constant(self) -> bool:
        """As the map itself."""
        return bool(self.inner.constant)

    def at(self, states: Any) -> Any:
        """ψ(s), ``(n, k)``."""
        return self._ask("at", states)

    def product(self, states: Any, theta: Any) -> Any:
        """ψ(s)ᵀΘ."""
        return self._ask("product", states, theta)

    def held(self, states: Any) -> Any:
        """ψ over the positions of these states."""
        return self._ask("held", states)
