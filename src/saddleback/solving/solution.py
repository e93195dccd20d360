"""An answer, what is held in memory to ask further, and the verdict on a finished run.

A verdict is data: what came out and why (:mod:`saddleback.runs.words` says it in words). A run that did not reach what was
asked says so; infeasibility is an answer with the distance that is missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from saddleback.certificates import Certificate, Request, with_averages
from saddleback.certificates.certificate import ROUNDING, SUSPECTED
from saddleback.certificates.values.averages import calls_for
from saddleback.designs.design import Design
from saddleback.errors import Remark, UnmetError, gone
from saddleback.method.framework import Outcome
from saddleback.method.oracles import DualSummary, Ending, Interval
from saddleback.method.slater import Slater
from saddleback.method.slater import Verdict as Room
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import TOTAL
from saddleback.problem.spaces import Array
from saddleback.runs.answer import Answer, ConstraintReport
from saddleback.runs.constraint_report import constraint_report
from saddleback.runs.settings import Settings
from saddleback.runs.text import as_html, as_text
from saddleback.runs.verdict import Proof, Reason, Safest, Shortfall, Status, Verdict
from saddleback.runs.words import sentence
from saddleback.sampling.blocks import Executor
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepared import Prepared

_NEAR = 0.01  # of H: how far a dual that converges slowly may stay from a threshold
_MORE = 1.5  # times: the least that is worth a forecast
_MOST_RANGE = 100.0  # of a forecast: its end over its beginning
_MOST_EXCESS = 10.0  # of a bound over what is missing: beyond that the estimate of what is missing is too rough
_BY_ESTIMATES = {Reason.HOLDS_BY_ESTIMATES, Reason.HOLDS_UP_TO_RELAXATION, Reason.HOLDS_UP_TO_ACCURACY}
_SETTLED_BY_PROOF = {
    Reason.FEASIBILITY_OPEN,
    Reason.FEATURES_CANNOT_TELL,
    Reason.NO_FEASIBLE_MIXTURE,
    Reason.STILL_MISSED,
}
"""Doubts of estimates whether the constraints can be met, or are: a proof that they are leaves nothing of them."""
_HARDLY = 0.01  # of the reward between the safest policy and the best one found


@dataclass(frozen=True)
class Solution(Answer):
    """What :func:`saddleback.solve` returns; ``print(solution)`` shows it as the command line does.

    ``prepared`` holds the samples and oracles, for a later ``solve(..., reuse=solution)`` or a frontier, and ``asked`` what
    the dual was told. ``certificate_seeds`` have been used to prove something of these samples: a second proof needs another.
    ``safest_reward`` is that of the policy with the most room in all constraints, in the user's units, by the estimates.
    """

    prepared: Prepared | None = field(default=None, repr=False)
    asked: Settings | None = field(default=None, repr=False)
    certificate_seeds: tuple[int, ...] = ()
    slater_prices: Array | None = field(default=None, repr=False)
    safest_reward: float | None = field(default=None, repr=False)

    def require(self, what: str = "proved") -> Solution:
        """This solution if it is what was asked for, else an :class:`UnmetError` that says what is missing.

        ``what`` is "solved" (the status says so) or "proved" (and its certificate shows that every constraint holds).
        """
        if self.status is not Status.SOLVED:
            raise UnmetError(f"the answer is {self.status.value}: {self.message}.", self.status.exit_code)
        proved = self.certificate is not None and self.certificate.feasible == "certified"
        if what == "proved" and not proved:
            found = "there is no certificate" if self.certificate is None else "its limits leave a constraint open"
            raise UnmetError(f"the constraints are not proved to hold: {found}; solve with feasibility='strict'.", 4)
        return self

    @property
    def proved_error(self) -> float:
        """The larger of gap and violation that the certificate leaves possible, in units of the reward; inf without one."""
        if self.certificate is None or self.certificate.gap is None:
            return math.inf
        missed = float(np.max(self.certificate.violation(self.problem))) * self.problem.reward_span
        return max(self.certificate.gap, missed)

    def plot(self, *_: object, **__: object) -> NoReturn:
        """Gone: ``saddleback.plot(solution)``."""
        gone("Solution.plot", "saddleback.plot(solution, panel=..., ax=...)")

    def __str__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)


# ---- the verdict -------------------------------------------------------------------------------------------------------


def verdict_on(
    problem: CMDP,
    slater: Slater,
    dual: DualSummary,
    outcome: Outcome,
    limits: Interval,
    settings: Settings,
    design: Design,
) -> Verdict:
    """The verdict on a finished run."""
    strict = settings.feasibility == "strict"
    if slater.verdict is Room.INFEASIBLE:
        return Verdict(Status.UNDECIDED, Reason.FEATURES_CANNOT_TELL)
    if slater.verdict is Room.UNDECIDED:
        # What features cannot carry does not shrink with more samples, and nobody knows how much that is.
        times = forecast_times(slater, settings.confidence) if design.operator is None else None
        return Verdict(Status.UNDECIDED, Reason.FEASIBILITY_OPEN, times=times)
    if dual.ending is Ending.AT_CAP:
        return Verdict(Status.UNDECIDED, Reason.MULTIPLIER_AT_CAP, cap=dual.record.get("upper"))
    if strict:
        missing = problem.thresholds - limits.low[1:]
        if np.any(missing > ROUNDING * problem.horizon):
            name = problem.constraints[int(np.argmax(missing))].name
            return Verdict(Status.UNDECIDED, Reason.STRICT_NOT_SHOWN, constraint=name)
        return Verdict(Status.SOLVED, Reason.HOLDS_BY_LIMITS)
    if dual.ending is Ending.NOTHING_FEASIBLE:
        return Verdict(Status.UNDECIDED, Reason.NO_FEASIBLE_MIXTURE)
    if dual.ending is Ending.OUT_OF_STEPS:
        return Verdict(Status.BUDGET_EXHAUSTED, Reason.DUAL_GAP_OPEN, iterations=len(outcome.steps))
    if dual.meets_target:
        below = np.any(outcome.values[1:] < problem.thresholds - 1e-8 * problem.horizon)
        return Verdict(Status.SOLVED, Reason.HOLDS_UP_TO_RELAXATION if below else Reason.HOLDS_BY_ESTIMATES)
    short = problem.thresholds - limits.high[1:] - _NEAR * problem.horizon
    worst = int(np.argmax(short))
    if short[worst] > 0:
        name = problem.constraints[worst].name
        return Verdict(Status.BUDGET_EXHAUSTED, Reason.STILL_MISSED, constraint=name, iterations=len(outcome.steps))
    return Verdict(Status.SOLVED, Reason.HOLDS_UP_TO_ACCURACY)


def forecast_times(slater: Slater, confidence: float) -> tuple[float, float] | None:
    """How many times as many samples should settle whether ζ > 0, from and to; None where these cannot tell.

    Limits are as wide as ζ is far from zero once there are n·(w/|ζ|)² samples, w their width with n. The estimate of ζ errs by
    about s = w/z itself, so the range is that over |ζ̂| ± s. A range of more than a hundredfold is no forecast.
    """
    w = max(slater.estimate - slater.low, slater.high - slater.estimate)
    room, s = abs(slater.estimate), w / float(ndtri(0.5 + 0.5 * confidence))
    if not 0 < s < room:
        return None
    least, most = (w / (room + s)) ** 2, (w / (room - s)) ** 2
    return (max(least, _MORE), max(most, 2 * _MORE)) if most <= _MOST_RANGE * least else None


def proof_times(certificate: Certificate, design: Design) -> tuple[float, float] | None:
    """How many times as many samples should prove that nothing is feasible, where the certificate just did not.

    The bound exceeds what the samples suggest by an excess that falls like 1/n while ranges rule it, like 1/√n in the end.
    """
    bound, room = certificate.evidence.bound, certificate.slack_bound
    if bound is None or room is None or design.operator is not None:
        return None
    excess = bound.value - bound.estimate
    missing = excess - room  # by how much the constraints are missed, as the samples suggest
    if not 0 < missing < excess < _MOST_EXCESS * missing:
        return None
    return max(excess / missing, _MORE), max((excess / missing) ** 2, 2 * _MORE)


def out_of_reach(problem: CMDP) -> tuple[Verdict, float] | None:
    """Thresholds beyond what any policy of bounded rewards can reach need no sample: the verdict, and the slack."""
    H = problem.horizon
    beyond = np.flatnonzero(problem.thresholds > H * (1 + ROUNDING))
    if not beyond.size:
        return None
    i = int(beyond[0])
    c, reach = problem.constraints[i], np.full(1 + problem.num_constraints, H)
    best, threshold = float(problem.values_of(reach)[1 + i]), float(problem.user_thresholds()[i])
    row = Shortfall(c.name, c.sense, threshold, best, problem.units[i])
    verdict = Verdict(Status.INFEASIBLE, Reason.OUT_OF_REACH, proof=Proof.PROVED, shortfalls=(row,))
    return verdict, -abs(best - threshold)


def no_policy(problem: CMDP, slater: Slater) -> Verdict:
    """No policy meets the constraints, by measured limits: that is likely, and only a proof makes it so."""
    values = problem.values_of(np.concatenate([[0.0], slater.reachable]))
    rows = zip(problem.constraints, problem.user_thresholds(), values[1:], problem.units, strict=True)
    shortfalls = tuple(Shortfall(c.name, c.sense, float(b), float(v), unit) for c, b, v, unit in rows)
    return Verdict(Status.UNDECIDED, Reason.PROBABLY_NO_POLICY, shortfalls=shortfalls)


def rests_on(design: Design) -> Proof:
    """What a bound over all policies rests on."""
    if design.operator is None:
        return Proof.PROVED
    return Proof.IF_LINEAR if design.complete else Proof.IF_LINEAR_ON_CANDIDATES


def refutation(problem: CMDP, certificate: Certificate, otherwise: Verdict) -> Verdict | None:
    """The verdict on a policy that its own certificate refutes; None where it does not.

    ``otherwise`` is what it would be: where that is not "solved" its words say what to do.
    """
    if certificate.feasible != "refuted":
        return None
    rows = zip(problem.constraints, problem.user_thresholds().tolist(), certificate.constraints, strict=True)
    missed = [(b - high, b - low) if c.sense == ">=" else (low - b, high - b) for c, b, (low, high) in rows]
    i = max(range(len(missed)), key=missed.__getitem__)
    name, unit = problem.constraints[i].name, problem.units[i]
    why = None if otherwise.status is Status.SOLVED else sentence(dataclasses.replace(otherwise, promised=None))
    return Verdict(Status.REFUTED, Reason.REFUTED, constraint=name, missed_by=missed[i], unit=unit, detail=why)


def settled(solution: Solution, certificate: Certificate) -> Verdict:
    """What the proof makes of the verdict; that nothing was promised before it no longer matters."""
    verdict = dataclasses.replace(solution.verdict, promised=None)
    if certificate.contradictions:
        found = "; ".join(remark.text for remark in certificate.contradictions)
        return Verdict(Status.UNDECIDED, Reason.CONTRADICTED, detail=f"{found}; {SUSPECTED}")
    parts, strict = solution.prepared, (solution.asked or Settings()).feasibility == "strict"
    if certificate.infeasible:
        proof = Proof.PROVED if parts is None else rests_on(parts.design)
        reason = Reason.NO_POLICY if verdict.reason is Reason.PROBABLY_NO_POLICY else verdict.reason
        return dataclasses.replace(verdict, status=Status.INFEASIBLE, reason=reason, proof=proof)
    if solution.mixture is None:
        if parts is None or verdict.reason is not Reason.PROBABLY_NO_POLICY:
            return verdict
        return dataclasses.replace(verdict, times=proof_times(certificate, parts.design))
    if (refuted := refutation(solution.problem, certificate, verdict)) is not None:
        return refuted
    if certificate.feasible == "certified" and not any(certificate.allowance):
        open_ = verdict.status is Status.UNDECIDED if strict else verdict.reason in _SETTLED_BY_PROOF
        if open_ or verdict.status is Status.SOLVED:
            return Verdict(Status.SOLVED, Reason.HOLDS_PROVED)
    if strict and certificate.feasible != "certified" and verdict.status is Status.SOLVED:
        return Verdict(Status.UNDECIDED, Reason.STRICT_NOT_PROVED)
    return verdict


# ---- what is shown -----------------------------------------------------------------------------------------------------


def presented(found: Solution) -> Solution:
    """The solution as it is shown: with what a strict answer is worth, and no estimate outside its own proved limits."""
    return _within_limits(_beside_safest(found))


def _beside_safest(found: Solution) -> Solution:
    """Say it where the constraints hold at the price of nearly all of the reward."""
    parts, safest, problem = found.prepared, found.safest_reward, found.problem
    strict = found.asked is not None and found.asked.feasibility == "strict"
    if not strict or found.status is not Status.SOLVED or found.value is None or parts is None or safest is None:
        return found
    best = max(float(values[0]) for _, values in parts.oracle.columns)
    own, least = ((x - problem.base[0] * problem.horizon) / problem.scale[0] for x in (found.value, safest))
    gain, room, rounding = own - least, best - least, ROUNDING * problem.horizon
    if gain > max(rounding, _HARDLY * room):
        return found
    top = float(problem.values_of(np.full(1 + problem.num_constraints, best))[0])
    beside = Safest(found.value, safest, top, gain <= rounding, room <= rounding)
    return dataclasses.replace(found, verdict=dataclasses.replace(found.verdict, safest=beside))


def _within_limits(found: Solution) -> Solution:
    """Where an estimate lies outside its proved limits, the mean of the proof's rollouts in its place.

    The proof is about the mixture: of its members there is no better estimate than the solve's, though they then mix to another.
    """
    problem, proof, H = found.problem, found.certificate, found.problem.horizon
    if found.value is None or proof is None or proof.value is None or proof.evidence.rollouts is None:
        return found
    told = np.array([found.value, *(c.value for c in found.constraints)])
    limits = np.array([proof.value, *proof.constraints])
    V, ends = problem.unit_values_of(told), np.sort(problem.unit_values_of(limits.T), axis=0)
    off = np.maximum(ends[0] - V, V - ends[1]) > ROUNDING * H
    if not np.any(off):
        return found
    mean = np.where(off, np.clip(proof.evidence.rollouts.mean, *ends), V)
    values = problem.values_of(mean)
    rows = [
        constraint_report(problem, i, float(values[1 + i]), proof.constraints[i], 1e-8) if off[1 + i] else old
        for i, old in enumerate(found.constraints)
    ]
    return dataclasses.replace(
        found,
        verdict=_without_estimates(problem, found.verdict, rows, off[1:]),
        value=float(values[0]) if off[0] else found.value,
        constraints=tuple(rows),
        remarks=(
            *found.remarks,
            *(_replaced(problem, j, told[j], limits[j], mean) for j in np.flatnonzero(off).tolist()),
        ),
    )


def _without_estimates(
    problem: CMDP, verdict: Verdict, rows: Sequence[ConstraintReport], off: NDArray[np.bool_]
) -> Verdict:
    """What is left of a verdict by estimates where the proof disowns them, and its own speak against it."""
    missed = [(-row.slack, i) for i, row in enumerate(rows) if off[i] and row.slack < 0]
    if verdict.reason not in _BY_ESTIMATES or not missed:
        return verdict
    by, i = max(missed)
    unit, name = problem.units[i], rows[i].name
    return Verdict(Status.UNDECIDED, Reason.ESTIMATES_OFF, constraint=name, missed_by=(by, by), unit=unit)


def _replaced(problem: CMDP, j: int, told: float, limits: Array, mean: Array) -> Remark:
    name = problem.objective if j == 0 else f"'{problem.signals[j].name}'"
    unit = TOTAL if j == 0 else problem.units[j - 1]
    low, high = unit.limits_of((float(limits[0]), float(limits[1])))
    text = (
        f"the solve's estimate of {name}, {unit.say(told)}, lies outside its proved limits, {low:.6g} to {high:.6g}{unit.suffix}: "
        f"that of the proof, {unit.say(float(problem.values_of(mean)[j]))}, is shown in its place; those of the single policies are "
        "still the solve's, and may be off as much"
    )
    return Remark("estimate-replaced", text)


# ---- averages over time ------------------------------------------------------------------------------------------------


def without_averages(solution: Solution, request: Request) -> tuple[Request, int]:
    """The request less the calls that are set aside for averages over time, and these."""
    kept = 0 if solution.mixture is None else calls_for(solution.problem, request.samples)
    return replace(request, samples=request.samples - kept), kept


def averaged(solution: Solution, simulator: GenerativeModel, calls: int, executor: Executor | None) -> Solution:
    """The solution whose certificate has averages over time too, from so many calls, if there is anything to average."""
    proof = solution.certificate
    if not calls or proof is None or solution.mixture is None:
        return solution
    more = with_averages(proof, solution.problem, simulator, solution.mixture, calls, executor)
    return replace(solution, certificate=more, samples=solution.samples + more.samples - proof.samples)
