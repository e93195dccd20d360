"""Prove from fresh data how good a frozen mixture is: intervals, an upper bound on the optimum, the gap, the verdicts.

    value, constraints    rollouts of the mixture (assume bounded rewards only)                          :mod:`.values`
    upper bound           dual bound at the run's prices, by the method that promises the least          :mod:`.bounds`
    gap                   upper bound − lower limit of the value
    contradictions        where these cannot all be true, none of them is concluded                      :mod:`.contradictions`
    infeasibility         the same bound without the reward, where no policy was found feasible

δ is divided evenly over the 1 + m intervals and the bound, so that all hold together. What each rests on is in
:mod:`.assumptions`; a bound that rests on linearity is withheld where the samples refute it (:mod:`.linearity`).

**How the samples are shared out** before the first of them is drawn. Baselines, prices, allocation and frozen functions come from earlier samples, whose only influence is on the widths. The
share of rollouts and of the bound follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for
n_1 : n_2 = a^⅔ : b^⅔. What a certificate is expected to show costs nothing to ask (:func:`expect`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saddleback.certificates.assumptions import BOUNDED, bound_assumes
from saddleback.certificates.bounds import BY_NAME as BOUNDS
from saddleback.certificates.bounds import BoundPlan
from saddleback.certificates.certificate import (
    Certificate,
    Evidence,
    Limits,
    RolloutEvidence,
    StartValues,
    user_limits,
    verdict,
)
from saddleback.certificates.contradictions import find_contradictions, fit_again
from saddleback.certificates.guide import Guide, Request, hidden_by_starts, with_fresh_start
from saddleback.certificates.linearity.checks import examine_linearity, samples_for_linearity
from saddleback.certificates.linearity.findings import LinearityReport, plain_state, refuted
from saddleback.certificates.linearity.leverage import LeverageMeter, meter_for
from saddleback.certificates.values.linear import CoresetReader, read_coreset, under_linearity
from saddleback.certificates.values.rollouts import Baseline, Rollouts, fit_baseline, range_of, roll_out
from saddleback.errors import Remark
from saddleback.method.evaluators.lstd import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import TIE, first_largest, rounded
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.examination import examine, examine_again
from saddleback.sampling.trajectories import plan_rollouts, steps_per_rollout
from saddleback.simulators.generative_model import GenerativeModel, Stream

_LEAST_PER_PAIR = 4
_LEAST_ROLLOUTS = 30
_MOST_STARTS = 16


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
    (n, cap, _), L = plan_rollouts(problem.gamma, shares.rollouts), math.log(2 / shares.delta)
    low, high = range_of(problem.gamma, fit_baseline(problem, guide.earlier[-1], guide.mixture), cap)
    w = hidden_by_starts(problem, delta)
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n) + w
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta, draft=True)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, float(widths[0]) + (plan.expected_excess + w) / float(guide.sigma[0]))


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


def certify_guided(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """The certificate, with at most ``request.samples`` simulator calls, and about as many: rollouts end by chance."""
    pairs = guide.design.states, guide.design.actions
    examine(guide.problem, model, request.seed, pairs, request.executor)
    confidence, before = 1 - request.delta, model.num_queries
    guide, request, hidden = with_fresh_start(guide, request)
    problem, shares = guide.problem, share_out(guide, request.samples, request.delta, request.check_linearity)
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta)
    fresh = None if plan is None else draw_fresh(guide, model, [plan], request)
    meter = meter_for(problem.features, guide.design)
    if meter is not None and fresh is not None:
        meter.look_at(fresh)
    measured = None
    if guide.mixture is not None:
        measured = _measure(guide, guide.mixture, model, request, shares, fresh, meter, hidden)
    bound = None if plan is None or fresh is None else plan.prove(problem, fresh, shares.delta).raised(hidden)
    report = examine_linearity(guide, model, request, shares.tests, None if measured is None else measured.limits)
    examine_again(model)
    proved = None if refuted(report) else bound
    needs = bound_assumes(problem, guide.design) if bound is None else bound.assumes
    evidence = Evidence(bound=None if bound is None else bound.evidence(problem))
    arrays = {} if bound is None or bound.arrays is None else {"bound": bound.arrays}
    certificate = Certificate(
        confidence=confidence,
        samples=model.num_queries - before,
        seed=request.seed,
        linearity=report,
        leverage=None if meter is None else meter.found,
        remarks=_remarks(guide, plan, report, meter),
    )
    if measured is None:
        room = None if proved is None else proved.on_slack(problem)
        return replace(certificate, slack_bound=room, assumes={"infeasible": needs}, evidence=evidence, arrays=arrays)
    (value, *constraints), rollouts, reader = measured.limits, measured.rollouts, measured.reader
    feasible = verdict(problem, measured.low[1:], measured.high[1:], request.allowance)
    # Features that only approximate are said to be off by the tests; what is certified without them is not in doubt.
    unused = report is not None and proved is None and feasible == "certified"
    fitted = None if refuted(report) or unused else fit_again(guide, measured.baseline)
    wrong = find_contradictions(problem, measured.low, measured.high, proved, fitted)
    proved = None if wrong else proved
    return replace(
        certificate,
        value=value,
        constraints=tuple(constraints),
        upper_bound=None if proved is None else proved.on_reward(problem),
        gap=None if proved is None else proved.on_gap(problem, value),
        feasible="undecided" if wrong else feasible,
        allowance=tuple((request.allowance * np.abs(problem.scale[1:])).tolist()),
        assumes={"value": BOUNDED, "constraints": BOUNDED}
        | ({} if bound is None else {"upper_bound": needs, "gap": needs}),
        by_start=_by_start(problem, rollouts, request),
        linear=None
        if reader is None or refuted(report) or wrong or hidden or rollouts.cut
        else under_linearity(reader, rollouts),
        evidence=Evidence(_rollout_evidence(rollouts, shares.delta, request.interval), evidence.bound, fitted),
        contradictions=wrong,
        arrays={**arrays, "rollouts": rollouts.arrays()},
    )


class _Measured(NamedTuple):
    """The rollouts, what they showed together with the coreset, and the limits of the values: utilities, user's units."""

    rollouts: Rollouts
    baseline: Baseline
    reader: CoresetReader | None
    low: Array
    high: Array
    limits: tuple[Limits, ...]


def _measure(
    guide: Guide,
    mixture: MixturePolicy,
    model: GenerativeModel,
    request: Request,
    shares: Shares,
    fresh: Buffer | None,
    meter: LeverageMeter | None,
    hidden: float,
) -> _Measured:
    """Roll the mixture out; ``hidden`` is what the sampled start states may hide."""
    problem, earlier = guide.problem, guide.earlier[-1]
    baseline, plan = fit_baseline(problem, earlier, mixture), plan_rollouts(problem.gamma, shares.rollouts)
    reader = None if fresh is None else read_coreset(problem, mixture, earlier, fresh, baseline, plan, request.delta)
    watching = [observer for observer in (reader, meter) if observer is not None]
    seed, executor = request.seed, request.executor
    drawn = roll_out(problem, model, mixture, baseline, plan, seed=seed, observers=watching, executor=executor)
    rollouts = drawn.widened(hidden)
    low, high = rollouts.limits(shares.delta, request.interval)
    return _Measured(rollouts, baseline, reader, low, high, user_limits(problem, low, high))


def _by_start(problem: CMDP, rollouts: Rollouts, request: Request) -> tuple[StartValues, ...]:
    """Limits for the heaviest start states, together at 1 − δ among themselves."""
    starts = np.argsort(-problem.start.weights, kind="stable")[:_MOST_STARTS]
    starts = starts[[int((rollouts.starts == s).sum()) >= _LEAST_ROLLOUTS for s in starts]]
    if len(problem.start.weights) == 1 or not len(starts):
        return ()
    delta, out = request.delta / (len(starts) * (1 + problem.num_constraints)), []
    for s in starts:
        alone = rollouts.from_start(int(s))
        limits = user_limits(problem, *alone.limits(delta, request.interval))
        state, weight = plain_state(problem.start.states[s]), float(problem.start.weights[s])
        out.append(StartValues(state, weight, len(alone.gains), limits[0], limits[1:]))
    return tuple(out)


def _rollout_evidence(rollouts: Rollouts, delta: float, method: str) -> RolloutEvidence:
    z = rollouts.values
    return RolloutEvidence(
        number=len(z),
        steps=rollouts.steps,
        method=method,
        delta_of_each=delta,
        mean=tuple(z.mean(axis=0).tolist()),
        variance=tuple(z.var(axis=0).tolist()),
        low=tuple(rollouts.low.tolist()),
        high=tuple(rollouts.high.tolist()),
        tail=(tuple(rollouts.tail_low.tolist()), tuple(rollouts.tail_high.tolist())),
        by_member=tuple(np.bincount(rollouts.members, minlength=rollouts.num_members).tolist()),
    )


def _remarks(
    guide: Guide, plan: BoundPlan | None, report: LinearityReport | None, meter: LeverageMeter | None
) -> tuple[Remark, ...]:
    none, out = "no bound over all policies", []
    if guide.sigma is None:
        out.append(Remark("no-bound", f"{none}: the run has no prices for its constraints"))
    elif plan is None:
        out.append(Remark("no-bound", f"{none}: {guide.design.size} pairs need more samples than there are"))
    failures = [] if report is None else [f.meaning for f in report.failures]
    if refuted(report):
        text = f"{none}: the problem is not linear in its features ({'; '.join(failures)})"
        out.append(Remark("not-linear", text))
    else:
        out += [Remark("warning-linearity", f"a warning: {meaning}") for meaning in failures]
    far = None if meter is None else meter.remark()
    return tuple(out if far is None else [*out, far])
