"""Prove from fresh data how good a frozen mixture is: intervals, an upper bound on the optimum, the gap, the verdicts.

    value, constraints    rollouts of the mixture (assume bounded rewards only)                          :mod:`.values`
    upper bound           dual bound at the run's prices, by the method that promises the least          :mod:`.bounds`
    gap                   upper bound − lower limit of the value
    contradictions        where these cannot all be true, none of them is concluded                      :mod:`.contradictions`
    infeasibility         the same bound without the reward, where no policy was found feasible

δ is divided evenly over the 1 + m intervals and the bound, so that all hold together. What each rests on is in
:mod:`.assumptions`; a bound that rests on linearity is withheld where the samples refute it (:mod:`.linearity`).

How the samples are shared out before the first of them is drawn: :mod:`.expected`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from saddleback.certificates.assumptions import BOUNDED, bound_assumes
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
from saddleback.certificates.expected import LEAST_PER_PAIR, Shares, plan_bound, share_out
from saddleback.certificates.guide import Guide, Request, with_fresh_start
from saddleback.certificates.linearity.checks import examine_linearity
from saddleback.certificates.linearity.findings import LinearityReport, plain_state, refuted
from saddleback.certificates.linearity.leverage import LeverageMeter, meter_for
from saddleback.certificates.values.linear import CoresetReader, read_coreset, under_linearity
from saddleback.certificates.values.rollouts import Baseline, Rollouts, fit_baseline, roll_out
from saddleback.errors import Remark
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.examination import examine, examine_again
from saddleback.sampling.trajectories import plan_rollouts
from saddleback.simulators.generative_model import GenerativeModel, Stream

_LEAST_ROLLOUTS, _MOST_STARTS = 30, 16
_NO_INFORMATION = "from so few samples it would say nothing, so none were spent on it; allow more (`--samples`)"


def draw_fresh(guide: Guide, model: GenerativeModel, plans: Sequence[BoundPlan], request: Request) -> Buffer:
    """One fresh buffer for all plans."""
    problem, design = guide.problem, guide.design
    counts = np.maximum(1, np.mean([plan.counts for plan in plans], axis=0).astype(np.int64))
    seed, executor, unsampled = request.seed, request.executor, guide.earlier[-1].unsampled
    drawn = collect(
        model, problem, design, counts, seed=seed, stream=Stream.CERTIFICATE, executor=executor, unsampled=unsampled
    )
    return cut(drawn, problem, design, 1)


def certify_guided(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """The certificate, with at most ``request.samples`` simulator calls, and about as many: rollouts end by chance."""
    pairs = guide.design.states, guide.design.actions
    examine(guide.problem, model, request.seed, pairs, request.executor)
    confidence, before = 1 - request.delta, model.num_queries
    guide, request, hidden = with_fresh_start(guide, request)
    problem, shares = guide.problem, share_out(guide, request)
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
        remarks=_remarks(guide, request, plan, report, meter),
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
    """Limits for the heaviest start states, together at 1 − δ among themselves; none where these were drawn, as their weights were."""
    if problem.start.sampler is not None:
        return ()
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
        known=(tuple(rollouts.known[0].tolist()), tuple(rollouts.known[1].tolist())),
    )


def _remarks(
    guide: Guide, request: Request, plan: BoundPlan | None, report: LinearityReport | None, meter: LeverageMeter | None
) -> tuple[Remark, ...]:
    none, out = "no bound over all policies", []
    if guide.sigma is None:
        out.append(Remark("no-bound", f"{none}: the run has no prices for its constraints"))
    elif plan is None:
        few = request.samples < 2 * LEAST_PER_PAIR * guide.design.size
        why = f"{guide.design.size} pairs need more samples than there are" if few else _NO_INFORMATION
        out.append(Remark("no-bound", f"{none}: {why}"))
    failures = [] if report is None else [f.meaning for f in report.failures]
    if refuted(report):
        text = f"{none}: the problem is not linear in its features ({'; '.join(failures)})"
        out.append(Remark("not-linear", text))
    else:
        out += [Remark("warning-linearity", f"a warning: {meaning}") for meaning in failures]
    far = None if meter is None else meter.remark()
    return tuple(out if far is None else [*out, far])
