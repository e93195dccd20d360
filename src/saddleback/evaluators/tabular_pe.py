"""Alg. 7 (appendix, label alg_CVI): Tabular-PE, the case C = S × A where no regression is needed.

V̂⁰ = 0
for t = 0 … T−1:
    Q̂^t(s,a) = ◇(s,a) + γ (P̂_t V̂^t)(s,a)                                  for all (s,a)
    V̂^{t+1} = π Q̂^t
return V̄(ρ) = (1/T) Σ_{i=1}^T V̂^i(ρ)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from saddleback.buffer import Buffer
from saddleback.evaluators.influence import interval_from_influence
from saddleback.oracles import Interval
from saddleback.policy import Policy
from saddleback.problem import CMDP
from saddleback.spaces import Array


@dataclass(frozen=True)
class TabularPE:
    """No parameters: T and M are the buffer's."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̄_r(ρ), V̄_{c_1}(ρ), …, clipped to [0, H]."""
        V_mean, _ = self._iterate(problem, buffer, policy)
        at_start = problem.start.weights @ V_mean[problem.start.states]
        return np.clip(at_start, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π, the bias of V̄ taken out (see :mod:`saddleback.evaluators.influence`)."""
        V_mean, V_last = self._iterate(problem, buffer, policy)
        S, A = buffer.tabular_shape(problem)
        pi = policy.probabilities(np.arange(S))
        P = buffer.empirical_model()
        average = scipy.sparse.csr_array((pi.ravel(), (np.repeat(np.arange(S), A), np.arange(S * A))), shape=(S, S * A))
        to_states = scipy.sparse.csr_array(
            (np.ones(len(buffer.support)), (np.arange(len(buffer.support)), buffer.support)),
            shape=(len(buffer.support), S),
        )
        P_pi = average @ (P @ to_states)
        rho = np.zeros(S)
        rho[problem.start.states] = problem.start.weights
        system = scipy.sparse.csc_array(scipy.sparse.eye_array(S) - problem.gamma * P_pi.T)
        visits = scipy.sparse.linalg.spsolve(system, rho)
        a = problem.gamma * (visits[:, None] * pi).ravel()  # discounted visits of every pair
        at_start = problem.start.weights @ V_mean[problem.start.states]
        V = V_mean[buffer.support], V_last[buffer.support]
        return interval_from_influence(problem, buffer, P, a, at_start, *V, confidence)

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
