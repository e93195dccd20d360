"""Other packages in the solver's seat, on the estimated table: as Assumption asmp_b1 has it, any solver will do.

    P̂(s'|s,a) = frequencies of the buffer,   □ = σᵀ(r, c_1..c_m),     π = theirs(P̂, □, γ)

    QuantEcon    ``DiscreteDP`` by policy iteration, one exact linear solve a sweep; its value iteration stops early
    MDPSolver    compiled, "mpi" (modified policy iteration), "pi" or "vi"; all three iterate values until they move by less
                 than a tolerance, which is set near rounding. One thread, so that the same table gives the same answer

A black box is believed only as far as its answer can be put back into the equation. With V = (I − γP̂_π)⁻¹□_π and
Q = □ + γP̂V, no policy of the table is better than π by more than H·max_s (max_a Q − V) at any state; more than rounding is
an error that names the package. Where actions are equal up to rounding the lowest index is taken, as everywhere else, so
that two packages that agree give one policy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from saddleback.errors import NumericalError, optional_package, require
from saddleback.method.oracles import Needs, estimated_table
from saddleback.problem.cmdp import CMDP
from saddleback.problem.finite_model import Resolvent
from saddleback.problem.policies import Policy, TabularPolicy
from saddleback.problem.spaces import Actions, Array
from saddleback.sampling.buffer import Buffer

OptimalActions = Callable[[scipy.sparse.csr_array, Array, float], ArrayLike]
"""A package's answer: P ``(S·A, S)``, □ ``(S, A)`` and γ to one action a state, ``(S,)``."""

_TIE = 1e-12  # of H: actions closer than this are tied
_TRUSTED = 1e-9  # of H: what an answer may leave of the optimum


class Package(ABC):
    """Somebody else's solver of tables: its name in messages, and the module with the extra that brings it."""

    label: ClassVar[str]
    package: ClassVar[tuple[str, str]]

    def needs(self, problem: CMDP) -> Needs:
        """A table, and the package."""
        return Needs(every_pair=True, package=self.package)

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The optimal policy of the estimated table for each row σ of ``mixing``, ``(k, 1+m)``."""
        P, box = estimated_table(problem, buffer, mixing)
        return [optimal_policy(self.label, self.optimal_actions, P, reward, problem.gamma) for reward in box]

    @abstractmethod
    def optimal_actions(self, P: scipy.sparse.csr_array, reward: Array, gamma: float) -> ArrayLike:
        """One action a state of the table P ``(S·A, S)``, ``reward`` ``(S, A)``."""


@dataclass(frozen=True)
class QuantEcon(Package):
    """``max_sweeps`` bounds policy iteration, which takes a few dozen."""

    max_sweeps: int = 100
    label, package = "QuantEcon", ("quantecon", "quantecon")

    def __post_init__(self) -> None:
        require(self.max_sweeps >= 1, "max_sweeps", "must be at least 1", self.max_sweeps, "use 100")

    def optimal_actions(self, P: scipy.sparse.csr_array, reward: Array, gamma: float) -> ArrayLike:
        """Theirs, by policy iteration."""
        S, A = reward.shape
        markov = optional_package("quantecon.markov", "quantecon", "this solver")
        # Their slices of P are matrices, and arrays are none.
        model = markov.DiscreteDP(
            reward.ravel(), scipy.sparse.csr_matrix(P), gamma, np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
        )
        return np.asarray(model.solve(method="policy_iteration", max_iter=self.max_sweeps).sigma)


@dataclass(frozen=True)
class MDPSolver(Package):
    """``algorithm`` is theirs; ``tolerance`` in the paper's units, where rewards lie in [0, 1]."""

    algorithm: Literal["mpi", "pi", "vi"] = "mpi"
    tolerance: float = 1e-11
    label, package = "mdpsolver", ("mdpsolver", "mdpsolver")

    def __post_init__(self) -> None:
        known = self.algorithm in ("mpi", "pi", "vi")
        require(known, "algorithm", "must be mpi, pi or vi", repr(self.algorithm), "use mpi")
        require(self.tolerance > 0, "tolerance", "must be positive", self.tolerance, "use 1e-11")

    def optimal_actions(self, P: scipy.sparse.csr_array, reward: Array, gamma: float) -> ArrayLike:
        """Theirs, by ``algorithm``."""
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


def optimal_policy(
    package: str, optimal_actions: OptimalActions, P: scipy.sparse.csr_array, reward: Array, gamma: float
) -> TabularPolicy:
    """The package's answer for one table P ``(S·A, S)`` and ``reward`` ``(S, A)``, checked, ties to the lowest index."""
    S, A = reward.shape
    H, every = 1.0 / (1.0 - gamma), np.arange(S)
    given = np.asarray(optimal_actions(P, reward, gamma))
    if given.shape != (S,) or not np.all((given >= 0) & (given < A)):
        raise NumericalError(f"{package} returned {given} where one of {A} actions was due in each of {S} states.")
    actions: Actions = given.astype(np.int64)
    V = Resolvent(P[every * A + actions], gamma).values(reward[every, actions])  # V^π = (I − γP̂_π)⁻¹□_π
    Q = reward + gamma * (P @ V).reshape(S, A)
    best = Q.max(axis=1)
    missing = H * float((best - V).max())
    if not missing <= _TRUSTED * H:
        raise NumericalError(
            f"the policy that {package} returned may be {missing:.3g} below the optimum of the estimated table of "
            f"{S} states; use another solver, or one of its methods that is exact."
        )
    return TabularPolicy.deterministic((best[:, None] - Q <= _TIE * H).argmax(axis=1), A)
