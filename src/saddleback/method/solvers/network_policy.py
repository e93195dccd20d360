"""A policy read off a trained network, as plain arrays: no deep-learning package is needed to play or compare it.

    x_0 = the state,   x_{i+1} = max(W_i x_i + b_i, 0),   scores = W_n x_n + b_n  ∈ R^A,     π(s) = argmax_a scores(s)

A state of a box is scaled to [−1, 1] in the coordinates that have finite bounds; one of a finite space is one-hot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.problem.policies import TabularPolicy
from saddleback.problem.spaces import Actions, Array, BoxStates, Features, States, StateSpace


@dataclass(frozen=True, eq=False)
class NetworkPolicy:
    """π(s) = the first action of the highest score; ``layers`` are the W_i ``(out, in)`` and b_i ``(out,)``."""

    states: StateSpace
    layers: tuple[tuple[Array, Array], ...]

    @property
    def num_actions(self) -> int:
        """Number of actions A."""
        return len(self.layers[-1][1])

    def scores(self, states: States) -> Array:
        """The network's outputs, ``(n, A)``."""
        W, b = self.layers[0]
        x = (scaled(self.states, states) @ W.T if isinstance(self.states, BoxStates) else W.T[states]) + b
        for W, b in self.layers[1:]:
            x = np.maximum(x, 0.0) @ W.T + b
        return np.asarray(x)

    def actions(self, states: States) -> Actions:
        """The chosen action per state."""
        return np.asarray(self.scores(states).argmax(axis=1), dtype=np.int64)

    def act(self, states: States, rng: np.random.Generator) -> Actions:
        """The chosen action; ``rng`` is not used."""
        return self.actions(states)

    def probabilities(self, states: States) -> Array:
        """One-hot rows."""
        return np.eye(self.num_actions)[self.actions(states)]

    def mean_features(self, features: Features, states: States) -> Array:
        """φ(s, π(s))."""
        return features.at(states, self.actions(states))

    def key(self) -> bytes:
        """The bytes of the weights."""
        return b"network" + b"".join(part.tobytes() for layer in self.layers for part in layer)

    def table(self, num_states: int) -> TabularPolicy:
        """The same policy on a finite space, where it compares with others and can be stored."""
        return TabularPolicy.deterministic(self.actions(np.arange(num_states)), self.num_actions)


def scaled(space: BoxStates, states: States) -> Array:
    """Points of a box with every bounded coordinate in [−1, 1], ``(n, k)``."""
    bounded = np.isfinite(space.low) & np.isfinite(space.high)
    low, high = np.where(bounded, space.low, -1.0), np.where(bounded, space.high, 1.0)
    return np.asarray((2 * states - low - high) / (high - low))
