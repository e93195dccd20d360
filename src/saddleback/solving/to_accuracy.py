"""Solve to a requested accuracy: grow the buffers until a certificate is expected to show it, draw that, and no more.

    round j:   N simulator calls in the solve's buffers, those of earlier rounds included
               e(k, n) = the error that a certificate of n fresh samples is expected to show after a solve on kN  (:mod:`.outlook`; it costs nothing)
               if e(1, ⁷⁄₃N) ≤ ε/1.2:  draw the smallest certificate of which that is expected, at δ_i = δ/(i(i+1)) for the i-th one drawn;
                                       stop if it shows  gap ≤ ε  and  violation ≤ ε  (strict: V_c ≥ b)
               (with features the gap assumes that P is linear in them: what is reached then is said so, and not proved)
               else:                   N grows by the least k with e(k, ⁷⁄₃kN) ≤ ε/1.2, within [1.5, 4]

Σ δ_i = δ, so whatever round it stops in, what it shows holds with probability 1 − δ. Certificates are never reused: each is
made of samples drawn after its policy was frozen. Its samples are shared between rollouts and bound by which of violation and gap is expected
to be larger. One that failed was worse than expected: errors are expected to be so many times larger from then on, and the next
certificate has at least half as many samples again. An unmet request is a status, with the best policy so far.

Memory is checked before every round: a first one that would not fit is refused, a later one ends the run as it stands.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

from saddleback.certificates import Request
from saddleback.certificates.guide import hidden_by_starts
from saddleback.certificates.values.averages import calls_for
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import rounded
from saddleback.problem.phases import phase
from saddleback.runs.answer import Choices
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import MOST_SAMPLES, Settings
from saddleback.runs.verdict import Proof, Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.simulators.generative_model import GenerativeModel, derived_seed
from saddleback.simulators.seed_rounds import ROUNDS
from saddleback.solving.find import budget_of
from saddleback.solving.outlook import LEAST_GROWTH, MARGIN, MOST_GROWTH, PROOF, Outlook
from saddleback.solving.progress import Progress, certificate_event, round_event
from saddleback.solving.solution import Solution, averaged, refutation, rests_on
from saddleback.solving.strict import with_proof

_FIRST_SAMPLES, _PER_PAIR = 2_000, 20
_MOST_SURPRISE = 2.0


@dataclasses.dataclass(frozen=True)
class _Round:
    """One round: its solution, the error in units of the reward that it has shown or may hope to (inf: none), its size."""

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
    hidden = 2.2 * hidden_by_starts(problem, delta) * problem.reward_span
    rule = f"must be more than {hidden:.3g} where the start distribution is a sampler"
    require(epsilon > hidden, "epsilon", rule, epsilon, "ask for less, or give start states with weights")
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
    surprise, least = 1.0, 1
    while True:
        if progress is not None:
            progress(f"round {len(rounds) + 1}: samples", spent(), max_samples)
        held = rounds[-1].solution.prepared if rounds else None
        try:
            earlier, signals = sum(r.size for r in rounds), simulator.num_signals  # those of the rounds are held
            proof = max(least, int(PROOF * size))
            check(predict_run(problem, size, certificate=proof, num_signals=signals, earlier=earlier), size + proof)
            found = budget_of(problem, simulator, settings, size, executor, progress, callbacks, held)
        except InputError as full:
            if full.name != "memory" or not rounds:
                raise
            return ended(_unmet(rounds, epsilon, f"the memory that a larger round may take, {full.value}", "memory"))
        left = max_samples - spent()
        drawn = 1 + sum(r.proved for r in rounds)
        outlook = Outlook(found, size, delta / (drawn * (drawn + 1)), surprise)
        with phase("planning the next round"):
            step = _next_step(outlook, epsilon / MARGIN, least, left)
        if step.proof is not None:
            allowed = 0.0 if strict else epsilon / problem.reward_span
            seed_now = derived_seed(seed, ROUNDS[len(rounds)])
            request = dataclasses.replace(step.proof, seed=seed_now, allowance=allowed, executor=executor)
            found = with_proof(found, simulator, request)
            if found.certificate is not None:
                tell(callbacks, certificate_event(found.certificate))
        proving = step.proof is not None
        error = _shown_error(found, strict) if proving else step.expected
        rounds.append(_Round(found, error, size, proving))
        basis = _rests_on(found) if proving else Proof.MEASURED
        tell(callbacks, round_event(len(rounds), spent(), error, basis, epsilon))
        if proving and found.status is Status.INFEASIBLE and found.certificate and found.certificate.infeasible:
            return ended(found)
        if (
            proving and found.mixture is None and found.verdict.proof.assumes_linearity
        ):  # more samples would say the same
            return ended(found)
        if proving and found.certificate and found.certificate.contradictions:  # more samples would not help
            return ended(found)
        if proving and error <= epsilon:
            return ended(_met(found, epsilon, delta))
        if step.growth is None:
            return ended(_unmet(rounds, epsilon, f"{max_samples:,} simulator calls", "samples"))
        if step.proof is not None:
            surprise = _surprised(surprise, error, step.expected)
            least = math.ceil(LEAST_GROWTH * step.proof.samples)
        size = max(size + 1, math.ceil(size * step.growth))


class _Step(NamedTuple):
    """The certificate to draw now, if any, the error expected of it, and how the buffers grow if it fails (None: not at all)."""

    proof: Request | None
    expected: float
    growth: float | None


def _next_step(outlook: Outlook, epsilon: float, least: int, left: int) -> _Step:
    """A certificate where one is expected to show ``epsilon``, where nothing can be foreseen, and where no larger round fits."""
    size = outlook.size
    # Buffers of k·size leave room for a certificate of 7/3 of that, or of what the last one that failed asks for.
    room = min((left + size) / ((1 + PROOF) * size), (left + size - least) / size)
    last = room < LEAST_GROWTH
    most = max(1, left if last else min(left, max(least, int(PROOF * size))))
    expected = outlook.error(1, most)
    if expected <= epsilon:
        proof = outlook.proof(epsilon, min(least, most), most)
        return _Step(proof, outlook.error(1, proof.samples), None if last else LEAST_GROWTH)
    if last or not math.isfinite(expected):
        return _Step(outlook.request(most), expected, None if last else min(MOST_GROWTH, room))
    return _Step(None, expected, float(rounded(min(outlook.growth(epsilon), room), 3)))


def _surprised(before: float, error: float, expected: float) -> float:
    """By how much errors are larger than expected, given that the last was ``error`` instead of ``expected``."""
    if not (math.isfinite(error) and 0 < expected < math.inf):
        return before
    return float(rounded(min(_MOST_SURPRISE, max(before, before * error / expected)), 3))


def _shown_error(found: Solution, strict: bool) -> float:
    """The error that the certificate leaves possible; in strict mode the gap alone, once the constraints are proved."""
    certificate = found.certificate
    if found.mixture is None or certificate is None or not strict:
        return math.inf if found.mixture is None else found.shown_error
    gap = certificate.gap_if_linear
    return gap if certificate.feasible == "certified" and gap is not None else math.inf


def _rests_on(found: Solution) -> Proof:
    assert found.prepared is not None
    return rests_on(found.prepared.design)


def _met(found: Solution, epsilon: float, delta: float) -> Solution:
    assert found.asked is not None
    proof = _rests_on(found)
    verdict = Verdict(
        Status.SOLVED,
        Reason.ACCURACY_IF_LINEAR if proof.assumes_linearity else Reason.ACCURACY_PROVED,
        epsilon=epsilon,
        confidence=1 - delta,
        strict=found.asked.feasibility == "strict",
        proof=proof,
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
        shown_error=best.error if best.proved and math.isfinite(best.error) else None,
        allowed=allowed,
        limit=limit,
        proof=_rests_on(best.solution),
    )
    proof = best.solution.certificate
    refuted = None if proof is None else refutation(best.solution.problem, proof, verdict)
    return dataclasses.replace(best.solution, verdict=refuted or verdict)
