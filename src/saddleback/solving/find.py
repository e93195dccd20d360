"""A policy from a given number of samples: those that are drawn now, those of an earlier solution, or those in a store.

    samples → design, buffers and oracles (:mod:`.prepare`)
            → Slater constant and verdict → the dual configures itself → Alg. 1 → measured limits → verdict, promise, remarks

In strict mode the target of a dual that allows it is raised by what the measured limits miss, until they miss nothing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from saddleback.certificates.certificate import ROUNDING
from saddleback.errors import BudgetError, InputError, Remark, require
from saddleback.exact.values import policy_of
from saddleback.method.evaluators.lstd import LSTD, EmpiricalChain
from saddleback.method.framework import Outcome, run
from saddleback.method.master_lp import solve_master
from saddleback.method.oracles import Dual, DualContext, Interval
from saddleback.method.slater import Slater, estimate_slater, reach
from saddleback.method.slater import Verdict as Room
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.runs.answer import Choices, Stationary, Trace, constraint_reports, member_reports
from saddleback.runs.contradiction import ConflictReport, contradiction
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import Settings
from saddleback.runs.verdict import Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepare import prepare, prepare_from
from saddleback.solving.prepared import Prepared
from saddleback.solving.progress import Progress, dual_watcher
from saddleback.solving.promise import context_for, guarantee_remark, linearity_residual, promise_of
from saddleback.solving.solution import Solution, no_policy, out_of_reach, verdict_on

_MOST_TIGHTENINGS = 8
_REACH = 1e-4  # of H: how exactly the best of a constraint is found
_BENT = 1e-6  # residual of known signals above which the features are said not to be linear
_MOST_STATIONARY = 5000  # states of a problem that gets one stationary policy too


def budget_of(
    problem: CMDP,
    simulator: GenerativeModel | None,
    settings: Settings,
    samples: int,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    held: Prepared | None = None,
    reuse: Solution | SampleStore | None = None,
) -> Solution:
    """A policy from ``samples`` simulator calls, without a certificate; ``held`` are samples of a smaller run to add to."""
    beyond = out_of_reach(problem)
    if beyond is not None:
        return Solution(beyond[0], problem, 0, max_slack=beyond[1])
    before = 0 if simulator is None else simulator.num_queries
    seeds: tuple[int, ...] = ()
    try:
        if isinstance(reuse, Solution):
            parts, settings, seeds = _reused(reuse, problem, settings)
        elif reuse is not None:
            parts = prepare_from(problem, reuse, settings.method)
        else:
            parts = prepare(problem, needed(simulator), samples, settings.seed, settings.method, held, executor)
    except BudgetError as exhausted:
        drawn = 0 if simulator is None else simulator.num_queries - before
        verdict = Verdict(Status.BUDGET_EXHAUSTED, Reason.CALLS_SPENT, detail=str(exhausted).rstrip("."))
        return Solution(verdict, problem, drawn)
    tell(callbacks, {"event": "samples", "drawn": parts.samples})
    found = find_policy(problem, parts, settings, progress, callbacks)
    return dataclasses.replace(found, certificate_seeds=seeds)


def _reused(reuse: Solution, problem: CMDP, settings: Settings) -> tuple[Prepared, Settings, tuple[int, ...]]:
    if reuse.prepared is None:
        raise InputError("reuse", "must be a solution that holds its samples", "one without", "solve it first")
    m = settings.method
    for name in ("solver", "evaluator", "design", "batch_size", "allocation"):
        value = getattr(m, name)
        require(value is None, name, "must not be given with reuse", value, "it was chosen when the samples were drawn")
    if reuse.asked is not None:
        m = dataclasses.replace(m, mode=reuse.asked.method.mode)
        settings = dataclasses.replace(settings, method=m, seed=reuse.asked.seed)
    return reuse.prepared.on(problem), settings, reuse.certificate_seeds


def needed(simulator: GenerativeModel | None) -> GenerativeModel:
    """The simulator, which somebody has to have given."""
    if simulator is None:
        remedy = "pass a GenerativeModel, or reuse=solution without a certificate"
        raise InputError("simulator", "must be given", None, remedy)
    return simulator


def find_policy(
    problem: CMDP,
    parts: Prepared,
    settings: Settings,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """The best mixture that the samples of ``parts`` know of, with the verdict on it."""
    with phase("estimating what the constraints leave room for"):
        slater = estimate_slater(
            parts.problem, parts.oracle, lambda policy: parts.interval(policy, settings.confidence), parts.optimum
        )
        bent = linearity_residual(parts)
    if slater.verdict is Room.INFEASIBLE and bent <= _BENT:  # bent features refute nothing
        return _infeasible(problem, parts, slater, settings)
    _, kind, options = settings.method.dual_part
    context = context_for(parts, slater, settings)
    dual = kind.configure(context, **options)
    for attempt in range(1, 1 + _MOST_TIGHTENINGS):
        with phase("looking for the best mixture of policies"):
            outcome = run(parts.oracle, dual, dual_watcher(callbacks, progress, parts.problem, dual, attempt))
            limits = mixture_interval(parts, outcome, settings.confidence)
        raised = _raised_target(parts, dual, limits) if settings.feasibility == "strict" and kind.retargets else None
        if raised is None or settings.method.target is not None:
            break
        context = context_for(parts, slater, settings, raised)
        dual = kind.configure(context, **options)
    return _solved(problem, parts, settings, slater, context, dual, outcome, limits, bent)


def _raised_target(parts: Prepared, dual: Dual, limits: Interval) -> Array | None:
    """The target raised by what the measured limits miss; None where they miss nothing, or no mixture would meet it."""
    missing = parts.problem.thresholds - limits.low[1:]
    missing = np.where(missing > ROUNDING * parts.problem.horizon, missing, 0.0)
    raised = dual.target + 1.02 * missing
    known = np.array([values for _, values in parts.oracle.columns])
    return None if not np.any(missing) or solve_master(known, raised) is None else np.asarray(raised)


def _solved(
    problem: CMDP,
    parts: Prepared,
    settings: Settings,
    slater: Slater,
    context: DualContext,
    dual: Dual,
    outcome: Outcome,
    limits: Interval,
    bent: float,
) -> Solution:
    """What came of Alg. 1, in the user's units, and what there is to say of it."""
    summary = dual.summary(outcome.steps)
    verdict = verdict_on(parts.problem, slater, summary, outcome, limits, settings, parts.design)
    promise = promise_of(context, dual, summary, outcome)
    prices = summary.multipliers
    found: dict[str, object] = {
        "iterations": len(outcome.steps),
        "solver_calls": outcome.num_solver_calls,
        "error": dual.error if math.isfinite(dual.error) else None,
        "target": dual.target.tolist(),
        **summary.record,
    }
    record = record_of(parts, settings) | cast(Choices, found)
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
        safest_reward=float(parts.problem.values_of(np.full(len(outcome.values), slater.reward))[0]),
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


def _infeasible(problem: CMDP, parts: Prepared, slater: Slater, settings: Settings) -> Solution:
    """The answer where no policy meets the constraints, by measured limits."""
    return Solution(
        no_policy(problem, slater),
        problem,
        parts.samples,
        max_slack=float((slater.slacks * np.abs(problem.scale[1:])).min()),
        settings=record_of(parts, settings),
        prepared=parts,
        asked=settings,
        slater_prices=slater.prices,
        conflict=_conflict(parts),
    )


def _conflict(parts: Prepared) -> tuple[ConflictReport, ...]:
    """What contradicts what, by the estimates of the samples."""
    problem = parts.problem

    def best(i: int, others: Sequence[int]) -> float | None:
        found = reach(problem, parts.oracle, i, others, _REACH * problem.horizon)
        return None if found is None else float(found * problem.scale[1 + i] + problem.base[1 + i] * problem.horizon)

    return contradiction(problem, best, "estimated")


def _remarks(parts: Prepared, guarantee: Remark, bent: float, outcome: Outcome, limits: Interval) -> tuple[Remark, ...]:
    remarks = [*parts.remarks, *(Remark("features", r) for r in parts.design.remarks()), guarantee]
    remarks += [] if parts.ties is None else parts.ties.remarks(outcome.mixture)
    if bent > _BENT:
        text = (
            f"the rewards, or the constant 1, are not linear in the features (largest residual {bent:.2g} in utilities): "
            "estimates carry a bias that no number of samples removes, and the likely ranges do not show it"
        )
        remarks.append(Remark("not-linear", text))
    if np.any((outcome.values < limits.low) | (outcome.values > limits.high)):
        start = f"the estimates of {parts.names['evaluator']} carry the bias of its start from zero"
        remarks.append(Remark("bias", f"{start}; the likely ranges are corrected for it"))
    return tuple(remarks)


def stationary_copy(parts: Prepared, mixture: MixturePolicy) -> Stationary | None:
    """One stationary policy in the place of a mixture, on a finite problem whose every pair was sampled; else None.

        μ̄(s,a) = Σ_k w_k μ_k(s,a),     π(a|s) = μ̄(s,a) / Σ_a' μ̄(s,a')

    where μ_k is the discounted occupancy of member k. With the true P this keeps every value exactly; with the estimated P̂
    used here it does so approximately, so the policy is evaluated anew and labelled.
    """
    problem, buffer = parts.problem, parts.evaluation_buffer
    S, A = problem.num_states, problem.num_actions
    if S is None or S > _MOST_STATIONARY or parts.design.operator is not None or parts.design.size != S * A:
        return None
    chains = [EmpiricalChain(problem, buffer, member) for member in mixture.members]
    mu = sum(w * chain.visits() for w, chain in zip(mixture.weights, chains, strict=True))
    policy = policy_of(np.reshape(mu, (S, A)), chains[0].pi)
    values = problem.values_of(LSTD().evaluate(problem, buffer, policy))  # an evaluator may have a bias, this has none
    return Stationary(policy, values, "approximate: occupancies of the estimated model, values evaluated anew")
