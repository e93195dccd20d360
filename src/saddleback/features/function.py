"""Any callable as a feature map: ``function(states, actions) -> (n, d)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from saddleback.errors import InputError
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Actions, Array, States


@dataclass(frozen=True, eq=False)
class FeatureFunction:
    """φ by a vectorised function of (states, actions)."""

    function: Callable[[States, Actions], Array]
    dim: int
    num_actions: int
    direct: bool = field(default=False, init=False)

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``, checked on every call."""
        phi = np.asarray(self.function(states, actions))
        if phi.shape != (len(states), self.dim) or phi.dtype != np.float64:
            raise InputError(
                "features",
                f"must return a float64 array {(len(states), self.dim)} for {len(states)} pairs",
                f"{phi.dtype} {phi.shape}",
                "vectorise the function over states and actions",
            )
        bad = np.argwhere(~np.isfinite(phi))
        if bad.size:
            i = bad[0][0]
            raise InputError(
                "features", "must be finite", f"{phi[i]} at state {states[i]}, action {actions[i]}", "mend the map"
            )
        return phi

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``, one call of the function for all actions."""
        n, A = len(states), self.num_actions
        return self.at(np.repeat(states, A, axis=0), np.tile(np.arange(A), n)).reshape(n, A, self.dim)

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩."""
        return np.asarray(self.all(states) @ theta)

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩."""
        return maximum_over_actions(self.values(states, theta))

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximising action."""
        return first_largest(self.values(states, theta), axis=1)
