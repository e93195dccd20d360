"""Feature maps side by side: φ = (φ_1, φ_2, …), of states alone (:class:`Joined`) or of pairs (:class:`Stacked`).

    ⟨φ, θ⟩ = Σ_i ⟨φ_i, θ_i⟩       each part by its own shortest way
    WithConstant(φ) = (φ, 1)      the maximising action is φ's own, so argmax oracles stay what they are

A linear model needs the constant 1: P(·|s,a) sums to one, so P linear in φ has 1 in φ's span (asm_32). :func:`with_constant` adds it
only where it is not in the span already, by construction or as seen on a pool of states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import overload

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import require
from saddleback.features.base import FeatureMap, GuardedStateFeatures, StateFeatures, spans_constant
from saddleback.features.program import Writer, side_by_side, written
from saddleback.features.report import examine
from saddleback.problem.spaces import Actions, Array, Features, States
from saddleback.problem.user_code import GuardedFeatures, guarded


@dataclass(frozen=True, eq=False)
class Joined:
    """ψ = (ψ_1, ψ_2, …)."""

    parts: Sequence[StateFeatures]

    def __post_init__(self) -> None:
        require(len(self.parts) > 0, "parts", "must hold a map at least", self.parts, "give the maps to join")
        object.__setattr__(self, "parts", tuple(guarded(p, GuardedStateFeatures) for p in self.parts))

    @property
    def dim(self) -> int:
        """k_1 + k_2 + …"""
        return sum(p.dim for p in self.parts)

    @property
    def constant(self) -> bool:
        """Whether a part spans 1 by construction."""
        return any(p.constant for p in self.parts)

    def at(self, states: States) -> Array:
        """Rows ``(n, k)``."""
        return np.concatenate([p.at(states) for p in self.parts], axis=1)

    def product(self, states: States, theta: Array) -> Array:
        """ψ(s)ᵀΘ."""
        pieces = zip(self.parts, _split(self.parts, theta), strict=True)
        return np.asarray(sum(p.product(states, piece) for p, piece in pieces))

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        return writer.do("Concat", *(written(p, writer) for p in self.parts))

    def held(self, states: States) -> Joined:
        """Each part held."""
        return Joined([p.held(states) for p in self.parts])


@dataclass(frozen=True, eq=False)
class Stacked(FeatureMap):
    """φ = (φ_1, φ_2, …), all for the same actions."""

    parts: Sequence[Features]
    direct: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        require(len(self.parts) > 0, "parts", "must hold a map at least", self.parts, "give the maps to stack")
        object.__setattr__(self, "parts", tuple(guarded(p, GuardedFeatures) for p in self.parts))
        counts = [p.num_actions for p in self.parts]
        require(len(set(counts)) == 1, "parts", "must have the same actions", counts, "build them for one problem")

    @property
    def dim(self) -> int:
        """d_1 + d_2 + …"""
        return sum(p.dim for p in self.parts)

    @property
    def num_actions(self) -> int:
        """A."""
        return self.parts[0].num_actions

    @property
    def constant(self) -> bool:
        """Whether a part spans 1 by construction."""
        return any(spans_constant(p) for p in self.parts)

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        return np.concatenate([p.at(states, actions) for p in self.parts], axis=1)

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``."""
        return np.concatenate([p.all(states) for p in self.parts], axis=2)

    def values(self, states: States, theta: Array) -> Array:
        """Σ_i ⟨φ_i(s, ·), θ_i⟩."""
        pieces = zip(self.parts, _split(self.parts, theta), strict=True)
        return np.asarray(sum(p.values(states, piece) for p, piece in pieces))

    def write(self, writer: Writer) -> tuple[str, NDArray[np.int64]]:
        """The same as steps of a program."""
        return side_by_side([(*written(p, writer), p.dim) for p in self.parts], writer)


def _split(parts: Sequence[StateFeatures] | Sequence[Features], theta: Array) -> list[Array]:
    return np.split(theta, np.cumsum([p.dim for p in parts])[:-1])


IN_SPAN = 1e-8
"""Largest error of the best fit to 1 on a pool at which 1 counts as in the span."""


@dataclass(frozen=True)
class Constant:
    """ψ(s) = 1."""

    dim: int = field(default=1, init=False)
    constant: bool = field(default=True, init=False)

    def at(self, states: States) -> Array:
        """A column of ones."""
        return np.ones((len(states), 1))

    def product(self, states: States, theta: Array) -> Array:
        """Θ's only row, for each state."""
        return np.repeat(theta, len(states), axis=0)

    def write(self, writer: Writer) -> str:
        """The same as a step of a program."""
        return writer.ones()

    def held(self, states: States) -> Constant:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class WithConstant:
    """(φ, 1)."""

    features: Features
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", guarded(self.features, GuardedFeatures))

    @property
    def dim(self) -> int:
        """d + 1."""
        return self.features.dim + 1

    @property
    def num_actions(self) -> int:
        """A."""
        return self.features.num_actions

    @property
    def direct(self) -> bool:
        """As φ."""
        return self.features.direct

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d + 1)``."""
        return _with_ones(self.features.at(states, actions))

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d + 1)``."""
        return _with_ones(self.features.all(states))

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩ + θ_{d+1}."""
        return self.features.values(states, theta[:-1]) + theta[-1]

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩ + θ_{d+1}."""
        return self.features.maximum(states, theta[:-1]) + theta[-1]

    def argmax(self, states: States, theta: Array) -> Actions:
        """φ's first maximising action."""
        return self.features.argmax(states, theta[:-1])

    def write(self, writer: Writer) -> tuple[str, NDArray[np.int64]]:
        """The same as steps of a program."""
        one = writer.ones(), np.zeros((1, self.num_actions), dtype=np.int64), 1
        return side_by_side([(*written(self.features, writer), self.features.dim), one], writer)


@overload
def with_constant(features: StateFeatures) -> StateFeatures: ...
@overload
def with_constant(features: Features, states: States | None = None) -> Features: ...
def with_constant(features: Features | StateFeatures, states: States | None = None) -> Features | StateFeatures:
    """``features`` themselves if 1 is in their span, by construction or on the pool ``states``; else with 1 added."""
    if spans_constant(features):
        return features
    if isinstance(features, Features):
        if states is not None and examine(features, states).constant_residual <= IN_SPAN:
            return features
        return WithConstant(features)
    return Joined([features, Constant()])


def _with_ones(phi: Array) -> Array:
    return np.concatenate([phi, np.ones((*phi.shape[:-1], 1))], axis=-1)
