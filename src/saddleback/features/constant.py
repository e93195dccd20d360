"""The constant 1 as a feature. A linear model needs it: P(·|s,a) sums to one, so P linear in φ has 1 in φ's span (asm_32).

    WithConstant(φ) = (φ, 1)      the maximising action is φ's own, so argmax oracles stay what they are

:func:`with_constant` adds it only where 1 is not in the span already, by construction or as seen on a pool of states.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import overload

import numpy as np

from saddleback.features.report import examine
from saddleback.features.stacked import Joined
from saddleback.features.state import StateFeatures, spans_constant
from saddleback.problem.spaces import Actions, Array, Features, States

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

    def held(self, states: States) -> Constant:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class WithConstant:
    """(φ, 1)."""

    features: Features
    constant: bool = field(default=True, init=False)

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
