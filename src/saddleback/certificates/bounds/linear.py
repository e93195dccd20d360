"""An upper bound on max_π V_□^π(ρ) from fresh samples of the coreset alone, if P is linear in φ.

For any V fixed before the samples, max_π V_□^π(ρ) ≤ V(ρ) + H·max_{s,a}[□ + γPV − V]. Under linearity γPV = ⟨φ, Bq⟩ with
q = γPV on the coreset and B = G⁻¹Φ_Cᵀdiag(ρ̃), so with fresh limits q̂ ± w at log(2|C|/δ)

    □ + γPV − V ≤ □ + ⟨φ, Bq̂⟩ + Σ_x |φᵀB_x| w_x − V(s)          at every pair,

where φ must lie in the span of the coreset's features (checked pair by pair in finite spaces). Rewards that are only
observed are fitted with PV. V(s) = max_a⟨φ(s,a), θ̃⟩, cut to the range it has on known states, comes from optimistic value iteration on earlier buffers,
θ̃ = B(□ + γP̂V + w) with the width w that the fresh limits are expected to have. W extrapolates with weights of both signs,
so the monotone argument of the tabular bound is not to be had here.

Finite spaces are looked through pair by pair (with too many actions for that, state by state, with w at its largest times
the Lebesgue constant Λ, and with fitted rewards). For infinite ones sup ⟨φ, B(q̂ − q̃)⟩ ≤ Λ·max|q̂ − q̃| is used, which needs
Λ over all pairs, not only over the candidates that the design was made from: the certificate says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saddleback.certificates.assumptions import bound_assumes
from saddleback.certificates.bounds.bound import Bound, BoundPlan, ExpectedRewards, at_start
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import Bets, expected_width, stakes
from saddleback.designs.design import Design
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import rounded
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer, counted
from saddleback.sampling.value_functions import MaxDifference

KIND = "coreset, if P is linear in the features"
_NEAR, _NEAR_DRAFT = 1e-7, 1e-3  # relative change at which value iteration is near enough
_SWEEPS, _FAR_SWEEPS, _FAR = 5_000, 500, 0.999  # fewer for discounts so near 1 that they would not settle either way
_ROUNDS = 4
_CHUNK_ENTRIES = 1 << 22
_SPAN_TOLERANCE = 1e-6  # of the largest feature
_BY_SPREAD = 0.5  # share of the samples that follow the variance of V; the rest follows the design


@dataclass(frozen=True)
class LinearPlan(BoundPlan):
    """θ̃ ``(d,)``, the range V is cut to, the guessed spread of V at each pair ``(c,)``, and what rewards are expected."""

    theta: Array
    low: float
    high: float
    spread: Array
    rewards: ExpectedRewards

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound from a fresh buffer over the coreset."""
        design, gamma, H = fresh.design, problem.gamma, problem.horizon
        assert design.operator is not None
        share = delta / 2 if np.any(problem.observed) else delta  # the other half is for the rewards
        goal, n = math.log(2 * design.size / share), fresh.counts
        bets = Bets(counted(fresh).empirical_model(), n, stakes(self.spread, n, goal, self.high - self.low), goal)
        V = np.clip(_maximum(fresh, self.theta), self.low, self.high)
        upper, lower = bets.upper(V), bets.lower(V)
        w = gamma * (upper - lower) / 2 + np.maximum(*self.rewards.limits(problem, fresh, self.sigma, delta / 2)[:2])
        worst = _worst_residual(problem, fresh, gamma * (upper + lower) / 2, w, self)
        value = min(H, at_start(problem, self.at(problem, problem.start.states)) + H * worst)
        assumes = bound_assumes(problem, design)
        return Bound(self.sigma, value, self.estimate, KIND, delta, fresh.num_samples, assumes)

    def at(self, problem: CMDP, states: States) -> Array:
        """V(s)."""
        return np.clip(problem.required_features().maximum(states, self.theta), self.low, self.high)


class Coreset:
    """The pairs of the design are sampled afresh, and linearity carries what they show to all; see the first lines."""

    def plan(self, guide: Guide, sigma: Array, samples: int, delta: float, *, draft: bool = False) -> LinearPlan | None:
        """θ̃, allocation and stakes from earlier buffers over the same coreset; None where the design is a whole table."""
        if guide.design.operator is None:
            return None
        problem, design, earlier = guide.problem, guide.design, guide.earlier
        features, gamma, H = problem.required_features(), problem.gamma, problem.horizon
        goal = math.log(2 * design.size / delta)
        box, rewards = _mean_rewards(problem, earlier) @ sigma, ExpectedRewards.of(problem, earlier[-1])
        near = _NEAR_DRAFT if draft else _NEAR
        theta = _value_iteration(problem, design, earlier, box, near)
        estimate = at_start(problem, np.clip(features.maximum(problem.start.states, theta), 0.0, H))
        for _ in range(1 if draft else _ROUNDS):
            known = _at_known_states(problem, earlier, theta)
            low, high = max(0.0, float(known.min())), min(H, float(known.max()))
            if problem.num_states is None:
                high = H  # states not seen yet may be worth more: only a cut at H raises no residual there
            spread = _spread(earlier, theta, low, high)
            share = (1 - _BY_SPREAD) * design.weights + _BY_SPREAD * spread**2 / np.sum(spread**2)
            counts = np.maximum(2, (samples * rounded(share)).astype(np.int64))
            w = gamma * expected_width(spread, counts, goal, high - low)
            w += rewards.widths(problem, sigma, counts, delta / 2)
            theta = _value_iteration(problem, design, earlier, box + w, near, theta)
        excess = H * design.lebesgue * float(w.max())
        return LinearPlan(sigma, counts, estimate, excess, theta, low, high, spread, rewards)


def _worst_residual(problem: CMDP, fresh: Buffer, q: Array, w: Array, plan: LinearPlan) -> float:
    """max over pairs of □ + ⟨φ, Bq⟩ + |φᵀB| w − V(s); infinite where the coreset's features do not span a pair's."""
    features, design = problem.required_features(), fresh.design
    B, known = design.operator, ~problem.observed
    assert B is not None and design.features is not None
    rewards = fresh.utilities(problem)
    if problem.num_states is None or features.direct:
        theta = np.asarray(B @ (rewards @ plan.sigma + q))
        if problem.num_states is None:
            # V(s) ≥ ⟨φ, θ̃⟩ but where it is cut at H, and there □ + γPV ≤ 1 + γH = H.
            return design.lebesgue * (float(np.abs(design.features @ (theta - plan.theta)).max()) + float(w.max()))
        states = np.arange(problem.num_states)
        upper = features.maximum(states, theta) + design.lebesgue * float(w.max())
        return float((upper - plan.at(problem, states)).max())
    theta, worst, A = B @ (rewards[:, ~known] @ plan.sigma[~known] + q), -math.inf, problem.num_actions
    size = max(1, _CHUNK_ENTRIES // (A * max(B.shape)))
    for first in range(0, problem.num_states, size):
        states = np.arange(first, min(first + size, problem.num_states))
        phi = features.all(states)
        weights = phi @ B
        if float(np.abs(weights @ design.features - phi).max()) > _SPAN_TOLERANCE * float(np.abs(phi).max()):
            return math.inf
        box = problem.utilities(np.repeat(states, A), np.tile(np.arange(A), len(states)))[:, known] @ plan.sigma[known]
        upper = box.reshape(-1, A) + phi @ theta + np.abs(weights) @ w
        worst = max(worst, float((upper.max(axis=1) - plan.at(problem, states)).max()))
    return worst


def _value_iteration(
    problem: CMDP, design: Design, earlier: Sequence[Buffer], reward: Array, near: float, theta: Array | None = None
) -> Array:
    """θ̃ of max_a⟨φ, B(reward + γP̂V)⟩; no harm is done where it does not settle, since any θ̃ gives a bound."""
    gamma, H = problem.gamma, problem.horizon
    theta = np.asarray(design.fit(reward * H)) if theta is None else theta
    for _ in range(_SWEEPS if gamma <= _FAR else _FAR_SWEEPS):
        V = [np.clip(_maximum(b, theta), 0.0, H) for b in earlier]
        new = np.asarray(design.fit(reward + gamma * _mean(earlier, V)))
        change, theta = float(np.abs(new - theta).max()), new
        if change <= near * (1.0 + float(np.abs(theta).max())):
            break
    return theta


def _maximum(buffer: Buffer, theta: Array) -> Array:
    """max_a⟨φ, θ⟩ at the buffer's next states, whose features it keeps."""
    return buffer.at_support(MaxDifference(theta, np.zeros_like(theta)))


def _mean(earlier: Sequence[Buffer], values: list[Array]) -> Array:
    """P̂V over all earlier buffers, every sample counting alike."""
    counts = np.array([b.counts for b in earlier], dtype=np.float64)
    means = np.array([b.average(V) for b, V in zip(earlier, values, strict=True)])
    return np.asarray((counts * means).sum(axis=0) / counts.sum(axis=0))


def _mean_rewards(problem: CMDP, earlier: Sequence[Buffer]) -> Array:
    counts = np.array([b.counts for b in earlier], dtype=np.float64)[:, :, None]
    return np.asarray((counts * np.array([b.utilities(problem) for b in earlier])).sum(axis=0) / counts.sum(axis=0))


def _spread(earlier: Sequence[Buffer], theta: Array, low: float, high: float) -> Array:
    """Standard deviation of V at the next states of each pair; a pair whose samples agree gets half a dissenting one."""
    V = [np.clip(_maximum(b, theta), low, high) for b in earlier]
    counts = np.sum([b.counts for b in earlier], axis=0)
    variance = np.maximum(_mean(earlier, [v**2 for v in V]) - _mean(earlier, V) ** 2, 0.0)
    return np.asarray(np.sqrt(variance + 0.5 * (high - low) ** 2 / counts + 1e-30))


def _at_known_states(problem: CMDP, earlier: Sequence[Buffer], theta: Array) -> Array:
    """max_a⟨φ, θ⟩ at all states, or, where there are too many, at those that were seen."""
    features = problem.required_features()
    if problem.num_states is not None and problem.num_states <= 1_000_000:
        return features.maximum(np.arange(problem.num_states), theta)
    at_start = features.maximum(np.asarray(problem.start.states), theta)
    return np.concatenate([at_start, *(_maximum(b, theta) for b in earlier)])
