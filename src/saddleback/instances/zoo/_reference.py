"""Reference values that place thresholds: unconstrained optima of the true table, ties to the lowest action.

    Q = r + γPV,     V ← V_π with π = argmax Q (policy iteration), or V ← max_a Q (value iteration) where S is large,
    until γH·span(max_a Q − V) ≤ 10⁻¹² H·max|r|

This is no solver for constrained problems, only what is needed to say "midway between V_c of the unconstrained optimum
and max V_c" and to tell a user how a threshold compares with what is reachable.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.problem.rounding import first_largest, rounded
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

_DENSE = 1000  # states up to which V_π is solved for; above by sweeps, since sparse factors of random graphs fill in


def _accuracy(gamma: float, signals: Array) -> Array:
    """Absolute accuracy of V_π: 10⁻¹² of H·max|signal|, or what float64 allows where H is large."""
    H = 1 / (1 - gamma)
    return np.asarray(max(1e-12, 4e-15 * H) * H * np.abs(signals).max(axis=0))


def evaluate(P: scipy.sparse.csr_array, signals: Array, gamma: float, policy: NDArray[np.int64]) -> Array:
    """V_π of each column of ``signals`` ``(S·A, k)`` for a deterministic policy, ``(S, k)``."""
    S = P.shape[1]
    rows = np.arange(S) * (P.shape[0] // S) + policy
    P_pi, x = P[rows], signals[rows]
    if S <= _DENSE:
        return np.asarray(np.linalg.solve(np.eye(S) - gamma * P_pi.toarray(), x))
    H = 1 / (1 - gamma)
    goal = _accuracy(gamma, signals)
    V = np.zeros_like(x)
    while True:
        new = x + gamma * (P_pi @ V)
        low, high = (new - V).min(axis=0), (new - V).max(axis=0)
        V = new
        if np.all(gamma * H * (high - low) <= goal):  # γH·low ≤ V_π − V ≤ γH·high, so the middle is within the goal
            return V + gamma * H * (low + high) / 2


def optimum(P: scipy.sparse.csr_array, signal: Array, gamma: float) -> NDArray[np.int64]:
    """A policy ``(S,)`` that maximises one signal ``(S·A,)`` in every state, the first where several do."""
    S, H = P.shape[1], 1 / (1 - gamma)
    accuracy = _accuracy(gamma, signal)
    V = np.zeros(S)
    while True:
        Q = (signal + gamma * (P @ V)).reshape(S, -1)
        best = Q.max(axis=1)
        if gamma * H * np.ptp(best - V) <= accuracy:  # then V is V* up to a constant and to the accuracy
            return np.asarray((best[:, None] - Q <= 10 * accuracy).argmax(axis=1))
        V = evaluate(P, signal[:, None], gamma, first_largest(Q, axis=1))[:, 0] if S <= _DENSE else best


def midway(P: scipy.sparse.csr_array, reward: Array, constraints: Array, gamma: float, rho: Array) -> Array:
    """Thresholds ``(m,)`` for "≥" constraints ``(m, S, A)`` halfway from the unconstrained optimum to their maximum.

    One constraint: b = (V_c(π_r) + max V_c)/2. Several maxima may exclude one another, so with m > 1 the maximiser π_c of
    Σ_i c_i takes the maximum's place: b_i = min((V_{c_i}(π_r) + V_{c_i}(π_c))/2, V_{c_i}(π_c)). Where V_{c_i} differs
    between the two policies for every i, all slacks are positive at a mixture with weight in (1/2, 1) on π_c.
    """
    signals = constraints.reshape(len(constraints), -1).T
    at_reward = rho @ evaluate(P, signals, gamma, optimum(P, reward.ravel(), gamma))
    at_sum = rho @ evaluate(P, signals, gamma, optimum(P, signals.sum(axis=1), gamma))
    return rounded(np.minimum((at_reward + at_sum) / 2, at_sum), 10)  # a threshold is part of the problem


def landmarks(table: Table) -> dict[str, float]:
    """What is reachable, in the user's units: see :class:`saddleback.instances.instance.Instance`."""
    P, gamma, rho = table.P, table.gamma, table.rho
    signals = np.column_stack([table.reward.ravel(), *(c.ravel() for c in table.constraints)])
    free = rho @ evaluate(P, signals, gamma, optimum(P, signals[:, 0], gamma))
    known = {"unconstrained_value": float(free[0])}
    for i, (name, sense) in enumerate(zip(table.names, table.senses, strict=True)):
        sign = 1.0 if sense == ">=" else -1.0
        c = sign * signals[:, i + 1]
        best = sign * float(rho @ evaluate(P, c[:, None], gamma, optimum(P, c, gamma))[:, 0]) + 0.0  # no −0
        known |= {f"unconstrained_{name}": float(free[i + 1]), f"best_{name}": best}
        if len(table.names) == 1:
            known["zeta"] = sign * (best - float(table.thresholds[0]))
    return known
