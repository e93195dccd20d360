"""One-hot features: φ(s, a) = e_{s·A + a}, the tabular case in the linear case's clothes (d = S·A)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

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

    def restricted(self, stand_ins: NDArray[np.int64]) -> RestrictedOneHot:
        """The same table where actions that are not allowed have the entry of their stand-in, ``(S, A)``."""
        return RestrictedOneHot(self.num_states, self.num_actions, stand_ins=stand_ins)


@dataclass(frozen=True)
class RestrictedOneHot(OneHot):
    """A table whose entries at actions that are not allowed are never read: see :mod:`saddleback.problem.actions`."""

    stand_ins: NDArray[np.int64] = field(kw_only=True, compare=False, repr=False)

    def at(self, states: States, actions: Actions) -> Array:
        """The unit row of the action that a stands for, ``(n, S·A)``."""
        return super().at(states, self.stand_ins[states, actions])

    def values(self, states: States, theta: Array) -> Array:
        """Rows of the table, each entry that of its stand-in."""
        rows, meant = super().values(states, theta), self.stand_ins[states]
        return np.take_along_axis(rows, meant if rows.ndim == 2 else meant[:, :, None], axis=1)

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first allowed action with the largest entry."""
        return np.asarray(self.stand_ins[states, super().argmax(states, theta)])
