"""Alg. 4 (App. A), label alg_ID, InitializeDesign: a few pairs whose features span all directions, equally weighted.

    choose an arbitrary nonzero c_0 ∈ R^d
    for j = 0, 1, …, d−1:
        (s̄_j, ā_j) = argmax c_jᵀφ(s,a),   (s_j, a_j) = argmin c_jᵀφ(s,a)
        x_j = φ(s̄_j, ā_j) − φ(s_j, a_j)
        choose an arbitrary nonzero c_{j+1} orthogonal to x_0, …, x_j
    ρ̃ = equal weight on each of the distinct points of Z = {(s̄_j, ā_j), (s_j, a_j)}

:func:`literal` is this. "Arbitrary" is too weak: where all features lie on a hyperplane cᵀφ = const (one-hot and simplex
features do, with c = 1), that c gives x_j = 0, is orthogonal to it, and may be chosen again and again: one point, rank 1.

:func:`symmetric` runs the same idea on the centrally symmetric set {±φ}, where the smallest point is minus the largest and
x_j is, up to a factor 2, the point itself:

    (s_j, a_j) = argmax |c_jᵀφ(s,a)|,   x_j = φ(s_j, a_j),   c_{j+1} orthogonal to x_0, …, x_j, drawn at random

Features that span R^d have a point with c_jᵀφ ≠ 0 for every c_j ≠ 0, so each step adds an independent one: d points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import require
from saddleback.problem.rounding import RANK_TOLERANCE, first_largest
from saddleback.problem.spaces import Array

Choice = Callable[[int, Array], Array]
"""(j, the rows x_0 … x_{j−1}) → c_j ``(d,)``."""

_ORTHOGONALITY = 1e-8  # cosine above which a chosen c_j is not orthogonal to some x_i


def literal(features: Array, rng: np.random.Generator, choose: Choice | None = None) -> Array:
    """Alg. 4 as written, on rows ``(n, d)``: ρ̃ ``(n,)``; ``choose`` says which c_j, by default a random one."""
    n, d = features.shape
    x, basis = np.empty((d, d)), np.empty((0, d))
    Z: list[int] = []
    for j in range(d):
        c = _admissible(j, choose(j, x[:j]), x[:j]) if choose else _random_direction(features, basis, rng)
        scores = features @ c
        highest, lowest = int(first_largest(scores)), int(first_largest(-scores))  # (s̄_j, ā_j), (s_j, a_j)
        x[j] = features[highest] - features[lowest]  # x_j
        basis = _extended(basis, x[j])
        Z += [highest, lowest]
    return _equal_weights(n, np.unique(Z))


def symmetric(features: Array, rng: np.random.Generator) -> Array:
    """The centrally symmetric form, on rows ``(n, d)``: ρ̃ ``(n,)`` on as many pairs as the features have rank."""
    n, d = features.shape
    basis = np.empty((0, d))
    Z: list[int] = []
    for _ in range(d):
        c = _random_direction(features, basis, rng)
        if not np.any(c):
            break  # the points chosen so far span all features
        farthest = int(first_largest(np.abs(features @ c)))  # (s_j, a_j)
        basis = _extended(basis, features[farthest])  # x_j
        Z.append(farthest)
    return _equal_weights(n, np.array(Z))


def _random_direction(features: Array, basis: Array, rng: np.random.Generator) -> Array:
    """A random combination of the features ``(d,)`` orthogonal to the rows of ``basis``; 0 if they leave none.

    Drawn as Φᵀξ with one normal number per pair. For orthonormal columns of Φ this is the standard normal distribution
    on R^d, and an orthogonal change of coordinates turns c with it, so the points chosen do not depend on coordinates.
    """
    return _remainder(rng.standard_normal(len(features)) @ features, basis)


def _extended(basis: Array, x: Array) -> Array:
    """Orthonormal rows that span ``basis`` and x."""
    rest = _remainder(x, basis)
    length = np.linalg.norm(rest)
    return np.vstack([basis, rest / length]) if length > 0 else basis


def _remainder(v: Array, basis: Array) -> Array:
    """v less its projection on the orthonormal rows of ``basis``; exactly 0 where only rounding errors are left."""
    rest = v - basis.T @ (basis @ v)
    rest = rest - basis.T @ (basis @ rest)  # the second pass removes what rounding left of the first
    return rest if np.linalg.norm(rest) > RANK_TOLERANCE * np.linalg.norm(v) else np.zeros_like(v)


def _admissible(j: int, c: Array, x: Array) -> Array:
    """The caller's c_j if it is what the algorithm asks for."""
    require(
        c.shape == x.shape[1:] and bool(np.all(np.isfinite(c))) and bool(np.any(c)),
        f"choose({j})",
        f"must return a nonzero vector of {x.shape[1]} numbers",
        c,
        "any direction orthogonal to the differences so far will do",
    )
    cosines = np.abs(x @ c) - _ORTHOGONALITY * np.linalg.norm(x, axis=1) * np.linalg.norm(c)
    require(
        bool(np.all(cosines <= 0)),
        f"choose({j})",
        "must be orthogonal to the differences so far",
        c,
        "subtract its projection on them",
    )
    return c


def _equal_weights(num_pairs: int, points: NDArray[np.int64]) -> Array:
    rho = np.zeros(num_pairs)
    rho[points] = 1.0 / len(points)
    return rho
