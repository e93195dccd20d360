"""Radial basis functions: bumps around centres, in the scaled coordinates u ∈ [0, 1]^k.

    ψ_i(s) = exp(−½ Σ_j (u_j − c_ij)² / h_j²),      normalised:  ψ_i(s) / Σ_l ψ_l(s)

Centres lie on a grid of n_j points in each coordinate, edges included (the middle if n_j = 1), or are given. The width h_j
is ``bandwidth`` times the distance of neighbouring centres of the grid, 1/(n_j − 1), or just ``bandwidth`` for given centres;
it is one number for all coordinates or one each.
Normalised rows sum to one, so that a constant is in the span, and far from all centres the nearest one takes over. On a
grid both forms are products of one bump a coordinate: n·Σn_j exponentials in the place of n·Πn_j.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from saddleback.errors import flag, positive, require, whole
from saddleback.features.base import StateMap, check_dimension
from saddleback.features.frame import Frame, as_frame, one_each, real_array
from saddleback.features.program import Writer
from saddleback.problem.spaces import Array, States


@dataclass(frozen=True, eq=False)
class RadialBasis(StateMap):
    """Gaussian bumps over a frame or a state space, on a ``grid``, or at ``centres`` ``(c, k)`` in the user's coordinates."""

    frame: Frame
    grid: Any = 8
    bandwidth: Any = 1.0
    normalised: bool = True
    centres: Any = None
    _points: list[Array] = field(init=False, repr=False)  # (n_j,) a coordinate, or all centres (c, k) in one

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        k = self.frame.num
        object.__setattr__(self, "bandwidth", one_each("bandwidth", self.bandwidth, k, positive))
        flag("normalised", self.normalised)
        if self.centres is None:
            object.__setattr__(self, "grid", one_each("grid", self.grid, k, partial(whole, low=1)))
            check_dimension(math.prod(self.grid), "use a coarser grid")
            points = [np.linspace(0, 1, n) if n > 1 else np.array([0.5]) for n in self.grid]
        else:
            centres = real_array("centres", self.centres, f"give rows of {k} coordinates")
            good = centres.ndim == 2 and centres.shape[1] == k and len(centres) > 0
            require(good, "centres", f"must have shape (c, {k})", centres.shape, "give one row a centre")
            check_dimension(len(centres), "use fewer centres")
            points = [self.frame.to_unit(centres)]
        object.__setattr__(self, "_points", points)

    @property
    def dim(self) -> int:
        """Number of centres."""
        return math.prod(len(p) for p in self._points)

    @property
    def constant(self) -> bool:
        """Whether rows sum to one."""
        return self.normalised

    def at(self, states: States) -> Array:
        """Rows ``(n, c)``."""
        u = self.frame.unit(states)
        if self.centres is not None:
            return self._bumps(_squares(u, self._points[0], self.bandwidth)).T
        product = np.ones((1, len(u)))
        for j, points in enumerate(self._points):
            h = self.bandwidth[j] / max(1, len(points) - 1)
            factor = self._bumps(np.subtract.outer(points, u[:, j]) ** 2 / h**2)
            product = (product[:, None] * factor).reshape(len(product) * len(points), len(u))
        return product.T

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        u, product = self.frame.write_unit(writer), ""
        if self.centres is not None:
            centres, total = self._points[0], ""
            for j, h in enumerate(self.bandwidth):
                square = _write_square(writer, writer.column(u, j), centres[:, j], h)
                total = square if j == 0 else writer.do("Add", total, square)
            return self._write_bumps(writer, total)
        places = np.indices([len(points) for points in self._points]).reshape(len(self._points), -1)
        for j, points in enumerate(self._points):
            h = self.bandwidth[j] / max(1, len(points) - 1)
            bumps = self._write_bumps(writer, _write_square(writer, writer.column(u, j), points, h))
            factor = writer.do("Columns", bumps, places[j])
            product = factor if j == 0 else writer.do("Mul", product, factor)
        return product

    def _write_bumps(self, writer: Writer, squares: str) -> str:
        if not self.normalised:
            return writer.do("Exp", writer.do("Mul", squares, -0.5))
        bumps = writer.do("Exp", writer.do("Mul", writer.do("Sub", squares, writer.do("Least", squares)), -0.5))
        return writer.do("Div", bumps, writer.do("Sum", bumps))

    def _bumps(self, squares: Array) -> Array:
        """exp(−½·) of ``(c, n)``, each column divided by its sum where normalised."""
        if not self.normalised:
            return np.exp(-0.5 * squares)
        bumps = np.exp(-0.5 * (squares - squares.min(axis=0)))  # the nearest is 1: no column is lost to underflow
        total = np.ascontiguousarray(bumps.T).sum(axis=1)  # by rows, so that the order does not depend on n
        return np.asarray(bumps / total)


def _write_square(writer: Writer, u: str, points: Array, width: float) -> str:
    """(p − u)² / h² for each point, ``(n, c)``."""
    apart = writer.do("Sub", points, u)
    return writer.do("Div", writer.do("Mul", apart, apart), width**2)


def _squares(u: Array, centres: Array, widths: tuple[float, ...]) -> Array:
    """Σ_j (u_j − c_j)² / h_j², ``(c, n)``."""
    total = np.zeros((len(centres), len(u)))
    for j, h in enumerate(widths):
        total += np.subtract.outer(centres[:, j], u[:, j]) ** 2 / h**2
    return total
