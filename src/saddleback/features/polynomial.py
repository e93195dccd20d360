"""Polynomials of total degree p in the coordinates scaled to z = 2u − 1 ∈ [−1, 1]^k: C(p + k, k) features.

    ψ_e(s) = Π_j B_{e_j}(z_j),      Σ_j e_j ≤ p

B_e is the Chebyshev polynomial T_e (T_0 = 1, T_1 = z, T_{e+1} = 2z·T_e − T_{e−1}) or, with ``basis="power"``, z^e. Both span the
same functions and predict alike; Chebyshev's stay well conditioned where powers of a high degree are nearly dependent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import one_of, whole
from saddleback.features.base import StateMap, check_dimension
from saddleback.features.frame import Frame, as_frame
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
