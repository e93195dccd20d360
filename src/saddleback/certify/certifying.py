"""Prove from fresh data how good a frozen mixture is: intervals, an upper bound on the optimum, the gap, the verdicts.

    value, constraints    rollouts of the mixture (assume bounded rewards only)                          :mod:`.rollouts`
    upper bound           dual bound at the run's prices: all pairs (tables), or the coreset (linear)    :mod:`.tabular_bound`
    gap                   upper bound − lower limit of the value
    infeasibility         the same bound without the reward, where no policy was found feasible

δ is divided evenly over the 1 + m intervals and the bound, so that all hold together. Baselines, prices, allocation and
frozen functions come from earlier samples, whose only influence is on the widths. The share of rollouts and of the bound in
the samples follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for n_1 : n_2 = a^⅔ : b^⅔.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from saddleback.blocks import Executor
from saddleback.buffer import Buffer, collect, cut
from saddleback.certify.baselines import fit_baseline
from saddleback.certify.bound import Bound
from saddleback.certify.certificate import Certificate, StartValues, user_limits, verdict
from saddleback.certify.intervals import BY_NAME as INTERVALS
from saddleback.certify.intervals import Bounds
from saddleback.certify.linear_bound import LinearPlan, linear_bound, plan_linear
from saddleback.certify.linearity import (
    LinearityReport,
    check_linearity,
    constant_finding,
    rollout_finding,
    signal_findings,
)
from saddleback.certify.rollouts import Rollouts, range_of, roll_out, steps_per_rollout
from saddleback.certify.tabular_bound import TabularPlan, plan_tabular, tabular_bound
from saddleback.design import Design
from saddleback.errors import InputError, require
from saddleback.evaluators import LSTD
from saddleback.policy import MixturePolicy
from saddleback.problem import CMDP
from saddleback.simulator import GenerativeModel, Stream
from saddleback.spaces import Array

_LINEARITY_SHARE = 0.1
_HELD_OUT = 20
_LEAST_ROLLOUTS = 30
_MOST_STARTS = 16
_DRAFT_STEPS = 4


@dataclass(frozen=True)
class Guide:
    """What earlier samples suggest: buffers over one coreset, the mixture (None: nothing feasible), and the prices.

    ``sigma`` is the point of the simplex whose bound will be proved; None where there are no prices.
    """

    problem: CMDP
    design: Design
    earlier: Sequence[Buffer]
    mixture: MixturePolicy | None
    sigma: Array | None


@dataclass(frozen=True)
class Request:
    """How a certificate is to be made; ``allowance`` is the violation that counts as feasible, in utilities.

    ``executor`` draws the samples (None: here, one block after the other).
    """

    samples: int
    seed: int
    delta: float = 0.05
    allowance: float = 0.0
    interval: str = "betting"
    check_linearity: bool = True
    executor: Executor | None = None

    def __post_init__(self) -> None:
        require(
            self.samples >= 1, "samples", "must be at least 1", self.samples, "give the certificate simulator calls"
        )
        require(self.seed >= 0, "seed", "must not be negative", self.seed, "use 0, 1, 2 …")
        require(0 < self.delta < 1, "delta", "must lie in (0, 1)", self.delta, "0.05 means 95 % confidence")
        if self.interval not in INTERVALS:
            known = ", ".join(INTERVALS)
            raise InputError("interval", f"must be one of {known}", repr(self.interval), "choose one of them")


def certify_guided(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """The certificate, with at most ``request.samples`` simulator calls."""
    if guide.mixture is None:
        return _infeasibility(guide, model, request)
    problem, m, before = guide.problem, guide.problem.num_constraints, model.num_queries
    part = request.delta / (2 + m)
    linear = guide.design.operator is not None
    tested = _samples_for_linearity(guide.design, request.samples) if request.check_linearity else 0
    baseline = fit_baseline(problem, guide.earlier[-1], guide.mixture)
    rolled = _share_of_rollouts(guide, request.samples - tested, part)
    plan = _plan(guide, request.samples - tested - rolled, part)
    count = number_of_rollouts(problem.gamma, rolled)
    rollouts = roll_out(
        problem,
        model,
        guide.mixture,
        baseline,
        count,
        seed=request.seed,
        stream=Stream.ROLLOUT,
        executor=request.executor,
    )
    intervals = [interval_of(rollouts, j, part, request.interval) for j in range(1 + m)]
    low, high = np.array([i.low for i in intervals]), np.array([i.high for i in intervals])
    bound = None if plan is None else _bound(guide, model, plan, part, request)
    report = _linearity(guide, model, request, tested, low, high) if linear else None
    limits = user_limits(problem, low, high)
    refuted = report is not None and not report.passed
    upper = None if bound is None or refuted else bound.on_optimum(problem)
    top = None if upper is None else float(upper * problem.scale[0] + problem.base[0] * problem.horizon)
    return Certificate(
        confidence=1 - request.delta,
        samples=model.num_queries - before,
        seed=request.seed,
        value=limits[0],
        constraints=limits[1:],
        upper_bound=top,
        gap=None if top is None else max(0.0, top - limits[0][0]),
        feasible=verdict(problem, low[1:], high[1:], request.allowance),
        allowance=tuple((request.allowance * np.abs(problem.scale[1:])).tolist()),
        assumes=_assumes(guide, bound),
        by_start=_by_start(problem, rollouts, request),
        linearity=report,
        evidence=_evidence(problem, rollouts, bound, part, request.interval),
        remarks=_remarks(guide, plan, report),
        rollout_values=rollouts.values,
    )


def _infeasibility(guide: Guide, model: GenerativeModel, request: Request) -> Certificate:
    """All samples go to the bound on the room that the constraints leave."""
    before = model.num_queries
    plan = _plan(guide, request.samples, request.delta)
    bound = None if plan is None else _bound(guide, model, plan, request.delta, request)
    room = None if bound is None else bound.on_slack(guide.problem)
    return Certificate(
        confidence=1 - request.delta,
        samples=model.num_queries - before,
        seed=request.seed,
        slack_bound=room,
        assumes=_assumes(guide, bound),
        evidence={} if bound is None else {"bound": _bound_numbers(bound)},
        remarks=_remarks(guide, plan, None),
    )


def _share_of_rollouts(guide: Guide, samples: int, delta: float) -> int:
    """How many of the samples the rollouts get; all of them where there can be no bound."""
    draft = _plan(guide, samples // 2, delta, draft=True)
    if draft is None:
        return samples
    assert guide.sigma is not None
    half = samples / 2 / steps_per_rollout(guide.problem.gamma)
    a = float(_expected_deviations(guide).max()) * math.sqrt(2 * math.log(2 / delta) / half)
    b = draft.expected_excess / max(float(guide.sigma[0]), 1e-12)
    share = a ** (2 / 3) / (a ** (2 / 3) + b ** (2 / 3)) if a + b > 0 else 0.5
    return int(samples * min(0.8, max(0.25, share)))


def _plan(guide: Guide, samples: int, delta: float, draft: bool = False) -> TabularPlan | LinearPlan | None:
    if guide.sigma is None or samples < 4 * guide.design.size:
        return None
    if guide.design.operator is None:
        steps = {"steps": _DRAFT_STEPS} if draft else {}
        return plan_tabular(guide.problem, guide.earlier[-1], guide.sigma, samples, delta, **steps)
    return plan_linear(guide.problem, guide.design, list(guide.earlier), guide.sigma, samples, delta)


def _bound(
    guide: Guide, model: GenerativeModel, plan: TabularPlan | LinearPlan, delta: float, request: Request
) -> Bound:
    problem, design = guide.problem, guide.design
    drawn = collect(
        model,
        problem,
        design,
        plan.counts,
        seed=request.seed,
        stream=Stream.CERTIFICATE,
        executor=request.executor,
    )
    fresh = cut(drawn, problem, design, 1)
    if isinstance(plan, TabularPlan):
        return tabular_bound(problem, fresh, plan, delta)
    return linear_bound(problem, fresh, plan, delta)


class Expected(NamedTuple):
    """What a certificate is expected to show: half-widths of the intervals ``(1+m,)`` and the gap, in utilities."""

    half_widths: Array
    gap: float


def expect(guide: Guide, samples: int, delta: float) -> Expected:
    """What a certificate of that many samples is expected to show; no sample is drawn."""
    problem, part = guide.problem, delta / (2 + guide.problem.num_constraints)
    assert guide.mixture is not None
    left = samples - _samples_for_linearity(guide.design, samples)
    rolled = _share_of_rollouts(guide, left, part)
    n, L = number_of_rollouts(problem.gamma, rolled), math.log(2 / part)
    low, high = range_of(problem.gamma, fit_baseline(problem, guide.earlier[-1], guide.mixture))
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n)
    plan = _plan(guide, left - rolled, part, draft=True)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, float(widths[0]) + plan.expected_excess / float(guide.sigma[0]))


def _expected_deviations(guide: Guide) -> Array:
    """Standard deviation of one rollout ``(1+m,)``: the spread of V̂ at the pairs that the heaviest member visits."""
    problem, buffer = guide.problem, guide.earlier[-1]
    assert guide.mixture is not None
    member = guide.mixture.members[int(np.argmax(guide.mixture.weights))]
    a, V = LSTD().influence_and_values(problem, buffer, member)
    variance = np.maximum(buffer.average(V**2) - buffer.average(V) ** 2, 0.0)
    step = (np.abs(a) @ variance) / max(float(np.abs(a).sum()), 1e-12)
    gamma = problem.gamma
    return np.sqrt(gamma**2 * step / (1 - gamma**1.5)) if gamma > 0 else np.zeros(len(step))


def number_of_rollouts(gamma: float, steps: int) -> int:
    """As many as cost no more than ``steps``, but for a deviation of four standard errors."""
    each = steps_per_rollout(gamma)
    n = steps / each
    return max(1, int(n - 4 * math.sqrt(n)) if n > 64 else int(n / 2))


def interval_of(rollouts: Rollouts, column: int, delta: float, method: str) -> Bounds:
    """The interval of one signal at 1 − δ, what the cap hides included, in utilities."""
    z = rollouts.values[:, column]
    low, high = INTERVALS[method](z, float(rollouts.low[column]), float(rollouts.high[column]), delta)
    H = float(rollouts.horizon)
    low, high = low + float(rollouts.tail_low[column]), high + float(rollouts.tail_high[column])
    return Bounds(min(max(low, 0.0), H), min(max(high, 0.0), H))


def _samples_for_linearity(design: Design, samples: int) -> int:
    """A tenth; nothing where tables assume no linearity or where it would be too few to say anything."""
    share = int(_LINEARITY_SHARE * samples)
    return share if design.operator is not None and share >= 8 * (_HELD_OUT + design.size) else 0


def _linearity(
    guide: Guide, model: GenerativeModel, request: Request, samples: int, low: Array, high: Array
) -> LinearityReport:
    problem = guide.problem
    if samples:
        report = check_linearity(
            problem,
            guide.design,
            model,
            samples=samples,
            seed=request.seed,
            delta=request.delta,
            num_pairs=_HELD_OUT,
            executor=request.executor,
        )
    else:
        exact = (*signal_findings(problem, guide.design), constant_finding(problem, guide.design))
        report = LinearityReport(True, exact, 0, request.delta)
    assert guide.mixture is not None
    buffer, w = guide.earlier[-1], guide.mixture.weights
    fitted = w @ np.array([LSTD().evaluate(problem, buffer, p) for p in guide.mixture.members])
    confidence = 1 - request.delta / (10 * (1 + problem.num_constraints))  # the fit's own error, by the central limit
    widths = np.array([np.ptp(LSTD().interval(problem, buffer, p, confidence), axis=0) for p in guide.mixture.members])
    (lows, highs), scale = np.array(user_limits(problem, low, high)).T, np.abs(problem.scale)
    agreed = rollout_finding(problem, problem.values_of(fitted), lows, highs, scale * (w @ widths) / 2)
    return report.joined(agreed)


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
        intervals = [interval_of(alone, j, delta, request.interval) for j in range(1 + m)]
        limits = user_limits(problem, np.array([i.low for i in intervals]), np.array([i.high for i in intervals]))
        state, weight = problem.start.states[s], float(problem.start.weights[s])
        out.append(StartValues(state, weight, len(alone.gains), limits[0], limits[1:]))
    return tuple(out)


def _assumes(guide: Guide, bound: Bound | None) -> dict[str, str]:
    bounded = "rewards and constraint signals within their declared ranges, independent simulator calls"
    out = {"value": bounded, "constraints": bounded}
    if bound is None:
        return out
    linear = guide.design.operator is not None
    needs = bounded + ("; transition probabilities linear in the features" if linear else "")
    if linear and not guide.design.complete:
        needs += "; leverages beyond the candidate pairs no larger than on them"
    return {**out, "upper_bound": needs, "gap": needs}


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
            "by_member": np.bincount(rollouts.members).tolist(),
        }
    }
    if bound is not None:
        out["bound"] = _bound_numbers(bound)
        out["bound"]["thresholds"] = problem.thresholds.tolist()
    return out


def _bound_numbers(bound: Bound) -> dict[str, Any]:
    return {
        "kind": bound.kind,
        "sigma": bound.sigma.tolist(),
        "value": bound.value,
        "estimate": bound.estimate,
        "delta": bound.delta,
        "samples": bound.samples,
    }


def _remarks(guide: Guide, plan: TabularPlan | LinearPlan | None, report: LinearityReport | None) -> tuple[str, ...]:
    out = []
    if guide.sigma is None:
        out.append("no bound on the optimum: the run has no prices for its constraints")
    elif plan is None:
        out.append(f"no bound on the optimum: {guide.design.size} pairs need more samples than there are")
    if report is not None and not report.passed:
        failed = "; ".join(f.meaning for f in report.failures)
        out.append(f"no bound on the optimum: the problem is not linear in its features ({failed})")
    return tuple(out)
