"""G-Sampling-and-Stop with its stopping rule (app:gss): sample until the data prove that the policy is ε-optimal.

    τ = inf { t : Z(t) ≥ β(t) }          checked at the end of rounds j = 1, 2, … whose lengths double

The paper gives neither Z nor β; this is our derivation. Taupin et al. follow one trajectory of pairs, test at every t and
pay for the dependence of V̂ on the samples with a covering (the term d·log t in their β). Here the samples of a round
test a V made from earlier rounds only, so plain concentration for a fixed V suffices and no covering is needed.

*Certificate.* For every V: S → [0, H] with q = □ + γPV, TV = max_a q and π any policy with T_πV(s) = q(s, π(s)),

    V* ≤ TV + γH·max_s (TV − V),     V^π ≥ T_πV + γH·min_s (T_πV − V)

(V* − TV ≤ γ max(V* − V) and V* − V ≤ H max(TV − V); V^π − T_πV = γP_π(V^π − V) and V^π − V = (I − γP_π)⁻¹(T_πV − V)).
With q̂ − D ≤ q ≤ q̂ + D at every pair, up = max_a(q̂ + D), π = argmax_a q̂ and low(s) = (q̂ − D)(s, π(s)), both cut to [0, H]:

    V*(ρ) − V^π(ρ) ≤ gap := ρ(up − low) + γH [max_s (up − V) − min_s (low − V)]

*Deviations.* In round j draw n ~ Multinomial(N_j, ρ*), n_x fresh samples of each pair, ȳ(x) = □(x) + γ(P̂V)(x), and
ŵ = Λ⁻¹Σ_x n_xφ_x ȳ(x), Λ = Σ_x n_xφ_xφ_xᵀ. As q = ⟨φ, w⟩ in a linear MDP, q̂ − q = Σ_x b_x(ȳ − q)(x), b_x = n_xφᵀΛ⁻¹φ_x:
a sum of independent terms given n and V. With R the span of V and σ_x ≤ R/2 the deviation of V(s') at x, each of

    Hoeffding   D = γR √(L/2 · Σ_x b_x²/n_x) = γR √(L/2)·‖φ‖_{Λ⁻¹}
    Bernstein   D = γ [√(2L Σ_x b_x²σ_x²/n_x) + R·max_x|b_x/n_x|·L/3],    σ_x ≤ σ̂_x + R√(2L/(n_x − 1))  (Maurer-Pontil)

fails with probability e^{−L} a side; D is the smaller. For p pairs, |C| variances and k rewards,

    β(t) = log((4p + |C|)·k·j(j+1)/δ),     Z(t) = sup { L : gap with D = D(L) is at most ε }

bound the failures of all rounds together by Σ_j δ/(j(j+1)) = δ. As gap grows with L, Z(t) ≥ β(t) is: gap at L = β(t) ≤ ε.
Rewards that are observed rather than known are regressed as well, and add their own D (R = 1) to that of V.

*Which pairs.* On a finite space all of S × A, where features fit in memory. Otherwise the pairs of the coreset, through
|⟨φ, v⟩| ≤ Leb·max_{x∈C} |⟨φ_x, v⟩| with Leb the design's Lebesgue constant: with D_C = Leb·max_x D(x) and
E = Leb·max_x |⟨φ_x, ŵ − θ⟩|, V = max_a ⟨φ, θ⟩, that gives gap ≤ 2D_C + 2γH(E + D_C). That is a proof only if Leb holds for
every pair, i.e. the design is ``complete``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design, regression, spanning_basis, weighted_design
from saddleback.errors import BudgetError, InputError, NumericalError, require
from saddleback.method.solvers.gss import GSS, sampled_part
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import GreedyPolicy, Policy
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer, Samples, Tap, counted
from saddleback.sampling.counted_buffer import cut

_CALL = 1 << 18  # samples asked of the simulator at a time
_UNEXPLAINED = 1e-9  # relative to the largest feature: what the regression may leave of a pair's features
_ENUMERABLE = 1 << 25  # numbers in a (pairs, d or |C|) matrix up to which the certificate goes through all of S × A
_COLUMNS = 1 << 24  # numbers in a (states · actions or samples, rewards) matrix: more rewards go in several blocks


class Round(NamedTuple):
    """After round j: all samples so far t, β(t), and the certified gap of each reward ``(k,)``."""

    num_samples: int
    threshold: float
    gap: Array


@dataclass(frozen=True)
class Stopped:
    """How it ended: the policies, whether the gap of each is certified to be at most ε, and the rounds.

    ``guaranteed`` is False where the design's Lebesgue constant was computed on a pool of pairs only.
    """

    policies: list[Policy]
    reached: bool
    guaranteed: bool
    rounds: list[Round]


@dataclass(frozen=True)
class GSSStopping:
    """Policies that are ε-optimal for every row of ``mixing`` with probability 1 − δ over the samples of one call.

    ``epsilon`` is in the paper's units (values in [0, H]); ``first_round`` is the length of round 1.
    """

    epsilon: float = 0.5
    delta: float = 0.1
    regularization: float = 1e-6
    first_round: int = 128
    max_samples: int = 10_000_000

    def __post_init__(self) -> None:
        require(self.epsilon > 0, "epsilon", "must be positive", self.epsilon, "use a fraction of H")
        require(0 < self.delta < 1, "delta", "must lie in (0, 1)", self.delta, "use 0.1")
        require(self.first_round >= 1, "first_round", "must be at least 1", self.first_round, "use 128")
        require(self.max_samples >= 1, "max_samples", "must be at least 1", self.max_samples, "use 10000000")

    def solve_interactively(self, problem: CMDP, design: Design, sampler: Tap, mixing: Array) -> list[Policy]:
        """One certified policy per row σ of ``mixing``, ``(k, 1+m)``; an error where ``max_samples`` do not suffice."""
        result = self.run(problem, design, sampler, mixing)
        if not result.reached:
            raise BudgetError(
                f"GSS did not stop within {result.rounds[-1].num_samples} samples: the certified gap is "
                f"{float(result.rounds[-1].gap.max()):.3g}, more than epsilon = {self.epsilon:g}; raise the number of "
                f"samples, epsilon or delta = {self.delta:g}."
            )
        return result.policies

    def run(self, problem: CMDP, design: Design, sampler: Tap, mixing: Array) -> Stopped:
        """Sample, test, estimate, until Z(t) ≥ β(t), ``max_samples`` or the end of the sampler's budget."""
        most = min(self.max_samples, sampler.remaining)
        features, sigma = problem.required_features(), np.asarray(mixing, dtype=np.float64)
        probes = Probes.of(problem, design)
        rng, pool, rounds = sampler.generator(), Draws.none(design.size), list[Round]()
        theta = np.zeros((features.dim, len(sigma)))  # V = 0 at first
        while True:
            j = len(rounds) + 1
            length = min(pool.total or self.first_round, most - pool.total)
            counts = np.asarray(rng.multinomial(length, design.weights), dtype=np.int64)  # n ~ Multinomial(N_j, ρ*)
            fresh = Draws.of(problem, design, sampler, counts)
            pool = pool.joined(fresh)
            beta = probes.threshold(len(sigma) + int(problem.observed.sum()), self.delta / (j * (j + 1)))  # β(t)
            blocks, buffer = probes.blocks(problem, len(sigma), pool.total), fresh.buffer(problem, probes.coreset)
            tested = [certify(problem, probes, buffer, theta[:, i], sigma[i], beta) for i in blocks]
            rounds.append(Round(pool.total, beta, np.concatenate([gap for _, gap in tested])))
            reached = bool(rounds[-1].gap.max() <= self.epsilon)  # Z(t) ≥ β(t)
            if reached or pool.total >= most:
                w = np.hstack([parameters for parameters, _ in tested])  # ŵ
                policies: list[Policy] = [GreedyPolicy(features, np.ascontiguousarray(column)) for column in w.T]
                return Stopped(policies, reached, probes.guaranteed, rounds)
            buffer = pool.buffer(problem, probes.coreset)
            theta = np.hstack([self._estimate(problem, buffer, theta[:, i], sigma[i]) for i in blocks])

    def _estimate(self, problem: CMDP, buffer: Buffer, theta: Array, sigma: Array) -> Array:
        """Plug-in value iteration on all samples so far; where it diverges, as it may on few, the last θ serves on."""
        try:
            return GSS(self.regularization).parameters(problem, buffer, sigma)
        except NumericalError:
            return theta


@dataclass(frozen=True)
class Probes:
    """The pairs on which deviations are bounded, ``phi`` ``(p, d)``: all of S × A, or the coreset and its Leb."""

    coreset: Design
    span: Array
    phi: Array
    enumerated: bool
    guaranteed: bool

    @classmethod
    def of(cls, problem: CMDP, design: Design) -> Probes:
        """All pairs where that fits in memory."""
        features, S, A = problem.required_features(), problem.num_states, problem.num_actions
        phi_C = features.at(design.states, design.actions)
        if design.features is None:  # C = S × A with one-hot features: name them, so that pairs can be left out
            design = weighted_design(design.states, design.actions, phi_C, design.weights)
        span = spanning_basis(phi_C)
        if S is None or S * A * max(features.dim, design.size) > _ENUMERABLE:
            return cls(design, span, phi_C, False, design.complete)
        phi = features.at(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))
        assert design.operator is not None
        missed = np.abs(phi - (phi @ design.operator) @ phi_C).max()
        spanned, rule = bool(missed <= _UNEXPLAINED * np.abs(phi).max()), "must span the features of all pairs of S x A"
        require(spanned, "design", rule, f"pairs that are off by {missed:.1e}", "choose it from all pairs")
        return cls(design, span, phi, True, True)

    def threshold(self, num_rewards: int, delta: float) -> float:
        """β = log((4p + |C|)·k/δ)."""
        return math.log((4 * len(self.phi) + self.coreset.size) * num_rewards / delta)

    def blocks(self, problem: CMDP, num_rewards: int, num_samples: int) -> list[slice]:
        """The rewards in groups whose value functions fit in memory together."""
        states = num_samples if problem.num_states is None else problem.num_states
        rows = states * (1 if problem.required_features().direct else problem.num_actions)
        width = max(1, _COLUMNS // max(rows, len(self.phi)))
        return [slice(i, i + width) for i in range(0, num_rewards, width)]


@dataclass(frozen=True)
class Draws:
    """Samples by pair of the design: next states in parts, and the sums of the utilities the simulator returned."""

    next_states: list[list[States]]
    sums: Array
    total: int

    @classmethod
    def none(cls, size: int) -> Draws:
        """No samples of ``size`` pairs."""
        return cls([[] for _ in range(size)], np.zeros((size, 1)), 0)

    @classmethod
    def of(cls, problem: CMDP, design: Design, sampler: Tap, counts: NDArray[np.int64]) -> Draws:
        """``counts`` samples of every pair, in a few calls of the simulator."""
        drawn = cls([[] for _ in counts], np.zeros((len(counts), 1 + problem.num_constraints)), int(counts.sum()))
        order = np.repeat(np.arange(len(counts)), counts)
        for first in range(0, len(order), _CALL):
            x = order[first : first + _CALL]
            states, actions = design.states[x], design.actions[x]
            next_states, signals = sampler.draw(states, actions)
            pairs, starts = np.unique(x, return_index=True)
            for pair, part in zip(pairs, np.split(next_states, starts[1:]), strict=True):
                drawn.next_states[pair].append(part)
            if signals is not None:
                for column in np.flatnonzero(problem.observed):
                    problem.signals[column].check(signals[:, column], states, actions)
                drawn.sums[pairs] += np.add.reduceat(problem.utilities_of(signals), starts)
        return drawn

    def joined(self, other: Draws) -> Draws:
        """These samples and those."""
        states = [a + b for a, b in zip(self.next_states, other.next_states, strict=True)]
        return Draws(states, self.sums + other.sums, self.total + other.total)

    def buffer(self, problem: CMDP, design: Design) -> Buffer:
        """One batch of the pairs that came up."""
        counts = np.array([sum(map(len, parts)) for parts in self.next_states], dtype=np.int64)
        keep = np.flatnonzero(counts)
        means = None
        if np.any(problem.observed):
            means = self.sums[keep] / counts[keep, None] * problem.scale + problem.base
        samples = Samples([np.concatenate(self.next_states[x]) for x in keep], means)
        return cut(samples, problem, sampled_part(design, counts), 1)


def certify(
    problem: CMDP, probes: Probes, buffer: Buffer, theta: Array, sigma: Array, level: float
) -> tuple[Array, Array]:
    """ŵ ``(d, k)`` from fresh samples and the certified gap ``(k,)`` of its greedy policies, V = max_a⟨φ, θ⟩ in [0, H]."""
    features, gamma, H = problem.required_features(), problem.gamma, problem.horizon
    n, phi_C = buffer.counts, features.at(buffer.design.states, buffer.design.actions)
    try:
        B, _ = regression(phi_C, n.astype(np.float64), probes.span)  # z ↦ Λ⁻¹ Σ n_x φ_x z(x)
    except InputError:  # too few samples to span the features
        return theta, np.full(len(sigma), np.inf)
    S = problem.num_states
    V = np.clip(features.maximum(buffer.support if S is None else np.arange(S), theta), 0.0, H)
    least, most = (np.zeros(len(sigma)), np.full(len(sigma), H)) if S is None else (V.min(axis=0), V.max(axis=0))
    P, middle = counted(buffer).empirical_model(), (least + most) / 2
    at_support = (V if S is None else V[buffer.support]) - middle  # centred: the variance must not lose its digits
    mean = P @ at_support
    std = np.sqrt(np.maximum(P @ at_support**2 - mean**2, 0.0) * (n / np.maximum(n - 1, 1))[:, None])  # σ̂_x
    w = B @ (buffer.utilities(problem) @ sigma.T + gamma * (mean + middle))  # ŵ
    b, seen = probes.phi @ B, problem.observed
    D = gamma * deviations(b, n, std, most - least, level)
    if np.any(seen):  # rewards lie in [0, 1]; no bound on their variance is used
        D += deviations(b, n, np.full((len(n), 1), np.inf), np.ones(1), level) * sigma[:, seen].sum(axis=1)
    if not probes.enumerated:
        leb = probes.coreset.lebesgue
        D_C, E = leb * D.max(axis=0), leb * np.abs(probes.phi @ (w - theta)).max(axis=0)
        return w, 2 * D_C + 2 * gamma * H * (E + D_C)
    shape = (-1, problem.num_actions, len(sigma))
    q, D = (probes.phi @ w).reshape(shape), D.reshape(shape)
    up = np.clip(q + D, 0.0, H).max(axis=1)
    low = np.take_along_axis(np.clip(q - D, 0.0, H), first_largest(q, axis=1)[:, None], axis=1)[:, 0]  # at π = argmax q̂
    at_start = problem.start.weights @ (up - low)[problem.start.states]  # ρ(up − low)
    return w, at_start + gamma * H * ((up - V).max(axis=0) - (low - V).min(axis=0))


def deviations(b: Array, counts: NDArray[np.int64], std: Array, span: Array, level: float) -> Array:
    """D/γ for each row of ``b`` ``(p, |C|)`` and value function: ``std`` σ̂ ``(|C|, k)``, ``span`` R ``(k,)``, ``level`` L."""
    L, n = level, counts.astype(np.float64)[:, None]
    slack = np.sqrt(2 * L / np.maximum(n - 1, 1e-300))  # one sample says nothing of its variance
    sigma = np.minimum(std + span * slack, span / 2)  # σ_x
    b2_n = b**2 / n.T
    hoeffding = span * np.sqrt(L / 2 * b2_n.sum(axis=1, keepdims=True))
    bernstein = np.sqrt(2 * L * (b2_n @ sigma**2)) + span * np.abs(b / n.T).max(axis=1, keepdims=True) * L / 3
    return np.asarray(np.minimum(hoeffding, bernstein))
