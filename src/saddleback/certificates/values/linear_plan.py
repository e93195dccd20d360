"""What earlier samples fix for the values under linearity: V̂_k, the share β of the coreset's samples, and the slope g.

    V_F = Σ_x (γ Σ_k w_k|a^k_x| σ_kx)²/N_x         variance that the fresh samples will bring
    S²  = γ²σ²/(1 − γ²/κ)                          variance of one rollout, S_◇² that of observed rewards in it
    ε   = (3/2) Σ_kx w_k|a^k_x|(q_kx + q'_kx/4)    what a rollout will not know of P

with LSTD's influence a^k, the spread σ_kx of V̂_k at the pair x, its mean square σ² over the visits |a^k_x|, and the limits q
and q' of |γ(P̂−P)V̂_k| with fresh and with earlier samples. β ∈ [0, 1] minimises the width to be expected,

    L/g + g·v/2,     v = β²V_F + [((1−β)S + βε)² + S_◇²]/n,     g = √(2L/v), cut so that no rollout can lose much of the capital,

for the lower and for the upper limit, which bear different risks. All this is guesswork, but for the limits of V̂_k: wrong guesses cost width, never validity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.values.intervals import deviation_limit
from saddleback.certificates.values.rollouts import Baseline, range_of
from saddleback.designs.design import Design
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.trajectories import ALPHA, RolloutPlan

_MOST_PAIRS = 10_000_000
_CHUNK_ENTRIES = 1 << 22
_MOST_OF_CAPITAL = 0.7
_PRICE_OF_BETTING = 0.35  # what the range adds to a plain interval, times range·L/n
_WORTH = 0.8  # the plain interval is kept unless a narrower one than this share of it is expected
_SHARE_OF_PAIRS = 0.05  # of δ, for the limits at every pair; the rest is for the bet


class Levels(NamedTuple):
    """log-terms of one value's two events: the bet (two sides), and the limits at every pair."""

    bet: float
    pairs: float

    @classmethod
    def of(cls, delta: float, num_limits: int) -> Levels:
        """δ divided over the events; a two-sided limit with a variance of its own counts three times."""
        pairs = _SHARE_OF_PAIRS * delta
        return cls(math.log(2 / (delta - pairs)), math.log(3 * num_limits / pairs))


@dataclass(frozen=True)
class ValuePlan:
    """ω_k ``(d, 1+m)``, the limits of V̂_k ``(K, 1+m)``, β and g of lower and upper limits ``(2, 1+m)``, the levels, n."""

    omegas: tuple[Array, ...]
    low: Array
    high: Array
    share: Array
    slope: Array
    levels: Levels
    num_rollouts: int


def plan_values(
    problem: CMDP,
    mixture: MixturePolicy,
    earlier: Buffer,
    counts: NDArray[np.int64],
    baseline: Baseline,
    rolled: RolloutPlan,
    delta: float,
) -> ValuePlan:
    """Freeze everything for ``counts`` fresh samples at the pairs and the rollouts ``rolled``; δ is for all 1+m values."""
    num_rollouts, design, gamma, w = rolled.number, earlier.design, problem.gamma, mixture.weights
    levels = Levels.of(delta / (1 + problem.num_constraints), len(w) * design.size)
    solved = [LSTD().influence_and_values(problem, earlier, p) for p in mixture.members]
    known = earlier.utilities(problem)
    omegas = tuple(
        design.fit(known + gamma * earlier.average(V)) for _, V in solved
    )  # the fixed point that LSTD solves
    ranges = [value_range(problem, design, p, o) for p, o in zip(mixture.members, omegas, strict=True)]
    low, high = np.array([r[0] for r in ranges]), np.array([r[1] for r in ranges])
    a = w[:, None, None] * np.abs([a for a, _ in solved])[:, :, None]  # (K, c, 1)
    variance = np.array([variances(earlier, V) for _, V in solved])  # (K, c, 1+m)
    V_F = (np.square((gamma * a * np.sqrt(variance)).sum(axis=0)) / counts[:, None]).sum(axis=0)
    visits = a / max(float(a.sum()), 1e-12) / (1 - gamma ** (2 - ALPHA))
    S = gamma * np.sqrt((visits * variance).sum(axis=(0, 1)))
    noise = (visits * earlier.signal_noise(problem) ** 2).sum(axis=(0, 1))
    q, before = (gamma * pair_limits(variance, high - low, n, levels.pairs) for n in (counts, earlier.counts))
    eps = 1.5 * (a * (q + before / 4)).sum(axis=(0, 1))
    least, most = range_of(gamma, baseline, rolled.cap)
    downside = longest_sum(gamma) * (2 * design.lebesgue * q.max(axis=(0, 1)) + problem.observed)
    guesses = [
        [_Guess(*x) for x in zip(V_F, S, eps, noise, fall, most - least, downside, strict=True)]
        for fall in (-least, most)
    ]
    choices = [[guess.best(levels, num_rollouts) for guess in side] for side in guesses]
    share, slope = np.moveaxis(np.array(choices), 2, 0)
    return ValuePlan(omegas, low, high, share, slope, levels, num_rollouts)


class _Guess(NamedTuple):
    """What is expected of one limit: V_F, S, ε and S_◇²; how far Z may fall, its range, and how far U may fall."""

    V_F: float
    S: float
    eps: float
    noise: float
    fall: float
    span: float
    downside: float

    def best(self, levels: Levels, n: int) -> tuple[float, float]:
        """β and g of the least width; β = 0 where the plain interval promises to be about as good."""
        L, beta = levels.bet, np.linspace(0.0, 1.0, 101)
        one = ((1 - beta) * self.S + beta * self.eps) ** 2 + self.noise
        v = beta**2 * self.V_F + one / n
        most = _MOST_OF_CAPITAL * n / np.maximum((1 - beta) * self.fall + beta * self.downside, 1e-12)
        g = np.minimum(np.sqrt(2 * L / np.maximum(v, 1e-30)), most)
        width = L / g + g * v / 2
        best = int(np.argmin(width))
        plain = math.sqrt(2 * L * (self.S**2 + self.noise) / n) + _PRICE_OF_BETTING * self.span * L / n
        return (float(beta[best]) if width[best] < _WORTH * plain else 0.0), float(g[best])


def longest_sum(gamma: float) -> float:
    """Σ_t γ^t/p_t, which no rollout exceeds."""
    return float(1 / (1 - gamma ** (1 - ALPHA)))


def variances(buffer: Buffer, V: Array) -> Array:
    """Unbiased, of V over the support ``(n, 1+m)``, at every pair ``(c, 1+m)``.

    Limits that are proved rest on these, so the smallest count too, which ``Buffer.moments`` takes for rounding errors.
    """
    n = buffer.counts[:, None]
    centred = V - V.mean(axis=0)  # less is lost when squares are subtracted
    variance = buffer.average(centred**2) - buffer.average(centred) ** 2
    return np.asarray(np.maximum(variance, 0.0) * n / np.maximum(n - 1, 1))


def pair_limits(variance: Array, span: Array, counts: NDArray[np.int64], log_term: float) -> Array:
    """What |(P̂−P)V̂_k| exceeds at a pair with probability 3e^{−L} at most, ``(K, c, 1+m)``; spans are ``(K, 1+m)``."""
    n = counts[:, None]
    limits = deviation_limit(variance / n, span[:, None] / np.maximum(n - 1, 1), log_term)
    return np.minimum(limits, span[:, None])


def value_range(problem: CMDP, design: Design, policy: Policy, omega: Array) -> tuple[Array, Array]:
    """Limits of π⟨φ,ω⟩ over all states, ``(1+m,)``."""
    features = problem.required_features()
    if not enumerable(problem):
        assert design.features is not None
        return around(design, design.features @ omega)
    V = [policy.mean_features(features, states) @ omega for states in chunks(problem, features.dim)]
    return np.min([v.min(axis=0) for v in V], axis=0), np.max([v.max(axis=0) for v in V], axis=0)


def around(design: Design, on_coreset: Array) -> tuple[Array, Array]:
    """Limits over all pairs of what is linear in φ, from its values on the coreset ``(c, 1+m)``.

    A constant is linear in φ too where P is, so the Lebesgue constant multiplies the distance from the middle alone.
    """
    low, high = on_coreset.min(axis=0), on_coreset.max(axis=0)
    middle, reach = (low + high) / 2, design.lebesgue * (high - low) / 2
    return middle - reach, middle + reach


def enumerable(problem: CMDP) -> bool:
    """Whether all pairs can be looked through."""
    S, features = problem.num_states, problem.required_features()
    return S is not None and not features.direct and S * features.num_actions <= _MOST_PAIRS


def chunks(problem: CMDP, columns: int) -> list[States]:
    """All states of a finite space, a few at a time: ``columns`` numbers are needed for each pair."""
    assert problem.num_states is not None
    size = max(1, _CHUNK_ENTRIES // (problem.num_actions * columns))
    return [np.arange(i, min(i + size, problem.num_states)) for i in range(0, problem.num_states, size)]
