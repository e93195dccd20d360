"""Solve to a requested accuracy: grow the buffers until the certificate shows it, and no further.

    round j:   n_j simulator calls in the solve's buffers, those of earlier rounds included
               e_j = the error that a certificate of n_j fresh samples is expected to show (it costs nothing to ask)
               if e_j is near ε or below:  draw it, at δ_i = δ/(i(i+1)) for the i-th one drawn;
                                           stop if it shows  gap ≤ ε  and  violation ≤ ε  (strict: V_c ≥ b)
               n_{j+1} = n_j · (error/ε)^{1/p} within [1.5, 8],   p the rate at which the error falls

Σ δ_i = δ, so whatever round it stops in, what it shows holds with probability 1 − δ. Certificates are never reused: each is
made of samples drawn after its policy was frozen. An unmet request is a status, with the best policy so far.

Memory is checked before every round: a first one that would not fit is refused, a later one ends the run as it stands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from saddleback.certificates import expect
from saddleback.certificates.guide import hidden_by_starts
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.rounding import rounded
from saddleback.runs.answer import Choices
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import MOST_SAMPLES, Settings
from saddleback.runs.verdict import Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.solving.budget import budget_of
from saddleback.solving.events import certificate_event, round_event
from saddleback.solving.find import Progress
from saddleback.solving.solution import Solution
from saddleback.solving.strict import certified, guide_of
from saddleback.solving.verdict import rests_on

_FIRST_SAMPLES, _PER_PAIR = 2_000, 20
_LEAST_GROWTH, _MOST_GROWTH = 1.5, 8.0
_RATES = 0.5, 1.0  # an error falls like 1/√n when noise rules it, like 1/n while ranges do
_NEAR = 1.1  # an expected error up to this many times ε is worth a certificate


@dataclasses.dataclass(frozen=True)
class _Round:
    """One round: its solution, the error in units of the reward that it has proved or may hope to (inf: none), its size."""

    solution: Solution
    error: float
    size: int
    proved: bool


def solve_to_accuracy(
    problem: CMDP,
    simulator: GenerativeModel,
    settings: Settings,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """Rounds of solve and certificate until the settings' ``epsilon`` (the user's units of the reward) is proved."""
    assert settings.epsilon is not None
    epsilon, delta, seed, strict = settings.epsilon, settings.delta, settings.seed, settings.feasibility == "strict"
    max_samples = MOST_SAMPLES if settings.max_samples is None else settings.max_samples
    least = 2.2 * hidden_by_starts(problem, delta) * problem.reward_span
    rule = f"must be more than {least:.3g} where the start distribution is a sampler"
    require(epsilon > least, "epsilon", rule, epsilon, "ask for less, or give start states with weights")
    before, rounds = simulator.num_queries, list[_Round]()
    size = min(_first_size(problem), max_samples // 2)
    while True:
        if progress is not None:
            progress(f"round {len(rounds) + 1}: samples", simulator.num_queries - before, max_samples)
        held = rounds[-1].solution.prepared if rounds else None
        try:
            _check_memory(problem, simulator, size, rounds)
            found = budget_of(problem, simulator, settings, size, executor, progress, callbacks, held)
        except InputError as full:
            if full.name != "memory" or not rounds:
                raise
            room = f"the memory that a larger round may take, {full.value}"
            return _unmet(rounds, simulator.num_queries - before, epsilon, delta, room, "memory")
        left = max_samples - (simulator.num_queries - before)
        drawn = 1 + sum(r.proved for r in rounds)
        level, allowed = delta / (drawn * (drawn + 1)), 0.0 if strict else epsilon
        hope = _expected_error(found, min(size, left), level)
        last = (left + size) // 2 < _LEAST_GROWTH * size  # there will be no larger round
        if _NEAR * epsilon < hope < math.inf and not last:
            rounds.append(_Round(found, hope, size, False))
            tell(callbacks, round_event(len(rounds), simulator.num_queries - before, hope, False, epsilon))
        else:
            found = certified(
                found,
                simulator,
                samples=max(1, min(size, left)),
                seed=derived_seed(seed, len(rounds) + 1),
                delta=level,
                allowance=allowed / problem.reward_span,
                executor=executor,
            )
            rounds.append(_Round(found, _proved_error(found, strict), size, True))
            if found.certificate is not None:
                tell(callbacks, certificate_event(found.certificate))
            spent = simulator.num_queries - before
            tell(callbacks, round_event(len(rounds), spent, rounds[-1].error, True, epsilon))
            if found.status is Status.INFEASIBLE and found.certificate is not None and found.certificate.infeasible:
                return _with_total(found, rounds, simulator.num_queries - before, epsilon, delta)
            if rounds[-1].error <= epsilon:
                return _met(rounds, simulator.num_queries - before, epsilon, delta)
        left = max_samples - (simulator.num_queries - before)
        wanted = math.ceil(size * float(rounded(_growth(rounds, epsilon), 3)))
        size = min(wanted, (left + size) // 2)  # the buffers grow by size − what they hold; the certificate takes size
        if size < _LEAST_GROWTH * rounds[-1].size and size < wanted:
            calls = f"{max_samples:,} simulator calls"
            return _unmet(rounds, simulator.num_queries - before, epsilon, delta, calls, "samples")


def _check_memory(problem: CMDP, simulator: GenerativeModel, size: int, rounds: list[_Round]) -> None:
    """A round is a solve and a certificate of the same size, while the earlier ones are held."""
    earlier = sum(r.size for r in rounds)
    check(
        predict_run(problem, size, certificate=size, num_signals=simulator.num_signals, earlier=earlier),
        2 * size,
    )


def _first_size(problem: CMDP) -> int:
    if problem.features is not None:
        pairs = 2 * problem.features.dim
    else:
        pairs = (problem.num_states or 1) * problem.num_actions
    return max(_FIRST_SAMPLES, _PER_PAIR * pairs)


def _expected_error(found: Solution, samples: int, delta: float) -> float:
    """The error that a certificate may be hoped to show, in units of the reward; inf where nothing can be foreseen."""
    if found.mixture is None or found.prepared is None:
        return math.inf
    widths, gap = expect(guide_of(found), samples, delta)
    return max(gap, float(widths[1:].max())) * found.problem.reward_span


def _proved_error(found: Solution, strict: bool) -> float:
    """The larger of gap and violation that the certificate leaves possible, in units of the reward."""
    certificate = found.certificate
    if certificate is None or found.mixture is None or certificate.gap is None:
        return math.inf
    scale = found.problem.reward_span
    missed = float(np.max(certificate.violation(found.problem))) * scale
    if strict:
        return certificate.gap if certificate.feasible == "certified" else math.inf
    return max(certificate.gap, missed)


def _growth(rounds: list[_Round], epsilon: float) -> float:
    """By how much the next round must be larger, judging by how the error has fallen."""
    last = rounds[-1]
    if not math.isfinite(last.error):
        return _MOST_GROWTH / 2
    rate = 0.75
    alike = [r for r in rounds if r.proved == last.proved and math.isfinite(r.error)]
    if len(alike) > 1 and alike[-2].error > last.error:
        fall = math.log(alike[-2].error / last.error) / math.log(last.size / alike[-2].size)
        rate = min(max(fall, _RATES[0]), _RATES[1])
    times = min(last.error / epsilon, 1e9)  # beyond the most growth in any case, and powers of it are finite
    return min(max(1.1 * times ** (1 / rate), _LEAST_GROWTH), _MOST_GROWTH)


def _met(rounds: list[_Round], total: int, epsilon: float, delta: float) -> Solution:
    found = rounds[-1].solution
    assert found.prepared is not None and found.asked is not None
    verdict = Verdict(
        Status.SOLVED,
        Reason.ACCURACY_PROVED,
        epsilon=epsilon,
        confidence=1 - delta,
        strict=found.asked.feasibility == "strict",
        proof=rests_on(found.prepared.design),
    )
    return _with_total(dataclasses.replace(found, verdict=verdict), rounds, total, epsilon, delta)


def _unmet(rounds: list[_Round], total: int, epsilon: float, delta: float, allowed: str, limit: str) -> Solution:
    best = min(rounds, key=lambda r: (not r.proved, r.error, -r.size))
    found = best.solution
    if found.mixture is not None:
        proved = best.error if best.proved and math.isfinite(best.error) else None
        verdict = Verdict(
            Status.BUDGET_EXHAUSTED,
            Reason.ACCURACY_UNMET,
            epsilon=epsilon,
            proved_error=proved,
            allowed=allowed,
            limit=limit,
        )
        found = dataclasses.replace(found, verdict=verdict)
    return _with_total(found, rounds, total, epsilon, delta)


def _with_total(found: Solution, rounds: list[_Round], total: int, epsilon: float, delta: float) -> Solution:
    record: Choices = {**found.settings, "epsilon": epsilon, "delta": delta, "rounds": [r.size for r in rounds]}
    certificate = found.certificate
    if certificate is not None:
        certificate = dataclasses.replace(certificate, confidence=1 - delta)
    return dataclasses.replace(found, samples=total, settings=record, certificate=certificate)
