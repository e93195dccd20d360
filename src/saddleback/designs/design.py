"""§4.1, the design: which pairs to sample (the coreset C), with which weights ρ̃, and the regression they carry.

    G = Σ_{(x,b)∈C} ρ̃(x,b) φ(x,b)φ(x,b)ᵀ          g(ρ̃) = max_{(s,a)} φ(s,a)ᵀ G⁻¹ φ(s,a)
    W(z) = G⁻¹ Σ_{(x,b)∈C} ρ̃(x,b) φ(x,b) z(x,b)

:meth:`Design.fit` is W, one ``d × |C|`` product. The coreset is the support of ρ̃ (the paper's threshold rule is an
elimination test and keeps nearly all pairs: docs/errata.md). Rank-deficient features are reduced to independent ones
first and θ is mapped back, so that φ and θ keep the user's coordinates; among the θ that predict alike it is the one of
least norm, each feature measured in units of its largest value.

The tabular case is the design with C = S × A and one-hot features, where W is the identity and is not stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import RANK_TOLERANCE
from saddleback.problem.spaces import Actions, Array, States

ILL_CONDITIONED = 1e8
"""Condition number of G above which a solution says so: half of float64's digits."""

_CHUNK_ENTRIES = 1 << 22  # of a temporary matrix (32 MB)


@dataclass(frozen=True)
class Design:
    """Coreset ``(states, actions)`` with weights ρ̃ ``(c,)`` that sum to one.

    ``features`` is Φ_C ``(c, d)``, or None for C = S × A with one-hot features. ``leverage_bound`` is g over the
    candidates the design was chosen from; ``complete`` says whether those were all pairs.
    """

    states: States
    actions: Actions
    weights: Array
    features: Array | None
    operator: Array | None
    whitening: Array | None
    rank: int
    leverage_bound: float
    lebesgue: float
    complete: bool = True

    @property
    def size(self) -> int:
        """|C|, the number of pairs."""
        return len(self.weights)

    @cached_property
    def condition(self) -> float:
        """The condition number of G within the span of the features, each in units of its largest value on the coreset."""
        if self.features is None:
            return float(self.weights.max() / self.weights.min())
        scale = np.abs(self.features).max(axis=0)
        R = np.linalg.qr(np.sqrt(self.weights)[:, None] * (self.features / np.where(scale > 0, scale, 1.0)), mode="r")
        singular = np.linalg.svd(R, compute_uv=False)
        return float((singular[0] / singular[self.rank - 1]) ** 2)

    def remarks(self) -> list[str]:
        """What a user should know of the features: that some repeat others, or nearly do. No ridge is ever added."""
        found = []
        if self.features is not None and self.rank < self.features.shape[1]:
            found.append(
                f"the {self.features.shape[1]} features have rank {self.rank}: some repeat others, and estimates use their "
                f"span only (condition number {self.condition:.3g} within it)"
            )
        elif self.condition > ILL_CONDITIONED and self.features is not None:
            found.append(
                f"the features nearly repeat one another: rank {self.rank}, condition number of their Gram matrix "
                f"{self.condition:.3g}; nothing was added to it, and estimates may lose as many digits"
            )
        return found

    def fit(self, z: Array) -> Array:
        """W(z) for targets ``(c,)`` or ``(c, k)``: the weighted least-squares parameters ``(d,)`` or ``(d, k)``."""
        return z if self.operator is None else self.operator @ z

    def leverage(self, features: Array) -> Array:
        """φᵀG⁻¹φ for rows ``(n, d)``."""
        require(self.whitening is not None, "design", "must have features", None, "the tabular leverage is 1/ρ̃")
        return leverages(features, self.whitening)  # type: ignore[arg-type]


def weighted_design(
    states: States,
    actions: Actions,
    features: Array,
    weights: Array,
    candidates: Array | None = None,
    complete: bool = True,
) -> Design:
    """The design on ``features`` ``(c, d)`` with ``weights``; g and the Lebesgue constant over ``candidates`` ``(n, d)``."""
    check_features(features)
    good = weights.shape == (len(features),) and bool(np.all(weights >= 0)) and 0 < float(weights.sum()) < np.inf
    rule = f"must be {len(features)} non-negative numbers, not all zero"
    require(good, "weights", rule, weights, "give one weight a pair")
    keep = np.flatnonzero(weights > 0)
    states, actions, features = states[keep], actions[keep], features[keep]
    weights = weights[keep] / weights[keep].sum()
    pool = features if candidates is None else candidates
    span = spanning_basis(pool)
    B, whitening = regression(features, weights, span)
    g, lebesgue = 0.0, 0.0
    for rows in _chunks(pool, max(1, _CHUNK_ENTRIES // max(B.shape))):
        g = max(g, float(leverages(rows, whitening).max()))
        lebesgue = max(lebesgue, float(np.abs(rows @ B).sum(axis=1).max()))
    return Design(states, actions, weights, features, B, whitening, span.shape[1], g, lebesgue, complete)


def full_design(states: States, actions: Actions) -> Design:
    """C = S × A with one-hot features and equal weights: W(z) = z, g = |C|, Lebesgue constant 1."""
    n = len(states)
    return Design(states, actions, np.full(n, 1.0 / n), None, None, None, n, float(n), 1.0)


def spanning_basis(features: Array) -> Array:
    """M ``(d, r)`` such that Φ M has full rank r and predicts all that Φ can; the identity when Φ has rank d."""
    M = orthonormalizing_map(features)
    return np.eye(M.shape[0]) if M.shape[0] == M.shape[1] else M


def orthonormalizing_map(features: Array) -> Array:
    """M ``(d, r)`` such that the columns of Φ M are orthonormal, r the rank of the features Φ ``(n, d)``.

    Every column is scaled by its largest value first: the rank must not depend on the units of the features.
    """
    check_features(features)
    scale = np.maximum(features.max(axis=0), -features.min(axis=0))
    scale[scale == 0] = 1.0
    extreme = np.flatnonzero((scale < 1e-100) | (scale > 1e100))  # their squares would leave float64's range
    if extreme.size:
        j = int(extreme[0])
        raise InputError(f"features[:, {j}]", "must have a largest value in [1e-100, 1e100]", scale[j], "rescale it")
    values, V = np.linalg.eigh((features.T @ features) / np.outer(scale, scale))
    if values[0] > 1e-6 * values[-1]:
        return (V / np.sqrt(values)) / scale[:, None]
    # The Gram matrix squares the condition number: near-deficient cases are decided on the features themselves.
    R = np.empty((0, len(scale)))
    for chunk in _chunks(features, 2048):  # a few rows at a time: no copy of the features
        R = np.asarray(np.linalg.qr(np.vstack([R, chunk / scale]), mode="r"))
    _, singular, rows = np.linalg.svd(R, full_matrices=False)
    rank = int((singular > RANK_TOLERANCE * singular[0]).sum())
    return np.asarray((rows[:rank].T / singular[:rank]) / scale[:, None])


def regression(features: Array, weights: Array, span: Array) -> tuple[Array, Array]:
    """The operator B of W(z) = B z ``(d, c)`` and the whitening ``(d, r)`` with φᵀG⁻¹φ = ‖φ·whitening‖².

    By QR of √ρ̃ Φ, never by inverting G.
    """
    root = np.sqrt(weights)[:, None]
    Q, R = np.linalg.qr(root * (features @ span))
    # How much of each column is not explained by those before it: a ratio, so free of the units of the features.
    norms = np.linalg.norm(R, axis=0)
    pivots = np.abs(np.diag(R)) / np.where(norms > 0, norms, 1.0)[: len(R)]
    if R.shape[0] < R.shape[1] or pivots.min() <= RANK_TOLERANCE:
        rule = f"must span the {span.shape[1]} dimensions of the features"
        found = f"{len(weights)} pairs with a smallest relative pivot of {pivots.min():.1e}"
        raise InputError("design", rule, found, "give the coreset more pairs, or drop features that repeat one another")
    inverse = scipy.linalg.solve_triangular(R, np.eye(R.shape[0]))
    return span @ (inverse @ (Q * root).T), span @ inverse


def leverages(features: Array, whitening: Array) -> Array:
    """φᵀG⁻¹φ row by row, ``(n,)``."""
    white = features @ whitening
    return np.einsum("nr,nr->n", white, white)


def check_features(features: NDArray[Any]) -> None:
    """Refuse features that are not a finite, nonzero float64 matrix."""
    require(features.ndim == 2, "features", "must be a matrix (n, d)", f"shape {features.shape}", "flatten the pairs")
    remedy = "use .astype(numpy.float64)"
    require(features.dtype == np.float64, "features", "must be float64", str(features.dtype), remedy)
    bad = np.argwhere(~np.isfinite(features))
    if bad.size:
        i, j = bad[0]
        raise InputError(f"features[{i}, {j}]", "must be finite", features[i, j], "remove NaN and infinities")
    require(bool(np.any(features)), "features", "must not all be zero", "a zero matrix", "check the feature map")


def _chunks(rows: Array, size: int) -> list[Array]:
    return [rows[i : i + size] for i in range(0, len(rows), size)]


EXCESS = 1.1


class Designer(Protocol):
    """Whoever computes a design: an entry of :mod:`saddleback.designs`, or the user's own."""

    def design(self, problem: CMDP) -> Design:
        """The coreset and its weights."""
        ...
