"""A fixed feature matrix: φ given as an array ``(S, A, d)``."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from saddleback.errors import InputError, require
from saddleback.problem.policies import maximum_over_actions
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Actions, Array, States


@dataclass(frozen=True, eq=False)
class FeatureMatrix:
    """φ(s, a) = ``phi[s, a]``, float64 ``(S, A, d)``."""

    phi: Array
    direct: bool = field(default=False, init=False)

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

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩."""
        return np.asarray(self.phi[states] @ theta)

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩."""
        return maximum_over_actions(self.values(states, theta))

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximising action."""
        return first_largest(self.values(states, theta), axis=1)
