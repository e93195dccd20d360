"""A certificate for a solution: what to prove, the samples for it, and strict feasibility by raising the target.

In strict mode the mixture must leave room for the limits that will show V_c ≥ b. On a table the solve's own samples are the
pilot: they foresee how far below the mean of the rollouts their lower limit will lie, h, the standard error s of that mean, and
the error e of the estimate V̂_c that the target is set for. So before anything is drawn the target is

    b' = b + h + 2·√(s² + e²),        or as near to it as a policy can come,

for a certificate of four fifths of the samples and of δ (of all, where a fifth could not prove any policy). Should it fail, its rollouts have measured V_c itself, with mean z̄ and
standard error s_1. Of the difference to the estimate the share ω = e²/(e² + s_1²) is taken for error, the rest for noise, and the
next target, for a new mixture that is certified on the fifth that is left, is

    b' = b + h' + 2·√(s'² + ω s_1²) − ω (z̄ − V̂_c).

All attempts hold together. Where features may only approximate, ω = 1, since a bias is not seen in e. Over continuous states that
is the rule, and there the first attempt is a pilot on a quarter of the samples, and the second is made in any case.

Of the attempts that prove the constraints the one that proves the most reward is the answer; where none does, the best of them,
which is not the last: its target was the tightest, and its samples were the fewest.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from saddleback.certificates import Certificate, Guide, Request, certify_guided, expected_fall, with_averages
from saddleback.certificates.guide import Purpose
from saddleback.errors import InputError
from saddleback.method.evaluators.rollouts import Measured
from saddleback.method.framework import Outcome
from saddleback.method.master_lp import solve_master, upper_bound
from saddleback.method.oracles import simplex_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.runs.answer import constraint_reports, member_reports
from saddleback.runs.settings import Settings
from saddleback.runs.verdict import Status
from saddleback.sampling.blocks import Executor
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.simulators.seed_rounds import ROUNDS
from saddleback.solving.find import find_policy, mixture_interval
from saddleback.solving.prepare import grid_points
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution, averaged, settled, without_averages


class _Attempt(NamedTuple):
    """The share of the samples that are left, and of δ."""

    share: float
    level: float


_ATTEMPTS = (_Attempt(0.8, 0.8), _Attempt(1.0, 0.2))
_AT_ONCE = (_Attempt(1.0, 1.0),)
_WITH_PILOT = (_Attempt(0.25, 0.2), _Attempt(0.75, 0.6), _Attempt(1.0, 0.2))
_ERRORS = 2.0  # standard errors of room between target and what the certificate is expected to need
_HALVINGS = 5  # of the way from the threshold to the target that is wanted, where no policy comes as far
ROOM = 1.5
"""Expected half-widths between target and threshold, as a rule of thumb for what a proof will give up."""


def issue_certificate(
    solution: Solution,
    simulator: GenerativeModel | Callable[..., Any],
    *,
    samples: int,
    seed: int,
    delta: float = 0.05,
    allowance: float = 0.0,
    interval: str = "betting",
    purpose: Purpose | None = None,
    executor: Executor | None = None,
) -> Certificate:
    """Prove from ``samples`` fresh simulator calls how good the solution's mixture is; it is not changed.

    ``simulator`` is what ``solve`` takes: a GenerativeModel or a plain function.
    ``seed`` may be the solve's own, since certificates have streams of their own, but not one that a certificate from the
    same samples was made with: the question may have been chosen in the light of its answer. ``allowance`` is the violation
    that still counts as feasible, in utilities; ``purpose`` what the proof is for (None: what the solve's was for).
    """
    wanted = Request(samples, seed, delta, allowance, interval, purpose=purpose or _asked(solution).purpose)
    request, kept = without_averages(solution, dataclasses.replace(wanted, executor=executor))
    model = as_simulator(solution.problem, simulator).metered()
    certificate = _issue(solution, model, request)
    if not kept or solution.mixture is None:
        return certificate
    return with_averages(certificate, solution.problem, model, solution.mixture, kept, executor)


def _issue(solution: Solution, simulator: GenerativeModel, request: Request) -> Certificate:
    guide = guide_of(solution)
    assert solution.prepared is not None
    policy = None if guide.mixture is None else [p.key() for p in guide.mixture.members]
    weights = None if guide.mixture is None else guide.mixture.weights
    asked = (request.samples, request.delta, request.allowance, request.interval, request.purpose)
    with solution.prepared.proving(request.seed, "certificate", policy, weights, guide.sigma, *asked):
        return certify_guided(guide, simulator, request)


def certified(solution: Solution, simulator: GenerativeModel, request: Request) -> Solution:
    """The solution with its certificate, and averages over time where a constraint was given per step."""
    request, kept = without_averages(solution, request)
    return averaged(with_proof(solution, simulator, request), simulator, kept, request.executor)


def with_proof(solution: Solution, simulator: GenerativeModel, request: Request) -> Solution:
    """The solution with its certificate alone; in strict mode the target is one that lets feasibility be shown."""
    if solution.prepared is None:
        return _without_samples(solution, request)
    request = dataclasses.replace(request, seed=solution.prepared.fresh_seed(request.seed))
    if _is_strict(solution) and solution.mixture is not None and _retargets(solution):
        return _strict(_over_all_columns(solution), simulator, request)
    return with_certificate(solution, _issue(solution, simulator, request))


def _strict(solution: Solution, simulator: GenerativeModel, request: Request) -> Solution:
    """Certify, and certify again with a target that follows from what was measured, until the constraints are proved."""
    samples, seed, delta, parts = request.samples, request.seed, request.delta, solution.prepared
    assert parts is not None
    pilot = solution.problem.num_states is None
    attempts = _WITH_PILOT if pilot else _ATTEMPTS if _worth_another(solution, request) else _AT_ONCE
    spent, seeds, proofs = 0, solution.certificate_seeds, list[tuple[Solution, Certificate]]()
    for number, attempt in enumerate(attempts, start=1):
        share = max(1, int((samples - spent) * attempt.share))
        round_seed = seed if number == 1 else parts.fresh_seed(derived_seed(seed, ROUNDS[number - 1]))
        part = dataclasses.replace(request, samples=share, seed=round_seed, delta=delta * attempt.level)
        if number == 1:
            solution = _with_room(solution, part) or solution
        certificate = _issue(solution, simulator, part)
        spent += certificate.samples
        seeds += (round_seed,)
        proofs.append((solution, certificate))
        if certificate.contradictions or number == len(attempts) or not certificate.constraints:
            break
        proved = certificate.feasible == "certified"
        left = (samples - spent) * attempts[number].share
        if left < 1 or (proved and not (pilot and number == 1)):
            break
        following = dataclasses.replace(part, samples=int(left), delta=delta * attempts[number].level)
        again = _with_room(solution, following, certificate)
        if again is None:
            break
        solution = _over_all_columns(again)
    solution, certificate = _best(proofs)
    certificate = dataclasses.replace(certificate, samples=spent, confidence=1 - delta)
    return dataclasses.replace(with_certificate(solution, certificate), certificate_seeds=seeds)


def _best(proofs: Sequence[tuple[Solution, Certificate]]) -> tuple[Solution, Certificate]:
    """Of the attempts that prove the constraints the one that proves the most; all hold together, so it may be picked.

    Where none does: of those whose constraints hold by the middle of their limits the one that earns the most, else the one
    that misses the least. A contradiction is about all of them, and ends the attempts.
    """
    if proofs[-1][1].contradictions:
        return proofs[-1]

    def merit(proof: tuple[Solution, Certificate]) -> tuple[bool, bool, float]:
        solution, certificate = proof
        if certificate.value is None or not certificate.constraints:
            return False, False, -math.inf
        limits = _unit_limits(solution.problem, [certificate.value, *certificate.constraints])
        proved, middle = certificate.feasible == "certified", limits.mean(axis=0)
        missed = float((solution.problem.thresholds - middle[1:]).max())
        reward = float(limits[0, 0]) if proved else float(middle[0])
        return proved, proved or missed <= 0, reward if proved or missed <= 0 else -missed

    return max(proofs, key=merit)


def _unit_limits(problem: CMDP, limits: Sequence[tuple[float, float]]) -> Array:
    """Limits of reward and constraints in utilities, lower and upper ``(2, 1+m)``."""
    ends = [problem.unit_values_of(np.array(end)) for end in zip(*limits, strict=True)]
    return np.sort(np.array(ends), axis=0)


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


def with_certificate(solution: Solution, certificate: Certificate) -> Solution:
    """The solution with its certificate; its samples count too, and a proof may settle the verdict."""
    return dataclasses.replace(
        solution,
        verdict=settled(solution, certificate),
        samples=solution.samples + certificate.samples,
        remarks=tuple(r for r in solution.remarks if r.kind != "no-guarantee"),
        certificate=certificate,
        certificate_seeds=(*solution.certificate_seeds, certificate.seed),
    )


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


def _with_room(solution: Solution, request: Request, seen: Certificate | None = None) -> Solution | None:
    """The solution for a target that such a certificate should prove, as far as a policy can follow; None where none can.

    ``seen`` is what an earlier certificate has made of the solution.
    """
    problem, parts = solution.problem, solution.prepared
    assert parts is not None
    expected, target = expected_fall(guide_of(solution), request), problem.thresholds
    error, found = _error(solution), np.zeros(problem.num_constraints)
    rolled = None if seen is None else seen.evidence.rollouts
    if rolled is not None:
        z, squared = np.array(rolled.mean)[1:], np.array(rolled.variance)[1:] / max(1, rolled.number)
        exact = parts.design.operator is None
        share = error**2 / np.maximum(error**2 + squared, 1e-300) if exact else np.ones(len(z))
        found, error = share * (z - _estimates(solution)), np.sqrt(share * squared)
    wanted = target + expected.below[1:] + _ERRORS * np.hypot(expected.noise[1:], error) - found
    return _towards(solution, wanted)


def _towards(solution: Solution, wanted: Array) -> Solution | None:
    """The solution for the target ``wanted``, or for the farthest on the way there that a policy reaches by the estimates."""
    assert solution.prepared is not None
    b, H = solution.problem.thresholds, solution.problem.horizon
    known = np.array([values for _, values in solution.prepared.oracle.columns])[:, 1:]
    wanted = np.minimum(wanted, np.maximum(b, known.max(axis=0)))  # beyond it lies nothing
    best, reached, missed = None, 0.0, 1.0
    for number in range(1 + _HALVINGS):
        step = missed if number == 0 else (reached + missed) / 2
        raised = retargeted(solution, b + step * (wanted - b))
        if raised.mixture is not None and np.all(_estimates(raised) >= _target(raised) - 1e-6 * H):
            best, reached = raised, step
            if number == 0:
                break
        else:
            missed = step
    return best


def _worth_another(solution: Solution, request: Request) -> bool:
    """Whether the last attempt's share of the samples could prove the constraints of the safest policy there is."""
    assert solution.prepared is not None
    last = dataclasses.replace(request, samples=max(1, round(request.samples * (1 - _ATTEMPTS[0].share))))
    values = np.array([v for _, v in solution.prepared.oracle.columns])[:, 1:]
    room = values - solution.problem.thresholds
    below = expected_fall(guide_of(solution), dataclasses.replace(last, delta=request.delta * _ATTEMPTS[1].level)).below
    return bool(np.any(np.all(room > below[1:], axis=1)))


def _estimates(solution: Solution) -> Array:
    """The estimates of the constraints' values, in utilities ``(m,)``."""
    values = np.array([0.0, *(row.value for row in solution.constraints)])
    return np.asarray(solution.problem.unit_values_of(values)[1:])


def _error(solution: Solution) -> Array:
    """The standard error of the constraints' estimates, in utilities ``(m,)``, from their likely ranges."""
    normal = NormalDist().inv_cdf((1 + _asked(solution).confidence) / 2)
    widths = [0.0 if row.low is None or row.high is None else row.high - row.low for row in solution.constraints]
    return np.abs(np.array(widths) / solution.problem.scale[1:]) / (2 * normal)


def _without_samples(solution: Solution, request: Request) -> Solution:
    """A threshold beyond any policy's reach needs no sample to be refuted; nothing else can be said without."""
    if solution.status is not Status.INFEASIBLE:
        return solution
    problem = solution.problem
    room = float((problem.horizon - problem.thresholds).min())
    bounded = "rewards and constraint signals within their declared ranges"
    proof = Certificate(1 - request.delta, 0, request.seed, slack_bound=room, assumes={"infeasible": bounded})
    return dataclasses.replace(solution, certificate=proof)
