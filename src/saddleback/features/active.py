"""Binary maps by the coordinates that are 1: ψ(s) = Σ_t e_{i_t(s)}, so that ψ(s)ᵀΘ = Σ_t Θ[i_t(s)] needs no product."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array, States

Indices = NDArray[np.int64]


def dense_rows(active: Indices, dim: int) -> Array:
    """Rows ``(n, dim)`` with ones at ``active`` ``(t, n)``, distinct in each column."""
    n = active.shape[1]
    rows = np.zeros((n, dim))
    rows[np.arange(n), active] = 1.0
    return rows


def gathered(active: Indices, theta: Array) -> Array:
    """Σ_t Θ[i_t], ``(n, m)`` for ``theta`` ``(dim, m)``."""
    total = np.take(theta, active[0], axis=0)
    for i_t in active[1:]:
        total += np.take(theta, i_t, axis=0)
    return total


@dataclass(frozen=True, eq=False)
class ActiveRows:
    """A binary map held at some states: ``active`` ``(t, n)``, t numbers a state where ψ would take ``dim``."""

    active: Indices
    dim: int
    constant: bool = field(default=True, init=False)

    def at(self, states: States) -> Array:
        """Rows ``(n, dim)``."""
        return dense_rows(self.active[:, states], self.dim)

    def product(self, states: States, theta: Array) -> Array:
        """Sums of rows of Θ."""
        return gathered(np.take(self.active, states, axis=1), theta)

    def held(self, states: States) -> ActiveRows:
        """Some of the rows."""
        return ActiveRows(self.active[:, states], self.dim)
