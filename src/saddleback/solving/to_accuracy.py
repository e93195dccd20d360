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

from saddleback.certificates import Request, expect
from saddleback.certificates.guide import hidden_by_starts
from saddleback.certificates.values.averages import calls_for
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import rounded
from saddleback.runs.answer import Choices
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import MOST_SAMPLES, Settings
from saddleback.runs.verdict import Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.simulators.seed_rounds import ROUNDS
from saddleback.solving.find import budget_of
from saddleback.solving.progress import Progress, certificate_event, round_event
from saddleback.solving.solution import Solution, averaged, refutation, rests_on
from saddleback.solving.strict import guide_of, with_proof

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

    def spent() -> int:
        return simulator.num_queries - before

    def ended(found: Solution) -> Solution:
        """The solution of the whole run: all calls count, and all certificates hold together.

        Averages over time come from calls beyond the certificate's, which was planned for the accuracy.
        """
        proof = found.certificate
        calls = 0 if proof is None else min(calls_for(problem, proof.samples), max_samples - spent())
        found = averaged(found, simulator, calls, executor)
        record: Choices = {**found.settings, "epsilon": epsilon, "delta": delta, "rounds": [r.size for r in rounds]}
        proof = found.certificate and dataclasses.replace(found.certificate, confidence=1 - delta)
        return dataclasses.replace(found, samples=spent(), settings=record, certificate=proof)

    size = min(max(_FIRST_SAMPLES, _PER_PAIR * problem.num_unknowns), max_samples // 2)
    while True:
        if progress is not None:
            progress(f"round {len(rounds) + 1}: samples", spent(), max_samples)
        held = rounds[-1].solution.prepared if rounds else None
        try:
            # A round is a solve and a certificate of the same size, while the earlier ones are held.
            earlier, signals = sum(r.size for r in rounds), simulator.num_signals
            check(predict_run(problem, size, certificate=size, num_signals=signals, earlier=earlier), 2 * size)
            found = budget_of(problem, simulator, settings, size, executor, progress, callbacks, held)
        except InputError as full:
            if full.name != "memory" or not rounds:
                raise
            return ended(_unmet(rounds, epsilon, f"the memory that a larger round may take, {full.value}", "memory"))
        left = max_samples - spent()
        drawn = 1 + sum(r.proved for r in rounds)
        level, allowed = delta / (drawn * (drawn + 1)), 0.0 if strict else epsilon
        hope = _expected_error(found, min(size, left), level)
        last = (left + size) // 2 < _LEAST_GROWTH * size  # there will be no larger round
        proving = last or not _NEAR * epsilon < hope < math.inf
        if proving:
            enough, again = max(1, min(size, left)), derived_seed(seed, ROUNDS[len(rounds)])
            span, any_bound = problem.reward_span, problem.num_states is not None
            request = Request(enough, again, level, allowed / span, any_bound=any_bound, executor=executor)
            found = with_proof(found, simulator, request)
            if found.certificate is not None:
                tell(callbacks, certificate_event(found.certificate))
        rounds.append(_Round(found, _proved_error(found, strict) if proving else hope, size, proving))
        tell(callbacks, round_event(len(rounds), spent(), rounds[-1].error, proving, epsilon))
        if proving and found.status is Status.INFEASIBLE and found.certificate and found.certificate.infeasible:
            return ended(found)
        if proving and found.certificate and found.certificate.contradictions:  # more samples would not help
            return ended(found)
        if proving and rounds[-1].error <= epsilon:
            return ended(_met(found, epsilon, delta))
        left = max_samples - spent()
        wanted = math.ceil(size * float(rounded(_growth(rounds, epsilon), 3)))
        size = min(wanted, (left + size) // 2)  # the buffers grow by size − what they hold; the certificate takes size
        if size < _LEAST_GROWTH * rounds[-1].size and size < wanted:
            return ended(_unmet(rounds, epsilon, f"{max_samples:,} simulator calls", "samples"))


def _expected_error(found: Solution, samples: int, delta: float) -> float:
    """The error that a certificate may be hoped to show, in units of the reward; inf where nothing can be foreseen."""
    if found.mixture is None or found.prepared is None:
        return math.inf
    widths, gap = expect(guide_of(found), Request(samples, 0, delta, any_bound=True))
    return max(gap, float(widths[1:].max())) * found.problem.reward_span


def _proved_error(found: Solution, strict: bool) -> float:
    """The error that the certificate leaves possible; in strict mode the gap alone, once the constraints are proved."""
    certificate = found.certificate
    if found.mixture is None or certificate is None or not strict:
        return math.inf if found.mixture is None else found.proved_error
    return certificate.gap if certificate.feasible == "certified" and certificate.gap is not None else math.inf


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


def _met(found: Solution, epsilon: float, delta: float) -> Solution:
    assert found.prepared is not None and found.asked is not None
    verdict = Verdict(
        Status.SOLVED,
        Reason.ACCURACY_PROVED,
        epsilon=epsilon,
        confidence=1 - delta,
        strict=found.asked.feasibility == "strict",
        proof=rests_on(found.prepared.design),
    )
    return dataclasses.replace(found, verdict=verdict)


def _unmet(rounds: list[_Round], epsilon: float, allowed: str, limit: str) -> Solution:
    best = min(rounds, key=lambda r: (not r.proved, r.error, -r.size))
    if best.solution.mixture is None:
        return best.solution
    verdict = Verdict(
        Status.BUDGET_EXHAUSTED,
        Reason.ACCURACY_UNMET,
        epsilon=epsilon,
        proved_error=best.error if best.proved and math.isfinite(best.error) else None,
        allowed=allowed,
        limit=limit,
    )
    proof = best.solution.certificate
    refuted = None if proof is None else refutation(best.solution.problem, proof, verdict)
    return dataclasses.replace(best.solution, verdict=refuted or verdict)
