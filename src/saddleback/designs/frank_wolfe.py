"""App. A, Frank-Wolfe for a G-optimal design (ComputeOptimalDesign of §4.1), and the few pairs it starts from.

**Alg. 5**, label alGW:

    ρ̃ = InitializeDesign
    ν(s,a,ρ̃) = φ(s,a)ᵀ (Φᵀ diag(ρ̃) Φ)⁻¹ φ(s,a),     δ(ρ̃) = max_{s,a} (ν(s,a,ρ̃) − d)/d
    while δ(ρ̃) > ε_FW:
        (x,b) = argmax_{s,a} ν(s,a,ρ̃)
        η* = (ν(x,b) − d) / ((d−1) ν(x,b))
        ρ̃(x,b) ← ρ̃(x,b) + η*,     ρ̃ ← ρ̃ / (1 + η*)
    C = the support of ρ̃,     G = Σ_{(x,b)∈C} ρ̃(x,b) φ(x,b)φ(x,b)ᵀ

η* maximises log det G along the step, and makes ν(x,b) = d. One step changes G by a rank-one term, hence the leverages by

    ν' = (1 + η) [ν − η (φᵀG⁻¹x)² / (1 + η ν(x,b))]                                    O(n d)

Departures from the paper (docs/errata.md): the coreset is the support of ρ̃, not the pairs above the paper's threshold,
see :func:`elimination_threshold`; d is the rank of the features; for d = 1, where η* divides by zero, the largest |φ| takes
all the mass; where the last step overshot, the lightest pairs it can spare are dropped (:func:`prune`) and g is computed
after that. Leverages do not depend on coordinates, so everything runs on features with orthonormal columns: a
step of InitializeDesign in those coordinates is one in the given ones, with another of its "arbitrary" directions c.

**Alg. 4**, label alg_ID, InitializeDesign: a few pairs whose features span all directions, equally weighted.

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
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.candidates import Optimum, all_leverages, candidate_features, prune, whitening
from saddleback.designs.design import Design, orthonormalizing_map, weighted_design
from saddleback.errors import InputError, one_of, positive, require, whole
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import RANK_TOLERANCE, first_largest
from saddleback.problem.phases import phase
from saddleback.problem.spaces import Array

_STEPS_BETWEEN_RECOMPUTATIONS = 100  # or d if that is more, so that recomputing costs no more than the steps


@dataclass(frozen=True)
class FrankWolfe:
    """The design with g ≤ (1 + tolerance)·d, d the rank of the features; ``tolerance`` is ε_FW."""

    tolerance: float = 1.0
    initialization: Literal["symmetric", "literal"] = "symmetric"
    max_iterations: int = 100_000
    seed: int = 0

    def design(self, problem: CMDP) -> Design:
        """ComputeOptimalDesign over the candidate pairs of ``problem``."""
        states, actions, Phi = candidate_features(problem)
        with phase(f"choosing where to sample: {len(Phi):,} pairs with {Phi.shape[1]:,} features"):
            rho = optimal_weights(Phi, self.tolerance, self.initialization, self.max_iterations, self.seed).weights
            C = np.flatnonzero(rho)
            return weighted_design(states[C], actions[C], Phi[C], rho[C], Phi, complete=problem.lists_all_pairs)


def optimal_weights(
    features: Array,
    tolerance: float = 1.0,
    initialization: Literal["symmetric", "literal"] = "symmetric",
    max_iterations: int = 100_000,
    seed: int = 0,
) -> Optimum:
    """Alg. 5 on rows ``(n, d)``: weights with g ≤ (1 + tolerance)·rank, or an :class:`InputError` that says how far it got."""
    positive("tolerance", tolerance, "use 1 for g ≤ 2d, 0.01 for a refined design")
    one_of("initialization", initialization, INITIALIZATIONS, "'symmetric' works for all features")
    whole("seed", seed, 0)
    whole("max_iterations", max_iterations, 0)
    X = features @ orthonormalizing_map(features)
    d = X.shape[1]
    if d == 1:
        return Optimum(np.eye(1, len(X), int(first_largest(np.abs(X[:, 0]))))[0], 1.0, 0)
    rho = INITIALIZATIONS[initialization](X, np.random.default_rng(seed))  # ρ̃ = InitializeDesign
    good = _whitening(X, rho) is not None
    rule = f"must find pairs whose features span all {d} dimensions"
    require(good, "initialization", rule, f"{np.count_nonzero(rho)} pairs that do not", "use 'symmetric'")
    inverse, nu = _recomputed(X, rho)
    target, stale, steps = (1 + tolerance) * d, 0, 0
    while True:
        x = int(first_largest(nu))  # (x,b)
        if nu[x] <= target and not stale:  # δ(ρ̃) ≤ ε_FW
            return Optimum(*prune(X, rho, target), steps)  # C = the support of ρ̃
        if nu[x] <= target or stale >= max(_STEPS_BETWEEN_RECOMPUTATIONS, d):
            (inverse, nu), stale = _recomputed(X, rho), 0  # rounding errors are never part of the answer
            continue
        if steps >= max_iterations:
            rule, remedy = f"must be enough to reach g ≤ {1 + tolerance:g}·{d}", "raise max_iterations or the tolerance"
            raise InputError("max_iterations", rule, f"{max_iterations}, which reached g = {nu[x]:.6g}", remedy)
        eta = step_size(float(nu[x]), d)  # η*
        inverse, nu = rank_one_update(X, inverse, nu, x, eta)
        rho[x] += eta
        rho /= 1 + eta
        stale, steps = stale + 1, steps + 1


def step_size(leverage: float, dim: int) -> float:
    """η* = (ν − d) / ((d−1) ν), the maximiser of log det (G + η xxᵀ)/(1 + η)."""
    return (leverage - dim) / ((dim - 1) * leverage)


def rank_one_update(features: Array, inverse: Array, nu: Array, index: int, eta: float) -> tuple[Array, Array]:
    """G⁻¹ ``(d, d)`` and all leverages ν ``(n,)`` after a step ``eta`` towards row ``index``."""
    u = inverse @ features[index]  # G⁻¹x
    shrink = eta / (1 + eta * nu[index])
    change = features @ u  # φᵀG⁻¹x
    change *= change
    change *= -shrink
    change += nu
    change *= 1 + eta
    return (1 + eta) * (inverse - shrink * np.outer(u, u)), change


def elimination_threshold(delta: float, dim: int) -> float:
    """d (1 + δd/2 − √(δ(d−1) + δ²d²/4)), the cut of the paper's last line; for documentation and tests only.

    Harman and Pronzato proved that a pair with leverage *below* it, at a design with max ν = (1 + δ)d, supports no
    optimal design. It says nothing of the pairs above: at δ = 1 it is about 2 while the mean leverage of the support is
    d, so it keeps nearly all of S × A; at small δ it may drop pairs that carry weight.
    """
    return float(dim * (1 + delta * dim / 2 - np.sqrt(delta * (dim - 1) + (delta * dim) ** 2 / 4)))


def _whitening(X: Array, rho: Array) -> Array | None:
    C = np.flatnonzero(rho)
    return whitening(X[C], rho[C], np.eye(X.shape[1]))


def _recomputed(X: Array, rho: Array) -> tuple[Array, Array]:
    """G⁻¹ and ν from scratch."""
    white = _whitening(X, rho)
    assert white is not None  # Frank-Wolfe never takes a pair out
    return white @ white.T, all_leverages(X, white)


# ---- InitializeDesign --------------------------------------------------------------------------------------------------------

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
    good = c.shape == x.shape[1:] and bool(np.all(np.isfinite(c))) and bool(np.any(c))
    rule = f"must return a nonzero vector of {x.shape[1]} numbers"
    require(good, f"choose({j})", rule, c, "any direction orthogonal to the differences so far will do")
    cosines = np.abs(x @ c) - _ORTHOGONALITY * np.linalg.norm(x, axis=1) * np.linalg.norm(c)
    remedy = "subtract its projection on them"
    require(bool(np.all(cosines <= 0)), f"choose({j})", "must be orthogonal to the differences so far", c, remedy)
    return c


def _equal_weights(num_pairs: int, points: NDArray[np.int64]) -> Array:
    rho = np.zeros(num_pairs)
    rho[points] = 1.0 / len(points)
    return rho


INITIALIZATIONS = {"symmetric": symmetric, "literal": literal}
