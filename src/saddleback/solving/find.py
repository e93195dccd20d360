"""From samples to a policy: everything between the buffers and the answer.

    Slater constant and verdict → the dual configures itself → Alg. 1 → measured limits → verdict, promise, remarks

In strict mode the target of a dual that allows it is raised by what the measured limits miss, until they miss nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from saddleback.method.framework import Outcome, run
from saddleback.method.master_lp import solve_master
from saddleback.method.oracles import Dual, DualContext, Interval, Step
from saddleback.method.slater import Slater, estimate_slater
from saddleback.method.slater import Verdict as Room
from saddleback.problem.cmdp import CMDP
from saddleback.problem.remarks import Remark
from saddleback.runs.answer import Choices, Trace, constraint_reports, member_reports
from saddleback.runs.events import Callback
from saddleback.runs.settings import Settings
from saddleback.solving.a_priori import linearity_residual
from saddleback.solving.events import dual_watcher
from saddleback.solving.prepared import Prepared
from saddleback.solving.promise import context_for, guarantee_remark, promise_of
from saddleback.solving.solution import Solution
from saddleback.solving.stationary import stationary_copy
from saddleback.solving.verdict import no_policy, verdict_on

Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while a solve runs."""

_MOST_TIGHTENINGS = 8
_BENT = 1e-6  # residual of known signals above which the features are said not to be linear


def find_policy(
    problem: CMDP,
    parts: Prepared,
    settings: Settings,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """The best mixture that the samples of ``parts`` know of, with the verdict on it."""
    slater = estimate_slater(
        parts.problem, parts.oracle, lambda policy: parts.interval(policy, settings.confidence), parts.optimum
    )
    bent, record = linearity_residual(parts), record_of(parts, settings)
    if slater.verdict is Room.INFEASIBLE and bent <= _BENT:  # bent features refute nothing
        return _infeasible(problem, parts, slater, settings, record)
    context, dual, outcome, limits = _run(parts, slater, settings, progress, callbacks)
    summary = dual.summary(outcome.steps)
    strict = settings.feasibility == "strict"
    verdict = verdict_on(parts.problem, slater, summary, outcome, limits, strict, parts.samples)
    promise = promise_of(context, dual, summary, outcome)
    prices = summary.multipliers
    record |= cast(
        Choices,
        {
            "iterations": len(outcome.steps),
            "solver_calls": outcome.num_solver_calls,
            "error": dual.error if math.isfinite(dual.error) else None,
            "target": dual.target.tolist(),
            **summary.record,
        },
    )
    return Solution(
        dataclasses.replace(verdict, promised=promise is not None),
        problem,
        parts.samples,
        outcome.mixture,
        float(parts.problem.values_of(outcome.values)[0]),
        constraint_reports(parts.problem, outcome.values, limits.low, limits.high),
        tuple(map(float, parts.problem.multipliers_of(prices))) if prices.size else (),
        member_reports(parts.problem, outcome),
        gap=None if summary.gap is None else summary.gap * parts.problem.reward_span,
        trace=Trace.of(parts.problem, outcome),
        stationary=stationary_copy(parts, outcome.mixture),
        remarks=_remarks(parts, guarantee_remark(parts.problem, promise, dual.error, settings), bent, outcome, limits),
        settings=record,
        prepared=parts,
        asked=settings,
    )


def record_of(parts: Prepared, settings: Settings) -> Choices:
    """What belongs in the record of a run before its dual has begun."""
    return {
        "mode": settings.method.mode,
        "solver": parts.names["solver"],
        "evaluator": parts.names["evaluator"],
        "design": parts.names["design"],
        "dual": settings.method.dual_part[0],
        "feasibility": settings.feasibility,
        "seed": settings.seed,
        "delta": settings.delta,
        "coreset": parts.design.size,
        "rank": parts.design.rank,
        "condition": parts.design.condition,
        "batches": parts.evaluation_buffer.num_batches,
    }


def mixture_interval(parts: Prepared, outcome: Outcome, confidence: float) -> Interval:
    """Limits for the mixture: the weighted sum of its members' limits, as if their errors all pointed one way."""
    intervals = [parts.interval(p, confidence) for p in outcome.mixture.members]
    w = outcome.mixture.weights
    return Interval(w @ np.array([i.low for i in intervals]), w @ np.array([i.high for i in intervals]))


def _run(
    parts: Prepared, slater: Slater, settings: Settings, progress: Progress | None, callbacks: Sequence[Callback]
) -> tuple[DualContext, Dual, Outcome, Interval]:
    """Alg. 1; in strict mode with a target raised by what the measured limits miss, until they do not."""
    _, kind, options = settings.method.dual_part
    b, context = parts.problem.thresholds, context_for(parts, slater, settings)
    dual = kind.configure(context, **options)
    for attempt in range(1, 1 + _MOST_TIGHTENINGS):
        listener = dual_watcher(callbacks, parts.problem, dual, attempt)
        outcome = run(parts.oracle, dual, _watcher(progress, dual, listener))
        limits = mixture_interval(parts, outcome, settings.confidence)
        missing = np.maximum(b - limits.low[1:], 0.0)
        settled = settings.feasibility == "relaxed" or not kind.retargets or not np.any(missing)
        raised = dual.target + 1.02 * missing
        known = np.array([values for _, values in parts.oracle.columns])
        if settled or settings.method.target is not None or solve_master(known, raised) is None:
            break
        context = context_for(parts, slater, settings, raised)
        dual = kind.configure(context, **options)
    return context, dual, outcome, limits


def _infeasible(problem: CMDP, parts: Prepared, slater: Slater, settings: Settings, record: Choices) -> Solution:
    """The answer where no policy meets the constraints, by measured limits."""
    return Solution(
        no_policy(problem, slater),
        problem,
        parts.samples,
        max_slack=float((slater.slacks * np.abs(problem.scale[1:])).min()),
        settings=record,
        prepared=parts,
        asked=settings,
        slater_prices=slater.prices,
    )


def _remarks(parts: Prepared, guarantee: Remark, bent: float, outcome: Outcome, limits: Interval) -> tuple[Remark, ...]:
    remarks = [*parts.remarks, *(Remark("features", r) for r in parts.design.remarks()), guarantee]
    if bent > _BENT:
        remarks.append(
            Remark(
                "not-linear",
                f"the rewards, or the constant 1, are not linear in the features (largest residual {bent:.2g} in utilities): "
                "estimates carry a bias that no number of samples removes, and the likely ranges do not show it",
            )
        )
    if np.any((outcome.values < limits.low) | (outcome.values > limits.high)):
        remarks.append(
            Remark(
                "bias",
                f"the estimates of {parts.names['evaluator']} carry the bias of its start from zero; the likely ranges are "
                "corrected for it",
            )
        )
    return tuple(remarks)


def _watcher(
    progress: Progress | None, dual: Dual, listener: Callable[[int, Step], None] | None
) -> Callable[[int, Step], None] | None:
    if progress is None:
        return listener

    def watch(done: int, step: Step) -> None:
        if listener is not None:
            listener(done, step)
        progress("dual iterations", done, max(dual.num_steps, done))

    return watch
