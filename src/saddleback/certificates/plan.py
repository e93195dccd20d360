"""How a certificate's samples are shared out before the first of them is drawn, and what they are expected to show.

Baselines, prices, allocation and frozen functions come from earlier samples, whose only influence is on the widths. The
share of rollouts and of the bound follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for
n_1 : n_2 = a^⅔ : b^⅔. What a certificate is expected to show costs nothing to ask (:func:`expect`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddleback.certificates.bounds import BY_NAME as BOUNDS
from saddleback.certificates.bounds import BoundPlan
from saddleback.certificates.guide import Guide, Request, hidden_by_starts
from saddleback.certificates.linearity.checks import samples_for_linearity
from saddleback.certificates.values.baselines import fit_baseline
from saddleback.certificates.values.rollouts import range_of
from saddleback.method.evaluators import LSTD
from saddleback.problem.rounding import TIE, first_largest, rounded
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.trajectories import steps_per_rollout
from saddleback.simulators.generative_model import GenerativeModel, Stream

_LEAST_PER_PAIR = 4


class Shares(NamedTuple):
    """Simulator calls for the tests of linearity, the rollouts and the bound, and δ of each interval and of the bound."""

    tests: int
    rollouts: int
    bound: int
    delta: float


def share_out(guide: Guide, samples: int, delta: float, check_linearity: bool = True) -> Shares:
    """δ is divided evenly over 1 + m intervals and the bound; where there is no mixture, all is for the bound."""
    tests = samples_for_linearity(guide.design, samples) if check_linearity else 0
    if guide.mixture is None:
        return Shares(tests, 0, samples - tests, delta)
    part = delta / (2 + guide.problem.num_constraints)
    rolled = _share_of_rollouts(guide, samples - tests, part)
    return Shares(tests, rolled, samples - tests - rolled, part)


def plan_bound(guide: Guide, sigma: Array | None, samples: int, delta: float, draft: bool = False) -> BoundPlan | None:
    """The plan, of those of all methods, that promises the least bound at ``sigma``; None where there can be none."""
    if sigma is None or samples < _LEAST_PER_PAIR * guide.design.size:
        return None
    plans = [method.plan(guide, sigma, samples, delta, draft=draft) for method in BOUNDS.values()]
    return min((plan for plan in plans if plan is not None), key=lambda plan: plan.expected_excess, default=None)


def draw_fresh(guide: Guide, model: GenerativeModel, plans: Sequence[BoundPlan], request: Request) -> Buffer:
    """One fresh buffer for all plans."""
    problem, design = guide.problem, guide.design
    counts = np.maximum(1, np.mean([plan.counts for plan in plans], axis=0).astype(np.int64))
    drawn = collect(
        model, problem, design, counts, seed=request.seed, stream=Stream.CERTIFICATE, executor=request.executor
    )
    return cut(drawn, problem, design, 1)


class Expected(NamedTuple):
    """What a certificate is expected to show: half-widths of the intervals ``(1+m,)`` and the gap, in utilities."""

    half_widths: Array
    gap: float


def expect(guide: Guide, samples: int, delta: float) -> Expected:
    """What a certificate of that many samples is expected to show; no sample is drawn."""
    problem, shares = guide.problem, share_out(guide, samples, delta)
    assert guide.mixture is not None
    n, L = number_of_rollouts(problem.gamma, shares.rollouts), math.log(2 / shares.delta)
    low, high = range_of(problem.gamma, fit_baseline(problem, guide.earlier[-1], guide.mixture))
    w = hidden_by_starts(problem, delta)
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n) + w
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta, draft=True)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, float(widths[0]) + (plan.expected_excess + w) / float(guide.sigma[0]))


def number_of_rollouts(gamma: float, steps: int) -> int:
    """As many as cost no more than ``steps``, but for a deviation of four standard errors."""
    each = steps_per_rollout(gamma)
    n = steps / each
    return max(1, int(n - 4 * math.sqrt(n)) if n > 64 else int(n / 2))


def _share_of_rollouts(guide: Guide, samples: int, delta: float) -> int:
    """How many of the samples the rollouts get; all of them where there can be no bound."""
    draft = plan_bound(guide, guide.sigma, samples // 2, delta, draft=True)
    if draft is None:
        return samples
    half = samples / 2 / steps_per_rollout(guide.problem.gamma)
    a = float(_expected_deviations(guide).max()) * math.sqrt(2 * math.log(2 / delta) / half)
    b = draft.expected_excess / max(float(draft.sigma[0]), 1e-12)
    share = a ** (2 / 3) / (a ** (2 / 3) + b ** (2 / 3)) if a + b > 0 else 0.5
    rolled = int(samples * min(0.8, max(0.25, float(rounded(share, 4)))))
    return min(rolled, samples - _LEAST_PER_PAIR * guide.design.size)  # the bound needs some of every pair


def _expected_deviations(guide: Guide) -> Array:
    """Standard deviation of one rollout ``(1+m,)``: the spread of V̂ at the pairs that the heaviest member visits."""
    problem, buffer = guide.problem, guide.earlier[-1]
    assert guide.mixture is not None
    member = guide.mixture.members[int(first_largest(guide.mixture.weights))]
    a, V = LSTD().influence_and_values(problem, buffer, member)
    _, variance = buffer.moments(V)
    gamma = problem.gamma
    noise = (buffer.signal_noise(problem) + gamma * np.sqrt(variance)) ** 2
    visits = np.where(np.abs(a) > TIE * np.abs(a).max(), np.abs(a), 0.0)  # the rest is rounding error
    step = (visits @ noise) / max(float(visits.sum()), 1e-12)
    return np.asarray(np.sqrt(step / (1 - gamma**1.5)))
