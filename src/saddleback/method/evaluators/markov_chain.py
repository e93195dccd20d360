"""The Markov chain of a policy on the estimated model of a table: P̂_π, its values and its discounted visits.

V = (I − γP̂_π)⁻¹ (π◇),      μ = ρᵀ (I − γP̂_π)⁻¹,      visits of (s,a): μ(s) π(a|s)
"""

from __future__ import annotations

import numpy as np

from saddleback.method.estimated_table import over_all_states
from saddleback.problem.cmdp import CMDP
from saddleback.problem.finite_model import Resolvent, follow
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, counted

_FACTORED_STATES = 1500


class EmpiricalChain:
    """P̂_π of a policy on a buffer that holds every pair of a finite problem."""

    def __init__(self, problem: CMDP, buffer: Buffer, policy: Policy):
        S, _ = buffer.tabular_shape(problem)
        self.pi = policy.probabilities(np.arange(S))
        P = over_all_states(follow(self.pi, counted(buffer).empirical_model()), buffer, S)
        self._resolvent = Resolvent(P, problem.gamma, factored=S <= _FACTORED_STATES)
        self._start = problem.start

    def values(self, signals: Array) -> Array:
        """V ``(S, k)`` of signals ``(S·A, k)``."""
        return self._resolvent.values(np.einsum("sa,sak->sk", self.pi, signals.reshape(*self.pi.shape, -1)))

    def visits(self) -> Array:
        """Discounted visits of every pair from ρ, ``(S·A,)``."""
        rho = np.zeros(len(self.pi))
        np.add.at(rho, self._start.states, self._start.weights)
        return (self._resolvent.visits(rho)[:, None] * self.pi).ravel()
