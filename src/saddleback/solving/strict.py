"""A certificate for a solution: what to prove, the samples for it, and strict feasibility by raising the target.

In strict mode the mixture must leave room for the width of the rollouts that will show V_c ≥ b, so before anything is drawn
the target is raised by 1.7 times the half-width that is expected. Should the certificate still miss the threshold, the
target is moved by what was missing, which measures the bias of the estimates too, and a new mixture is certified on new
samples; attempt j gets δ/2^j, so that all attempts hold together. Over continuous states the features are an approximation
as a rule, and estimates are biased: there the first attempt is a pilot on a quarter of the samples, and the second is made
in any case, with the target that the pilot asks for, be it higher or lower.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.certificates import Certificate, Guide, Request, certify_guided, expect
from saddleback.certificates.certificate import SUSPECTED
from saddleback.certificates.prove import plan_bound
from saddleback.errors import InputError, Remark, require
from saddleback.method.evaluators.rollouts import Measured
from saddleback.method.framework import Outcome
from saddleback.method.master_lp import solve_master, upper_bound
from saddleback.method.oracles import simplex_point
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.runs.answer import constraint_reports, member_reports
from saddleback.runs.settings import Settings
from saddleback.runs.verdict import Proof, Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.solving.find import find_policy, mixture_interval
from saddleback.solving.prepare import grid_points
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution, refutation, rests_on

_SHARES, _PILOT_SHARES = (0.75, 0.75, 1.0), (0.25, 0.75, 1.0)  # of the samples that are left, for each attempt
_ATTEMPTS = len(_SHARES)
_USELESS = 0.25  # of H: a bound that much too high
_MARGIN = 1.4  # half-widths of room: the measured limit is itself uncertain
_AGAIN = 1 << 20  # rounds from here on are those of second and later certificates from the same samples
_NO_BOUND = Remark("no-bound", "no bound over all policies: from so few samples it would say nothing")
ROOM = 1.7
"""Expected half-widths between target and threshold: the estimate that the target is set for errs too."""


def issue_certificate(
    solution: Solution,
    simulator: GenerativeModel | Callable[..., Any],
    *,
    samples: int,
    seed: int,
    delta: float = 0.05,
    allowance: float = 0.0,
    interval: str = "betting",
    executor: Executor | None = None,
) -> Certificate:
    """Prove from ``samples`` fresh simulator calls how good the solution's mixture is; it is not changed.

    ``simulator`` is what ``solve`` takes: a GenerativeModel or a plain function.
    ``seed`` may be the solve's own, since certificates have streams of their own, but not one that a certificate from the
    same samples was made with: the question may have been chosen in the light of its answer. ``allowance`` is the violation
    that still counts as feasible, in utilities.
    """
    request = Request(samples, seed, delta, allowance, interval, executor=executor)
    return _issue(solution, as_simulator(solution.problem, simulator).metered(), request)


def _issue(solution: Solution, simulator: GenerativeModel, request: Request) -> Certificate:
    rule = "must not have been used for a certificate of these samples before"
    require(request.seed not in solution.certificate_seeds, "seed", rule, request.seed, "use another")
    guide = guide_of(solution)
    if not _says_nothing(guide, request):
        return certify_guided(guide, simulator, request)
    certificate = certify_guided(dataclasses.replace(guide, sigma=None), simulator, request)
    others = [remark for remark in certificate.remarks if remark.kind != _NO_BOUND.kind]
    return dataclasses.replace(certificate, remarks=(_NO_BOUND, *others))


def _says_nothing(guide: Guide, request: Request) -> bool:
    """Whether a bound over all policies of continuous states would be trivial or nearly so: rollouts need the samples more."""
    problem = guide.problem
    if problem.num_states is not None or guide.mixture is None or guide.sigma is None:
        return False
    plan = plan_bound(guide, guide.sigma, request.samples // 2, request.delta, draft=True)
    if plan is None:
        return False
    H, excess = problem.horizon, plan.expected_excess
    return excess >= _USELESS * H or plan.estimate + excess >= H


def certified(solution: Solution, simulator: GenerativeModel, request: Request) -> Solution:
    """The solution with its certificate; in strict mode with a target that lets feasibility be shown."""
    if solution.prepared is None:
        return _without_samples(solution, request)
    if request.seed in solution.certificate_seeds:
        seed = derived_seed(request.seed, _AGAIN + len(solution.certificate_seeds))
        request = dataclasses.replace(request, seed=seed)
    if _is_strict(solution) and solution.mixture is not None and _retargets(solution):
        return _strict(_with_room(solution, request), simulator, request)
    return with_certificate(solution, _issue(solution, simulator, request))


def _strict(solution: Solution, simulator: GenerativeModel, request: Request) -> Solution:
    """Certify, and certify again with a target that follows from what was measured, until the constraints are proved."""
    samples, seed, delta = request.samples, request.seed, request.delta
    pilot, solution = solution.problem.num_states is None, _over_all_columns(solution)
    shares = _PILOT_SHARES if pilot else _SHARES
    spent, seeds, proofs = 0, solution.certificate_seeds, list[tuple[Solution, Certificate]]()
    for attempt, part in enumerate(shares, start=1):
        share = int((samples - spent) * part)
        round_seed = seed if attempt == 1 else derived_seed(seed, attempt)
        part_of = dataclasses.replace(request, samples=share, seed=round_seed, delta=delta / 2**attempt)
        certificate = _issue(solution, simulator, part_of)
        spent += certificate.samples
        seeds += (round_seed,)
        proofs.append((solution, certificate))
        if certificate.contradictions:
            break
        proved = certificate.feasible == "certified"
        left = (samples - spent) * shares[min(attempt, _ATTEMPTS - 1)]
        if attempt == _ATTEMPTS or not certificate.constraints or left < 1 or (proved and not (pilot and attempt == 1)):
            break
        again = retargeted(solution, _measured_target(solution, certificate, share / left, proved))
        if again.mixture is None or (again.status is not Status.SOLVED and not proved):
            break
        solution = _over_all_columns(again)
    # All attempts hold together, so the best of those that prove the constraints may be picked.
    proved_ones = [x for x in proofs if x[1].feasible == "certified" and not proofs[-1][1].contradictions]
    worst = [-math.inf if c.value is None else c.value[0] for _, c in proved_ones]
    solution, certificate = proved_ones[int(np.argmax(worst))] if worst else proofs[-1]
    certificate = dataclasses.replace(certificate, samples=spent, confidence=1 - delta)
    return dataclasses.replace(with_certificate(solution, certificate), certificate_seeds=seeds)


def _over_all_columns(solution: Solution) -> Solution:
    """Over continuous states: the best mixture of all policies that the evaluator has judged.

    Column generation stops where the solver's answer to the last prices is nothing new. A solver whose features approximate may
    have a better policy at other prices, and those of a grid that were played are known already.
    """
    parts, mixture = solution.prepared, solution.mixture
    if mixture is None or parts is None or parts.problem.num_states is not None:
        return solution
    problem, oracle = parts.problem, parts.oracle
    if isinstance(parts.evaluator, Measured) and parts.resolution is not None:
        oracle.prefetch(grid_points(problem, parts.resolution))
    values = np.array([v for _, v in oracle.columns])
    master = solve_master(values, _target(solution) - 1e-9 * problem.horizon)
    if master is None:
        return solution
    used = np.flatnonzero(master.weights > 0)
    best = MixturePolicy.of([oracle.columns[i][0] for i in used], master.weights[used])
    outcome = Outcome(best, values[used], [], oracle.num_solver_calls)
    limits = mixture_interval(parts, outcome, _asked(solution).confidence)
    return dataclasses.replace(
        solution,
        mixture=best,
        value=float(problem.values_of(outcome.values)[0]),
        constraints=constraint_reports(problem, outcome.values, limits.low, limits.high),
        members=member_reports(problem, outcome),
    )


def _measured_target(solution: Solution, certificate: Certificate, fewer: float, lower: bool) -> Array:
    """The target whose mixture the next certificate, with so many times ``fewer`` samples, should just prove.

    The estimates promised the target; the lower limit says what came of it, noise and bias together. So b' moves by b − limit,
    and by what the half-width h is about to change: b' + (b − limit) − h + 1.4·h·√fewer. Only ``lower`` lets b' fall.
    """
    problem = solution.problem
    base, scale = (problem.base[1:] * problem.horizon)[:, None], problem.scale[1:, None]
    limits = (np.array(certificate.constraints) - base) / scale
    low, half = limits.min(axis=1), np.ptp(limits, axis=1) / 2
    step = problem.thresholds - low + half * (_MARGIN * math.sqrt(fewer) - 1.0)
    if not lower:
        step = np.where(low < problem.thresholds, np.maximum(step, 0.0), 0.0)
    return np.asarray(_target(solution) + step)


def with_certificate(solution: Solution, certificate: Certificate) -> Solution:
    """The solution with its certificate; its samples count too, and a proof may settle the verdict."""
    return dataclasses.replace(
        solution,
        verdict=_settled(solution, certificate),
        samples=solution.samples + certificate.samples,
        remarks=tuple(r for r in solution.remarks if r.kind != "no-guarantee"),
        certificate=certificate,
        certificate_seeds=(*solution.certificate_seeds, certificate.seed),
    )


def _settled(solution: Solution, certificate: Certificate) -> Verdict:
    """What the proof makes of the verdict; that nothing was promised before it no longer matters."""
    verdict = dataclasses.replace(solution.verdict, promised=None)
    if certificate.contradictions:
        found = "; ".join(remark.text for remark in certificate.contradictions)
        return Verdict(Status.UNDECIDED, Reason.CONTRADICTED, detail=f"{found}; {SUSPECTED}")
    parts = solution.prepared
    if certificate.infeasible:
        proof = Proof.PROVED if parts is None else rests_on(parts.design)
        reason = Reason.NO_POLICY if verdict.reason is Reason.PROBABLY_NO_POLICY else verdict.reason
        return dataclasses.replace(verdict, status=Status.INFEASIBLE, reason=reason, proof=proof)
    if solution.mixture is None:
        return verdict
    refuted = refutation(solution.problem, certificate)
    if refuted is not None and verdict.status is Status.SOLVED:
        return refuted
    if _is_strict(solution):
        if certificate.feasible == "certified" and verdict.status in (Status.SOLVED, Status.UNDECIDED):
            return Verdict(Status.SOLVED, Reason.HOLDS_PROVED)
        if certificate.feasible != "certified" and verdict.status is Status.SOLVED:
            return Verdict(Status.UNDECIDED, Reason.STRICT_NOT_PROVED)
    return verdict


def _asked(solution: Solution) -> Settings:
    return solution.asked or Settings()


def _is_strict(solution: Solution) -> bool:
    return _asked(solution).feasibility == "strict"


def _retargets(solution: Solution) -> bool:
    """Whether the target may be moved: the dual allows it, and the caller has not fixed it."""
    method = _asked(solution).method
    return method.dual_part[1].retargets and method.target is None


def _target(solution: Solution) -> Array:
    return np.asarray(solution.settings["target"], dtype=np.float64)


def retargeted(solution: Solution, target: Array) -> Solution:
    """The same samples with another target b' (utilities): no simulator call."""
    assert solution.prepared is not None
    asked = _asked(solution)
    again = find_policy(solution.problem, solution.prepared, asked.with_target(target.tolist()))
    return dataclasses.replace(
        again, asked=asked, samples=solution.samples, certificate_seeds=solution.certificate_seeds
    )


def guide_of(solution: Solution) -> Guide:
    """What the solve's own samples suggest about where fresh ones should go."""
    parts = solution.prepared
    if not isinstance(parts, Prepared):
        raise InputError("solution", "must hold its samples", parts, "solve it first")
    problem, earlier = parts.problem, [parts.evaluation_buffer]
    own = parts.solver_buffer
    if parts.hints is not None:
        earlier = list(parts.hints)
    elif own is not None and own is not parts.evaluation_buffer and own.design is parts.design:
        earlier.insert(0, own)
    sigma: Array | None = None
    if solution.mixture is None and solution.slater_prices is not None:
        sigma = np.concatenate([[0.0], solution.slater_prices])
    elif (asked := parts.oracle.asked[parts.oracle.asked[:, 0] > 0]).size:
        # Of all prices that the solver was asked about, those with the least dual value at the thresholds themselves.
        columns = np.array([values for _, values in parts.oracle.columns])
        prices, _ = upper_bound(columns, asked[:, 1:] / asked[:, :1], problem.thresholds, 0.0)
        sigma = simplex_point(prices.tolist())
    return Guide(problem, parts.design, earlier, solution.mixture, sigma)


def _with_room(solution: Solution, request: Request) -> Solution:
    """Raise the target above b by what the rollouts are expected to need."""
    widths = expect(guide_of(solution), request.samples, request.delta / 2).half_widths[1:]
    b = solution.problem.thresholds
    target = np.maximum(_target(solution), b + ROOM * widths)
    if np.all(target <= _target(solution) + 1e-12):
        return solution
    raised = retargeted(solution, target)
    usable = raised.mixture is not None and raised.status is Status.SOLVED
    return raised if usable else solution


def _without_samples(solution: Solution, request: Request) -> Solution:
    """A threshold beyond any policy's reach needs no sample to be refuted; nothing else can be said without."""
    if solution.status is not Status.INFEASIBLE:
        return solution
    problem = solution.problem
    room = float((problem.horizon - problem.thresholds).min())
    bounded = "rewards and constraint signals within their declared ranges"
    slack, confidence = min(room, -math.ulp(0.0)), 1 - request.delta
    proof = Certificate(confidence, 0, request.seed, slack_bound=slack, assumes={"infeasible": bounded})
    return dataclasses.replace(solution, certificate=proof)
