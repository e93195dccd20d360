"""What rollouts are measured against: V̂ of every member from earlier samples, the range of Z that follows, and how long rollouts will be.

The algebra is in :mod:`.rollouts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from saddleback.certificates.values.intervals import AT_ANY_TIME
from saddleback.errors import NumericalError
from saddleback.method.evaluators.lstd import LSTD, EmpiricalChain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, overall_limits, rollout_totals, value_limits, zero
from saddleback.problem.numerics import rounded
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.trajectories import ALPHA, RolloutPlan, plan_rollouts, steps_per_rollout

ValueFunction = Callable[[States], Array]
"""V̂ of r, c_1..c_m at states, ``(n, 1+m)``, in utilities."""
_TABLE_STATES = 1_000_000  # finite problems up to this size keep V̂ as a table


@dataclass(frozen=True)
class Baseline:
    """V̂_k for every member, within [low, high] ``(1+m,)`` each; only the width of the intervals depends on them."""

    functions: Sequence[ValueFunction]
    low: Array
    high: Array


def range_of(problem: CMDP, baseline: Baseline, cap: int) -> tuple[Array, Array]:
    """The least and the largest sum of Z over at most ``cap`` steps."""
    gamma, low, span = problem.gamma, baseline.low, baseline.high - baseline.low
    ratio, ends = gamma ** (1 - ALPHA), []  # w_t = ratio^t
    for N in (1, cap):
        W = (1 - ratio**N) / (1 - ratio)
        falls = 1 + (W - 1) - gamma * (W - ratio ** (N - 1))  # w_0 + Σ_{0<t<N} (w_t − γ w_{t−1})
        if declares(problem):
            ends.append(
                _with_totals(problem, baseline, falls, gamma * ratio ** (N - 1), (1 - ratio**cap) / (1 - ratio))
            )
        else:
            least = -(1 - gamma) * low * W - span * falls
            ends.append((least, (1 - (1 - gamma) * low) * W + gamma * ratio ** (N - 1) * span))
    return np.minimum(ends[0][0], ends[1][0]), np.maximum(ends[0][1], ends[1][1])


def _with_totals(problem: CMDP, baseline: Baseline, falls: float, last: float, W: float) -> tuple[Array, Array]:
    """The same for one N, f_N and γw_{N−1}, from what totals cannot leave, nor the weighted sum of ``W`` steps."""
    u0, (A, B) = zero(problem), rollout_totals(problem)
    low, high, a, b = np.array([baseline.low, baseline.high, *overall_limits(problem)]) - u0 * problem.horizon
    return np.maximum(A, -u0 * W) - high * falls + last * a, np.minimum(B, (1 - u0) * W) - low * falls + last * b


def fit_baseline(problem: CMDP, buffer: Buffer, mixture: MixturePolicy) -> Baseline:
    """V̂ of every member from ``buffer``, which must not hold any sample that the rollouts will use."""
    functions, lows, highs = zip(*(_fitted(problem, buffer, member) for member in mixture.members), strict=True)
    return Baseline(functions, np.min(lows, axis=0), np.max(highs, axis=0))


def plan_for(problem: CMDP, earlier: Buffer, mixture: MixturePolicy, steps: int, interval: str) -> RolloutPlan:
    """How many rollouts so many steps are for, as long as earlier samples let them be expected.

    All are planned at once where the ``interval`` is for a number that was fixed beforehand.
    """
    length = expected_length(problem, earlier, mixture)
    return plan_rollouts(problem.gamma, steps, length, at_once=interval not in AT_ANY_TIME)


def expected_length(problem: CMDP, earlier: Buffer, mixture: MixturePolicy) -> float | None:
    """Steps of a rollout that ends in a terminal state, or by its coin, on the estimated model; None where it cannot end early."""
    if not declares(problem):
        return None
    usual = steps_per_rollout(problem.gamma)
    if earlier.design.operator is not None or problem.terminal is None:
        return usual
    S, A = earlier.tabular_shape(problem)
    coin = replace(problem, gamma=problem.gamma**ALPHA)
    alive = np.repeat(~problem.ended(np.arange(S)), A)
    visits = [EmpiricalChain(coin, earlier, member).visits() @ alive for member in mixture.members]
    return min(usual, float(rounded(float(mixture.weights @ np.array(visits)), 4)))


def _fitted(problem: CMDP, buffer: Buffer, member: Policy) -> tuple[ValueFunction, Array, Array]:
    """V̂ of one member, and its limits ``(1+m,)``."""
    S, H = problem.num_states, problem.horizon
    try:
        fitted = LSTD().value_function(problem, buffer, member)
    except NumericalError:
        middle = np.full(1 + problem.num_constraints, H / 2)
        if not declares(problem):
            return lambda states: np.broadcast_to(middle, (len(states), len(middle))), middle, middle
        low, high = overall_limits(problem)
        return lambda states: np.clip(middle, *value_limits(problem, states)), low, high
    table = np.arange(S) if S is not None and S <= _TABLE_STATES else None
    some = np.concatenate([problem.start.states, buffer.support]) if table is None else table
    V = np.clip(fitted(some), *value_limits(problem, some)) if declares(problem) else np.clip(fitted(some), 0.0, H)
    low, high = V.min(axis=0), V.max(axis=0)
    if declares(problem) and table is None:
        nothing = zero(problem) * H
        low, high = np.minimum(low, nothing), np.maximum(high, nothing)
        return lambda states: np.clip(np.clip(fitted(states), low, high), *value_limits(problem, states)), low, high
    return lambda states: np.clip(fitted(states), low, high) if table is None else V[states], low, high
