"""MDPSolver in the solver's seat: its compiled value iteration on the estimated table.

    P̂ row by row as nested lists of probabilities and columns, rewards □, "mpi" (modified policy iteration), "pi" or "vi"

All three iterate values until they move by less than a tolerance, so it is set near rounding: what is left is checked
(:mod:`saddleback.method.solvers._estimated`). One thread, so that the same table gives the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
class MDPSolver:
    """``algorithm`` is theirs; ``tolerance`` in the paper's units, where rewards lie in [0, 1]."""

    algorithm: Literal["mpi", "pi", "vi"] = "mpi"
    tolerance: float = 1e-11

    def __post_init__(self) -> None:
        known = self.algorithm in ("mpi", "pi", "vi")
        require(known, "algorithm", "must be mpi, pi or vi", repr(self.algorithm), "use mpi")
        require(self.tolerance > 0, "tolerance", "must be positive", self.tolerance, "use 1e-11")

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The optimal policy of the estimated table for each row σ of ``mixing``, ``(k, 1+m)``."""
        return solve_elsewhere("mdpsolver", self.optimal_actions, problem, buffer, mixing)

    def optimal_actions(self, P: scipy.sparse.csr_array, reward: Array, gamma: float) -> ArrayLike:
        """One action a state of the table P ``(S·A, S)``, ``reward`` ``(S, A)``."""
        package = optional_package("mdpsolver", "mdpsolver", "this solver")
        if gamma == 0:  # which it refuses, by ending the interpreter
            return reward.argmax(axis=1)
        S, A = reward.shape
        rows = [slice(P.indptr[x], P.indptr[x + 1]) for x in range(S * A)]
        probabilities, columns = [P.data[row].tolist() for row in rows], [P.indices[row].tolist() for row in rows]
        model = package.model()
        model.mdp(
            discount=float(gamma),
            rewards=reward.tolist(),
            tranMatProbs=[probabilities[s * A : s * A + A] for s in range(S)],
            tranMatColumns=[columns[s * A : s * A + A] for s in range(S)],
        )
        # Its own final check prints a false alarm where a value is exactly H; ours needs no values.
        model.solve(algorithm=self.algorithm, tolerance=self.tolerance, makeFinalCheck=False, parallel=False)
        return np.asarray(model.getPolicy())
