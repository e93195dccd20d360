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

from saddleback.method.evaluators.influence import interval_from_influence
from saddleback.method.evaluators.markov_chain import EmpiricalChain
from saddleback.method.oracles import Interval
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


@dataclass(frozen=True)
class TabularPE:
    """No parameters: T and M are the buffer's."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̄_r(ρ), V̄_{c_1}(ρ), …, clipped to [0, H]."""
        V_mean, _ = self._iterate(problem, buffer, policy)
        at_start = problem.start.weights @ V_mean[problem.start.states]
        return np.clip(at_start, 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Central-limit interval for V^π, the bias of V̄ taken out (see :mod:`saddleback.method.evaluators.influence`)."""
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
