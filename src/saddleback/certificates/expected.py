"""How the samples of a certificate are shared out before the first of them is drawn, and what it is expected to show.

Baselines, prices, allocation and frozen functions come from earlier samples, whose only influence is on the widths. The
share of rollouts and of the bound follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for
n_1 : n_2 = a^⅔ : b^⅔. Where the proof is for the constraints, or for the value, rollouts alone decide it, and the bound gets a
small share, as do the rollouts where a gap by pairing is expected, which does not need them. A bound that is expected to say nothing is never drawn. To ask what to expect costs nothing (:func:`expect`).
A proof of an accuracy needs gap *and* violation below it: :func:`balanced` moves samples to whichever of the two is larger.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import numpy as np

from saddleback.certificates.bounds import BY_NAME as BOUNDS
from saddleback.certificates.bounds import BoundPlan
from saddleback.certificates.guide import Guide, Request, hidden_by_starts
from saddleback.certificates.linearity.checks import samples_for_linearity
from saddleback.certificates.values.baseline import expected_length, fit_baseline, plan_for, range_of
from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.certificates.values.known import known_limits
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declares, limits_at_start
from saddleback.problem.numerics import TIE, first_largest, rounded
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.trajectories import steps_per_rollout

LEAST_PER_PAIR = 4
"""Samples without which a pair has no part in a bound."""

_MOST_PLAYED = 50_000  # variables for which an interval is computed beforehand
_ASIDE = 0.2  # the bound's share where the proof is for something else
_BESIDE_PAIRS = 0.25  # the rollouts' share where the gap does not need them
_LESS = 0.97  # of an error: a gain that is worth another share
_EVEN = 1.15  # times as large: gap and violation are then taken for alike
_SHARES = np.array([0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.65, 0.8])
_USELESS = 0.25  # of H: a bound that is expected to be that much too high says nothing


class Shares(NamedTuple):
    """Simulator calls for the tests of linearity, the rollouts and the bound, and δ of each interval and of the bound."""

    tests: int
    rollouts: int
    bound: int
    delta: float


def share_out(guide: Guide, request: Request) -> Shares:
    """δ is divided evenly over 1 + m intervals and the bound; where there is no mixture, all is for the bound."""
    samples, delta = request.samples, request.delta
    tests = samples_for_linearity(guide.design, samples) if request.check_linearity else 0
    if guide.mixture is None:
        return Shares(tests, 0, samples - tests, delta)
    part = delta / (2 + guide.problem.num_constraints)
    if request.rollouts is None:
        rolled = _share_of_rollouts(guide, samples - tests, part, request)
    else:
        most = samples - tests - LEAST_PER_PAIR * guide.design.size  # the bound needs some of every pair
        rolled = max(1, min(int(request.rollouts * (samples - tests)), most))
    return Shares(tests, rolled, samples - tests - rolled, part)


def plan_bound(
    guide: Guide, sigma: Array | None, samples: int, delta: float, draft: bool = False, half_width: float = 0.0
) -> BoundPlan | None:
    """The plan, of those of all methods, that promises the least gap at ``sigma``; None where there can be none.

    ``half_width`` is what the limits of the value are expected to have, in utilities: a bound that needs them adds it.
    """
    if sigma is None or samples < LEAST_PER_PAIR * guide.design.size:
        return None
    plans = [method.plan(guide, sigma, samples, delta, draft=draft) for method in BOUNDS.values()]
    some = (plan for plan in plans if plan is not None)
    return min(some, key=lambda plan: plan.expected_gap(guide.problem, half_width), default=None)


def expected_half_width(guide: Guide, calls: int, delta: float) -> float:
    """Of the limits of the value from so many calls for rollouts, about; in utilities."""
    if guide.mixture is None:
        return 0.0
    n = max(1.0, calls / _expected_length(guide))
    return float(_expected_deviations(guide)[0]) * math.sqrt(2 * math.log(2 / delta) / n)


class Expected(NamedTuple):
    """What a certificate is expected to show: half-widths of the intervals ``(1+m,)`` and the gap, in utilities."""

    half_widths: Array
    gap: float

    @property
    def error(self) -> float:
        """The larger of the gap and of what a constraint may be missed by."""
        return max(self.gap, float(self.half_widths[1:].max(initial=0.0)))


def expect(guide: Guide, request: Request) -> Expected:
    """What a certificate of that many samples is expected to show; no sample is drawn."""
    problem, shares = guide.problem, share_out(guide, request)
    assert guide.mixture is not None
    plan_of_rollouts = plan_for(problem, guide.earlier[-1], guide.mixture, shares.rollouts, request.interval)
    n, cap, L = plan_of_rollouts.in_all, plan_of_rollouts.cap, math.log(2 / shares.delta)
    low, high = range_of(problem, fit_baseline(problem, guide.earlier[-1], guide.mixture), cap)
    w = hidden_by_starts(problem, request.delta)
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n) + w
    widths = np.minimum(widths, np.ptp(known_limits(problem, guide.mixture), axis=0) / 2)
    half = float(widths[0]) + _given_up(guide)
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta, draft=True, half_width=half)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, plan.expected_gap(problem, half) + w / float(guide.sigma[0]))


def balanced(guide: Guide, request: Request) -> tuple[Request, Expected]:
    """The request with the share of rollouts at which the larger of gap and half-widths of constraints is expected to be least.

    Half-widths fall as the root of the rollouts' share, the gap as that of the bound's, about: this names one other share, which
    is asked about, and taken where it promises less.
    """
    first, shares = expect(guide, request), share_out(guide, request)
    if not math.isfinite(first.gap) or not shares.rollouts or not shares.bound:
        return request, first
    s, width = shares.rollouts / (shares.rollouts + shares.bound), float(first.half_widths[1:].max(initial=0.0))
    if max(first.gap, width) <= _EVEN * min(first.gap, width):
        return request, first
    errors = np.maximum(width * np.sqrt(s / _SHARES), first.gap * np.sqrt((1 - s) / (1 - _SHARES)))
    other = dataclasses.replace(request, rollouts=float(_SHARES[int(first_largest(-errors))]))
    second = expect(guide, other)
    better = float(rounded(second.error, 3)) < _LESS * float(rounded(first.error, 3))
    return (other, second) if better else (request, first)


def _given_up(guide: Guide) -> float:
    """λᵀ(V̂_c − b): what the mixture loses by more room than it needs, at the prices λ; in utilities, by the earlier samples."""
    if guide.mixture is None or guide.sigma is None or guide.sigma[0] <= 0:
        return 0.0
    problem, prices = guide.problem, guide.sigma[1:] / guide.sigma[0]
    values = [LSTD().evaluate(problem, guide.earlier[-1], member)[1:] for member in guide.mixture.members]
    return max(0.0, float(prices @ (guide.mixture.weights @ np.array(values) - problem.thresholds)))


class Fall(NamedTuple):
    """How far below the rollouts' mean the lower limits are expected to lie, and the mean's standard error, ``(1+m,)`` each."""

    below: Array
    noise: Array


def expected_fall(guide: Guide, request: Request) -> Fall:
    """What the lower limits will give up, in utilities; no sample is drawn.

    The interval is computed for as many normal variables of the expected spread, which is closer than any formula: a bet's
    size is cut by the distance to the end of the range, which differs from signal to signal and from side to side.
    """
    assert guide.mixture is not None
    problem, shares = guide.problem, share_out(guide, request)
    plan = plan_for(problem, guide.earlier[-1], guide.mixture, shares.rollouts, request.interval)
    n, cap, baseline = plan.in_all, plan.cap, fit_baseline(problem, guide.earlier[-1], guide.mixture)
    low, high = range_of(problem, baseline, cap)
    each = [_deviations_of(guide, member) ** 2 for member in guide.mixture.members]
    spread, played = np.sqrt(guide.mixture.weights @ np.array(each)), min(n, _MOST_PLAYED)
    normal = np.random.default_rng(0).standard_normal(played)
    normal -= normal.mean()
    below = np.empty(len(spread))
    for j in range(len(spread)):
        # Fewer of them stand for all: the same sum of squares, the same number of ranges.
        shrink = math.sqrt(played / n)
        x = np.clip(shrink * spread[j] * normal, low[j] * shrink**2, high[j] * shrink**2)
        found = INTERVALS[request.interval](x, low[j] * shrink**2, high[j] * shrink**2, shares.delta)
        below[j] = float(x.mean()) - found.low
    tail = problem.gamma**cap * baseline.high
    return Fall(below + tail + hidden_by_starts(problem, request.delta), spread / math.sqrt(n))


def _share_of_rollouts(guide: Guide, samples: int, delta: float, request: Request) -> int:
    """How many of the samples the rollouts get; all of them where there can be no bound, or where it would say nothing."""
    aside = request.purpose != "gap"
    bound = int(_ASIDE * samples) if aside else samples // 2
    half = expected_half_width(guide, samples - bound, delta)
    draft = plan_bound(guide, guide.sigma, bound, delta, draft=True, half_width=half)
    if draft is None or (says_nothing(guide.problem, draft) and not request.any_bound):
        return samples
    if aside:
        return samples - bound
    if draft.pairs:
        return int(_BESIDE_PAIRS * samples)
    half = samples / 2 / _expected_length(guide)
    a = float(_expected_deviations(guide).max()) * math.sqrt(2 * math.log(2 / delta) / half)
    b = draft.expected_excess / max(float(draft.sigma[0]), 1e-12)
    share = a ** (2 / 3) / (a ** (2 / 3) + b ** (2 / 3)) if a + b > 0 else 0.5
    rolled = int(samples * min(0.8, max(0.25, float(rounded(share, 4)))))
    return min(rolled, samples - LEAST_PER_PAIR * guide.design.size)  # the bound needs some of every pair


def says_nothing(problem: CMDP, plan: BoundPlan) -> bool:
    """Whether a bound on the reward is expected to be trivial or nearly so: rollouts need its samples more."""
    H, weight = float(limits_at_start(problem)[1, 0]), float(plan.sigma[0])
    if weight <= 0:
        return False
    excess = plan.expected_excess / weight
    expected = (plan.estimate + plan.expected_excess - float(plan.sigma[1:] @ problem.thresholds)) / weight
    return bool((excess >= _USELESS * H and not declares(problem)) or expected >= H)


def _expected_length(guide: Guide) -> float:
    """Steps of one rollout."""
    assert guide.mixture is not None
    length = expected_length(guide.problem, guide.earlier[-1], guide.mixture)
    return steps_per_rollout(guide.problem.gamma) if length is None else max(1.0, length)


def _expected_deviations(guide: Guide) -> Array:
    """Standard deviation of one rollout ``(1+m,)``, as the heaviest member has it."""
    assert guide.mixture is not None
    return _deviations_of(guide, guide.mixture.members[int(first_largest(guide.mixture.weights))])


def _deviations_of(guide: Guide, member: Policy) -> Array:
    """Standard deviation of one rollout of a member ``(1+m,)``: the spread of V̂ at the pairs that it visits."""
    problem, buffer = guide.problem, guide.earlier[-1]
    a, V = LSTD().influence_and_values(problem, buffer, member)
    _, variance = buffer.moments(V)
    gamma = problem.gamma
    noise = (buffer.signal_noise(problem) + gamma * np.sqrt(variance)) ** 2
    visits = np.where(np.abs(a) > TIE * np.abs(a).max(), np.abs(a), 0.0)  # the rest is rounding error
    step = (visits @ noise) / max(float(visits.sum()), 1e-12)
    return np.asarray(np.sqrt(step / (1 - gamma**1.5)))
