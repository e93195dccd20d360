"""The Markov chain of a policy on the estimated model of a table: P̂_π, its values and its discounted visits.

    V = (I − γP̂_π)⁻¹ (π◇),      μ = ρᵀ (I − γP̂_π)⁻¹,      visits of (s,a): μ(s) π(a|s)

Small or banded chains are factored. A factor of a large random chain fills up, so those are solved by sweeps with a
constant shift, whose error falls with the chain's mixing and not with γ alone, to a residual that bounds the error by
1e-10·H.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

_FACTORED_STATES = 1500
_RESIDUAL = 1e-10
_MOST_SWEEPS = 200_000


class EmpiricalChain:
    """P̂_π of a policy on a buffer that holds every pair of a finite problem."""

    def __init__(self, problem: CMDP, buffer: Buffer, policy: Policy):
        S, A = buffer.tabular_shape(problem)
        self._problem, self._shape = problem, (S, A)
        self.pi = policy.probabilities(np.arange(S))
        model = buffer.empirical_model()
        rows, actions = np.nonzero(self.pi)
        choose = scipy.sparse.csr_array((self.pi[rows, actions], (rows, rows * A + actions)), shape=(S, S * A))
        chosen = (choose @ model).tocoo()
        self.P = scipy.sparse.csr_array((chosen.data, (chosen.row, buffer.support[chosen.col])), shape=(S, S))
        self._factor = None
        if S <= _FACTORED_STATES:
            system = scipy.sparse.eye_array(S) - problem.gamma * self.P
            self._factor = scipy.sparse.linalg.splu(scipy.sparse.csc_array(system))

    def values(self, signals: Array) -> Array:
        """V ``(S, k)`` of signals ``(S·A, k)``."""
        S, A = self._shape
        reward = np.einsum("sa,sak->sk", self.pi, signals.reshape(S, A, -1))
        if self._factor is not None:
            return self._factor.solve(reward)
        gamma, H = self._problem.gamma, self._problem.horizon
        V = reward * H
        enough = max(_RESIDUAL, 100 * np.finfo(float).eps * H)
        for _ in range(_MOST_SWEEPS):
            change = reward + gamma * (self.P @ V) - V
            # The residual's mean would decay like γ^n; a constant c in it is worth c·H at once.
            V += change + gamma * H * change.mean(axis=0)
            if np.abs(change - change.mean(axis=0)).max() <= 0.1 * enough:
                change = reward + gamma * (self.P @ V) - V
                if np.abs(change).max() <= enough:
                    return V + H * change.mean(axis=0)
        raise NumericalError(f"policy evaluation on {S} states did not settle in {_MOST_SWEEPS} sweeps; use ls-pe.")

    def visits(self) -> Array:
        """Discounted visits of every pair from ρ, ``(S·A,)``."""
        S, _ = self._shape
        gamma, start = self._problem.gamma, self._problem.start
        rho = np.zeros(S)
        np.add.at(rho, start.states, start.weights)
        if self._factor is not None:
            mu = self._factor.solve(rho, trans="T")  # type: ignore[call-overload]
        else:
            back = self.P.T.tocsr()
            mu, flow = rho.copy(), rho
            while flow.sum() > 1e-10:
                flow = gamma * (back @ flow)
                mu += flow
        return (mu[:, None] * self.pi).ravel()
