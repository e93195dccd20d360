"""The table that a buffer of every pair estimates: P̂(s'|s,a) = the frequencies of its samples, □ = σᵀ(r, c_1..c_m).

P̂ comes from the buffer over its support, the states that were reached; here it is written over all states. The
Markov chain P̂_π of a policy on it has the values and the discounted visits

    V = (I − γP̂_π)⁻¹ (π◇),      μ = ρᵀ (I − γP̂_π)⁻¹,      visits of (s,a): μ(s) π(a|s)
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from saddleback.problem.cmdp import CMDP
from saddleback.problem.finite_model import Resolvent, follow
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

_FACTORED_STATES = 1500


def over_all_states(P: scipy.sparse.csr_array, buffer: Buffer, num_states: int) -> scipy.sparse.csr_array:
    """P ``(n, len(support))`` as ``(n, S)``, its columns in order."""
    wide = scipy.sparse.csr_array((P.data, buffer.support[P.indices], P.indptr), shape=(P.shape[0], num_states))
    wide.sort_indices()
    return wide


def estimated_table(problem: CMDP, buffer: Buffer, mixing: Array) -> tuple[scipy.sparse.csr_array, Array]:
    """P̂ ``(S·A, S)``, and □ ``(k, S, A)`` for each row σ of ``mixing`` ``(k, 1+m)``."""
    S, A = buffer.tabular_shape(problem)
    box = buffer.utilities(problem) @ np.asarray(mixing, dtype=np.float64).T
    return over_all_states(buffer.empirical_model(), buffer, S), np.ascontiguousarray(box.T).reshape(-1, S, A)


class EmpiricalChain:
    """P̂_π of a policy on a buffer that holds every pair of a finite problem."""

    def __init__(self, problem: CMDP, buffer: Buffer, policy: Policy):
        S, _ = buffer.tabular_shape(problem)
        self.pi = policy.probabilities(np.arange(S))
        P = over_all_states(follow(self.pi, buffer.empirical_model()), buffer, S)
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
