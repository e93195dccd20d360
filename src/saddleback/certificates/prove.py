"""Prove from fresh data how good a frozen mixture is: intervals, an upper bound on the optimum, the gap, the verdicts.

    value, constraints    rollouts of the mixture (assume bounded rewards only)                          :mod:`.values`
    upper bound           dual bound at the run's prices, by the method that promises the least; or declared  :mod:`.bounds`
    gap                   upper bound − lower limit of the value, or by pairing, without the limits           :mod:`.bounds.advantage`
    linear                what needs P to be linear in the features, apart from what is proved             :mod:`.if_linear`
    contradictions        where these cannot all be true, none of them is concluded                      :mod:`.contradictions`
    infeasibility         the same bound without the reward, where no policy was found feasible

δ is divided evenly over the 1 + m intervals and the bound, so that all hold together. What each rests on is in
:mod:`.assumptions`. A bound that rests on linearity, and all that follows from it, is withheld where the samples refute it
(:mod:`.linearity`), and is no proof where they do not.

How the samples are shared out before the first of them is drawn: :mod:`.expected`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np

from saddleback.certificates.assumptions import bound_assumes, bounded, rests_on
from saddleback.certificates.bounds import Bound, BoundPlan
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
from saddleback.certificates.expected import LEAST_PER_PAIR, Shares, expected_half_width, plan_bound, share_out
from saddleback.certificates.guide import Guide, Request, with_fresh_start
from saddleback.certificates.if_linear import of_policy, of_room
from saddleback.certificates.linearity.checks import examine_linearity
from saddleback.certificates.linearity.findings import LinearityReport, plain_state, refuted
from saddleback.certificates.linearity.leverage import LeverageMeter, meter_for
from saddleback.certificates.values.baseline import Baseline, fit_baseline, plan_for
from saddleback.certificates.values.linear import CoresetReader, read_coreset, under_linearity
from saddleback.certificates.values.rollouts import Rollouts, roll_out
from saddleback.errors import Remark
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declared_ceiling, declares
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.examination import examine, examine_again
from saddleback.simulators.generative_model import GenerativeModel, Stream

_LEAST_ROLLOUTS, _MOST_STARTS = 30, 16
_NO_INFORMATION = "from so few samples it would say nothing, so none were spent on it; allow more (`--samples`)"


def draw_fresh(guide: Guide, model: GenerativeModel, plans: Sequence[BoundPlan], request: Request) -> Buffer:
    """One fresh buffer for all plans."""
    problem, design = guide.problem, guide.design
    counts = np.maximum(1, np.mean([plan.counts for plan in plans], axis=0).astype(np.int64))
    seed, executor, unsampled = request.seed, request.executor, guide.earlier[-1].unsampled
    together = design.operator is None and bool(np.any(problem.observed))  # a bound over all pairs bets on both as one
    drawn = collect(
        model,
        problem,
        design,
        counts,
        seed=seed,
        stream=Stream.CERTIFICATE,
        executor=executor,
        unsampled=unsampled,
        joint=together,
    )
    return cut(drawn, problem, design, 1)


def certify_guided(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """The certificate, with at most ``request.samples`` simulator calls, and about as many: rollouts end by chance."""
    pairs = guide.design.states, guide.design.actions
    examine(guide.problem, model, request.seed, pairs, request.executor)
    confidence, before = 1 - request.delta, model.num_queries
    guide, request, hidden = with_fresh_start(guide, request)
    problem, shares = guide.problem, share_out(guide, request)
    half = expected_half_width(guide, shares.rollouts, shares.delta)
    plan = plan_bound(guide, guide.sigma, shares.bound, shares.delta, half_width=half)
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
    # What assumes linearity is no proof, and is said elsewhere.
    free = bound is None or not rests_on(needs, "linear")
    if measured is None:
        room = proved.on_slack(problem) if free and proved is not None else None
        given = of_room(problem, proved)
        evidence = Evidence(
            bound=None if evidence.bound is None else msgspec.structs.replace(evidence.bound, bent=given.bent)
        )
        stated = replace(certificate, slack_bound=room, linear=given.statements, assumes={"infeasible": needs})
        return replace(stated, evidence=evidence, arrays=arrays)
    (value, *constraints), rollouts, reader = measured.limits, measured.rollouts, measured.reader
    feasible = verdict(problem, measured.low[1:], measured.high[1:], request.allowance)
    # Features that only approximate are said to be off by the tests; what is certified without them is not in doubt.
    unused = report is not None and proved is None and feasible == "certified"
    fitted = None if refuted(report) or unused else fit_again(guide, measured.baseline)
    wrong = find_contradictions(problem, measured.low, measured.high, proved, fitted)
    proved = None if wrong else proved
    sound = not (refuted(report) or wrong or hidden)
    given = of_policy(
        problem, proved, value, under_linearity(reader, rollouts) if reader is not None and sound else None
    )
    behind = None if evidence.bound is None else msgspec.structs.replace(evidence.bound, bent=given.bent)
    proved = proved if free else None
    top, assumed = _best_reward(problem, proved, needs, known=not wrong)
    return replace(
        certificate,
        value=value,
        constraints=tuple(constraints),
        upper_bound=top,
        gap=proved.on_gap(problem, value) if proved is not None else None if top is None else problem.loss(top, value),
        feasible="undecided" if wrong else feasible,
        allowance=tuple((request.allowance * np.abs(problem.scale[1:])).tolist()),
        assumes=dict.fromkeys(("value", "constraints"), bounded(problem))
        | dict.fromkeys(() if bound is None and top is None else ("upper_bound", "gap"), assumed),
        by_start=_by_start(problem, rollouts, request),
        linear=given.statements,
        evidence=Evidence(_rollout_evidence(rollouts, shares.delta, request.interval), behind, fitted),
        contradictions=wrong,
        arrays={**arrays, "rollouts": rollouts.arrays()},
    )


def _best_reward(problem: CMDP, proved: Bound | None, needs: str, *, known: bool) -> tuple[float | None, str]:
    """The bound on the best feasible reward, in the user's units, and what it rests on: what was declared, where nothing is proved."""
    if proved is not None:
        return proved.on_reward(problem), needs
    ceiling = declared_ceiling(problem) if known else None
    if ceiling is None:
        return None, needs
    return float(ceiling * problem.scale[0] + problem.base[0] * problem.horizon), bounded(problem)


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
    baseline = fit_baseline(problem, earlier, mixture)
    plan = plan_for(problem, earlier, mixture, shares.rollouts, request.interval)
    # Its sums go on for ever, and rollouts do not.
    reader = (
        None
        if fresh is None or declares(problem)
        else read_coreset(problem, mixture, earlier, fresh, baseline, plan, request.delta)
    )
    watching = [observer for observer in (reader, meter) if observer is not None]
    seed, executor = request.seed, request.executor
    drawn = roll_out(problem, model, mixture, baseline, plan, seed=seed, observers=watching, executor=executor)
    rollouts = drawn.widened(hidden)
    low, high = rollouts.limits(shares.delta, request.interval)
    whole = not rollouts.cut and len(rollouts.gains) >= plan.number
    return _Measured(rollouts, baseline, reader if whole else None, low, high, user_limits(problem, low, high))


def _by_start(problem: CMDP, rollouts: Rollouts, request: Request) -> tuple[StartValues, ...]:
    """Limits for the heaviest start states, together at 1 − δ among themselves; none where these were drawn, as their weights were."""
    # What is declared of ends is known of the value at ρ, not of the value from one start state.
    if problem.start.sampler is not None or declares(problem):
        return ()
    weights = problem.start.weights
    starts = np.argsort(-weights, kind="stable")[:_MOST_STARTS]
    # By the number that was expected: how many there are depends on what they showed.
    starts = starts[weights[starts] * rollouts.waves[0, 1] >= _LEAST_ROLLOUTS]
    if len(weights) == 1 or not len(starts):
        return ()
    delta, out = request.delta / (len(starts) * (1 + problem.num_constraints)), []
    for s in starts[np.isin(starts, rollouts.starts)]:
        alone = rollouts.from_start(int(s), float(weights[s]))
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
    if guide.mixture is not None and declared_ceiling(guide.problem) is not None:
        none = "no bound over all policies but by what was declared"
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
