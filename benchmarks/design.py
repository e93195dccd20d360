"""An optimal design over 10⁶ candidates with 50 features, g ≤ 1.05 d, against one product ``features @ G_inverse_half``.

Three kinds of candidates: Gaussian, on a simplex (Dirichlet), and radial basis functions of points in a square.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.timing import Row, ratio
from saddleback.designs import optimal_design

N, D, TOLERANCE = 1_000_000, 50, 0.05
FLOOR, AIM, REPEATS = 60.0, 20.0, 3

Features = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def gaussian(rng: np.random.Generator) -> Features:
    return rng.standard_normal((N, D))


def simplex(rng: np.random.Generator) -> Features:
    return rng.dirichlet(np.full(D, 0.3), size=N)


def radial(rng: np.random.Generator) -> Features:
    points, centres = rng.random((N, 2)), rng.random((D, 2))
    features = np.zeros((N, D))
    for axis in range(2):
        features += (points[:, axis, None] - centres[:, axis]) ** 2
    features *= -D / 2
    return np.exp(features, out=features)


KINDS: dict[str, Callable[[np.random.Generator], Features]] = {"Gaussian": gaussian, "simplex": simplex, "RBF": radial}


def rows() -> list[Row]:
    return [_row(name, make(np.random.default_rng(0))) for name, make in KINDS.items()]


def _row(name: str, features: Features) -> Row:
    design = optimal_design(features, TOLERANCE)
    C = features[design.support]
    G = C.T @ (design.weights[:, None] * C)
    half = np.ascontiguousarray(
        np.linalg.inv(np.linalg.cholesky(G)).T
    )  # φᵀG⁻¹φ = ‖φᵀ half‖², computed apart from the design
    worst = max(float(((piece @ half) ** 2).sum(axis=1).max()) for piece in np.array_split(features, 100))
    assert worst <= (1 + TOLERANCE) * D * (1 + 1e-6), f"g = {worst}"
    product = np.empty_like(features)  # allocated beforehand: new pages can cost more than the product itself
    measured, seconds, reference = ratio(
        lambda: optimal_design(features, TOLERANCE), lambda: np.matmul(features, half, out=product), REPEATS
    )
    what = f"design, {name}, n={N:,}, d={D}, g ≤ {1 + TOLERANCE:g}·d, |C|={len(design.support)} / one product"
    return Row(what, measured, FLOOR, AIM, seconds, reference)
