"""Multilinear interpolation as a map of states: a product of tents for each knot of a grid.

    t_i(x) = the piecewise linear function with t_i(x_j) = 1{i = j},     ψ_{i,j,…}(s) = t_i(x₁(s)) t_j(x₂(s)) …

The features of a state are non-negative and sum to one, so 1 ∈ span ψ and ‖ψ‖₂ ≤ 1. Take the knots with all their actions
as the coreset: Φ is the identity, W interpolates (it averages, so regression never expands and γP̂ stays a contraction),
and with equal weights 1/d the leverage d‖φ‖² ≤ d of *every* pair, seen or not, is at most the least possible bound. Twice
differentiable value functions are met to O(h²) with knots h apart. Products touch the 2^k knots around a state, never all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from itertools import product as choices
from typing import Any, Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import require, whole
from saddleback.features.base import check_dimension
from saddleback.features.frame import Frame, as_frame, one_each, real_array
from saddleback.features.program import Writer
from saddleback.problem.spaces import Array, States

Corners = tuple[NDArray[np.int32], Array]


class _Interpolating(Protocol):
    @property
    def dim(self) -> int: ...

    def corners(self, states: States, /) -> Corners: ...


class InterpolationMap:
    """A map that has ``dim`` and ``corners``: the 2^k knots around each state and their weights, both ``(n, 2^k)``."""

    def at(self: _Interpolating, states: States) -> Array:
        """Rows ``(n, dim)`` with 2^k entries each."""
        nodes, weights = self.corners(states)
        rows = np.zeros((len(states), self.dim))
        rows[np.arange(len(states))[:, None], nodes] = weights
        return rows

    def product(self: _Interpolating, states: States, theta: Array) -> Array:
        """Means of 2^k rows of Θ."""
        nodes, weights = self.corners(states)
        starts = np.arange(0, nodes.size + 1, nodes.shape[1], dtype=np.int32)
        matrix = scipy.sparse.csr_array((weights.ravel(), nodes.ravel(), starts), shape=(len(states), self.dim))
        return np.asarray(matrix @ theta)

    def held(self: _Interpolating, states: States) -> HeldInterpolation:
        """The knots around these states, found once and kept."""
        return HeldInterpolation(*self.corners(states), self.dim)


@dataclass(frozen=True, eq=False)
class HeldInterpolation(InterpolationMap):
    """The same over positions in a list of states: ``nodes`` and ``weights`` are ``(n, 2^k)``, 12·2^k bytes a state."""

    nodes: NDArray[np.int32]
    weights: Array
    dim: int
    constant: bool = field(default=True, init=False)

    @property
    def touched(self) -> int:
        """Entries of a row that are not zero, at most."""
        return int(self.nodes.shape[1])

    def corners(self, states: States) -> Corners:
        """Those that are kept."""
        piece: Any = states
        if len(states) and bool(np.all(np.diff(states) == 1)):  # as solvers ask: no need to gather
            piece = slice(states[0], states[-1] + 1)
        return self.nodes[piece], self.weights[piece]


@dataclass(frozen=True, eq=False)
class MultilinearInterpolation(InterpolationMap):
    """``knots`` along each axis of a frame or a state space: how many, evenly spaced (one number for all or one each), or where.

    Given knots ascend from the frame's ``low`` to its ``high``.
    """

    frame: Frame
    knots: Any = 8
    constant: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        ends = list(zip(self.frame.low, self.frame.high, strict=True))
        if _are_places(self.knots):
            require(len(self.knots) == len(ends), "knots", f"must be {len(ends)} lists", len(self.knots), "one an axis")
            knots = tuple(_ascending(f"knots[{j}]", x, *ends[j]) for j, x in enumerate(self.knots))
        else:
            numbers = one_each("knots", self.knots, len(ends), partial(whole, low=2))
            check_dimension(math.prod(numbers), "use fewer knots")
            knots = tuple(np.linspace(low, high, n) for (low, high), n in zip(ends, numbers, strict=True))
        object.__setattr__(self, "knots", knots)
        check_dimension(self.dim, "use fewer knots")

    @property
    def dim(self) -> int:
        """Points of the grid."""
        return math.prod(len(x) for x in self.knots)

    @property
    def touched(self) -> int:
        """Entries of a row that are not zero, at most."""
        return int(2**self.frame.num)

    def points(self) -> Array:
        """The points of the grid, ``(dim, k)``, in the order of the features."""
        return np.stack([x.ravel() for x in np.meshgrid(*self.knots, indexing="ij")], axis=1)

    def corners(self, states: States) -> Corners:
        """Found on each axis by itself."""
        below, share = [], []
        for x, knots in zip(self.frame.inside(states).T, self.knots, strict=True):
            i = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2).astype(np.int32)
            below.append(i)
            share.append((x - knots[i]) / (knots[i + 1] - knots[i]))
        nodes, weights = [], []
        for above in choices((0, 1), repeat=len(self.knots)):
            node, weight = np.zeros(len(states), dtype=np.int32), np.ones(len(states))
            for i, t, up, knots in zip(below, share, above, self.knots, strict=True):
                node = node * len(knots) + i + up
                weight = weight * (t if up else 1 - t)
            nodes.append(node)
            weights.append(weight)
        return np.stack(nodes, axis=1), np.stack(weights, axis=1)

    def write(self, writer: Writer) -> str:
        """The same as steps of a program: the products of one share an axis."""
        x, product = self.frame.write_inside(writer), ""
        places = np.indices([len(knots) for knots in self.knots]).reshape(len(self.knots), -1)
        for j, knots in enumerate(self.knots):
            factor = writer.do("Columns", _write_shares(writer, writer.column(x, j), knots), places[j])
            product = factor if j == 0 else writer.do("Mul", product, factor)
        return product


def _write_shares(writer: Writer, x: str, knots: Array) -> str:
    """t_0(x) … t_{m−1}(x) of one axis, ``(n, m)``: 1 − t at the knot below x, t at the one above."""
    m = len(knots)
    below = writer.clipped(writer.do("Sub", writer.do("Sum", writer.do("AtLeast", x, knots)), 1.0), 0.0, m - 2.0)
    here = writer.do("Equal", below, np.arange(m - 1))
    low, high = (writer.do("Sum", writer.do("Mul", here, ends)) for ends in (knots[:-1], knots[1:]))
    share = writer.do("Div", writer.do("Sub", x, low), writer.do("Sub", high, low))
    rest, none = writer.do("Sub", 1.0, share), writer.do("Sub", writer.ones(), 1.0)
    left = writer.do("Concat", writer.do("Mul", here, rest), none)
    return writer.do("Add", left, writer.do("Concat", none, writer.do("Mul", here, share)))


def _are_places(knots: Any) -> bool:
    """Whether knots are given one by one, and not only counted."""
    several = (list, tuple, np.ndarray)
    return isinstance(knots, several) and len(knots) > 0 and isinstance(knots[0], several)


def _ascending(name: str, value: Any, low: float, high: float) -> Array:
    knots = real_array(name, value, "give the places of the knots")
    good = knots.ndim == 1 and len(knots) > 1 and bool(np.all(np.diff(knots) > 0))
    good = good and knots[0] == low and knots[-1] == high
    require(good, name, f"must ascend from {low:g} to {high:g}", knots, "give the ends and what lies between")
    return knots
