"""One call: ``solve(problem, simulator, samples=…, feasibility=…) -> Solution``.

Alg. 1 with the settings of Theorem thm_main2, where the data allow them:

    U = 2H/ζ,   η = U/(H√K),   b' = b − 2f (relaxed)  or  b + 4f (strict, f ≤ ζ/6)

ζ is replaced by a measured lower limit, which is all the proof needs. With affordable budgets the worst-case f exceeds
ζ/6 (often H itself), and b' = b − 2f would silently drop the constraint. Then relaxed uses b' = b, strict uses b' = b plus
the measured evaluation half-width, and the solution says "no a-priori guarantee". ``error`` sets f by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from saddleback.duals import BY_NAME as DUALS
from saddleback.duals import ProjectedDescent
from saddleback.errors import BudgetError, InputError, require
from saddleback.framework import Outcome, run
from saddleback.oracles import Evaluator, InteractiveSolver, Interval, Solver
from saddleback.problem import CMDP
from saddleback.setup import Choices, Designer, Prepared, prepare
from saddleback.simulator import GenerativeModel
from saddleback.slater import Slater, Verdict, estimate_slater
from saddleback.solution import Solution, Status, Trace, constraint_reports, member_reports
from saddleback.spaces import Array
from saddleback.stationary import stationary_copy
from saddleback.theory import Guarantee, guarantee_of

Feasibility = Literal["relaxed", "strict"]
Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while a solve runs."""


@dataclass(frozen=True)
class Overrides:
    """The theorem's settings set by hand, in the paper's units; None means as the theorem says."""

    upper: float | None = None
    step_size: float | None = None
    target: Array | None = None


def solve(
    problem: CMDP,
    simulator: GenerativeModel,
    *,
    feasibility: Feasibility = "relaxed",
    samples: int = 1_000_000,
    iterations: int = 1000,
    delta: float = 0.05,
    seed: int = 0,
    error: float | None = None,
    solver: str | Solver | InteractiveSolver | None = None,
    evaluator: str | Evaluator | None = None,
    design: str | Designer | None = None,
    dual: str = "projected-descent",
    buffers: int = 2,
    batch_size: int = 4,
    resolution: int | None = 1000,
    upper: float | None = None,
    step_size: float | None = None,
    target: ArrayLike | None = None,
    progress: Progress | None = None,
) -> Solution:
    """Solve a constrained problem from ``samples`` simulator calls; what is guaranteed when stands at the module's head.

    Parts are chosen by name or handed over as objects; None means the usual one for the problem. ``batch_size`` is M,
    ``iterations`` is K, ``resolution`` the grid of the solver's rewards (None: no grid, as in the paper). ``error`` is f,
    and ``upper`` (U), ``step_size`` (η) and ``target`` (b', one a constraint) override the theorem; these four are in the
    paper's units, where rewards and constraints are utilities in [0, 1].
    """
    _check(feasibility, samples, iterations, delta, error, dual)
    impossible = _impossible(problem)
    if impossible is not None:
        return impossible
    if progress is not None:
        progress("sampling", 0, 1)
    choices = Choices(solver, evaluator, design, buffers, batch_size, resolution)
    overrides = Overrides(upper, step_size, None if target is None else np.asarray(target, dtype=np.float64))
    try:
        parts = prepare(problem, simulator, samples, seed, choices)
    except BudgetError as exhausted:
        return Solution(Status.BUDGET_EXHAUSTED, str(exhausted).rstrip("."), problem, simulator.num_queries)
    confidence = 1.0 - delta
    slater = estimate_slater(parts.problem, parts.oracle, lambda policy: parts.interval(policy, confidence))
    settings: dict[str, Any] = {
        **parts.names,
        "dual": dual,
        "feasibility": feasibility,
        "iterations": iterations,
        "seed": seed,
        "delta": delta,
        "coreset": parts.design.size,
        "batches": parts.evaluation_buffer.num_batches,
    }
    if slater.verdict is Verdict.INFEASIBLE:
        return _infeasible(parts, slater, settings)
    f = parts.a_priori_error(delta) if error is None else error
    descent, guarantee = _settings(parts, slater, f, feasibility, iterations, confidence, overrides)
    settings |= {"error": f if math.isfinite(f) else None, "upper": descent.upper, "target": descent.target.tolist()}
    outcome = run(parts.oracle, descent, _watcher(progress, iterations))
    limits = mixture_interval(parts, outcome, confidence)
    status, message = _status(parts.problem, slater, descent, outcome, limits, feasibility)
    remarks = [*parts.remarks, _guarantee_remark(parts.problem, guarantee, f, error is not None, delta)]
    if np.any((outcome.values < limits.low) | (outcome.values > limits.high)):
        remarks.append(
            f"the estimates of {parts.names['evaluator']} carry the bias of its start from zero; the likely ranges are "
            "corrected for it"
        )
    multipliers = parts.problem.multipliers_of(np.mean([s.multipliers for s in outcome.steps], axis=0))
    values = parts.problem.values_of(outcome.values)
    return Solution(
        status,
        message,
        problem,
        parts.samples,
        outcome.mixture,
        float(values[0]),
        constraint_reports(parts.problem, outcome.values, limits.low, limits.high),
        tuple(map(float, multipliers)),
        member_reports(parts.problem, outcome),
        trace=Trace.of(parts.problem, outcome),
        stationary=stationary_copy(parts, outcome.mixture),
        remarks=tuple(remarks),
        settings=settings,
    )


def mixture_interval(parts: Prepared, outcome: Outcome, confidence: float) -> Interval:
    """Limits for the mixture: the weighted sum of its members' limits, as if their errors all pointed one way."""
    intervals = [parts.interval(p, confidence) for p in outcome.mixture.members]
    w = outcome.mixture.weights
    return Interval(w @ np.array([i.low for i in intervals]), w @ np.array([i.high for i in intervals]))


def _settings(
    parts: Prepared,
    slater: Slater,
    f: float,
    feasibility: Feasibility,
    K: int,
    confidence: float,
    overrides: Overrides,
) -> tuple[ProjectedDescent, Guarantee | None]:
    """U, η, b', and what they guarantee for this K (None: nothing a priori)."""
    H, b = parts.problem.horizon, parts.problem.thresholds
    proved = slater.estimate - f  # a lower bound on ζ whenever f is one on the evaluation error
    guaranteed = len(b) == 1 and b[0] >= 0 and proved > 0 and f <= proved / 6
    # Without that, the measured limit; an undecided problem may have no room at all, and a hundredth of H keeps U finite.
    zeta = proved if guaranteed else slater.low if slater.low > 0 else 0.01 * H
    if guaranteed:
        target = b - 2 * f if feasibility == "relaxed" else b + 4 * f
    elif feasibility == "relaxed":
        target = b
    else:
        target = b + _half_width(parts, confidence)
    if overrides.target is not None:
        target = np.broadcast_to(overrides.target, b.shape)
    U = 2 * H / zeta if overrides.upper is None else overrides.upper
    eta = U / (H * math.sqrt(K)) if overrides.step_size is None else overrides.step_size
    dual = ProjectedDescent(target, U, eta, K)
    if not guaranteed:
        return dual, None
    return dual, guarantee_of(
        upper=U,
        step_size=eta,
        num_iterations=K,
        target=float(target[0]),
        solver_error=f,
        evaluation_error=f,
        horizon=H,
        zeta=proved,
        threshold=float(b[0]),
    )


def _half_width(parts: Prepared, confidence: float) -> Array:
    """Half the measured interval of each constraint at the policy that is safest for it, ``(m,)``."""
    m = parts.problem.num_constraints
    widths = np.zeros(m)
    for i in range(m):
        low, high = parts.interval(parts.oracle(np.eye(1 + m)[1 + i])[0], confidence)
        widths[i] = (high[1 + i] - low[1 + i]) / 2
    return widths


def _status(
    problem: CMDP, slater: Slater, dual: ProjectedDescent, outcome: Outcome, limits: Interval, feasibility: Feasibility
) -> tuple[Status, str]:
    """The verdict on a finished run, with cause and remedy."""
    if slater.verdict is Verdict.UNDECIDED:
        return Status.UNDECIDED, (
            "it is not settled whether any policy meets the constraints: the best constraint value found lies within its "
            "own error of the threshold; draw more samples or move the threshold"
        )
    if dual.saturated(outcome.steps):
        return Status.UNDECIDED, (
            f"a multiplier stayed at its cap U = {dual.upper:.3g}, so the dual has not converged; "
            "raise the cap or the number of samples, or move the threshold"
        )
    short = problem.thresholds - outcome.values[1:]
    worst = int(np.argmax(short))
    name = problem.constraints[worst].name
    if feasibility == "strict":
        missing = problem.thresholds - limits.low[1:]
        if np.any(missing > 0):
            name = problem.constraints[int(np.argmax(missing))].name
            return Status.UNDECIDED, (
                f"the constraint '{name}' could not be shown to hold strictly: its measured lower limit misses the "
                "threshold; draw more samples or run more iterations"
            )
        return Status.SOLVED, "every constraint holds, by its measured limits"
    if short[worst] > problem.horizon / math.sqrt(len(outcome.steps)):
        return Status.BUDGET_EXHAUSTED, (
            f"after {len(outcome.steps)} iterations the constraint '{name}' is still missed by more than the dual's own "
            "accuracy; run more iterations"
        )
    return Status.SOLVED, "the constraints hold on average over the mixture, up to the accuracy of the run"


def _guarantee_remark(problem: CMDP, guarantee: Guarantee | None, f: float, given: bool, delta: float) -> str:
    if guarantee is None:
        size = f"f = {f:.3g} in utilities" if math.isfinite(f) else "no bound on the oracles' error"
        return f"no a-priori guarantee ({size}, against a sixth of the room the constraints leave): limits are measured"
    loss, missed = guarantee.reward_loss * problem.scale[0], guarantee.violation * abs(problem.scale[1])
    source = "if the oracles err by at most the f given by hand" if given else f"with probability {1 - delta:g}"
    return (
        f"a-priori guarantee, {source}: the reward is within {loss:.4g} of the optimum and "
        f"'{problem.constraints[0].name}' is missed by at most {missed:.4g} (f = {f:.3g} in utilities)"
    )


def _impossible(problem: CMDP) -> Solution | None:
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


def _infeasible(parts: Prepared, slater: Slater, settings: dict[str, Any]) -> Solution:
    problem = parts.problem
    values = problem.values_of(np.concatenate([[0.0], slater.reachable]))
    rows = [
        f"'{c.name}' {c.sense} {b:.6g} (the best found: {v:.6g})"
        for c, b, v in zip(problem.constraints, problem.user_thresholds(), values[1:], strict=True)
    ]
    together = " together" if problem.num_constraints > 1 else ""
    message = f"no policy meets {' and '.join(rows)}{together}, by measured limits; relax a threshold"
    slack = float((slater.slacks * np.abs(problem.scale[1:])).min())
    return Solution(Status.INFEASIBLE, message, problem, parts.samples, max_slack=slack, settings=settings)


def _watcher(progress: Progress | None, total: int) -> Callable[[int, Any], None] | None:
    return None if progress is None else lambda done, step: progress("dual iterations", done, total)


def _check(feasibility: str, samples: int, iterations: int, delta: float, error: float | None, dual: str) -> None:
    require(
        feasibility in ("relaxed", "strict"), "feasibility", "must be relaxed or strict", repr(feasibility), "pick one"
    )
    require(samples >= 1, "samples", "must be at least 1", samples, "give a number of simulator calls")
    require(iterations >= 1, "iterations", "must be at least 1", iterations, "use 1000 or more")
    require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, "0.05 means 95 % confidence")
    require(error is None or error >= 0, "error", "must not be negative", error, "give the error f of the oracles")
    if dual not in DUALS:
        raise InputError("dual", f"must be one of {', '.join(sorted(DUALS))}", repr(dual), "choose one of them")
