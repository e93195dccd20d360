"""What a feature map is worth on a pool of pairs: rank, conditioning, coverage, and whether 1 is in the span.

    Gram matrix        (1/N) Σ φφᵀ over the N pairs, every feature in units of its largest value; eigenvalues λ_1 ≥ … ≥ λ_d
    rank r             features that are independent in float64, as a design counts them
    condition          λ_1 / λ_d, infinite where features are dependent, and λ_1 / λ_r on their span
    effective          Σ_i λ_i / (λ_i + λ_1/1000): directions that are not much fainter than the strongest
    leverage           ν = φᵀ(Gram)⁺φ, whose mean over the pool is r: pairs far above it are seldom seen alike
    constant           max |1 − φᵀω| with ω the best fit to 1

φ is read twice, a few thousand pairs at a time, and reduced to a triangular d × d matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback.errors import require
from saddleback.problem.numerics import RANK_TOLERANCE, TIE, first_largest
from saddleback.problem.spaces import Actions, Array, Features, States

_PIECE = 1 << 21  # numbers of φ at a time (16 MB)
_MOST_ACTIONS = 4096  # that are gone through for every state
_FAINT = 1e-3  # of the largest eigenvalue
_HIGH, _ILL, _OFF = 5.0, 1e12, 1e-8  # what the text complains about: leverage per rank, condition, distance of 1


@dataclass(frozen=True)
class FeatureReport:
    """The figures; ``text()`` says them in words. Rows that are not finite count in ``not_finite`` and nowhere else."""

    num_pairs: int
    dim: int
    rank: int
    condition: float
    condition_on_span: float
    effective_dimension: float
    largest_leverage: float
    high_leverage_share: float
    high_leverage: float
    worst_pair: tuple[Any, int] | None
    never_active: tuple[int, ...]
    constant_residual: float
    not_finite: int
    first_not_finite: tuple[Any, int] | None

    @property
    def constant_in_span(self) -> bool:
        """Whether 1 is a combination of the features on the pool."""
        return self.constant_residual <= _OFF

    def remarks(self) -> list[str]:
        """What should be mended or known, most serious first."""
        found = []
        if self.first_not_finite is not None:
            s, a = self.first_not_finite
            found.append(f"{self.not_finite} pairs have features that are not finite, first state {s}, action {a}")
        if self.never_active:
            some = ", ".join(map(str, self.never_active[:8])) + (", …" if len(self.never_active) > 8 else "")
            found.append(
                f"{len(self.never_active)} features are zero on the whole pool ({some}): drop them, or widen the pool"
            )
        if not self.constant_in_span:
            found.append(f"1 is not in the span (off by {self.constant_residual:.1e}): add a constant")
        if self.condition_on_span > _ILL:
            found.append(
                f"the features are close to dependent (condition {self.condition_on_span:.1e}): use fewer or others"
            )
        if self.largest_leverage > _HIGH * max(1, self.rank) and self.worst_pair is not None:
            s, a = self.worst_pair
            ratio = self.largest_leverage / self.rank
            found.append(f"the pool hardly covers state {s}, action {a}: leverage {ratio:.1f} times the mean")
        return found

    def text(self) -> str:
        """Lines for a terminal."""
        lines = [
            f"{self.dim} features on {self.num_pairs} pairs: rank {self.rank}, effective dimension {self.effective_dimension:.1f}",
            f"condition of the Gram matrix {self.condition:.2g}, on the span {self.condition_on_span:.2g}",
            f"largest leverage {self.largest_leverage:.1f} (the mean is {self.rank}); "
            f"{self.high_leverage_share:.2%} of the pairs above {self.high_leverage:g} times the mean",
            f"1 in the span: {'yes' if self.constant_in_span else f'no (off by {self.constant_residual:.1e})'}",
        ]
        return "\n".join(lines + [f"- {remark}" for remark in self.remarks()])

    __str__ = text


def examine(
    features: Features, states: States, actions: Actions | None = None, *, high_leverage: float = 3.0
) -> FeatureReport:
    """The report on the pairs (states, actions), or on all actions in each of the ``states``."""
    require(len(states) > 0, "states", "must hold a state at least", "none", "give a pool of states")
    A, d = features.num_actions, features.dim
    if actions is None:
        remedy = "give the actions of the pool, one a state"
        require(A <= _MOST_ACTIONS, "actions", f"must be given where there are more than {_MOST_ACTIONS}", A, remedy)
        states, actions = np.repeat(states, A, axis=0), np.tile(np.arange(A), len(states))
    actions = np.asarray(actions)
    remedy = "or leave them out"
    require(len(actions) == len(states), "actions", f"must be {len(states)}, one a state", len(actions), remedy)
    largest, num_finite, first_bad = _first_pass(features, states, actions)
    scale = np.where(largest > 0, largest, 1.0)
    N = max(1, num_finite)
    R = np.zeros((0, d + 1))
    for rows, _, _ in _finite_pieces(features, states, actions):
        more = np.column_stack([rows / scale, np.ones(len(rows))])
        R = np.asarray(np.linalg.qr(np.vstack([R, more]), mode="r"))
    U, singular, V = np.linalg.svd(R[:, :d] / math.sqrt(N), full_matrices=False)
    top = singular[0] if singular.size else 0.0
    r = int((singular > RANK_TOLERANCE * top).sum()) if top > 0 else 0
    eigenvalues = singular**2
    whitening = V[:r].T / singular[:r]
    omega = whitening @ (U[:, :r].T @ R[:, d]) / math.sqrt(N)  # the least-squares fit of 1
    nu_max, worst, above, off = _second_pass(features, states, actions, scale, whitening, omega, high_leverage)
    return FeatureReport(
        num_pairs=len(states),
        dim=d,
        rank=r,
        condition=float(eigenvalues[0] / eigenvalues[-1]) if r == d else math.inf,
        condition_on_span=float(eigenvalues[0] / eigenvalues[r - 1]) if r else math.inf,
        effective_dimension=float((eigenvalues / (eigenvalues + _FAINT * top**2)).sum()) if r else 0.0,
        largest_leverage=nu_max,
        high_leverage_share=above / N,
        high_leverage=high_leverage,
        worst_pair=worst,
        never_active=tuple(int(j) for j in np.flatnonzero(largest == 0)),
        constant_residual=off,
        not_finite=len(states) - num_finite,
        first_not_finite=first_bad,
    )


def _first_pass(features: Features, states: States, actions: Actions) -> tuple[Array, int, tuple[Any, int] | None]:
    """Each feature's largest value, how many pairs are finite, and the first that is not."""
    scale, finite, bad = np.zeros(features.dim), 0, None
    for rows, kept, at in _finite_pieces(features, states, actions):
        if len(rows):
            np.maximum(scale, np.abs(rows).max(axis=0), out=scale)
        finite += len(rows)
        if bad is None and not kept.all():
            i = at + int(np.argmin(kept))
            bad = states[i], int(actions[i])
    return scale, finite, bad


def _second_pass(
    features: Features, states: States, actions: Actions, scale: Array, whitening: Array, omega: Array, high: float
) -> tuple[float, tuple[Any, int] | None, int, float]:
    """The largest leverage and its pair, how many are above ``high``·r, and the largest error of the fit to 1."""
    largest, worst, above, off, r = 0.0, None, 0, 0.0 if len(omega) else 1.0, whitening.shape[1]
    for rows, kept, at in _finite_pieces(features, states, actions):
        if not len(rows):
            continue
        scaled = rows / scale
        nu = np.square(scaled @ whitening).sum(axis=1)
        i = int(first_largest(nu))
        if nu[i] > largest * (1 + TIE):
            j = at + int(np.flatnonzero(kept)[i])
            largest, worst = float(nu[i]), (states[j], int(actions[j]))
        above += int((nu > high * r).sum())
        off = max(off, float(np.abs(1 - scaled @ omega).max()))
    return largest, worst, above, off


def _finite_pieces(features: Features, states: States, actions: Actions) -> Iterator[tuple[Array, Any, int]]:
    """Rows of φ that are finite, which ones of the piece these are, and where the piece begins."""
    d = features.dim
    step = max(1, _PIECE // d)
    for first in range(0, len(states), step):
        rows = np.asarray(features.at(states[first : first + step], actions[first : first + step]))
        n = len(states[first : first + step])
        good = rows.shape == (n, d) and rows.dtype == np.float64
        remedy = "vectorise the map over pairs"
        require(good, "features", f"must give a float64 array {(n, d)}", f"{rows.dtype} {rows.shape}", remedy)
        kept = np.isfinite(rows).all(axis=1)
        yield (rows if kept.all() else rows[kept]), kept, first
