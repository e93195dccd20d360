"""Alg. 5 (App. A), label alGW, Frank-Wolfe for a G-optimal design (ComputeOptimalDesign of §4.1).

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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from saddleback.designs.candidates import candidate_features
from saddleback.designs.design import Design, orthonormalizing_map, weighted_design
from saddleback.designs.initialize import literal, symmetric
from saddleback.designs.leverage import Optimum, all_leverages, prune, whitening
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.rounding import first_largest
from saddleback.problem.spaces import Array

INITIALIZATIONS = {"symmetric": symmetric, "literal": literal}

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
    _check_options(tolerance, initialization, max_iterations)
    X = features @ orthonormalizing_map(features)
    d = X.shape[1]
    if d == 1:
        return Optimum(np.eye(1, len(X), int(first_largest(np.abs(X[:, 0]))))[0], 1.0, 0)
    rho = INITIALIZATIONS[initialization](X, np.random.default_rng(seed))  # ρ̃ = InitializeDesign
    require(
        _whitening(X, rho) is not None,
        "initialization",
        f"must find pairs whose features span all {d} dimensions",
        f"{np.count_nonzero(rho)} pairs that do not",
        "use 'symmetric'",
    )
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
            raise InputError(
                "max_iterations",
                f"must be enough to reach g ≤ {1 + tolerance:g}·{d}",
                f"{max_iterations}, which reached g = {nu[x]:.6g}",
                "raise max_iterations or the tolerance",
            )
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


def _check_options(tolerance: float, initialization: str, max_iterations: int) -> None:
    require(tolerance > 0, "tolerance", "must be positive", tolerance, "use 1 for g ≤ 2d, 0.01 for a refined design")
    require(
        initialization in INITIALIZATIONS,
        "initialization",
        f"must be one of {', '.join(INITIALIZATIONS)}",
        repr(initialization),
        "'symmetric' works for all features",
    )
    require(max_iterations >= 0, "max_iterations", "must not be negative", max_iterations, "use 100000")


def _whitening(X: Array, rho: Array) -> Array | None:
    C = np.flatnonzero(rho)
    return whitening(X[C], rho[C], np.eye(X.shape[1]))


def _recomputed(X: Array, rho: Array) -> tuple[Array, Array]:
    """G⁻¹ and ν from scratch."""
    white = _whitening(X, rho)
    assert white is not None  # Frank-Wolfe never takes a pair out
    return white @ white.T, all_leverages(X, white)
