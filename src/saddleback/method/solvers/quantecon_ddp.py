"""QuantEcon in the solver's seat: ``DiscreteDP`` on the estimated table, as Assumption asmp_b1 has it for any solver.

    maximise  Σ_t β^t R(s_t, a_t)      with R = □ and Q = P̂ given pair by pair, β = γ

Policy iteration, one exact linear solve a sweep; value iteration and its modified form are theirs too, but stop early.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from saddleback.errors import optional_package, require
from saddleback.method.solvers._estimated import solve_elsewhere
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


@dataclass(frozen=True)
class QuantEcon:
    """``max_sweeps`` bounds policy iteration, which takes a few dozen."""

    max_sweeps: int = 100

    def __post_init__(self) -> None:
        require(self.max_sweeps >= 1, "max_sweeps", "must be at least 1", self.max_sweeps, "use 100")

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The optimal policy of the estimated table for each row σ of ``mixing``, ``(k, 1+m)``."""
        return solve_elsewhere("QuantEcon", self.optimal_actions, problem, buffer, mixing)

    def optimal_actions(self, P: scipy.sparse.csr_array, reward: Array, gamma: float) -> ArrayLike:
        """One action a state of the table P ``(S·A, S)``, ``reward`` ``(S, A)``."""
        S, A = reward.shape
        markov = optional_package("quantecon.markov", "quantecon", "this solver")
        # Their slices of P are matrices, and arrays are none.
        model = markov.DiscreteDP(
            reward.ravel(), scipy.sparse.csr_matrix(P), gamma, np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
        )
        return np.asarray(model.solve(method="policy_iteration", max_iter=self.max_sweeps).sigma)
