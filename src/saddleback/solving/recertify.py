"""A new certificate for a stored policy: fresh samples, another seed, nothing of the old proof but what guides the new one.

A quarter of the samples is a pilot: buffers over the coreset, from which baselines, allocation and frozen functions are
made. The rest goes into the certificate. The mixture and the prices σ come from the run; both were fixed before any of the
new samples was drawn, so the new limits hold whatever the run was, as long as its seeds are not used again.
"""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple, cast

import numpy as np

from saddleback.certificates import Certificate, Guide, Request, certify_guided, with_averages
from saddleback.certificates.guide import PURPOSES, Purpose
from saddleback.certificates.values.averages import calls_for
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.errors import InputError, one_of, require
from saddleback.method.oracles import needs_of, simplex_point
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.problem.spaces import Array
from saddleback.runs.run_folder import Run, without_policy
from saddleback.runs.settings import Method, Settings
from saddleback.sampling.blocks import Executor
from saddleback.sampling.collect import TooFewSamples
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.simulators.seed_rounds import CERTIFY
from saddleback.solving.prepare import prepare

_PILOT, _TIMES = 0.25, 16  # a quarter of the pilot is the solver's: that many samples a pair leave one there
_USUAL_SAMPLES = 100_000
_MOST_PRICE = 1e100  # of a stranger's constraint: its square is a number


class Recertified(NamedTuple):
    """The new certificate, and the simulator calls of its pilot."""

    certificate: Certificate
    pilot: int


def recertify(
    run: Run,
    problem: CMDP,
    simulator: GenerativeModel,
    *,
    samples: int | None = None,
    seed: int | None = None,
    delta: float | None = None,
    purpose: Purpose | None = None,
    executor: Executor | None = None,
) -> Recertified:
    """Prove again how good the run's policy is, or again that nothing is feasible.

    ``samples`` is what pilot and certificate may take together; by default the certificate gets as many as the stored one.
    ``purpose`` is what the proof is for (None: what the run's was for). ``executor`` draws them (None: here).
    """
    stored, simulator = run.certificate, simulator.metered()
    if samples is None:
        samples = math.ceil(((stored and stored.samples) or _USUAL_SAMPLES) / (1 - _PILOT))
    delta = delta if delta is not None else 1 - (0.95 if stored is None else stored.confidence)
    seed = seed if seed is not None else derived_seed(run.seed, CERTIFY.start)
    Settings(delta=delta, seed=seed)  # which are checked there
    require(samples >= 4, "samples", "must be at least 4", samples, "a quarter is for the pilot")
    rule, remedy = (
        f"must not be one that the run used ({run.seed})",
        "take any other: a proof repeated on the same samples",
    )
    require(seed not in (run.seed, stored and stored.seed), "seed", rule, seed, f"{remedy} proves nothing new")
    sigma = prices_of(run, problem)
    if run.mixture is None and sigma is None:
        if run.certificate is None and run.solution.status == "infeasible":
            raise without_policy(run)
        remedy = "use --recheck" if run.certificate is not None else "solve it with more samples"
        raise InputError("RUN", "must hold a policy, or prices that refute all of them", "neither", remedy)
    settings = run.solution.settings
    solver = settings.get("solver", "")
    if solver in SOLVERS and needs_of(SOLVERS[solver](), problem).every_pair:  # it solved a table, features or not
        problem = dataclasses.replace(problem, features=None)
    name = settings.get("design")
    before = simulator.num_queries
    try:
        method = Method(design=name if name in DESIGNS else None)
        parts = prepare(problem, simulator, int(_PILOT * samples), seed, method, executor=executor)
    except InputError as error:
        raise _in_all(error, samples) from None
    pilot = simulator.num_queries - before
    earlier = [b for b in (parts.solver_buffer, parts.evaluation_buffer) if b is not None]
    guide = Guide(parts.problem, parts.design, earlier, run.mixture, sigma)
    kept = 0 if run.mixture is None else calls_for(problem, samples - pilot)
    request = Request(samples - pilot - kept, seed, delta, allowance_of(run, problem), executor=executor)
    request = dataclasses.replace(request, purpose=purpose_of(run) if purpose is None else purpose)
    with phase("proving what was found"):
        certificate = certify_guided(guide, simulator, request)
        if run.mixture is not None and kept:
            certificate = with_averages(certificate, guide.problem, simulator, run.mixture, kept)
    return Recertified(certificate, pilot)


def purpose_of(run: Run) -> Purpose:
    """What a proof of the run's is for: what was asked for, or what is usual for that (:attr:`Settings.purpose`)."""
    asked = run.request.get("purpose")
    if asked is not None:
        return cast(Purpose, one_of("purpose", asked, PURPOSES))
    strict, fixed = run.request.get("feasibility") == "strict", run.request.get("epsilon") is None
    return "feasibility" if strict and fixed else "gap"


def allowance_of(run: Run, problem: CMDP) -> float:
    """By how much a constraint may be missed, in utilities: what was asked for, whatever the stored proof says."""
    epsilon = run.request.get("epsilon")
    if run.request.get("feasibility") == "strict" or not isinstance(epsilon, (int, float)):
        return 0.0
    rule, remedy = "must be a positive number in run.json", "set run.json back, or solve the problem again"
    require(0 < epsilon < math.inf, "epsilon", rule, epsilon, remedy)
    return float(epsilon) / problem.reward_span


def prices_of(run: Run, problem: CMDP) -> Array | None:
    """σ: what the stored bound was proved for, or else the run's prices of its constraints."""
    bound = None if run.certificate is None else run.certificate.evidence.bound
    if bound is not None and (bound.sigma[0] > 0) == (run.mixture is not None):  # a policy is held against its reward
        return np.array(bound.sigma, dtype=np.float64)
    prices = np.array(run.solution.multipliers, dtype=np.float64)
    if prices.shape != (problem.num_constraints,) or np.any(prices < 0) or np.any(prices > _MOST_PRICE):
        return None
    return simplex_point((prices * np.abs(problem.scale[1:]) / problem.reward_span).tolist())


def _in_all(error: InputError, samples: int) -> InputError:
    """A pilot that is too small, in terms of what the caller gave."""
    if error.name != "samples":
        return error
    found = f"{error.value} of the pilot, a quarter of {samples}"
    if isinstance(error, TooFewSamples):
        return TooFewSamples(error.rule, found, error.otherwise, error.pairs, _TIMES)
    return InputError("samples", error.rule, found, error.remedy)
