"""The estimated table in another package's hands: what solvers from elsewhere share.

    P̂(s'|s,a) = frequencies of the buffer,   □ = σᵀ(r, c_1..c_m),     π = theirs(P̂, □, γ)

A black box is believed only as far as its answer can be put back into the equation. With V = (I − γP̂_π)⁻¹□_π and
Q = □ + γP̂V, no policy of the table is better than π by more than H·max_s (max_a Q − V) at any state; more than rounding is
an error that names the package. Where actions are equal up to rounding the lowest index is taken, as everywhere else, so
that two packages that agree give one policy.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import ArrayLike

from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy, TabularPolicy
from saddleback.problem.spaces import Actions, Array
from saddleback.sampling.buffer import Buffer

OptimalActions = Callable[[scipy.sparse.csr_array, Array, float], ArrayLike]
"""A package's answer: P ``(S·A, S)``, □ ``(S, A)`` and γ to one action a state, ``(S,)``."""

_TIE = 1e-12  # of H: actions closer than this are tied
_TRUSTED = 1e-9  # of H: what an answer may leave of the optimum


def solve_elsewhere(
    package: str, optimal_actions: OptimalActions, problem: CMDP, buffer: Buffer, mixing: Array
) -> list[Policy]:
    """The package's optimal policy of the estimated table for every row of ``mixing``, checked."""
    S, A = buffer.tabular_shape(problem)
    P = buffer.empirical_model()
    P = scipy.sparse.csr_array((P.data, buffer.support[P.indices], P.indptr), shape=(S * A, S))
    P.sort_indices()
    box = buffer.utilities(problem) @ np.asarray(mixing, dtype=np.float64).T  # □, (SA, k)
    return [optimal_policy(package, optimal_actions, P, column.reshape(S, A), problem.gamma) for column in box.T]


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
    system = scipy.sparse.csc_array(scipy.sparse.eye_array(S) - gamma * P[every * A + actions])
    V = np.atleast_1d(scipy.sparse.linalg.spsolve(system, reward[every, actions]))  # V^π = (I − γP̂_π)⁻¹□_π
    Q = reward + gamma * (P @ V).reshape(S, A)
    best = Q.max(axis=1)
    missing = H * float((best - V).max())
    if not missing <= _TRUSTED * H:
        raise NumericalError(
            f"the policy that {package} returned may be {missing:.3g} below the optimum of the estimated table of "
            f"{S} states; use another solver, or one of its methods that is exact."
        )
    return TabularPolicy.deterministic((best[:, None] - Q <= _TIE * H).argmax(axis=1), A)
