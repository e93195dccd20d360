"""Tile coding: T grids over the same coordinates, each shifted by a part of a tile; ψ(s) has one 1 a grid.

    cell of grid t in coordinate j:   ⌊u_j·n_j + o_tj⌋,      o_tj = (t·w_j mod T) / T,   t = 0 … T−1

w_j is the j-th odd number without a common divisor with T: with w = (1, 3, 5, …) the grids lie apart along more than the
diagonal, and no grid but the first has o_tj = 0. The first grid has Π n_j tiles and each of the others Π (n_j + 1), all of
them within reach: d = Π n_j + (T−1)·Π (n_j + 1), without hashing or collisions. Every grid's ones sum to one, so a constant
is in the span and the rank is at most d − T + 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from saddleback.errors import whole
from saddleback.features.aggregation import BinaryMap, Indices, grid_cell
from saddleback.features.base import check_dimension
from saddleback.features.frame import Frame, as_frame, one_each
from saddleback.problem.spaces import Array, States


@dataclass(frozen=True, eq=False)
class Tiles(BinaryMap):
    """``tilings`` grids of ``tiles`` in each coordinate (one number for all or one each) over a frame or a state space."""

    frame: Frame
    tiles: Any = 8
    tilings: int = 4
    constant: bool = field(default=True, init=False)
    offsets: Array = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        object.__setattr__(self, "tiles", one_each("tiles", self.tiles, self.frame.num, partial(whole, low=1)))
        T = whole("tilings", self.tilings, 1)
        check_dimension(self.dim, "use fewer tiles or tilings")
        object.__setattr__(self, "offsets", np.outer(np.arange(T), _displacements(self.frame.num, T)) % T / T)

    @property
    def dim(self) -> int:
        """Π n_j + (T−1)·Π (n_j + 1)."""
        return math.prod(self.tiles) + (self.tilings - 1) * math.prod(n + 1 for n in self.tiles)

    def active(self, states: States) -> Indices:
        """The tile in each grid, ``(T, n)``, numbered through all grids."""
        u, first = self.frame.unit(states), 0
        found = np.empty((self.tilings, len(u)), dtype=np.int64)
        for t, o in enumerate(self.offsets):
            cells = self.tiles if t == 0 else tuple(n + 1 for n in self.tiles)
            found[t] = grid_cell(u, self.tiles, cells, o) + first
            first += math.prod(cells)
        return found


def _displacements(count: int, T: int) -> list[int]:
    """The first ``count`` odd numbers without a common divisor with T."""
    found: list[int] = []
    w = 1
    while len(found) < count:
        if math.gcd(w, T) == 1:
            found.append(w)
        w += 2
    return found
