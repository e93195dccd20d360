"""§2, what a problem may declare beyond its ranges: where episodes end, which states can follow, what a signal can add up to.

**Terminal states** stay as they are for ever with every signal zero. So their values are known, no sample is drawn there, and a
rollout that comes to one is over.

**Successors** are, for every pair, the states that can follow it; whatever else the simulator says stops the run.

**Totals.** Of a signal x in the user's units with the running total S_t = x_0 + … + x_{t−1} of an episode from any state,
[a, b] ∋ 0 declares

    a ≤ E S_t ≤ b      for every t, every state to begin in and every policy.

Then a ≤ V_x ≤ b too, whatever γ is: V_x = (1−γ) Σ_t γ^t E S_{t+1}. Where the simulator returns x, the total of every single
episode must keep to it, and rollouts are held against it. A known function of the pair is a mean over what may happen, whose
totals in a single episode may well be larger; there the declaration is about expectations, and part of what a proof assumes.
Over successors the longest path gives totals of its own, by sweeps of

    M(s) = max{0, max_{a, s' may follow} x(s, a) + M(s')}        (and the shortest likewise)

that end where no cycle earns: these hold of every episode.

In the paper's units u = (x − base)/scale a signal that is zero is u₀ = −base/scale, and values after an ending are u₀H. Arrays
``(…, 1+m)`` of totals here are in v = u − u₀ = x/scale.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array, States

SLACK = 4.0
"""Times its declared range that the total of a known signal may reach in a rollout before the rollout is stopped."""

_ROUNDING = 1e-9  # of a range: what a total may lie beyond it
_MOST_SWEPT = 200_000_000  # successors times sweeps of a longest path


def zero(problem: CMDP) -> Array:
    """u₀, what a signal of zero is in the paper's units, ``(1+m,)``."""
    return np.asarray(-problem.base / problem.scale)


def declared_totals(problem: CMDP) -> Array:
    """``(2, 1+m)``: what the expected running totals of v cannot leave, as far as it was declared; infinite where not."""
    given = [problem.reward_total, *(c.total for c in problem.constraints)]
    ends = np.array([(-np.inf, np.inf) if total is None else total for total in given])
    return np.sort(ends / problem.scale[:, None], axis=1).T


def paths_of(problem: CMDP) -> Array | None:
    """:func:`path_totals`, found once for each problem."""
    if "_paths" not in problem.__dict__:
        object.__setattr__(problem, "_paths", path_totals(problem))
    found: Array | None = problem.__dict__["_paths"]
    return found


def path_totals(problem: CMDP) -> Array | None:
    """``(2, S, 1+m)``: what the running totals of v cannot leave in any episode, by the longest and the shortest path; None
    where no successors are declared."""
    succ, A = problem.successors, problem.num_actions
    if succ is None:
        return None
    S = problem.num_states or 0
    ends, u0 = problem.ended(np.arange(S)), zero(problem)
    u = problem.utilities(np.repeat(np.arange(S), A), np.tile(np.arange(A), S)) - u0
    found = np.empty((2, S, len(u0)))
    for side, sign in enumerate((-1.0, 1.0)):
        extreme = -u0 if side == 0 else 1 - u0  # of one step of a signal that is only observed
        v = sign * np.where(problem.observed, extreme, u)
        v[np.repeat(ends, A)] = 0.0
        found[side] = sign * _longest(np.where(np.abs(v) < _ROUNDING, 0.0, v), succ, A)
    return found


def _longest(v: Array, succ: scipy.sparse.csr_array, A: int) -> Array:
    """M ``(S, k)`` for v ``(S·A, k)``; infinite where a cycle earns, or where it would take too long to tell."""
    S = succ.shape[1]
    M, first = np.zeros((S, v.shape[1])), succ.indptr[:-1]
    rising = np.ones(S, dtype=bool)
    for sweep in range(2 * S + 2):
        if sweep * succ.nnz > _MOST_SWEPT:
            return np.full_like(M, np.inf)
        follow = np.maximum.reduceat(M[succ.indices], first, axis=0)
        new = np.maximum(0.0, (v + follow).reshape(S, A, -1).max(axis=1))
        rising = new > M
        if not rising.any():
            break
        M = np.where(rising & (sweep > S), np.inf, new)  # a path without a cycle has no more than S steps
    return M


def value_limits(problem: CMDP, states: States) -> Array:
    """``(2, n, 1+m)``: what the values of no policy can leave from these states, in the paper's units."""
    H, u0 = problem.horizon, zero(problem)
    low, high = (np.broadcast_to(end, (len(states), len(u0))) for end in declared_totals(problem))
    if (paths := paths_of(problem)) is not None:
        low, high = np.maximum(low, paths[0][states]), np.minimum(high, paths[1][states])
    out = np.clip(np.array([low, high]) + u0 * H, 0.0, H)
    out[:, problem.ended(states)] = u0 * H
    return out


def limits_at_start(problem: CMDP) -> Array:
    """``(2, 1+m)``: the same for the start distribution, whatever it is where it can only be sampled."""
    if problem.start.sampler is None:
        return np.asarray(np.einsum("s,esj->ej", problem.start.weights, value_limits(problem, problem.start.states)))
    return overall_limits(problem)


def declared_ceiling(problem: CMDP) -> float | None:
    """What no policy's reward exceeds by what was declared of ends, successors and totals, in the paper's units; None where that is
    no less than its range says."""
    most = float(limits_at_start(problem)[1, 0])
    return most if declares(problem) and most < problem.horizon * (1 - _ROUNDING) else None


def overall_limits(problem: CMDP) -> Array:
    """``(2, 1+m)``: the same wherever one is."""
    H, u0 = problem.horizon, zero(problem)
    low, high = declared_totals(problem)
    if (paths := paths_of(problem)) is not None:
        low, high = np.maximum(low, paths[0].min(axis=0)), np.minimum(high, paths[1].max(axis=0))
    return np.clip(np.array([low, high]) + u0 * H, 0.0, H)


def rollout_totals(problem: CMDP) -> Array:
    """``(2, 1+m)``: what Σ v cannot leave in a rollout that is stopped once a known signal's total is beyond SLACK times its range.

    The last step may overshoot. Where nothing is declared, ±2H, which weighted sums of steps cannot leave anyway.
    """
    u0, most = zero(problem), 2 * problem.horizon
    window = declared_totals(problem) * np.where(problem.observed, 1.0, SLACK)
    window += np.where(problem.observed, 0.0, np.array([-u0, 1 - u0]))
    if (paths := paths_of(problem)) is not None:
        begun = paths[:, problem.start.states] if problem.start.sampler is None else paths
        window = np.array([np.maximum(window[0], begun[0].min(axis=0)), np.minimum(window[1], begun[1].max(axis=0))])
    return np.clip(window, -most, most)


def declares(problem: CMDP) -> bool:
    """Whether anything is declared of where episodes end, what can follow or what signals add up to."""
    some = problem.terminal is not None or problem.successors is not None
    return some or bool(np.isfinite(declared_totals(problem)).any())


def beyond(problem: CMDP, least: Array, most: Array) -> tuple[int, int] | None:
    """The first row and signal whose part of a running total, from ``least`` to ``most`` ``(n, 1+m)``, leaves its declared range."""
    low, high = declared_totals(problem)
    near = _ROUNDING * np.maximum(1.0, np.where(np.isfinite(high - low), high - low, 1.0))
    found = np.argwhere(((least < low - near) | (most > high + near)) & problem.observed)
    return None if not len(found) else (int(found[0][0]), int(found[0][1]))
