"""Binary maps, given by the coordinates that are 1: ψ(s) = Σ_t e_{i_t(s)}, so that ψ(s)ᵀΘ = Σ_t Θ[i_t(s)] needs no product.

**State aggregation**: ψ(s) = e_{g(s)}, one parameter for each group of states that are treated alike. :class:`Aggregation` has the
groups of a finite space as an array; :class:`Cells` cuts coordinates into a grid, cell (i_1 … i_k) holding the states with
i_j ≤ u_j·c_j < i_j + 1 (the last cell also has its upper edge). A constant is in the span.

**Tile coding**, :class:`Tiles`: T grids over the same coordinates, each shifted by a part of a tile; ψ(s) has one 1 a grid.

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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require, whole
from saddleback.features.base import check_dimension
from saddleback.features.frame import Frame, as_frame, one_each
from saddleback.features.program import Writer
from saddleback.problem.spaces import Array, States

Indices = NDArray[np.int64]


class _Binary(Protocol):
    @property
    def dim(self) -> int: ...

    def active(self, states: States, /) -> Indices: ...


class BinaryMap:
    """A map that has ``dim`` and ``active``: the t coordinates that are 1 at each state, ``(t, n)``, distinct in a column."""

    def at(self: _Binary, states: States) -> Array:
        """Rows ``(n, dim)`` with t ones each."""
        rows = np.zeros((len(states), self.dim))
        rows[np.arange(len(states)), self.active(states)] = 1.0
        return rows

    def product(self: _Binary, states: States, theta: Array) -> Array:
        """Sums of t rows of Θ."""
        first, *others = self.active(states)
        total = np.take(theta, first, axis=0)
        for i_t in others:
            total += np.take(theta, i_t, axis=0)
        return total

    def held(self: _Binary, states: States) -> ActiveRows:
        """The coordinates that are 1 at these states."""
        return ActiveRows(self.active(states), self.dim)


@dataclass(frozen=True, eq=False)
class ActiveRows(BinaryMap):
    """A binary map held at some states: ``indices`` ``(t, n)``, t numbers a state where ψ would take ``dim``."""

    indices: Indices
    dim: int
    constant: bool = field(default=True, init=False)

    def active(self, states: States) -> Indices:
        """Columns of the indices."""
        return np.take(self.indices, states, axis=1)


@dataclass(frozen=True, eq=False)
class Aggregation(BinaryMap):
    """``groups[s]`` ∈ {0 … k−1}, integers ``(S,)`` in which every group has a state."""

    groups: NDArray[np.int64]
    dim: int = field(init=False)
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        remedy = "give the group of each state, numbered from 0"
        try:
            groups = np.array(self.groups)
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

    def active(self, states: States) -> Indices:
        """The group of each state, ``(1, n)``."""
        return self.groups[states][None]


@dataclass(frozen=True, eq=False)
class Cells(BinaryMap):
    """A grid over a frame or a state space: ``cells`` in each coordinate, one number for all or one each."""

    frame: Frame
    cells: Any = 10
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        object.__setattr__(self, "cells", one_each("cells", self.cells, self.frame.num, partial(whole, low=1)))
        check_dimension(self.dim, "use fewer cells")

    @property
    def dim(self) -> int:
        """Number of cells, Π_j c_j."""
        return math.prod(self.cells)

    def active(self, states: States) -> Indices:
        """The cell of each state, ``(1, n)``."""
        return grid_cell(self.frame.unit(states), self.cells, self.cells)[None]

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        cell = _write_cell(writer, self.frame.write_unit(writer), self.cells, self.cells)
        return writer.do("Equal", cell, np.arange(self.dim))


def grid_cell(u: Array, tiles: tuple[int, ...], cells: tuple[int, ...], offset: Array | None = None) -> Indices:
    """The number of the cell ⌊u·tiles + offset⌋ in a grid of ``cells``, ``(n,)``; an upper edge belongs to the last cell."""
    number = np.zeros(len(u), dtype=np.int64)
    for j, c in enumerate(cells):
        place = u[:, j] * tiles[j] if offset is None else u[:, j] * tiles[j] + offset[j]
        number *= c
        number += np.minimum(place.astype(np.int64), c - 1)
    return number


def _write_cell(
    writer: Writer, u: str, tiles: tuple[int, ...], cells: tuple[int, ...], offset: Array | None = None
) -> str:
    """:func:`grid_cell` as steps of a program."""
    number = ""
    for j, c in enumerate(cells):
        place = writer.do("Mul", writer.column(u, j), float(tiles[j]))
        place = place if offset is None else writer.do("Add", place, offset[j])
        place = writer.do("Min", writer.do("Floor", place), c - 1.0)
        number = place if j == 0 else writer.do("Add", writer.do("Mul", number, float(c)), place)
    return number


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

    def write(self, writer: Writer) -> str:
        """The same as steps of a program, one block of columns a grid."""
        u, grids = self.frame.write_unit(writer), []
        for t, o in enumerate(self.offsets):
            cells = self.tiles if t == 0 else tuple(n + 1 for n in self.tiles)
            grids.append(writer.do("Equal", _write_cell(writer, u, self.tiles, cells, o), np.arange(math.prod(cells))))
        return writer.do("Concat", *grids)


def _displacements(count: int, T: int) -> list[int]:
    """The first ``count`` odd numbers without a common divisor with T."""
    found: list[int] = []
    w = 1
    while len(found) < count:
        if math.gcd(w, T) == 1:
            found.append(w)
        w += 2
    return found
