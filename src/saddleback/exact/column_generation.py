"""§2, the problem eq:true-CMDP solved exactly on a known table by column generation, for tables of any size.

    reachable   max_π V_{c_i}^π(ρ) for every i                                     policy iteration on the true P
    ζ           max_π min_i (V_{c_i}^π(ρ) − b_i)                                   columns, with the master largest_slack
    V*, λ*      max_π V_r^π(ρ) s.t. V_{c_i}^π(ρ) ≥ b_i                             columns, with the master best_reward

What the search for ζ leaves behind is a mixture that meets every threshold, or the proof that none does. λ has no cap. The
answer mixes at most m+1 policies; one stationary policy with the same values follows from their occupancies. The certified
gap V* − V_r ≤ min_λ D(λ) − Z is the stopping rule: see :mod:`saddleback.exact.columns`.
"""

from __future__ import annotations

import time

import numpy as np

from saddleback.errors import NumericalError, require
from saddleback.exact.bellman import Choice, Model
from saddleback.exact.columns import Certified, Column, Columns
from saddleback.exact.evaluation import visits
from saddleback.exact.master import Master, best_reward, largest_slack
from saddleback.exact.occupancy_lp import TOLERANCE, ExactAnswer
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

_START_SHARE = 0.4  # of what r alone can gain on the policies for c: what the first policy for r may leave
_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of H²: by how much equal values may seem to differ
_VISITS = 1e-9  # of H: the accuracy of occupancies


def solve_by_columns(
    table: Table, tolerance: float = 1e-6, *, stationary: bool = True, compiled: bool | None = None
) -> ExactAnswer:
    """V*, λ*, ζ and an optimal mixture; or the verdict "infeasible".

    The certified gap is at most ``tolerance`` times the span of the reward, so rewards in cents and in euros give the same
    answer; ζ is as accurate, in spans of the constraints. (Rounding alone is about 1e-13·(1 + Σλ)H² such spans: where that
    is more, it is the tolerance.) Without ``stationary`` there is a mixture but no ``policy``. ``compiled`` chooses the
    kernels; by default the size does.
    """
    require(0 < tolerance < np.inf, "tolerance", "must be a positive number", tolerance, "1e-6 is usual")
    began = time.perf_counter()
    problem = table.problem()
    m, H, b = problem.num_constraints, problem.horizon, problem.thresholds
    columns = Columns(Model.of(table, problem, compiled))
    bounds = np.array([columns.ask(alone, tolerance) for alone in np.eye(1 + m)[1:]])  # each constraint alone
    reachable = np.array([column.values for column in columns.seen]).max(axis=0)[1:]
    widths = np.abs(problem.scale[1:])
    room = _room(columns, b, np.ones(m), bounds - b, tolerance, TOLERANCE * H)
    slater = room if np.all(widths == widths[0]) else _room(columns, b, widths / widths.min(), bounds - b, tolerance)
    values, multipliers, gap = np.full(1 + m, np.nan), np.full(m, np.nan), slater.gap * float(widths.min())
    residual, mixture, policy = room.gap, None, None
    feasible = _feasible(room, TOLERANCE * H)
    if feasible:
        # Thresholds that leave no room count as met within rounding: else it would decide which policies meet them.
        optimum = _optimum(columns, b - max(_ROUNDING * H * H - room.master.value, 0.0), tolerance)
        w, lam = optimum.master.weights, optimum.prices[1:]
        members, w = [columns.seen[k] for k in np.flatnonzero(w)], w[w > 0]
        unit_values = w @ np.array([member.values for member in members])
        values, multipliers = problem.values_of(unit_values), problem.multipliers_of(lam)
        gap, residual = optimum.gap * problem.reward_span, optimum.gap / (1.0 + lam.sum())
        residual = max(residual, float((b - unit_values[1:]).max()))
        played = [table.permitted(TabularPolicy.deterministic(c.actions, table.num_actions)) for c in members]
        mixture = MixturePolicy.of(played, w)
        policy = _stationary(columns.model, members, w, columns.latest) if stationary else None
        policy = None if policy is None else table.permitted(policy)
    return ExactAnswer(
        status="optimal" if feasible else "infeasible",
        value=float(values[0]),
        constraint_values=values[1:],
        multipliers=multipliers,
        slater=slater.master.value * float(widths.min()),
        unit_slater=room.master.value,
        reachable=reachable * problem.scale[1:] + problem.base[1:] * H,
        policy=policy,
        residual=residual,
        seconds=time.perf_counter() - began,
        gap=float(gap),
        method="columns",
        mixture=mixture,
    )


def _room(
    columns: Columns, b: Array, widths: Array, alone: Array, tolerance: float, limit: float | None = None
) -> Certified:
    """max_π min_i widths_i·(V_{c_i}^π − b_i); ``alone`` are upper limits of V_{c_i}^π − b_i.

    With a ``limit`` it is found precisely enough to say on which side of −limit it lies. Without, and with widths of very
    different size, rounding may keep it from the tolerance.
    """
    tightest = int(np.argmin(alone * widths))
    prices = widths[tightest] * np.eye(1 + len(b))[1 + tightest]

    def master(low: Array) -> Master:
        return largest_slack(low[:, 1:] - b, widths)

    room = columns.generate(master, b, float((alone * widths).min()), prices, tolerance, strict=limit is not None)
    if limit is not None and room.master.value < 0 <= room.bound + limit:
        room = columns.generate(master, b, room.bound, room.prices, min(tolerance, 0.1 * limit))
    return room


def _feasible(room: Certified, limit: float) -> bool:
    """Whether thresholds can be met up to rounding; a shortfall beyond that is proved."""
    if room.master.value >= -limit:
        return True
    if room.bound < 0:
        return False
    raise NumericalError(
        f"whether the constraints can be met is beyond double precision: the largest smallest slack lies between "
        f"{room.master.value:.3g} and {room.bound:.3g} times the constraints' spans; move a threshold a little."
    )


def _optimum(columns: Columns, b: Array, tolerance: float) -> Certified:
    """max V_r subject to V_c ≥ b, which some mixture of the columns meets."""
    free = np.eye(1 + len(b))[0]  # λ = 0
    unconstrained = columns.ask(free, tolerance, _START_SHARE)
    optimum = columns.generate(lambda low: best_reward(low[:, 0], low[:, 1:] - b), b, unconstrained, free, tolerance)
    if optimum.master.value >= columns.low[:, 0].max() - tolerance:
        unconstrained = columns.ask(free, tolerance)
    if unconstrained - optimum.master.value <= tolerance:  # the constraints cost nothing: λ = 0 is a dual optimum too
        return optimum._replace(bound=unconstrained, prices=free)
    return optimum


def _stationary(model: Model, members: list[Column], weights: Array, elsewhere: Choice) -> TabularPolicy:
    """π(a|s) ∝ Σ_k w_k d_k(s)·1[a = π_k(s)]; where no member goes, the action ``elsewhere``."""
    if len(members) == 1:
        return TabularPolicy.deterministic(members[0].actions, model.num_actions)
    every = np.arange(model.num_states)
    mu, d = np.zeros((model.num_states, model.num_actions)), np.zeros(model.num_states)
    for w, member in zip(weights, members, strict=True):
        part = w * visits(model, member.actions.astype(np.int32), _VISITS * model.discount.horizon)
        mu[every, member.actions] += part
        d += part
    nobody = d == 0
    mu[every[nobody], elsewhere[nobody]] = d[nobody] = 1.0
    mu /= d[:, None]
    return TabularPolicy.stochastic(mu)
