"""A copy of a map of states for each action: φ(s, a) = e_a ⊗ ψ(s), d = A·k, block a holding ψ(s) and the others zero.

    ⟨φ(s, a), θ⟩ = ψ(s)ᵀθ_a        θ = (θ_0 … θ_{A−1})

All A values are one product of ψ(s) with a k × A matrix: φ itself, A² k numbers a state, is never built for them. States
are taken a piece at a time, so that ψ stays in the cache and memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import require, whole
from saddleback.features.base import FeatureMap, GuardedStateFeatures, StateFeatures, check_dimension
from saddleback.features.program import Writer, written
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.spaces import Actions, Array, States
from saddleback.problem.user_code import guarded

_PIECE = 1 << 18  # numbers in a piece of ψ (those touched, where it is sparse) and of the values (2 MB)


@dataclass(frozen=True, eq=False)
class PerAction(FeatureMap):
    """φ(s, a) = e_a ⊗ ψ(s); ``direct`` makes solvers ask for maxima alone and never keep φ."""

    state_features: StateFeatures
    num_actions: int
    direct: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        good = isinstance(self.state_features, StateFeatures)
        object.__setattr__(self, "state_features", guarded(self.state_features, GuardedStateFeatures))
        remedy = "wrap a function of states in StateFunction"
        require(good, "state_features", "must be a map of states", type(self.state_features).__name__, remedy)
        check_dimension(whole("num_actions", self.num_actions, 1) * self.state_features.dim, "use fewer a state")

    @property
    def dim(self) -> int:
        """d = A·k."""
        return self.num_actions * self.state_features.dim

    @property
    def constant(self) -> bool:
        """Whether 1 is in the span by construction."""
        return self.state_features.constant

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, A·k)``."""
        n, k = len(states), self.state_features.dim
        rows = np.zeros((n, self.num_actions, k))
        rows[np.arange(n), actions] = self.state_features.at(states)
        return rows.reshape(n, self.dim)

    def all(self, states: States) -> Array:
        """Rows ``(n, A, A·k)``."""
        n, A, k = len(states), self.num_actions, self.state_features.dim
        rows, psi = np.zeros((n, A, A, k)), self.state_features.at(states)
        for a in range(A):
            rows[:, a, a] = psi
        return rows.reshape(n, A, self.dim)

    def values(self, states: States, theta: Array) -> Array:
        """ψ(s)ᵀθ_a for all a."""
        Q = np.empty((len(states), self.num_actions, *theta.shape[1:]))
        for piece, values in self._pieces(states, theta):
            Q[piece] = values
        return Q

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ψ(s)ᵀθ_a."""
        V = np.empty((len(states), *theta.shape[1:]))
        for piece, values in self._pieces(states, theta):
            V[piece] = maximum_over_actions(values)
        return V

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximising action."""
        best = np.empty(len(states), dtype=np.int64)
        for piece, values in self._pieces(states, theta):
            best[piece] = first_largest(values, axis=1)
        return best

    def write(self, writer: Writer) -> tuple[str, NDArray[np.int64]]:
        """ψ as steps of a program, and which entry of θ each of its features has for each action."""
        k = self.state_features.dim
        return written(self.state_features, writer), np.arange(k)[:, None] + k * np.arange(self.num_actions)

    def held(self, states: States) -> PerAction:
        """φ over the positions 0 … n−1 of these states, with ψ computed once and kept."""
        return PerAction(self.state_features.held(states), self.num_actions, direct=self.direct)

    def _pieces(self, states: States, theta: Array) -> Iterator[tuple[slice, Array]]:
        """Pieces of the states and the values there, ``(n, A)`` or ``(n, A, m)``."""
        A, k = self.num_actions, self.state_features.dim
        blocks = np.moveaxis(theta.reshape(A, k, -1), 0, 1)  # (k, A, m)
        columns = np.ascontiguousarray(blocks).reshape(k, -1)
        step = max(1, _PIECE // (getattr(self.state_features, "touched", k) + columns.shape[1]))
        for first in range(0, len(states), step):
            piece = slice(first, min(first + step, len(states)))
            values = self.state_features.product(states[piece], columns)
            yield piece, values.reshape(-1, A, *theta.shape[1:])
