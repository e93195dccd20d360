"""The verdict on a finished run in words: what came out, why, and what to do about it.

A run that did not reach what was asked says so; an a-priori guarantee is stated with all it rests on; infeasibility is an
answer with the distance that is missing.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddleback.features import OneHot
from saddleback.method.duals import ColumnGeneration, ProjectedDescent
from saddleback.method.framework import Outcome
from saddleback.method.oracles import Interval
from saddleback.method.slater import Slater, Verdict
from saddleback.problem.cmdp import CMDP
from saddleback.runs.solution import Solution, Status
from saddleback.solving.prepare import Prepared
from saddleback.solving.steering import Feasibility, Orders, Promise, Steering


def status_of(
    problem: CMDP,
    slater: Slater,
    steering: Steering,
    outcome: Outcome,
    limits: Interval,
    feasibility: Feasibility,
    samples: int,
) -> tuple[Status, str]:
    """The verdict on a finished run of so many ``samples``, with cause and remedy."""
    dual = steering.dual
    if slater.verdict is Verdict.INFEASIBLE:
        return Status.UNDECIDED, (
            "no policy found meets the constraints, but the features cannot carry the rewards, so that proves nothing; "
            "use other features"
        )
    if slater.verdict is Verdict.UNDECIDED:
        return Status.UNDECIDED, (
            "it is not settled whether any policy meets the constraints: the best constraint value found lies within its "
            f"own error of the threshold; {_settling(slater, samples)}"
        )
    if isinstance(dual, ProjectedDescent) and dual.saturated(outcome.steps):
        return Status.UNDECIDED, (
            f"a multiplier stayed at its cap U = {dual.upper:.3g}, so the dual has not converged; "
            "raise the cap or the number of samples, or move the threshold"
        )
    if feasibility == "strict":
        missing = problem.thresholds - limits.low[1:]
        if np.any(missing > 0):
            name = problem.constraints[int(np.argmax(missing))].name
            return Status.UNDECIDED, (
                f"the constraint '{name}' could not be shown to hold strictly: its measured lower limit misses the "
                f"threshold; more iterations may do, or else {_settling(slater, samples)}"
            )
        return Status.SOLVED, "every constraint holds, by its measured limits"
    if isinstance(dual, ColumnGeneration):
        if not dual.feasible(outcome.steps):
            return Status.UNDECIDED, (
                "no mixture of the policies found meets the target, although some policy may; draw more samples"
            )
        if len(outcome.steps) >= dual.max_columns:
            return Status.BUDGET_EXHAUSTED, f"the dual did not close its gap in {dual.max_columns} policies"
        if np.any(outcome.values[1:] < problem.thresholds - 1e-8 * problem.horizon):
            return Status.SOLVED, "the constraints hold up to the relaxation of the target that was asked for"
        return Status.SOLVED, "the constraints hold on average over the mixture, by the estimates"
    short = problem.thresholds - limits.high[1:] - 0.01 * problem.horizon
    worst = int(np.argmax(short))
    if short[worst] > 0:
        return Status.BUDGET_EXHAUSTED, (
            f"after {len(outcome.steps)} iterations the constraint '{problem.constraints[worst].name}' is still missed, by "
            "more than its measured limits and a hundredth of the horizon; run more iterations"
        )
    return Status.SOLVED, "the constraints hold on average over the mixture, up to the accuracy of the run"


def _settling(slater: Slater, samples: int) -> str:
    """What would settle whether ζ > 0: limits as wide as ζ̂ is far from zero, and widths fall like 1/√n."""
    room, short = abs(slater.estimate), max(slater.estimate - slater.low, slater.high - slater.estimate)
    times = (short / room) ** 2 if room > 1e-6 * short else math.inf
    if samples < 1 or times > 1e6:
        return "no affordable number of samples settles it: move the threshold"
    wanted = max(2 * samples, float(f"{1.5 * times * samples:.2g}"))  # the estimate of the room errs too
    return f"about {wanted:,.0f} samples should settle it, or move the threshold"


def guarantee_remark(problem: CMDP, promise: Promise | None, f: float, orders: Orders) -> str:
    """What was promised before the run, or that nothing was."""
    if promise is None:
        size = f"f = {f:.3g} in utilities" if math.isfinite(f) else "no bound on the oracles' error"
        return f"no a-priori guarantee ({size}): the limits shown are measured, not proved"
    assumed = (
        "" if problem.features is None or isinstance(problem.features, OneHot) else " if P is linear in the features"
    )
    given = f"with probability {orders.confidence:g}{assumed}"
    source = given if orders.error is None else "if the oracles err by at most the f given by hand"
    missed = " and ".join(
        f"'{c.name}' is missed by at most {v * abs(scale):.4g}"
        for c, v, scale in zip(problem.constraints, promise.violations, problem.scale[1:], strict=True)
    )
    loss = promise.reward_loss * problem.reward_span
    return (
        f"a-priori guarantee, {source}: the reward is within {loss:.4g} of the optimum and {missed} "
        f"(f = {f:.3g} in utilities)"
    )


def impossible(problem: CMDP) -> Solution | None:
    """Thresholds beyond what any policy of bounded rewards can reach need no sample to be refused."""
    H = problem.horizon
    beyond = np.flatnonzero(problem.thresholds > H * (1 + 1e-12))
    if not beyond.size:
        return None
    i = int(beyond[0])
    c, reach = problem.constraints[i], np.full(1 + problem.num_constraints, H)
    best = float(problem.values_of(reach)[1 + i])
    threshold = float(problem.user_thresholds()[i])
    message = (
        f"no policy can meet '{c.name}' {c.sense} {threshold:.6g}: with its range of values the discounted total "
        f"{'is at most' if c.sense == '>=' else 'is at least'} {best:.6g}; move the threshold"
    )
    return Solution(Status.INFEASIBLE, message, problem, 0, max_slack=-abs(best - threshold))


def infeasible(problem: CMDP, parts: Prepared, slater: Slater, settings: dict[str, Any]) -> Solution:
    """The answer where no policy meets the constraints, by measured limits."""
    values = problem.values_of(np.concatenate([[0.0], slater.reachable]))
    rows = [
        f"'{c.name}' {c.sense} {b:.6g} (the best found: {v:.6g})"
        for c, b, v in zip(problem.constraints, problem.user_thresholds(), values[1:], strict=True)
    ]
    together = " together" if problem.num_constraints > 1 else ""
    message = f"no policy meets {' and '.join(rows)}{together}, by measured limits; relax a threshold"
    slack = float((slater.slacks * np.abs(problem.scale[1:])).min())
    return Solution(
        Status.INFEASIBLE,
        message,
        problem,
        parts.samples,
        max_slack=slack,
        settings=settings,
        prepared=parts,
        slater_prices=slater.prices,
    )
