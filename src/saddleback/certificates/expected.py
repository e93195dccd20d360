"""How the samples of a certificate are shared out before the first of them is drawn, and what it is expected to show.

Baselines, prices, allocation and frozen functions come from earlier samples, whose only influence is on the widths. The
share of rollouts and of the bound follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for
n_1 : n_2 = a^⅔ : b^⅔. Where the proof is for the constraints, or for the value, rollouts alone decide it, and the bound gets a
small share. A bound that is expected to say nothing is never drawn. To ask what to expect costs nothing (:func:`expect`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from saddleback.certificates.bounds import BY_NAME as BOUNDS
from saddleback.certificates.bounds import BoundPlan
from saddleback.certificates.guide import Guide, Request, hidden_by_starts
from saddleback.certificates.linearity.checks import samples_for_linearity
from saddleback.certificates.values.intervals import BY_NAME as INTERVALS
from saddleback.certificates.values.known import known_limits
from saddleback.certificates.values.rollouts import fit_baseline, range_of
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import TIE, first_largest, rounded
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.trajectories import plan_rollouts, steps_per_rollout

LEAST_PER_PAIR = 4
"""Samples without which a pair has no part in a bound."""

_MOST_PLAYED = 50_000  # variables for which an interval is computed beforehand
_ASIDE = 0.2  # the bound's share where the proof is for something else
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
    rolled = _share_of_rollouts(guide, samples - tests, part, request)
    return Shares(tests, rolled, samples - tests - rolled, part)


def plan_bound(guide: Guide, sigma: Array | None, samples: int, delta: float, draft: bool = False) -> BoundPlan | None:
    """The plan, of those of all methods, that promises the least bound at ``sigma``; None where there can be none."""
    if sigma is None or samples < LEAST_PER_PAIR * guide.design.size:
        return None
    plans = [method.plan(guide, sigma, samples, delta, draft=draft) for method in BOUNDS.values()]
    return min((plan for plan in plans if plan is not None), key=lambda plan: plan.expected_excess, default=None)


class Expected(NamedTuple):
    """What a certificate is expected to show: half-widths of the intervals ``(1+m,)`` and the gap, in utilities."""

    half_widths: Array
    gap: float


def expect(guide: Guide, request: Request) -> Expected:
    """What a certificate of that many samples is expected to show; no sample is drawn."""
    problem, shares = guide.problem, share_out(guide, request)
    assert guide.mixture is not None
    (n, cap, _), L = plan_rollouts(problem.gamma, shares.rollouts), math.log(2 / shares.delta)
    low, high = range_of(problem.gamma, fit_baseline(problem, guide.earlier[-1], guide.mixture), cap)
    w = hidden_by_starts(problem, request.delta)
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n) + w
    widths = np.minimum(widths, np.ptp(known_limits(problem, guide.mixture), axis=0) / 2)
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta, draft=True)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, float(widths[0]) + (plan.expected_excess + w) / float(guide.sigma[0]))


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
    (n, cap, _), baseline = (
        plan_rollouts(problem.gamma, shares.rollouts),
        fit_baseline(problem, guide.earlier[-1], guide.mixture),
    )
    low, high = range_of(problem.gamma, baseline, cap)
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
    draft = plan_bound(guide, guide.sigma, bound, delta, draft=True)
    if draft is None or (says_nothing(guide.problem, draft) and not request.any_bound):
        return samples
    if aside:
        return samples - bound
    half = samples / 2 / steps_per_rollout(guide.problem.gamma)
    a = float(_expected_deviations(guide).max()) * math.sqrt(2 * math.log(2 / delta) / half)
    b = draft.expected_excess / max(float(draft.sigma[0]), 1e-12)
    share = a ** (2 / 3) / (a ** (2 / 3) + b ** (2 / 3)) if a + b > 0 else 0.5
    rolled = int(samples * min(0.8, max(0.25, float(rounded(share, 4)))))
    return min(rolled, samples - LEAST_PER_PAIR * guide.design.size)  # the bound needs some of every pair


def says_nothing(problem: CMDP, plan: BoundPlan) -> bool:
    """Whether a bound on the reward is expected to be trivial or nearly so: rollouts need its samples more."""
    H, weight = problem.horizon, float(plan.sigma[0])
    if weight <= 0:
        return False
    excess = plan.expected_excess / weight
    expected = (plan.estimate + plan.expected_excess - float(plan.sigma[1:] @ problem.thresholds)) / weight
    return excess >= _USELESS * H or expected >= H


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
