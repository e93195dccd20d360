"""Alg. 3 (§4.3, label alg_CVIL): least-squares policy evaluation, LS-PE.

    V̂⁰ = 0
    for t = 0 … T−1:
        Q̂^{t+1}(s,a) = ◇(s,a) + γ (P̂_t V̂^t)(s,a)                              for (s,a) ∈ C
        ω^{t+1} = W(Q̂^{t+1})
        V̂^{t+1}(s) = (π⟨φ, ω^{t+1}⟩)(s)
    return V̄(ρ) = (1/T) Σ_{i=1}^T V̂^i(ρ)

Exactly linear in ◇, so the reward and all constraints are evaluated together. Starting from zero costs a bias of about
−γH·V/T that dwarfs the noise (without noise V̄ − V = −T⁻¹Σ_{i=1}^T(γP_π)^i V). With ``burn_in`` the first batches are spent
on the same iteration without averaging, and its last V̂ replaces V̂⁰ = 0. The result is clipped to [0, H] at the end and
never inside the loop, where it would break linearity.

Alg. 7 (appendix, label alg_CVI): Tabular-PE, the case C = S × A where no regression is needed.

    V̂⁰ = 0
    for t = 0 … T−1:
        Q̂^t(s,a) = ◇(s,a) + γ (P̂_t V̂^t)(s,a)                                  for all (s,a)
        V̂^{t+1} = π Q̂^t
    return V̄(ρ) = (1/T) Σ_{i=1}^T V̂^i(ρ)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saddleback.errors import require
from saddleback.method.evaluators.lstd import LSTD, EmpiricalChain, interval_from_influence
from saddleback.method.oracles import Interval, require_bounded
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, PolicyValue, Value


class Iterates(NamedTuple):
    """π⟨φ, ·⟩(ρ) as a vector ``(d,)``; ω⁰ (of V̂⁰), the mean of ω¹..ω^T, and ω^T, each ``(d, 1+m)``; T."""

    start: Array
    first: Array
    mean: Array
    last: Array
    num_averaged: int


@dataclass(frozen=True)
class LSPE:
    """``burn_in`` is the length of the unaveraged start in effective horizons (0: the paper's V̂⁰ = 0)."""

    burn_in: float = 0.0

    def __post_init__(self) -> None:
        require(self.burn_in >= 0, "burn_in", "must not be negative", self.burn_in, "use 0 for the literal algorithm")

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̄_r(ρ), V̄_{c_1}(ρ), …, clipped to [0, H]."""
        run = self.iterate(problem, buffer, policy)
        return np.clip(run.start @ run.mean, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π, the bias of V̄ taken out (see :mod:`saddleback.method.evaluators.lstd`)."""
        run = self.iterate(problem, buffer, policy)
        a, _ = LSTD().influence_and_values(problem, buffer, policy)
        V = buffer.at_support(PolicyValue(policy, run.mean))
        share = buffer.num_batches / run.num_averaged  # the bias is over the T that were averaged
        drift = buffer.at_support(PolicyValue(policy, (run.first - run.last) * share))
        return interval_from_influence(problem, buffer, a, run.start @ run.mean, V, drift, confidence)

    def iterate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Iterates:
        """Alg. 3 without its last line."""
        features, W = problem.required_features(), buffer.design.fit
        diamond = buffer.utilities(problem)  # ◇ on C, (c, 1+m)
        V: Value = np.zeros((len(buffer.support), diamond.shape[1]))  # V̂⁰
        omega = first = omega_sum = np.zeros((features.dim, diamond.shape[1]))
        unaveraged = buffer.burn_in(self.burn_in * problem.horizon)
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            for t in range(buffer.num_batches):
                if t == unaveraged:
                    first = omega
                omega = W(diamond + problem.gamma * buffer.expect(t, V))  # ω^{t+1}
                if t >= unaveraged:
                    omega_sum = omega_sum + omega
                V = PolicyValue(policy, omega)  # V̂^{t+1}
        require_bounded(omega_sum)
        T = buffer.num_batches - unaveraged
        start = problem.start.weights @ policy.mean_features(features, problem.start.states)
        return Iterates(start, first, omega_sum / T, omega, T)


@dataclass(frozen=True)
class TabularPE:
    """No parameters: T and M are the buffer's."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̄_r(ρ), V̄_{c_1}(ρ), …, clipped to [0, H]."""
        V_mean, _ = self._iterate(problem, buffer, policy)
        at_start = problem.start.weights @ V_mean[problem.start.states]
        return np.clip(at_start, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π, the bias of V̄ taken out (see :mod:`saddleback.method.evaluators.lstd`)."""
        V_mean, V_last = self._iterate(problem, buffer, policy)
        a = EmpiricalChain(problem, buffer, policy).visits()
        at_start = problem.start.weights @ V_mean[problem.start.states]
        V, drift = V_mean[buffer.support], -V_last[buffer.support]
        return interval_from_influence(problem, buffer, a, at_start, V, drift, confidence)

    def _iterate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> tuple[Array, Array]:
        """(1/T) Σ V̂^i and V̂^T, both ``(S, 1+m)``."""
        S, A = buffer.tabular_shape(problem)
        pi = policy.probabilities(np.arange(S))[:, :, None]
        diamond = buffer.utilities(problem).reshape(S, A, -1)  # ◇
        V = np.zeros((S, diamond.shape[2]))  # V̂⁰
        V_sum = np.zeros_like(V)
        for t in range(buffer.num_batches):
            Q = diamond + problem.gamma * buffer.expect(t, V[buffer.support]).reshape(diamond.shape)  # Q̂^t
            V = (pi * Q).sum(axis=1)  # V̂^{t+1}
            V_sum += V
        return V_sum / buffer.num_batches, V
