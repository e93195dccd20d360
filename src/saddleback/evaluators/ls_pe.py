"""Alg. 3 (§4.3, label alg_CVIL): least-squares policy evaluation, LS-PE.

    V̂⁰ = 0
    for t = 0 … T−1:
        Q̂^{t+1}(s,a) = ◇(s,a) + γ (P̂_t V̂^t)(s,a)                              for (s,a) ∈ C
        ω^{t+1} = W(Q̂^{t+1})
        V̂^{t+1}(s) = (π⟨φ, ω^{t+1}⟩)(s)
    return V̄(ρ) = (1/T) Σ_{i=1}^T V̂^i(ρ)

Exactly linear in ◇, so the reward and all constraints are evaluated together. Starting from zero costs a bias of about
−γH·V/T that dwarfs the noise (without noise V̄ − V = −T⁻¹Σ_{i=1}^T(γP_π)^i V). The result is clipped to [0, H] at the end
and never inside the loop, where it would break linearity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from saddleback.buffer import Buffer, PolicyValue, Value
from saddleback.evaluators.influence import interval_from_influence
from saddleback.oracles import Interval
from saddleback.policy import Policy
from saddleback.problem import CMDP
from saddleback.spaces import Array


@dataclass(frozen=True)
class LSPE:
    """No parameters: T and M are the buffer's."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̄_r(ρ), V̄_{c_1}(ρ), …, clipped to [0, H]."""
        start, omega_mean, _ = self._iterate(problem, buffer, policy)
        return np.clip(start @ omega_mean, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π, the bias of V̄ taken out (see :mod:`saddleback.evaluators.influence`)."""
        features = problem.required_features()
        start, omega_mean, omega_last = self._iterate(problem, buffer, policy)
        P, B = buffer.empirical_model(), buffer.design.operator
        at_support = policy.mean_features(features, buffer.support)
        E = P @ at_support  # mean next features, (c, d)
        if B is None:
            B = np.eye(features.dim)
        u = np.linalg.solve((np.eye(features.dim) - problem.gamma * (B @ E)).T, start)
        a = problem.gamma * (B.T @ u)  # φ_ρᵀ (I − γBE)⁻¹ γB
        V_mean, V_last = at_support @ omega_mean, at_support @ omega_last
        return interval_from_influence(problem, buffer, P, a, start @ omega_mean, V_mean, V_last, confidence)

    def _iterate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> tuple[Array, Array, Array]:
        """π⟨φ, ·⟩(ρ) as a vector, (1/T) Σ ω^i, and ω^T."""
        features, W = problem.required_features(), buffer.design.fit
        diamond = buffer.utilities(problem)  # ◇ on C, (c, 1+m)
        V: Value = np.zeros((len(buffer.support), diamond.shape[1]))  # V̂⁰
        omega_sum = np.zeros((features.dim, diamond.shape[1]))
        omega = omega_sum
        for t in range(buffer.num_batches):
            omega = W(diamond + problem.gamma * buffer.expect(t, V))  # ω^{t+1}
            omega_sum = omega_sum + omega
            V = PolicyValue(policy, omega)  # V̂^{t+1}
        start = problem.start.weights @ policy.mean_features(features, problem.start.states)
        return start, omega_sum / buffer.num_batches, omega
