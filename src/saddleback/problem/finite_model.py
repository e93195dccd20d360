"""§2, what a policy is worth on a finite model, whether its P is the true one or an estimate: arrays in, arrays out.

    P_π(s'|s) = Σ_a π(a|s) P(s'|s, a)                                     follow
    V^π       = u_π + γP_π V^π = (I − γP_π)⁻¹ u_π                         Resolvent.values
    d_π       = ρ + γP_πᵀ d_π,  whose sum is H                            Resolvent.visits
    π ← argmax_a [□ + γPV^π],  □ = uσ                                     policy_iteration

Rows of P ``(S·A, S)`` are numbered s·A + a. I − γP_π is factored, and every answer of the factors is put back into its
equation. Factors of a large random chain fill up; such chains are solved by sweeps with a constant shift, whose error
falls with the chain's mixing and not with γ alone, to a residual that bounds the error by 1e-10·H.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import SuperLU, splu

from saddleback.errors import NumericalError
from saddleback.problem.criteria import Discounted
from saddleback.problem.spaces import Array

_RESIDUAL = 1e-9  # a Bellman residual e moves a value by at most H·e, so values are right to 1e-9 of their range [0, H]
_SWEPT = 1e-10  # the same, of sweeps
_MOST_SWEEPS = 200_000
_MOST_ROUNDS = 10_000  # of policy iteration, which takes a few dozen


def factors(P: scipy.sparse.csr_array, gamma: float) -> SuperLU:
    """Those of I − γP for a P ``(S, S)`` of one policy.

    Rows are diagonally dominant, so the diagonal is a stable pivot; and with no other pivot the visits of an unreachable
    state are exactly zero.
    """
    matrix = scipy.sparse.csc_array(scipy.sparse.eye_array(P.shape[0]) - gamma * P)
    try:
        return splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError as error:
        raise NumericalError(f"the Bellman equation could not be solved at gamma = {gamma}: {error}.") from None


def follow(pi: Array, P: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """P_π ``(S, n)``: the rows ``(S·A, n)`` of P, averaged by action probabilities ``pi`` ``(S, A)``."""
    S, A = pi.shape
    states, actions = np.nonzero(pi)
    choose = scipy.sparse.csr_array((pi[states, actions], (states, states * A + actions)), shape=(S, S * A))
    return scipy.sparse.csr_array(choose @ P)


class Resolvent:
    """(I − γP)⁻¹ for a P ``(S, S)`` of one policy: ``factored`` once for all values and visits, or by sweeps."""

    def __init__(self, P: scipy.sparse.csr_array, gamma: float, *, factored: bool = True):
        self.P, self.gamma = P, gamma
        self._factors = factors(P, gamma) if factored else None

    @property
    def horizon(self) -> float:
        """H."""
        return Discounted(self.gamma).horizon

    def values(self, utilities: Array) -> Array:
        """V ``(S, k)`` of ``utilities`` u_π ``(S, k)``."""
        if self._factors is None:
            return self._swept(utilities)
        V = np.asarray(self._factors.solve(utilities))
        residual = utilities + self.gamma * (self.P @ V) - V
        _check("the Bellman equation V = u + γPV", residual, float(np.abs(utilities).max(initial=1.0)))
        return V

    def visits(self, rho: Array) -> Array:
        """d ``(S,)`` from the start ``rho``; it sums to H."""
        if self._factors is None:
            back, d, flow = self.P.T.tocsr(), rho.copy(), rho
            while flow.sum() > _SWEPT:
                flow = self.gamma * (back @ flow)
                d += flow
            return d
        d = np.maximum(self._factors.solve(rho, "T"), 0.0)  # type: ignore[call-overload]  # the stubs do not know "T"
        _check("the flow equation d = ρ + γPᵀd", (rho + self.gamma * (self.P.T @ d) - d) / self.horizon, 1.0)
        return d

    def _swept(self, u: Array) -> Array:
        gamma, H = self.gamma, self.horizon
        V = u * H
        enough = max(_SWEPT, 100 * np.finfo(float).eps * H)
        for _ in range(_MOST_SWEEPS):
            change = u + gamma * (self.P @ V) - V
            # The residual's mean would decay like γ^n; a constant c in it is worth c·H at once.
            V += change + gamma * H * change.mean(axis=0)
            if np.abs(change - change.mean(axis=0)).max() <= 0.1 * enough:
                change = u + gamma * (self.P @ V) - V
                if np.abs(change).max() <= enough:
                    return np.asarray(V + H * change.mean(axis=0))
        raise NumericalError(
            f"policy evaluation on {len(u)} states did not settle in {_MOST_SWEEPS} sweeps; use ls-pe."
        )


def policy_iteration(
    P: scipy.sparse.csr_array, utilities: Array, sigma: Array, gamma: float, start: NDArray[np.int64], tie: float
) -> tuple[NDArray[np.int64], Array]:
    """A policy ``(S,)`` that is best for □ = uσ, and its values ``(S, k)`` of utilities u ``(S·A, k)``.

    ``start`` is the policy to begin with. Actions within ``tie`` of the best are tied and go to the lowest index.
    """
    S, every, box = P.shape[1], np.arange(P.shape[1]), utilities @ sigma  # □
    A = P.shape[0] // S

    def values(actions: NDArray[np.int64]) -> Array:
        rows = every * A + actions
        return Resolvent(P[rows], gamma).values(utilities[rows])

    actions, seen = start, set[bytes]()
    for _ in range(_MOST_ROUNDS):
        seen.add(actions.tobytes())
        V = values(actions)
        Q = (box + gamma * (P @ (V @ sigma))).reshape(S, A)
        tied = Q.max(axis=1, keepdims=True) - Q <= tie
        lowest = tied.argmax(axis=1)
        better = np.where(tied[every, actions], actions, lowest)
        # Values rise until they are optimal, so a policy that returns has the same values up to rounding.
        if better.tobytes() in seen:
            return lowest, V if np.array_equal(lowest, actions) else values(lowest)
        actions = better
    raise NumericalError(
        f"policy iteration did not settle in {_MOST_ROUNDS} rounds at gamma = {gamma}: "
        "values of size H lose the digits that tell its actions apart; use a smaller gamma."
    )


def _check(equation: str, residual: Array, size: float) -> None:
    worst = float(np.abs(residual).max())
    if not worst <= _RESIDUAL * size:
        raise NumericalError(
            f"{equation} is left with a residual of {worst:.3g}, more than {_RESIDUAL * size:.3g}; "
            "a gamma so close to 1 cannot be solved in double precision."
        )
