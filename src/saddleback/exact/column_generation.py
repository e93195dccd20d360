"""§2, the problem eq:true-CMDP solved exactly on a known table by column generation, for tables of any size.

    reachable   max_π V_{c_i}^π(ρ) for every i                                     policy iteration on the true P
    ζ           max_π min_i (V_{c_i}^π(ρ) − b_i)                                   columns, with the master largest_slack
    V*, λ*      max_π V_r^π(ρ) s.t. V_{c_i}^π(ρ) ≥ b_i                             columns, with the master best_reward

What the search for ζ leaves behind is a mixture that meets every threshold, or the proof that none does. λ has no cap. The
answer mixes at most m+1 policies; one stationary policy with the same values follows from their occupancies. The certified
gap V* − V_r ≤ min_λ D(λ) − Z is the stopping rule of the loop between a master problem and policy iteration:

    repeat   (w, Z, q) = best mixture of the policies seen, its value and its prices             master
             π         = best policy for the reward qᵀ(r, c) on the true P                       price
             D(q)      = an upper limit of max_π V_□q^π(ρ) − q_cᵀb, which no mixture's value exceeds
    until    min_q D(q) − Z ≤ tolerance

Every number that enters is proved: columns stand in the master with lower limits of their values, and D(q) comes from one
pass of the Bellman operator over the whole table (:mod:`saddleback.exact.bellman`), so the gap is certified however the
values were obtained, rounding included. Early policies need not be good; what is left to gain decides how good.

Prices need not be the master's either. With one constraint they are interpolated; with several, half-way to the best so far
is steadier than the master's, which jump about. A step that did not halve the gap is followed by one with the master's own
prices, so the loop ends as it does without any of this.

**One constraint.** D(λ) is convex with slope g(λ) = V_c(π_λ) − b, and on a large table nearly smooth. The master's λ is
where two tangents meet: half-way, if D is a parabola. The zero of g is found faster by interpolation. The frontier of
(V_c, V_r) runs from slope 0 to slope ∞; were it a quarter of an ellipse with half-axes X and Y, then g would be linear in

    s = κλ/√(1 + κ²λ²) ∈ [0, 1],    κ = X/Y,     X, Y = by how much c alone and r alone differ in V_c and in V_r

so s as a polynomial of g through the points nearest to g = 0 is the next guess, if it lies between them. A policy close to
the zero is worth little without one on its other side to mix it with: two that are Δλ apart, one of them with slope g, leave
a gap of about |g|Δλ/2. So the guess is moved on, past the zero, by what the tolerance allows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saddleback.errors import NumericalError, require
from saddleback.exact.bellman import Choice, Limits, Model
from saddleback.exact.linear_program import Master, best_reward, largest_slack
from saddleback.exact.occupancy_lp import TOLERANCE, ExactAnswer
from saddleback.exact.policy_iteration import ROUNDING, anywhere, price, visits
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.simulators.table import Table

_TARGET = 0.3  # of the tolerance: how near the best a policy is priced at the end
_SHARE = 0.1  # of what can be gained on the columns known: what a policy may leave before that, and less than that
_NEAR = 1e4  # from so many tolerances on, where the least upper limit is about to decide
_MOST_COLUMNS = 2000
_POINTS = 4  # of an interpolation: a cubic
_START_SHARE = 0.4  # of what r alone can gain on the policies for c: what the first policy for r may leave
_ROUNDING = 16 * float(np.finfo(np.float64).eps)  # of H²: by how much equal values may seem to differ
_VISITS = 1e-9  # of H: the accuracy of occupancies


class Column(NamedTuple):
    """A policy, the prices ``(1+m,)`` it was found for, and proved limits of its values ``(1+m,)``, in the paper's units."""

    actions: Choice
    asked: Array
    limits: Limits

    @property
    def values(self) -> Array:
        """The middle of the limits."""
        return np.asarray((self.limits.low + self.limits.high) / 2)


class Certified(NamedTuple):
    """The master's last word, the least upper limit of its optimum, and the prices ``(1+m,)`` that proved it."""

    master: Master
    bound: float
    prices: Array

    @property
    def gap(self) -> float:
        """Upper limit − value."""
        return max(self.bound - self.master.value, 0.0)


class Columns:
    """The policies seen, and the place from which the next pricing starts."""

    def __init__(self, model: Model):
        self.model = model
        self.seen: list[Column] = []
        self._place = anywhere(model)
        self._short = np.min_scalar_type(model.num_actions - 1)  # actions fit in one byte, usually

    @property
    def low(self) -> Array:
        """Lower limits of all values, ``(n, 1+m)``."""
        return np.array([column.limits.low for column in self.seen])

    @property
    def latest(self) -> Choice:
        """The policy priced last."""
        return self._place.actions

    def ask(self, q: Array, tolerance: float, share: float = 0.0) -> float:
        """An upper limit of max_π V_□q^π(ρ); adds a column, unless those seen leave less than the tolerance to gain."""
        incumbent = float((self.low @ q).max()) if self.seen else -np.inf
        bound, self._place, found = price(self.model, q, self._place, _TARGET * tolerance, incumbent, share)
        if found is not None:
            k = len(q)
            limits = Limits(found.limits.low[:k], found.limits.high[:k])
            self.seen.append(Column(self._place.actions.astype(self._short), q, limits))
        return bound

    def generate(
        self,
        master: Callable[[Array], Master],
        thresholds: Array,
        bound: float,
        prices: Array,
        tolerance: float,
        strict: bool = True,
    ) -> Certified:
        """The loop above from the upper limit ``bound`` that ``prices`` gave; ``master`` takes lower limits ``(n, 1+m)``.

        Not ``strict``, it returns what it has where rounding keeps it from the tolerance.
        """
        noise = 2 * ROUNDING * self.model.discount.horizon**2  # a unit of price
        last, stuck, detour = np.inf, False, False
        while True:
            best = Certified(master(self.low), bound, prices)
            own = best.master.prices
            totals = sorted([float(own.sum()), float(prices.sum())])
            enough = max(tolerance, noise * totals[0])
            if best.gap <= enough or (stuck and (best.gap <= noise * totals[1] or not strict)):
                return best
            if stuck or len(self.seen) >= _MOST_COLUMNS:
                raise NumericalError(
                    f"column generation proved a gap of {best.gap:.3g} with {len(self.seen)} policies, more than "
                    f"{enough:.3g}, in spans of the signals; ask for a larger tolerance, or try the linear program."
                )
            q = own if detour and best.gap > 0.5 * last else self._elsewhere(own, prices, thresholds, tolerance)
            last, known, detour = best.gap, float((self.low @ q).max()), q is not own
            share = _SHARE * min(1.0, best.gap / (_NEAR * tolerance))
            upper = self.ask(q, tolerance, share) - float(q[1:] @ thresholds)
            if upper < bound:
                bound, prices = upper, q
            stuck = not detour and float((self.low @ q).max()) <= known  # rounding leaves nothing to find

    def _elsewhere(self, own: Array, best: Array, thresholds: Array, tolerance: float) -> Array:
        """Prices that should get further than the master's ``own``."""
        if len(thresholds) > 1:
            return np.asarray((own + best) / 2)
        asked, values = np.array([c.asked for c in self.seen]), np.array([c.values for c in self.seen])
        lam = interpolate(asked, values, float(thresholds[0]), tolerance) if own[0] else None
        return own if lam is None else np.array([1.0, lam])


def interpolate(asked: Array, values: Array, threshold: float, tolerance: float) -> float | None:
    """The λ at which V_c should just have passed ``threshold``, or None where that is not bracketed.

    ``asked`` ``(n, 2)`` are the prices of reward and constraint so far, ``values`` ``(n, 2)`` those of the policies they led
    to; one of the prices must be (1, 0) and one (0, 1).
    """
    free, most = values[asked[:, 1] == 0], values[asked[:, 0] == 0]
    if not (len(free) and len(most)):
        return None
    X, Y = float(most[0, 1] - free[0, 1]), float(free[0, 0] - most[0, 0])
    if not (X > 0 and Y > 0):
        return None
    s = X * asked[:, 1] / np.hypot(Y * asked[:, 0], X * asked[:, 1])
    g = values[:, 1] - threshold
    low, high = s[g < 0].max(initial=-1.0), s[g >= 0].min(initial=2.0)
    if not 0 <= low < high <= 1:
        return None
    order = np.argsort(np.abs(g), kind="stable")
    zero = _at_zero(g[order], s[order])
    if not low < zero < high:
        ends = [np.flatnonzero((s == low) & (g < 0))[0], np.flatnonzero((s == high) & (g >= 0))[0]]
        zero = _at_zero(g[ends], s[ends])
    if not low < zero < high:
        return None
    lam, nearest = Y / X * zero / np.sqrt(1.0 - zero**2), g[order[0]]
    if nearest == 0:
        return float(lam)
    x = X / Y * (lam - tolerance / (2 * nearest))
    beyond = float(x / np.hypot(1.0, x))
    past = beyond if low < beyond < high else (zero + (high if nearest < 0 else low)) / 2
    return float(Y / X * past / np.sqrt(1.0 - past**2)) if past < 1 else float(lam)


def _at_zero(g: Array, s: Array) -> float:
    """Lagrange's polynomial s(g) at g = 0, through the first points with distinct g."""
    first = np.sort(np.unique(g, return_index=True)[1])[:_POINTS]
    g, s = g[first], s[first]
    factors = np.divide(-g, g[:, None] - g, where=~np.eye(len(g), dtype=bool), out=np.ones((len(g), len(g))))
    return float(s @ factors.prod(axis=1))


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
