"""A certificate for a solution: what to prove, the samples for it, and strict feasibility by raising the target.

In strict mode the mixture must leave room for the width of the rollouts that will show V_c ≥ b, so before anything is drawn
the target is raised by 1.5 times the half-width that is expected. Should the certificate still miss the threshold, the
target is raised by what was missing and a new mixture is certified on new samples; attempt j gets δ/2^j.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from saddleback.blocks import Executor
from saddleback.budgeted import finish
from saddleback.certify import Certificate, Guide, Request, certify_guided, expect
from saddleback.columns import upper_bound
from saddleback.errors import InputError, require
from saddleback.oracles import simplex_point
from saddleback.setup import Prepared
from saddleback.simulator import GenerativeModel, derived_seed
from saddleback.solution import Solution, Status
from saddleback.spaces import Array

_ATTEMPTS = 3
_AGAIN = 1 << 20  # rounds from here on are those of second and later certificates from the same samples
_UNPROMISED = " (no a-priori guarantee)"
_ROOM = 1.5


def issue_certificate(
    solution: Solution,
    simulator: GenerativeModel,
    *,
    samples: int,
    seed: int,
    delta: float = 0.05,
    allowance: float = 0.0,
    interval: str = "betting",
    executor: Executor | None = None,
) -> Certificate:
    """Prove from ``samples`` fresh simulator calls how good the solution's mixture is; it is not changed.

    ``seed`` may be the solve's own, since certificates have streams of their own, but not one that a certificate from the
    same samples was made with: the question may have been chosen in the light of its answer. ``allowance`` is the violation
    that still counts as feasible, in utilities.
    """
    require(
        seed not in solution.certificate_seeds,
        "seed",
        "must not have been used for a certificate of these samples before",
        seed,
        "use another",
    )
    return certify_guided(
        guide_of(solution), simulator, Request(samples, seed, delta, allowance, interval, executor=executor)
    )


def certified(
    solution: Solution,
    simulator: GenerativeModel,
    *,
    samples: int,
    seed: int,
    delta: float,
    allowance: float = 0.0,
    executor: Executor | None = None,
) -> Solution:
    """The solution with its certificate; in strict mode with a target that lets feasibility be shown."""
    if solution.prepared is None:
        return _without_samples(solution, seed, delta)
    if seed in solution.certificate_seeds:
        seed = derived_seed(seed, _AGAIN + len(solution.certificate_seeds))
    strict = solution.settings.get("feasibility") == "strict" and solution.mixture is not None
    if not strict or solution.settings.get("dual") != "column-generation" or solution.orders.target is not None:
        certificate = issue_certificate(
            solution, simulator, samples=samples, seed=seed, delta=delta, allowance=allowance, executor=executor
        )
        return with_certificate(solution, certificate)
    solution = _with_room(solution, samples, delta)
    spent, seeds = 0, solution.certificate_seeds
    for attempt in range(1, _ATTEMPTS + 1):
        share = samples - spent if attempt == _ATTEMPTS else (samples - spent) * 3 // 4
        round_seed = seed if attempt == 1 else derived_seed(seed, attempt)
        certificate = issue_certificate(
            solution, simulator, samples=share, seed=round_seed, delta=delta / 2**attempt, executor=executor
        )
        spent += certificate.samples
        seeds += (round_seed,)
        missing = certificate.violation(solution.problem) if certificate.constraints else np.zeros(1)
        if certificate.feasible == "certified" or attempt == _ATTEMPTS or not np.any(missing):
            break
        raised = retargeted(solution, np.asarray(solution.settings["target"]) + 1.2 * missing)
        if raised.mixture is None or raised.status is not Status.SOLVED:
            break
        solution = raised
    certificate = dataclasses.replace(certificate, samples=spent, confidence=1 - delta)
    return dataclasses.replace(with_certificate(solution, certificate), certificate_seeds=seeds)


def with_certificate(solution: Solution, certificate: Certificate) -> Solution:
    """The solution with its certificate; its samples count too, and a proof may settle the status."""
    status, message = solution.status, solution.message.replace(_UNPROMISED, "")
    linear = solution.prepared is not None and solution.prepared.design.operator is not None
    if certificate.infeasible:
        given = "which is proved if P is linear in the features" if linear else "which is proved"
        if linear and not solution.prepared.design.complete:
            given += " and the candidates stand for all pairs"
        status, message = Status.INFEASIBLE, message.replace("by measured limits", given)
    elif solution.settings.get("feasibility") == "strict" and solution.mixture is not None:
        if certificate.feasible == "certified" and status in (Status.SOLVED, Status.UNDECIDED):
            status, message = Status.SOLVED, "every constraint is proved to hold"
        elif certificate.feasible != "certified" and status is Status.SOLVED:
            status = Status.UNDECIDED
            message = "the constraints could not be proved to hold strictly; draw more samples for the certificate"
    return dataclasses.replace(
        solution,
        status=status,
        message=message,
        samples=solution.samples + certificate.samples,
        remarks=tuple(r for r in solution.remarks if not r.startswith("no a-priori guarantee")),
        certificate=certificate,
        certificate_seeds=(*solution.certificate_seeds, certificate.seed),
    )


def retargeted(solution: Solution, target: Array) -> Solution:
    """The same samples with another target b' (utilities): no simulator call."""
    orders = dataclasses.replace(solution.orders, target=target)
    again = finish(solution.problem, solution.prepared, orders, dict(solution.settings))
    return dataclasses.replace(again, orders=solution.orders, samples=solution.samples)


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


def _with_room(solution: Solution, samples: int, delta: float) -> Solution:
    """Raise the target above b by what the rollouts are expected to need."""
    widths = expect(guide_of(solution), samples, delta / 2).half_widths[1:]
    b = solution.problem.thresholds
    target = np.maximum(np.asarray(solution.settings["target"]), b + _ROOM * widths)
    if np.all(target <= np.asarray(solution.settings["target"]) + 1e-12):
        return solution
    raised = retargeted(solution, target)
    usable = raised.mixture is not None and raised.status is Status.SOLVED
    return raised if usable else solution


def _without_samples(solution: Solution, seed: int, delta: float) -> Solution:
    """A threshold beyond any policy's reach needs no sample to be refuted; nothing else can be said without."""
    if solution.status is not Status.INFEASIBLE:
        return solution
    problem = solution.problem
    room = float((problem.horizon - problem.thresholds).min())
    bounded = "rewards and constraint signals within their declared ranges"
    proof = Certificate(1 - delta, 0, seed, slack_bound=min(room, -math.ulp(0.0)), assumes={"infeasible": bounded})
    return dataclasses.replace(solution, certificate=proof)
