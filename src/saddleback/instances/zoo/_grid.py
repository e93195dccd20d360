"""States that are points of a grid, and features that interpolate between some of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saddleback.features import Frame, MultilinearInterpolation, PerAction
from saddleback.problem.spaces import Actions, Array, States


@dataclass(frozen=True)
class Grid:
    """The states (x₁, …, x_k) ∈ {0..top}^k, numbered row by row."""

    top: int
    axes: int

    @property
    def num_states(self) -> int:
        """(top + 1)^k."""
        return int((self.top + 1) ** self.axes)

    def split(self, states: States) -> NDArray[np.int64]:
        """Coordinates ``(n, k)``."""
        return np.stack(np.unravel_index(states, (self.top + 1,) * self.axes), axis=1)

    def join(self, *coordinates: NDArray[np.int64]) -> NDArray[np.int64]:
        """States of coordinates ``(n,)`` each."""
        state = coordinates[0]
        for x in coordinates[1:]:
            state = state * (self.top + 1) + x
        return state

    def points(self, states: States) -> Array:
        """Coordinates as numbers, ``(n, k)``."""
        return self.split(states).astype(np.float64)

    def interpolation(
        self, num_knots: int, num_actions: int, bend: float = 1.0
    ) -> tuple[PerAction, tuple[States, Actions]]:
        """Features whose knots are states, at (i/(num_knots−1))^bend of each axis, and the knots with all actions as candidates.

        A bend above 1 crowds zero.
        """
        knots = np.unique(np.round(np.linspace(0.0, 1.0, num_knots) ** bend * self.top))
        frame = Frame(np.zeros(self.axes), np.full(self.axes, float(self.top)), self.points)
        psi = MultilinearInterpolation(frame, (knots,) * self.axes)
        nodes = self.join(*psi.points().astype(np.int64).T)
        return PerAction(psi, num_actions, direct=True), with_all_actions(nodes, num_actions)


def with_all_actions(states: States, num_actions: int) -> tuple[States, Actions]:
    """Each state with each action, the states running fastest: the order of φ's blocks."""
    return np.concatenate([states] * num_actions), np.repeat(np.arange(num_actions), len(states))
