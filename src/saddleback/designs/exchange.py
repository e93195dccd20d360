"""Randomised pairwise exchange for a G-optimal design: what Frank-Wolfe does in thousands of steps, in a few passes.

Not in the paper, which uses Alg. 5. After Harman, Filová and Richtárik (JASA 2020), with the best partner instead of all.

    ρ̃ = equal weights on rows that span, the farthest in random directions
    loop:
        ν(φ) = φᵀG⁻¹φ for all n candidates,  g = max ν                           one pass over Φ
        stop if g/d − 1 ≤ tolerance                                              the certificate
        A = the support of ρ̃, the candidates of largest ν, a few others with ν above the target
        until the largest ν on A is well below g:
            for k in the support, in random order:
                for all j ∈ A:  α_j = (ν_j − ν_k) / (2 (ν_k ν_j − ν_kj²)), clipped to [−ρ̃_j, ρ̃_k],  ν_kj = φ_kᵀG⁻¹φ_j
                j = argmax of the factor  1 + α_j (ν_j − ν_k) − α_j² (ν_k ν_j − ν_kj²)
                ρ̃_k ← ρ̃_k − α_j,  ρ̃_j ← ρ̃_j + α_j
    prune, and verify g

G + α φ_j φ_jᵀ − α φ_k φ_kᵀ has the determinant of G times that factor, a concave parabola in α with value 1 at 0 and its
top at α_j: no exchange makes log det G smaller. G⁻¹ and ν on A follow by a rank-two update; a step costs O(|A| d), and only
the passes touch all n. By Kiefer and Wolfowitz max log det and min g = d are attained together, and log det G is within
d·log(g/d) of the largest possible: hence g/d − 1 as certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from saddleback.designs.candidates import (
    CHUNK,
    Optimum,
    Rows,
    all_leverages,
    candidate_features,
    largest,
    prune,
    whitening,
)
from saddleback.designs.design import Design, orthonormalizing_map, weighted_design
from saddleback.errors import InputError, NumericalError, positive, whole
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import TIE, first_largest, rounded
from saddleback.problem.phases import phase
from saddleback.problem.spaces import Array

_TOP, _OTHERS, _SAMPLE = 8, 2, 8  # times the rank: rows of A by leverage, by lot, and rows a random direction combines
_MOST_SWEEPS = 30  # over the support in one round
_PER_SECOND = 4e9  # operations of a core on matrices of this size, roughly
_MOST_GROWTH = 1e3  # of det G since G⁻¹ was computed: rounding errors of the updates grow with it
_EPS = np.finfo(np.float64).eps


@dataclass(frozen=True)
class Exchange:
    """The design with g ≤ (1 + tolerance)·d, d the rank of the features, on few pairs; the same for the same ``seed``."""

    tolerance: float = 0.05
    seed: int = 0
    max_rounds: int = 200

    def design(self, problem: CMDP) -> Design:
        """Pairwise exchange over the candidate pairs of ``problem``."""
        states, actions, Phi = candidate_features(problem)
        with phase(_what(*Phi.shape)) as advance:
            rho = exchange_weights(Phi, self.tolerance, self.seed, self.max_rounds, advance=advance).weights
            C = np.flatnonzero(rho)
            return weighted_design(states[C], actions[C], Phi[C], rho[C], Phi, complete=problem.lists_all_pairs)


def _what(pairs: int, features: int) -> str:
    """The phase in words, with a warning where a sweep over the support takes seconds."""
    text = f"choosing where to sample: {pairs:,} pairs with {features:,} features"
    sweep = 2 * features * min(pairs, (_TOP + _OTHERS) * features) * features * 4 / _PER_SECOND
    return text if sweep < 1 else f"{text}, about {sweep:.0f} s a sweep (fewer features take far less)"


def exchange_weights(
    features: Array,
    tolerance: float = 0.05,
    seed: int = 0,
    max_rounds: int = 200,
    span: Array | None = None,
    advance: Callable[[str], None] | None = None,
) -> Optimum:
    """Weights on rows ``(n, d)`` with g ≤ (1 + tolerance)·rank, or an :class:`InputError` that says how far it got.

    ``span`` is the features' :func:`orthonormalizing_map` where the caller has it already; ``advance`` is told how far it is.
    """
    positive("tolerance", tolerance, "use 0.05 for g ≤ 1.05·d")
    whole("seed", seed, 0)
    whole("max_rounds", max_rounds, 0)
    M, rng = orthonormalizing_map(features) if span is None else span, np.random.default_rng(seed)
    d, rho = M.shape[1], np.zeros(len(features))
    start = spanning_rows(features, M, rng)
    rho[start] = 1.0 / len(start)
    target, rounds = (1 + tolerance) * d, 0
    tie = min(TIE, 1e-3 * tolerance)  # what counts as equal must be finer than what is asked for
    digits = math.ceil(-math.log10(tie))
    while True:
        C = np.flatnonzero(rho)
        white = _whitening(features[C], rho[C], M)
        nu = all_leverages(features, white)  # ν
        g = float(nu.max())
        if advance is not None:
            advance(f"round {rounds + 1}: {g / d - 1:.2g} from the best, {tolerance:g} wanted")
        if g <= target:
            return Optimum(*prune(features, rho, target, M), rounds)
        if rounds >= max_rounds:
            rule, remedy = f"must be enough to reach g/{d} − 1 ≤ {tolerance:g}", "raise max_rounds or the tolerance"
            raise InputError("max_rounds", rule, f"{max_rounds}, which reached {g / d - 1:.2g}", remedy)
        A = np.union1d(C, _promising(nu, d, target, tie, rng))
        active = Active(features[A] @ M, rho[A], tie)
        active.improve((1 + max(tolerance / 2, (g / d - 1) / 10)) * d, rng)
        rho[A] = rounded(active.rho / active.rho.sum(), digits)
        rho /= rho.sum()
        rounds += 1


def exchange_step(nu_k: Array, nu_j: Array, nu_kj: Array, rho_k: Array, rho_j: Array) -> tuple[Array, Array]:
    """α clipped to [−ρ̃_j, ρ̃_k], and the factor of det G less 1; for arrays of one shape, or numbers.

    Where φ_k and φ_j are parallel the denominator is 0 and all mass goes to the longer of the two.
    """
    product = nu_k * nu_j
    D = np.maximum(product - nu_kj * nu_kj, 4 * _EPS * product)  # below it there is only rounding error
    rise = nu_j - nu_k
    alpha = np.clip(rise / (2 * D), -rho_j, rho_k)
    return alpha, alpha * (rise - alpha * D)


class Active:
    """A small set of rows ``(a, d)`` of full rank with weights ρ̃ ``(a,)``, and what the exchanges keep of it: G⁻¹ and ν."""

    def __init__(self, X: Array, rho: Array, tie: float = TIE):
        self.X, self.rho, self.tie = X, rho, tie
        self.recompute()

    def recompute(self) -> None:
        """G⁻¹ and ν from scratch."""
        C = np.flatnonzero(self.rho)
        white = _whitening(self.X[C], self.rho[C], np.eye(self.X.shape[1]))
        self.inverse, self.nu, self.growth = white @ white.T, all_leverages(self.X, white), 1.0

    def improve(self, goal: float, rng: np.random.Generator) -> None:
        """Sweep over the support in random order until ν ≤ ``goal`` on all rows, or sweeps run out."""
        for _ in range(_MOST_SWEEPS):
            if self.nu.max() <= goal:
                return
            for k in rng.permutation(np.flatnonzero(self.rho)):
                if self.rho[k] > 0:
                    self.exchange(int(k))
            self.recompute()

    def exchange(self, k: int) -> None:
        """The best exchange of mass between k and another row."""
        v = self.inverse @ self.X[k]
        nu_kj = self.X @ v  # φ_jᵀG⁻¹φ_k
        alpha, gain = exchange_step(self.nu[k], self.nu, nu_kj, self.rho[k], self.rho)
        reach = np.sqrt(np.maximum(gain, 0.0))  # about (ν_j − ν_k)/2ν, whose rounding error does not depend on its size
        if reach.max() <= self.tie:
            return  # the leverages differ by rounding errors
        j = int((reach >= reach.max() - 0.1 * self.tie).argmax())
        self.update(k, j, float(alpha[j]), v, nu_kj)
        self.growth *= 1 + float(gain[j])
        if self.growth > _MOST_GROWTH:
            self.recompute()

    def update(self, k: int, j: int, alpha: float, v: Array, nu_kj: Array) -> None:
        """ρ̃, G⁻¹ and ν after the exchange of ``alpha``; ``v`` = G⁻¹φ_k, ``nu_kj`` = Φv."""
        U = np.column_stack([self.inverse @ self.X[j], v])
        K = np.column_stack([self.X @ U[:, 0], nu_kj])
        (a, c), b = K[j], K[k, 1]
        factor = (1 + alpha * a) * (1 - alpha * b) + (alpha * c) ** 2
        S = alpha / factor * np.array([[1 - alpha * b, alpha * c], [alpha * c, -1 - alpha * a]])
        self.inverse -= U @ S @ U.T  # Woodbury's formula
        self.nu -= np.einsum("ai,ai->a", K @ S, K)
        taken, given = self.rho[k] - alpha, self.rho[j] + alpha
        self.rho[k] = taken if alpha < self.rho[k] else 0.0  # exactly 0, so that the row leaves the support
        self.rho[j] = given if -alpha < self.rho[j] else 0.0


def spanning_rows(features: Array, span: Array, rng: np.random.Generator) -> Rows:
    """Rows of Φ ``(n, d)`` that span: the farthest in random directions, then in directions orthogonal to those found.

    The columns of Φ·``span`` must be orthonormal. Directions are random combinations of the rows, so the choice does
    not depend on coordinates. The columns of Φ·span have length 1, so the farthest row in a direction reaches 1/√n or
    more: each pass over Φ adds a dimension at least, and mostly all or half of what is missing.
    """
    n, r = len(features), span.shape[1]
    basis = np.empty((r, 0))
    found: list[Rows] = []
    while basis.shape[1] < r:
        missing = r - basis.shape[1]
        sample = features[rng.choice(n, min(n, _SAMPLE * r), replace=False)]
        directions = _orthogonal_part(span.T @ _combinations(sample, missing, rng), basis)
        if not directions.size:  # a rare direction: no row of the sample has it
            directions = _orthogonal_part(span.T @ _combinations(features, missing, rng), basis)
        rows = np.unique(_farthest(features, span @ directions))
        X = (features[rows] @ span).T
        X -= basis @ (basis.T @ X)
        Q, R, _ = scipy.linalg.qr(X, mode="economic", pivoting=True)
        independent = max(1, int(np.count_nonzero(np.abs(np.diag(R)) >= 0.01 / np.sqrt(n))))
        basis = np.column_stack([basis, Q[:, :independent]])
        found.append(rows)
    return np.unique(np.concatenate(found))


def _combinations(rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Random combinations of the rows ``(n, d)``, as columns ``(d, count)``."""
    total = np.zeros((rows.shape[1], count))
    for first in range(0, len(rows), CHUNK):
        piece = rows[first : first + CHUNK]
        total += piece.T @ rng.standard_normal((len(piece), count))
    return total


def _orthogonal_part(C: Array, basis: Array) -> Array:
    """The columns of C less their projections on the orthonormal ``basis``, of length 1; those without one are left out."""
    rest = C - basis @ (basis.T @ C)
    lengths = np.linalg.norm(rest, axis=0)
    keep = lengths > 1e-8 * np.linalg.norm(C, axis=0)
    rest = rest[:, keep] / lengths[keep]
    return rest - basis @ (basis.T @ rest)  # what rounding left of the first projection


def _farthest(features: Array, directions: Array) -> Rows:
    """For each direction, a column of ``(d, m)``, the row φ with the largest |φᵀc|."""
    best, rows = np.full(directions.shape[1], -1.0), np.zeros(directions.shape[1], dtype=np.int64)
    for first in range(0, len(features), CHUNK):
        scores = np.abs(directions.T @ features[first : first + CHUNK].T)
        here = first_largest(scores, axis=1)
        reach = scores[np.arange(len(here)), here]
        better = reach > best * (1 + TIE)
        best[better], rows[better] = reach[better], first + here[better]
    return rows


def _whitening(features: Array, weights: Array, span: Array) -> Array:
    white = whitening(features, weights, span)
    if white is None:
        raise NumericalError(
            f"the features are too close to dependent: {len(weights)} rows found to span their {span.shape[1]} dimensions "
            "do not in float64; drop or orthogonalise features."
        )
    return white


def _promising(nu: Array, rank: int, target: float, tie: float, rng: np.random.Generator) -> Rows:
    """Candidates to exchange with: those of largest leverage, and a few above the target drawn by lot.

    The largest may all be copies of one row; the lot brings in others.
    """
    top = largest(nu, _TOP * rank)
    above = np.flatnonzero(nu > target)
    some = above[rng.choice(len(above), min(len(above), _OTHERS * rank), replace=False)]
    return np.union1d(top[nu[top] > (1 + tie) * rank], some)
