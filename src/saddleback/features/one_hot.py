"""One-hot features: φ(s, a) = e_{s·A + a}, the tabular case in the linear case's clothes (d = S·A)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddleback.features.base import FeatureMap
from saddleback.problem.spaces import Actions, Array, States


@dataclass(frozen=True)
class OneHot(FeatureMap):
    """θ is a table: everything is an index into it."""

    num_states: int
    num_actions: int
    direct: bool = field(default=True, init=False)
    constant: bool = field(default=True, init=False)

    @property
    def dim(self) -> int:
        """d = S·A."""
        return self.num_states * self.num_actions

    def at(self, states: States, actions: Actions) -> Array:
        """Unit rows ``(n, S·A)``."""
        rows = np.zeros((len(states), self.dim))
        rows[np.arange(len(states)), states * self.num_actions + actions] = 1.0
        return rows

    def values(self, states: States, theta: Array) -> Array:
        """Rows of the table."""
        return np.asarray(theta.reshape(self.num_states, self.num_actions, *theta.shape[1:])[states])
