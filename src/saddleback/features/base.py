"""Feature maps of pairs, φ: S × A → R^d: what follows from the rows ``at(states, actions)``, and the two plainest maps.

    all       φ(s, ·)                  at() of every action
    values    ⟨φ(s, ·), θ⟩             all() times θ
    maximum   max_a ⟨φ(s, a), θ⟩       of values(); ties go to the first action in argmax

A map inherits these from :class:`FeatureMap` and writes anew those for which it knows a shorter way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from saddleback.errors import InputError, require
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Actions, Array, Features, States

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
        phi = np.asarray(self.phi)
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
        phi = as_rows(self.function(states, actions), len(states), self.dim, "pairs", "states and actions")
        finite = np.isfinite(phi).all(axis=1)
        if not finite.all():
            i = int(np.argmin(finite))
            found = f"{phi[i]} at state {states[i]}, action {actions[i]}"
            raise InputError("features", "must be finite", found, "mend the map")
        return phi


def as_rows(found: Array, number: int, dim: int, of: str, over: str) -> Array:
    """What a user's function has returned, refused unless it is float64 ``(number, dim)``."""
    rows = np.asarray(found)
    good = rows.shape == (number, dim) and rows.dtype == np.float64
    rule = f"must return a float64 array {(number, dim)} for {number} {of}"
    require(good, "features", rule, f"{rows.dtype} {rows.shape}", f"vectorise the function over {over}")
    return rows
