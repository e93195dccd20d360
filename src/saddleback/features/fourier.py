"""The Fourier basis of Konidaris, Osentoski and Thomas (AAAI 2011): smooth functions of scaled coordinates by cosines alone.

    ψ_c(s) = cos(π Σ_j c_j u_j),      c ∈ {0 … order}^k,      Σ_j c_j ≤ degree where it is given

(order + 1)^k features with full coupling; with ``degree`` = ``order`` C(order + k, k). c = 0 is the constant. All
follow from k cosines and sines a state by cos(α + β) = cos α cos β − sin α sin β, for a few rounding errors each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import whole
from saddleback.features.base import StateMap, check_dimension
from saddleback.features.frame import Frame, as_frame
from saddleback.features.polynomial import count, multi_indices
from saddleback.problem.spaces import Array, States


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

    def _one_coordinate(self, u: Array) -> tuple[Array, Array]:
        """cos(π c u) and sin(π c u) for c = 0 … order, ``(order + 1, n)``, each from the one before."""
        C, S = np.ones((self.order + 1, len(u))), np.zeros((self.order + 1, len(u)))
        cos, sin = np.cos(np.pi * u), np.sin(np.pi * u)
        for c in range(self.order):
            C[c + 1], S[c + 1] = C[c] * cos - S[c] * sin, S[c] * cos + C[c] * sin
        return C, S
