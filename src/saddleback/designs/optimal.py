"""A G- and D-optimal design over the rows of any matrix, with its certificate: :func:`optimal_design`.

    g(ρ̃) = max_i φ_iᵀ G⁻¹ φ_i  ≥  d,      G = Σ_i ρ̃_i φ_i φ_iᵀ,      equality exactly at the optimum

For experiments, active learning, regression on a subset, minimum-volume ellipsoids: nothing here knows of decision problems.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.candidates import Rows, whitening
from saddleback.designs.design import leverages, orthonormalizing_map
from saddleback.designs.exchange import exchange_weights
from saddleback.designs.frank_wolfe import optimal_weights
from saddleback.errors import InputError, one_of, require
from saddleback.problem.spaces import Array


@dataclass(frozen=True)
class OptimalDesign:
    """Rows ``support`` ``(c,)`` (indices, ascending) with positive ``weights`` ``(c,)`` that sum to one.

    ``leverage_bound`` is g over all rows the design was chosen from, ``rank`` their rank, ``iterations`` the rounds (or
    steps of Frank-Wolfe) it took. ``whitening`` ``(d, rank)`` has φᵀG⁻¹φ = ‖φᵀ·whitening‖².
    """

    support: Rows
    weights: Array
    leverage_bound: float
    rank: int
    iterations: int
    whitening: Array

    @property
    def gap(self) -> float:
        """g/rank − 1 ≥ 0: how far g is from the least possible; log det G is within rank·log(1 + gap) of the largest."""
        return self.leverage_bound / self.rank - 1

    def leverage(self, features: Array) -> Array:
        """φᵀG⁻¹φ for rows ``(k, d)``, candidates or not: the variance of a prediction there, per unit of noise."""
        rows, d = _matrix(features), len(self.whitening)
        good = rows.shape[1:] == (d,) and rows.dtype.kind in "iuf"
        rule = f"must be rows of {d} numbers"
        require(good, "features", rule, f"{rows.dtype} {rows.shape}", "give the features the design was made for")
        return leverages(rows.astype(np.float64, copy=False), self.whitening)


def optimal_design(
    features: Array, tolerance: float = 0.05, method: Literal["exchange", "frank-wolfe"] = "exchange", seed: int = 0
) -> OptimalDesign:
    """The design on rows ``(n, d)`` with g ≤ (1 + tolerance)·rank, over few rows; the same for the same ``seed``.

    Features may be dependent, rows may repeat. ``"exchange"`` needs a few passes over the features and reaches any
    tolerance; ``"frank-wolfe"`` is the paper's method, for tolerances of 0.1 and more.
    """
    one_of("method", method, ("exchange", "frank-wolfe"), "'exchange' is the faster")
    Phi = _matrix(features)
    M = orthonormalizing_map(Phi)
    if method == "exchange":
        rho, g, iterations = exchange_weights(Phi, tolerance, seed, span=M)
    else:
        rho, g, iterations = optimal_weights(Phi, tolerance, seed=seed)
    C = np.flatnonzero(rho)
    white = whitening(Phi[C], rho[C], M)
    assert white is not None  # or g would not have been finite
    return OptimalDesign(C, rho[C], g, M.shape[1], iterations, white)


def _matrix(features: Any) -> NDArray[Any]:
    try:
        return np.asarray(features)
    except ValueError as ragged:
        raise InputError("features", "must be a matrix (n, d)", str(ragged), "give all rows one length") from ragged
