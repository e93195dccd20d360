"""State aggregation: ψ(s) = e_{g(s)}, one parameter for each group of states that are treated alike.

:class:`Aggregation` has the groups of a finite space as an array; :class:`Cells` cuts coordinates into a grid, cell (i_1 … i_k)
holding the states with i_j ≤ u_j·c_j < i_j + 1 (the last cell also has its upper edge). A constant is in the span.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.features.active import ActiveRows, Indices, dense_rows, gathered
from saddleback.features.frame import Frame, as_frame
from saddleback.features.settings import check_dimension, wholes
from saddleback.problem.spaces import Array, States


@dataclass(frozen=True, eq=False)
class Aggregation:
    """``groups[s]`` ∈ {0 … k−1}, integers ``(S,)`` in which every group has a state."""

    groups: NDArray[np.int64]
    dim: int = field(init=False)
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        remedy = "give the group of each state, numbered from 0"
        try:
            groups = np.asarray(self.groups)
        except ValueError as ragged:
            raise InputError("groups", "must be whole numbers (S,)", "lists of several lengths", remedy) from ragged
        good = groups.ndim == 1 and groups.size > 0 and groups.dtype.kind in "iu"
        require(good, "groups", "must be whole numbers (S,)", f"{groups.dtype} {groups.shape}", remedy)
        require(int(groups.min()) >= 0, "groups", "must be 0 or more", int(groups.min()), remedy)
        k = check_dimension(int(groups.max()) + 1, "use fewer groups")
        empty = np.flatnonzero(np.bincount(groups) == 0)
        require(not empty.size, "groups", "must leave no group empty", f"no state in group {empty[:1]}", remedy)
        object.__setattr__(self, "groups", groups.astype(np.int64))
        object.__setattr__(self, "dim", k)

    def at(self, states: States) -> Array:
        """Unit rows ``(n, k)``."""
        return dense_rows(self._active(states), self.dim)

    def product(self, states: States, theta: Array) -> Array:
        """Rows of Θ."""
        return gathered(self._active(states), theta)

    def held(self, states: States) -> ActiveRows:
        """The groups of these states."""
        return ActiveRows(self._active(states), self.dim)

    def _active(self, states: States) -> Indices:
        return self.groups[states][None]


@dataclass(frozen=True, eq=False)
class Cells:
    """A grid over a frame or a state space: ``cells`` in each coordinate, one number for all or one each."""

    frame: Frame
    cells: Any = 10
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        object.__setattr__(self, "cells", wholes("cells", self.cells, self.frame.num, 1))
        check_dimension(self.dim, "use fewer cells")

    @property
    def dim(self) -> int:
        """Number of cells, Π_j c_j."""
        return math.prod(self.cells)

    def at(self, states: States) -> Array:
        """Unit rows ``(n, k)``."""
        return dense_rows(self._active(states), self.dim)

    def product(self, states: States, theta: Array) -> Array:
        """Rows of Θ."""
        return gathered(self._active(states), theta)

    def held(self, states: States) -> ActiveRows:
        """The cells of these states."""
        return ActiveRows(self._active(states), self.dim)

    def _active(self, states: States) -> Indices:
        return grid_cell(self.frame.unit(states), self.cells, self.cells)[None]


def grid_cell(u: Array, tiles: tuple[int, ...], cells: tuple[int, ...], offset: Array | None = None) -> Indices:
    """The number of the cell ⌊u·tiles + offset⌋ in a grid of ``cells``, ``(n,)``; an upper edge belongs to the last cell."""
    number = np.zeros(len(u), dtype=np.int64)
    for j, c in enumerate(cells):
        place = u[:, j] * tiles[j] if offset is None else u[:, j] * tiles[j] + offset[j]
        number *= c
        number += np.minimum(place.astype(np.int64), c - 1)
    return number
