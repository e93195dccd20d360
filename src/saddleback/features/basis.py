"""Products of one function a coordinate: polynomials and cosines up to a degree, in the coordinates scaled to u ∈ [0, 1]^k.

**Polynomials** of total degree p in z = 2u − 1 ∈ [−1, 1]^k: C(p + k, k) features.

    ψ_e(s) = Π_j B_{e_j}(z_j),      Σ_j e_j ≤ p

B_e is the Chebyshev polynomial T_e (T_0 = 1, T_1 = z, T_{e+1} = 2z·T_e − T_{e−1}) or, with ``basis="power"``, z^e. Both span the
same functions and predict alike; Chebyshev's stay well conditioned where powers of a high degree are nearly dependent.

**The Fourier basis** of Konidaris, Osentoski and Thomas (AAAI 2011): smooth functions by cosines alone.

    ψ_c(s) = cos(π Σ_j c_j u_j),      c ∈ {0 … order}^k,      Σ_j c_j ≤ degree where it is given

(order + 1)^k features with full coupling; with ``degree`` = ``order`` C(order + k, k). c = 0 is the constant. All
follow from k cosines and sines a state by cos(α + β) = cos α cos β − sin α sin β, for a few rounding errors each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import one_of, whole
from saddleback.features.base import StateMap, check_dimension
from saddleback.features.frame import Frame, as_frame
from saddleback.features.program import Writer
from saddleback.problem.spaces import Array, States


@dataclass(frozen=True, eq=False)
class Polynomial(StateMap):
    """Products of polynomials of the coordinates of a frame or a state space, of total ``degree``."""

    frame: Frame
    degree: int = 3
    basis: str = "chebyshev"
    constant: bool = field(default=True, init=False)
    exponents: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        k, p = self.frame.num, whole("degree", self.degree, 0)
        one_of("basis", self.basis, ("chebyshev", "power"))
        check_dimension(math.comb(k + p, k), "lower the degree")
        object.__setattr__(self, "exponents", multi_indices(k, p, p))

    @property
    def dim(self) -> int:
        """C(p + k, k)."""
        return len(self.exponents)

    def at(self, states: States) -> Array:
        """Rows ``(n, d)``."""
        z = 2 * self.frame.unit(states) - 1
        product = self._one_coordinate(z[:, 0])[self.exponents[:, 0]]
        for j in range(1, z.shape[1]):
            product *= self._one_coordinate(z[:, j])[self.exponents[:, j]]
        return product.T

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        z, product = writer.do("Sub", writer.do("Mul", self.frame.write_unit(writer), 2.0), 1.0), ""
        for j in range(self.frame.num):
            z_j = writer.column(z, j)
            B = [writer.ones(), z_j]
            while len(B) <= self.degree:
                if self.basis == "power":
                    B.append(writer.do("Mul", z_j, B[-1]))
                else:
                    B.append(writer.do("Sub", writer.do("Mul", writer.do("Mul", z_j, 2.0), B[-1]), B[-2]))
            factor = writer.do("Columns", writer.do("Concat", *B[: self.degree + 1]), self.exponents[:, j])
            product = factor if j == 0 else writer.do("Mul", product, factor)
        return product

    def _one_coordinate(self, z: Array) -> Array:
        """B_0(z) … B_p(z), ``(p + 1, n)``."""
        B = np.ones((self.degree + 1, len(z)))
        if self.degree > 0:
            B[1] = z
        for e in range(1, self.degree):
            B[e + 1] = z * B[e] if self.basis == "power" else 2 * z * B[e] - B[e - 1]
        return B


def count(num: int, order: int, degree: int | None) -> int:
    """How many c ∈ {0, 1, …}^num, one function a coordinate, have c_j ≤ ``order``, and Σ c_j ≤ ``degree`` where it is given."""
    if degree is None:
        return int((order + 1) ** num)
    degree = min(degree, num * order)  # no sum is larger
    ways = [1] + [0] * degree  # of reaching each sum with the coordinates so far
    for _ in range(num):
        ways = [sum(ways[max(0, s - order) : s + 1]) for s in range(degree + 1)]
    return sum(ways)


def multi_indices(num: int, order: int, degree: int | None) -> NDArray[np.int64]:
    """All of these c, ``(count, num)``, by Σ c_j and then as in a dictionary: the constant c = 0 comes first."""
    most = num * order if degree is None else degree
    found = np.zeros((1, 0), dtype=np.int64)
    for _ in range(num):
        longer = np.hstack([np.repeat(found, order + 1, axis=0), np.tile(np.arange(order + 1), len(found))[:, None]])
        found = longer[longer.sum(axis=1) <= most]
    keys = [found[:, j] for j in reversed(range(num))]
    return np.asarray(found[np.lexsort([*keys, found.sum(axis=1)])])


@dataclass(frozen=True, eq=False)
class Fourier(StateMap):
    """Cosines up to ``order`` in each coordinate of a frame or a state space, and up to ``degree`` in all together."""

    frame: Frame
    order: int = 5
    degree: int | None = None
    constant: bool = field(default=True, init=False)
    frequencies: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frame", as_frame(self.frame))
        k, order = self.frame.num, whole("order", self.order, 0)
        degree = None if self.degree is None else whole("degree", self.degree, 0)
        check_dimension(order + 1, "lower the order")
        check_dimension(count(k, order, degree), "lower the order, or give a degree")
        object.__setattr__(self, "frequencies", multi_indices(k, order, degree))

    @property
    def dim(self) -> int:
        """Number of cosines."""
        return len(self.frequencies)

    def at(self, states: States) -> Array:
        """Rows ``(n, d)``."""
        u, c = self.frame.unit(states), self.frequencies
        for j in range(self.frame.num):
            cos_j, sin_j = self._one_coordinate(u[:, j])
            cos_j, sin_j = cos_j[c[:, j]], sin_j[c[:, j]]
            if j == 0:
                C, S = cos_j, sin_j
            elif j == self.frame.num - 1:
                C = C * cos_j - S * sin_j
            else:
                C, S = C * cos_j - S * sin_j, S * cos_j + C * sin_j
        return C.T

    def write(self, writer: Writer) -> str:
        """The same as steps of a program."""
        u, result = self.frame.write_unit(writer), ("", "")

        def turned(a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
            """cos and sin of a sum of two angles."""
            cc, ss, sc, cs = (
                writer.do("Mul", x, y) for x, y in ((a[0], b[0]), (a[1], b[1]), (a[1], b[0]), (a[0], b[1]))
            )
            return writer.do("Sub", cc, ss), writer.do("Add", sc, cs)

        for j in range(self.frame.num):
            angle = writer.do("Mul", writer.column(u, j), np.pi)
            one = writer.do("Cos", angle), writer.do("Sin", angle)
            found = [(writer.ones(), writer.do("Sub", writer.ones(), 1.0))]
            for _ in range(self.order):
                found.append(turned(found[-1], one))
            places = self.frequencies[:, j]
            C, S = (writer.do("Columns", writer.do("Concat", *part), places) for part in zip(*found, strict=True))
            result = (C, S) if j == 0 else turned(result, (C, S))
        return result[0]

    def _one_coordinate(self, u: Array) -> tuple[Array, Array]:
        """cos(π c u) and sin(π c u) for c = 0 … order, ``(order + 1, n)``, each from the one before."""
        C, S = np.ones((self.order + 1, len(u))), np.zeros((self.order + 1, len(u)))
        cos, sin = np.cos(np.pi * u), np.sin(np.pi * u)
        for c in range(self.order):
            C[c + 1], S[c + 1] = C[c] * cos - S[c] * sin, S[c] * cos + C[c] * sin
        return C, S
