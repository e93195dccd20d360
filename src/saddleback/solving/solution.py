"""An answer, what is held in memory to ask further, and the verdict on a finished run.

A verdict is data: what came out and why (:mod:`saddleback.runs.words` says it in words). A run that did not reach what was
asked says so; infeasibility is an answer with the distance that is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from saddleback.certificates import Certificate
from saddleback.designs.design import Design
from saddleback.errors import UnmetError, gone
from saddleback.method.framework import Outcome
from saddleback.method.oracles import DualSummary, Ending, Interval
from saddleback.method.slater import Slater
from saddleback.method.slater import Verdict as Room
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.runs.answer import Answer
from saddleback.runs.settings import Settings
from saddleback.runs.text import as_html, as_text
from saddleback.runs.verdict import Proof, Reason, Shortfall, Status, Verdict
from saddleback.solving.prepared import Prepared

_NEAR = 0.01  # of H: how far a dual that converges slowly may stay from a threshold


@dataclass(frozen=True)
class Solution(Answer):
    """What :func:`saddleback.solve` returns; ``print(solution)`` shows it as the command line does.

    ``prepared`` holds the samples and oracles, for a later ``solve(..., reuse=solution)`` or a frontier, and ``asked`` what
    the dual was told. ``certificate_seeds`` have been used to prove something of these samples: a second proof needs another.
    """

    prepared: Prepared | None = field(default=None, repr=False)
    asked: Settings | None = field(default=None, repr=False)
    certificate_seeds: tuple[int, ...] = ()
    slater_prices: Array | None = field(default=None, repr=False)

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
    problem: CMDP, slater: Slater, dual: DualSummary, outcome: Outcome, limits: Interval, strict: bool, samples: int
) -> Verdict:
    """The verdict on a finished run of so many ``samples``."""
    if slater.verdict is Room.INFEASIBLE:
        return Verdict(Status.UNDECIDED, Reason.FEATURES_CANNOT_TELL)
    needed = _settling(slater, samples)
    if slater.verdict is Room.UNDECIDED:
        return Verdict(Status.UNDECIDED, Reason.FEASIBILITY_OPEN, needed=needed)
    if dual.ending is Ending.AT_CAP:
        return Verdict(Status.UNDECIDED, Reason.MULTIPLIER_AT_CAP, cap=dual.record.get("upper"))
    if strict:
        missing = problem.thresholds - limits.low[1:]
        if np.any(missing > 0):
            name = problem.constraints[int(np.argmax(missing))].name
            return Verdict(Status.UNDECIDED, Reason.STRICT_NOT_SHOWN, constraint=name, needed=needed)
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


def _settling(slater: Slater, samples: int) -> float | None:
    """What would settle whether ζ > 0: limits as wide as ζ̂ is far from zero, and widths fall like 1/√n."""
    room, short = abs(slater.estimate), max(slater.estimate - slater.low, slater.high - slater.estimate)
    times = (short / room) ** 2 if room > 1e-6 * short else math.inf
    if samples < 1 or times > 1e6:
        return None
    return max(2 * samples, float(f"{1.5 * times * samples:.2g}"))  # the estimate of the room errs too


def out_of_reach(problem: CMDP) -> tuple[Verdict, float] | None:
    """Thresholds beyond what any policy of bounded rewards can reach need no sample: the verdict, and the slack."""
    H = problem.horizon
    beyond = np.flatnonzero(problem.thresholds > H * (1 + 1e-12))
    if not beyond.size:
        return None
    i = int(beyond[0])
    c, reach = problem.constraints[i], np.full(1 + problem.num_constraints, H)
    best, threshold = float(problem.values_of(reach)[1 + i]), float(problem.user_thresholds()[i])
    row = Shortfall(c.name, c.sense, threshold, best)
    verdict = Verdict(Status.INFEASIBLE, Reason.OUT_OF_REACH, proof=Proof.PROVED, shortfalls=(row,))
    return verdict, -abs(best - threshold)


def no_policy(problem: CMDP, slater: Slater) -> Verdict:
    """No policy meets the constraints, by measured limits: that is likely, and only a proof makes it so."""
    values = problem.values_of(np.concatenate([[0.0], slater.reachable]))
    rows = zip(problem.constraints, problem.user_thresholds(), values[1:], strict=True)
    shortfalls = tuple(Shortfall(c.name, c.sense, float(b), float(v)) for c, b, v in rows)
    return Verdict(Status.UNDECIDED, Reason.PROBABLY_NO_POLICY, shortfalls=shortfalls)


def rests_on(design: Design) -> Proof:
    """What a bound over all policies rests on."""
    if design.operator is None:
        return Proof.PROVED
    return Proof.IF_LINEAR if design.complete else Proof.IF_LINEAR_ON_CANDIDATES


def refutation(problem: CMDP, certificate: Certificate) -> Verdict | None:
    """The verdict on a policy that its own certificate refutes; None where it does not."""
    if certificate.feasible != "refuted":
        return None
    rows = zip(problem.constraints, problem.user_thresholds().tolist(), certificate.constraints, strict=True)
    missed = [((b - high, b - low) if c.sense == ">=" else (low - b, high - b), c.name) for c, b, (low, high) in rows]
    by, name = max(missed)
    return Verdict(Status.REFUTED, Reason.REFUTED, constraint=name, missed_by=by)
