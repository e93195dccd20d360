"""Prove from fresh data how good a frozen mixture is: intervals, an upper bound on the optimum, the gap, the verdicts.

    value, constraints    rollouts of the mixture (assume bounded rewards only)                          :mod:`.rollouts`
    upper bound           dual bound at the run's prices: all pairs (tables), or the coreset (linear)    :mod:`.guide`
    gap                   upper bound − lower limit of the value
    infeasibility         the same bound without the reward, where no policy was found feasible

δ is divided evenly over the 1 + m intervals and the bound, so that all hold together. What each rests on is in
:mod:`.assumptions`; a bound that rests on linearity is withheld where the samples refute it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from saddleback.certificates.assumptions import BOUNDED, bound_assumes, examine_linearity, refuted
from saddleback.certificates.baselines import fit_baseline
from saddleback.certificates.bound import Bound
from saddleback.certificates.certificate import Certificate, StartValues, user_limits, verdict
from saddleback.certificates.fresh_start import with_fresh_start
from saddleback.certificates.intervals import BY_NAME as INTERVALS
from saddleback.certificates.intervals import Bounds
from saddleback.certificates.leverage import LeverageMeter, meter_for
from saddleback.certificates.linear_values import CoresetReader, read_coreset, under_linearity
from saddleback.certificates.linearity import LinearityReport
from saddleback.certificates.plan import (
    Guide,
    Plan,
    Request,
    draw_fresh,
    number_of_rollouts,
    plan_bound,
    prove_bounds,
    samples_for_linearity,
    share_of_rollouts,
)
from saddleback.certificates.rollouts import Rollouts, roll_out
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.simulators.generative_model import GenerativeModel, Stream

_LEAST_ROLLOUTS = 30
_MOST_STARTS = 16


def certify_guided(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """The certificate, with about ``request.samples`` simulator calls: rollouts end by chance."""
    confidence = 1 - request.delta
    guide, request, spread = with_fresh_start(guide, request)
    if guide.mixture is None:
        return dataclasses.replace(_infeasibility(guide, model, request, spread), confidence=confidence)
    problem, m, before = guide.problem, guide.problem.num_constraints, model.num_queries
    part = request.delta / (2 + m)
    tested = samples_for_linearity(guide.design, request.samples) if request.check_linearity else 0
    rolled = share_of_rollouts(guide, request.samples - tested, part)
    plan = plan_bound(guide, guide.sigma, request.samples - tested - rolled, part)
    fresh = None if plan is None else draw_fresh(guide, model, [plan], request)
    rollouts, reader, meter = _roll_out(guide, model, rolled, fresh, request)
    rollouts = dataclasses.replace(rollouts, tail_low=rollouts.tail_low - spread, tail_high=rollouts.tail_high + spread)
    low, high = _limits(rollouts, part, request.interval)
    bound = (
        None if plan is None or fresh is None else _spread_out(prove_bounds(problem, fresh, [plan], part)[0], spread)
    )
    report = examine_linearity(guide, model, request, tested, (low, high))
    value, *constraints = user_limits(problem, low, high)
    top = None
    if bound is not None and not refuted(report):
        top = float(bound.on_optimum(problem) * problem.scale[0] + problem.base[0] * problem.horizon)
    needs = {} if bound is None else dict.fromkeys(("upper_bound", "gap"), bound_assumes(guide))
    return Certificate(
        confidence=confidence,
        samples=model.num_queries - before,
        seed=request.seed,
        value=value,
        constraints=tuple(constraints),
        upper_bound=top,
        gap=None if top is None else problem.loss(top, value),
        feasible=verdict(problem, low[1:], high[1:], request.allowance),
        allowance=tuple((request.allowance * np.abs(problem.scale[1:])).tolist()),
        assumes={"value": BOUNDED, "constraints": BOUNDED, **needs},
        by_start=_by_start(problem, rollouts, request),
        linearity=report,
        linear=None if reader is None or refuted(report) or spread else under_linearity(reader, rollouts),
        evidence=_evidence(problem, rollouts, bound, part, request.interval),
        remarks=_remarks(guide, plan, report, meter),
        leverage=None if meter is None else meter.to_json(),
        rollout_values=rollouts.values,
    )


def _infeasibility(guide: Guide, model: GenerativeModel, request: Request, spread: float) -> Certificate:
    """All samples but those that test linearity go to the bound on the room that the constraints leave."""
    before = model.num_queries
    tested = samples_for_linearity(guide.design, request.samples) if request.check_linearity else 0
    plan = plan_bound(guide, guide.sigma, request.samples - tested, request.delta)
    fresh = None if plan is None else draw_fresh(guide, model, [plan], request)
    bound = None
    if plan is not None and fresh is not None:
        bound = _spread_out(prove_bounds(guide.problem, fresh, [plan], request.delta)[0], spread)
    meter = meter_for(guide.problem.features, guide.design, None)
    if meter is not None and fresh is not None:
        meter.look_at(fresh)
    report = examine_linearity(guide, model, request, tested)
    proved = bound is not None and not refuted(report)
    return Certificate(
        confidence=1 - request.delta,
        samples=model.num_queries - before,
        seed=request.seed,
        slack_bound=bound.on_slack(guide.problem) if bound is not None and proved else None,
        assumes={"infeasible": bound_assumes(guide)},
        linearity=report,
        evidence={} if bound is None else {"bound": _bound_numbers(guide.problem, bound)},
        remarks=_remarks(guide, plan, report, meter),
        leverage=None if meter is None else meter.to_json(),
    )


def _roll_out(
    guide: Guide, model: GenerativeModel, steps: int, fresh: Buffer | None, request: Request
) -> tuple[Rollouts, CoresetReader | None, LeverageMeter | None]:
    """The rollouts, what they showed together with the fresh samples of the coreset, and the leverages seen."""
    problem, mixture, earlier = guide.problem, guide.mixture, guide.earlier[-1]
    assert mixture is not None
    baseline, n = fit_baseline(problem, earlier, mixture), number_of_rollouts(problem.gamma, steps)
    reader = None if fresh is None else read_coreset(problem, mixture, earlier, fresh, baseline, n, request.delta)
    meter = meter_for(problem.features, guide.design, reader)
    if meter is not None and fresh is not None:
        meter.look_at(fresh)
    rollouts = roll_out(
        problem,
        model,
        mixture,
        baseline,
        n,
        seed=request.seed,
        stream=Stream.ROLLOUT,
        observe=meter or reader,
        executor=request.executor,
    )
    return rollouts, reader, meter


def _spread_out(bound: Bound, spread: float) -> Bound:
    """The bound for ρ from that for a sample of it."""
    return dataclasses.replace(bound, value=bound.value + spread)


def _limits(rollouts: Rollouts, delta: float, method: str) -> tuple[Array, Array]:
    intervals = [interval_of(rollouts, j, delta, method) for j in range(rollouts.gains.shape[1])]
    return np.array([i.low for i in intervals]), np.array([i.high for i in intervals])


def interval_of(rollouts: Rollouts, column: int, delta: float, method: str) -> Bounds:
    """The interval of one signal at 1 − δ, what the cap hides included, in utilities."""
    z = rollouts.values[:, column]
    low, high = INTERVALS[method](z, float(rollouts.low[column]), float(rollouts.high[column]), delta)
    H = float(rollouts.horizon)
    low, high = low + float(rollouts.tail_low[column]), high + float(rollouts.tail_high[column])
    return Bounds(min(max(low, 0.0), H), min(max(high, 0.0), H))


def _by_start(problem: CMDP, rollouts: Rollouts, request: Request) -> tuple[StartValues, ...]:
    """Limits for the heaviest start states, together at 1 − δ among themselves."""
    starts = np.argsort(-problem.start.weights, kind="stable")[:_MOST_STARTS]
    starts = starts[[int((rollouts.starts == s).sum()) >= _LEAST_ROLLOUTS for s in starts]]
    if len(problem.start.weights) == 1 or not len(starts):
        return ()
    m, out = problem.num_constraints, []
    delta = request.delta / (len(starts) * (1 + m))
    for s in starts:
        alone = rollouts.from_start(int(s))
        limits = user_limits(problem, *_limits(alone, delta, request.interval))
        state, weight = problem.start.states[s], float(problem.start.weights[s])
        out.append(StartValues(state, weight, len(alone.gains), limits[0], limits[1:]))
    return tuple(out)


def _evidence(problem: CMDP, rollouts: Rollouts, bound: Bound | None, delta: float, method: str) -> dict[str, Any]:
    z = rollouts.values
    out: dict[str, Any] = {
        "rollouts": {
            "number": len(z),
            "steps": rollouts.steps,
            "method": method,
            "delta_of_each": delta,
            "mean": z.mean(axis=0).tolist(),
            "variance": z.var(axis=0).tolist(),
            "low": rollouts.low.tolist(),
            "high": rollouts.high.tolist(),
            "tail": [rollouts.tail_low.tolist(), rollouts.tail_high.tolist()],
            "by_member": np.bincount(rollouts.members, minlength=rollouts.num_members).tolist(),
        }
    }
    if bound is not None:
        out["bound"] = _bound_numbers(problem, bound)
    return out


def _bound_numbers(problem: CMDP, bound: Bound) -> dict[str, Any]:
    return {
        "kind": bound.kind,
        "sigma": bound.sigma.tolist(),
        "value": bound.value,
        "estimate": bound.estimate,
        "delta": bound.delta,
        "samples": bound.samples,
        "thresholds": problem.thresholds.tolist(),
    }


def _remarks(
    guide: Guide, plan: Plan | None, report: LinearityReport | None, meter: LeverageMeter | None = None
) -> tuple[str, ...]:
    out = []
    if guide.sigma is None:
        out.append("no bound over all policies: the run has no prices for its constraints")
    elif plan is None:
        out.append(f"no bound over all policies: {guide.design.size} pairs need more samples than there are")
    if report is not None and not report.passed:
        failed = "; ".join(f.meaning for f in report.failures)
        out.append(f"no bound over all policies: the problem is not linear in its features ({failed})")
    elif report is not None:
        out += [f"a warning: {f.meaning}" for f in report.failures]
    if meter is not None and meter.exceeded:
        out.append(f"a warning: {meter.remark()}")
    return tuple(out)
