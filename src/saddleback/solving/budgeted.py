"""A solve from a given number of samples: everything between the samples and the Solution.

    prepare (design, buffers, oracles) → Slater constant and verdict → steer the dual → Alg. 1 → measured limits → status

``mode="default"`` uses column generation, a refined design and LSTD; ``mode="literal"`` is the paper's algorithm with the
settings of its theorem. What is promised when stands in :mod:`saddleback.solving.steering`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saddleback.designs.design import Designer
from saddleback.errors import BudgetError, InputError, require
from saddleback.method.duals import BY_NAME as DUALS
from saddleback.method.duals import ColumnGeneration, ProjectedDescent
from saddleback.method.framework import Outcome, run
from saddleback.method.master_lp import solve_master
from saddleback.method.oracles import Evaluator, InteractiveSolver, Interval, Solver
from saddleback.method.slater import Slater, Verdict, estimate_slater
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, tell
from saddleback.runs.solution import Solution, Status, Trace, constraint_reports, member_reports
from saddleback.sampling.blocks import Executor
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.a_priori import linearity_residual
from saddleback.solving.choices import Allocation, Choices, Mode
from saddleback.solving.events import dual_watcher
from saddleback.solving.prepare import Prepared, prepare
from saddleback.solving.prepare_from_store import prepare_from
from saddleback.solving.stationary import stationary_copy
from saddleback.solving.steering import Feasibility, Orders, Steering, steer
from saddleback.solving.verdict import guarantee_remark, impossible, infeasible, status_of

Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while a solve runs."""

_MOST_TIGHTENINGS = 8
_BENT = 1e-6  # residual of known signals above which the features are said not to be linear


def solve_budget(
    problem: CMDP,
    simulator: GenerativeModel | None = None,
    *,
    feasibility: Feasibility = "relaxed",
    samples: int = 1_000_000,
    delta: float = 0.05,
    seed: int = 0,
    mode: Mode = "default",
    reuse: Solution | None = None,
    store: SampleStore | None = None,
    solver: str | Solver | InteractiveSolver | None = None,
    evaluator: str | Evaluator | None = None,
    design: str | Designer | None = None,
    dual: str | None = None,
    iterations: int = 1000,
    error: float | None = None,
    buffers: int = 2,
    batch_size: int | None = None,
    resolution: int | None = -1,
    allocation: Allocation | None = None,
    upper: float | None = None,
    step_size: float | None = None,
    target: ArrayLike | None = None,
    tolerance: float | None = None,
    grow: Solution | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """As :func:`saddleback.solve` with ``samples``, whose arguments these are; ``grow`` adds to an earlier run's buffers."""
    dual = dual or ("projected-descent" if mode == "literal" else "column-generation")
    _check(feasibility, samples, seed, iterations, delta, error, dual)
    refused = impossible(problem)
    if refused is not None:
        return refused
    require(reuse is None or store is None, "store", "must not be given with reuse", store, "leave one of them out")
    if reuse is not None:
        given = {
            "solver": solver,
            "evaluator": evaluator,
            "design": design,
            "batch_size": batch_size,
            "allocation": allocation,
        }
        for name, value in given.items():
            require(
                value is None, name, "must not be given with reuse", value, "it was chosen when the samples were drawn"
            )
        mode, seed = reuse.settings.get("mode", mode), reuse.settings.get("seed", seed)
    if resolution == -1:
        resolution = 1000 if mode == "literal" else None
    choices = Choices(solver, evaluator, design, buffers, batch_size, resolution, allocation, mode)
    before = 0 if simulator is None else simulator.num_queries
    try:
        if reuse is not None:
            parts = _reused(reuse, problem)
        elif store is not None:
            parts = prepare_from(problem, store, choices)
        else:
            held = None if grow is None else grow.prepared
            parts = _sampled(problem, simulator, samples, seed, choices, held, executor)
    except BudgetError as exhausted:
        drawn = 0 if simulator is None else simulator.num_queries - before
        return Solution(Status.BUDGET_EXHAUSTED, str(exhausted).rstrip("."), problem, drawn)
    tell(callbacks, {"event": "samples", "drawn": parts.samples})
    fixed = None if target is None else np.asarray(target, dtype=np.float64)
    orders = Orders(dual, feasibility, iterations, 1.0 - delta, error, upper, step_size, fixed, tolerance)
    settings: dict[str, Any] = {
        "mode": mode,
        **parts.names,
        "dual": dual,
        "feasibility": feasibility,
        "seed": seed,
        "delta": delta,
        "coreset": parts.design.size,
        "rank": parts.design.rank,
        "condition": parts.design.condition,
        "batches": parts.evaluation_buffer.num_batches,
    }
    found = finish(problem, parts, orders, settings, progress, callbacks)
    return found if reuse is None else dataclasses.replace(found, certificate_seeds=reuse.certificate_seeds)


def finish(
    problem: CMDP,
    parts: Prepared,
    orders: Orders,
    settings: dict[str, Any],
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """Everything after sampling."""
    slater = estimate_slater(
        parts.problem, parts.oracle, lambda policy: parts.interval(policy, orders.confidence), parts.optimum
    )
    bent = linearity_residual(parts)
    if slater.verdict is Verdict.INFEASIBLE and bent <= _BENT:  # bent features refute nothing
        return infeasible(problem, parts, slater, settings)
    steering, outcome, limits = _run(parts, slater, orders, progress, callbacks)
    status, message = status_of(parts.problem, slater, steering, outcome, limits, orders.feasibility, parts.samples)
    f = steering.error
    settings |= {
        "iterations": len(outcome.steps),
        "solver_calls": outcome.num_solver_calls,
        "error": f if math.isfinite(f) else None,
        "target": steering.target.tolist(),
    }
    gap = None
    if isinstance(steering.dual, ProjectedDescent):
        settings["upper"] = steering.dual.upper
        prices = np.mean([s.multipliers for s in outcome.steps], axis=0)
    else:
        assert isinstance(steering.dual, ColumnGeneration)
        gap = steering.dual.gap(outcome.steps) * parts.problem.reward_span
        prices = np.array(steering.dual.propose(outcome.steps).multipliers)
        prices = prices if np.all(np.isfinite(prices)) else np.zeros(0)  # no mixture is feasible: there are no prices
    promise = steering.promise(outcome)
    if promise is None:
        message += " (no a-priori guarantee)"
    remarks = [*parts.remarks, *parts.design.remarks(), guarantee_remark(parts.problem, promise, f, orders)]
    if bent > _BENT:
        remarks.append(
            f"the rewards, or the constant 1, are not linear in the features (largest residual {bent:.2g} in utilities): "
            "estimates carry a bias that no number of samples removes, and the likely ranges do not show it"
        )
    if np.any((outcome.values < limits.low) | (outcome.values > limits.high)):
        remarks.append(
            f"the estimates of {parts.names['evaluator']} carry the bias of its start from zero; the likely ranges are "
            "corrected for it"
        )
    return Solution(
        status,
        message,
        problem,
        parts.samples,
        outcome.mixture,
        float(parts.problem.values_of(outcome.values)[0]),
        constraint_reports(parts.problem, outcome.values, limits.low, limits.high),
        tuple(map(float, parts.problem.multipliers_of(prices))) if prices.size else (),
        member_reports(parts.problem, outcome),
        gap=None if gap is None or not math.isfinite(gap) else gap,
        trace=Trace.of(parts.problem, outcome),
        stationary=stationary_copy(parts, outcome.mixture),
        remarks=tuple(remarks),
        settings=settings,
        prepared=parts,
        orders=orders,
    )


def mixture_interval(parts: Prepared, outcome: Outcome, confidence: float) -> Interval:
    """Limits for the mixture: the weighted sum of its members' limits, as if their errors all pointed one way."""
    intervals = [parts.interval(p, confidence) for p in outcome.mixture.members]
    w = outcome.mixture.weights
    return Interval(w @ np.array([i.low for i in intervals]), w @ np.array([i.high for i in intervals]))


def _run(
    parts: Prepared, slater: Slater, orders: Orders, progress: Progress | None, callbacks: Sequence[Callback]
) -> tuple[Steering, Outcome, Interval]:
    """Alg. 1; in strict mode the default dual's target is raised by what the measured limits miss, until they do not."""
    steering = steer(parts, slater, orders)
    b = parts.problem.thresholds
    for attempt in range(1, 1 + _MOST_TIGHTENINGS):
        listener = dual_watcher(callbacks, parts.problem, steering.dual, attempt)
        outcome = run(parts.oracle, steering.dual, _watcher(progress, orders, listener))
        limits = mixture_interval(parts, outcome, orders.confidence)
        missing = np.maximum(b - limits.low[1:], 0.0)
        settled = orders.feasibility == "relaxed" or isinstance(steering.dual, ProjectedDescent) or not np.any(missing)
        raised = steering.target + 1.02 * missing
        known = np.array([values for _, values in parts.oracle.columns])
        if settled or orders.target is not None or solve_master(known, raised) is None:
            break
        steering = steer(parts, slater, orders, raised)
    return steering, outcome, limits


def _sampled(
    problem: CMDP,
    simulator: GenerativeModel | None,
    samples: int,
    seed: int,
    choices: Choices,
    held: Prepared | None,
    executor: Executor | None,
) -> Prepared:
    if simulator is None:
        raise InputError("simulator", "must be given", None, "pass a GenerativeModel, or reuse=solution")
    return prepare(problem, simulator, samples, seed, choices, held, executor)


def _reused(reuse: Solution, problem: CMDP) -> Prepared:
    if reuse.prepared is None:
        raise InputError("reuse", "must be a solution that holds its samples", "one without", "solve it first")
    return reuse.prepared.on(problem)


def _watcher(
    progress: Progress | None, orders: Orders, listener: Callable[[int, Any], None] | None
) -> Callable[[int, Any], None] | None:
    if progress is None:
        return listener
    total = orders.iterations if orders.dual == "projected-descent" else 15

    def watch(done: int, step: Any) -> None:
        if listener is not None:
            listener(done, step)
        progress("dual iterations", done, max(total, done))

    return watch


def _check(
    feasibility: str, samples: int, seed: int, iterations: int, delta: float, error: float | None, dual: str
) -> None:
    require(
        feasibility in ("relaxed", "strict"), "feasibility", "must be relaxed or strict", repr(feasibility), "pick one"
    )
    require(samples >= 1, "samples", "must be at least 1", samples, "give a number of simulator calls")
    require(seed >= 0, "seed", "must not be negative", seed, "use 0, 1, 2 …")
    require(iterations >= 1, "iterations", "must be at least 1", iterations, "use 1000 or more")
    require(1e-100 <= delta < 1, "delta", "must lie in [1e-100, 1)", delta, "0.05 means 95 % confidence")
    require(error is None or error >= 0, "error", "must not be negative", error, "give the error f of the oracles")
    if dual not in DUALS:
        raise InputError("dual", f"must be one of {', '.join(sorted(DUALS))}", repr(dual), "choose one of them")
