"""Feature maps side by side: φ = (φ_1, φ_2, …), of states alone (:class:`Joined`) or of pairs (:class:`Stacked`).

⟨φ, θ⟩ = Σ_i ⟨φ_i, θ_i⟩        each part by its own shortest way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from saddleback.errors import require
from saddleback.features.base import FeatureMap
from saddleback.features.state import StateFeatures, spans_constant
from saddleback.problem.spaces import Actions, Array, Features, States


@dataclass(frozen=True, eq=False)
class Joined:
    """ψ = (ψ_1, ψ_2, …)."""

    parts: Sequence[StateFeatures]

    def __post_init__(self) -> None:
        require(len(self.parts) > 0, "parts", "must hold a map at least", self.parts, "give the maps to join")

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


def _split(parts: Sequence[StateFeatures] | Sequence[Features], theta: Array) -> list[Array]:
    return np.split(theta, np.cumsum([p.dim for p in parts])[:-1])
