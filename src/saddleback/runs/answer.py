"""§3, what a run returns: the mixture, its values in the user's units, and an honest status.

Inside, everything is in the paper's units; this is the one place where values and multipliers are turned back into the
user's. A run that did not reach what was asked says so in its verdict; it never returns silently, and
never a number beside a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from saddleback.certificates.certificate import Certificate
from saddleback.errors import Remark
from saddleback.files.json_file import Plain, Record, Whole, to_plain
from saddleback.method.framework import Outcome
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.runs.constraint_report import ConstraintReport as ConstraintReport
from saddleback.runs.constraint_report import constraint_report, prices_in_units
from saddleback.runs.contradiction import ConflictReport
from saddleback.runs.verdict import Status, Verdict
from saddleback.runs.words import sentence


class Choices(TypedDict, total=False):
    """What was chosen and what came of it; a dual may add numbers of its own."""

    mode: str
    solver: str
    evaluator: str
    design: str
    dual: str
    feasibility: str
    seed: Whole
    delta: float
    coreset: int
    rank: int
    condition: float
    batches: int
    iterations: int
    solver_calls: int
    error: float | None
    target: list[float]
    epsilon: float
    rounds: list[int]


class MemberReport(Record, frozen=True):
    """One member of the mixture: its weight and what it does on its own."""

    weight: float
    value: float
    constraints: tuple[float, ...]


class StationaryReport(Record, frozen=True):
    """What one stationary policy in the mixture's place does, and how it was made."""

    value: float
    constraints: tuple[float, ...]
    label: str


class AnswerRecord(Record, frozen=True, forbid_unknown_fields=False):
    """``solution.json``: an answer as it is kept. Others may add fields for people to read."""

    status: str
    message: str
    value: float | None
    constraints: tuple[ConstraintReport, ...]
    multipliers: tuple[float, ...]
    samples: Whole
    policy: tuple[MemberReport, ...]
    remarks: tuple[str, ...]
    settings: Choices
    gap: float | None = None
    max_slack: float | None = None
    stationary: StationaryReport | None = None
    conflict: tuple[ConflictReport, ...] = ()
    prices: tuple[float, ...] = ()


@dataclass(frozen=True)
class Trace:
    """The dual's path, in the user's units: multipliers ``(K, m)`` and estimated values ``(K, 1+m)``."""

    multipliers: Array
    values: Array

    @classmethod
    def of(cls, problem: CMDP, outcome: Outcome) -> Trace:
        """From the steps of a run."""
        multipliers = np.array([s.multipliers for s in outcome.steps])
        values = np.array([s.values for s in outcome.steps])
        return cls(problem.multipliers_of(multipliers), problem.values_of(values))


@dataclass(frozen=True)
class Stationary:
    """One stationary policy in the mixture's place, with values of its own and a label that says how it was made."""

    policy: TabularPolicy
    values: Array
    label: str


@dataclass(frozen=True)
class Answer:
    """A policy with what is known about it. ``mixture``, ``value`` and the rest are None where there is no answer.

    ``gap`` is what the dual left open between the mixture and its own upper bound, in the user's reward; what is proved
    is in ``certificate``. ``samples`` counts all simulator calls, the certificate's included. ``settings`` is the record of
    what was chosen and what came of it, ready for JSON. ``conflict`` says what contradicts what where nothing is feasible.
    """

    verdict: Verdict
    problem: CMDP
    samples: int
    mixture: MixturePolicy | None = None
    value: float | None = None
    constraints: tuple[ConstraintReport, ...] = ()
    multipliers: tuple[float, ...] = ()
    members: tuple[MemberReport, ...] = ()
    max_slack: float | None = None
    gap: float | None = None
    trace: Trace | None = None
    stationary: Stationary | None = None
    remarks: tuple[Remark, ...] = ()
    settings: Choices = field(default_factory=Choices)
    certificate: Certificate | None = None
    conflict: tuple[ConflictReport, ...] = ()

    @property
    def status(self) -> Status:
        """How the run ended."""
        return self.verdict.status

    @property
    def message(self) -> str:
        """The verdict in a sentence, without a full stop."""
        return sentence(self.verdict, self.samples)

    def to_json(self) -> dict[str, Plain]:
        """One JSON-ready object; the keys are the command line's contract."""
        out: dict[str, object] = {
            "status": self.status.value,
            "reason": self.verdict.reason.value,
            "message": self.message,
            "value": self.value,
            "constraints": self.constraints,
            "multipliers": self.multipliers,
            "prices": prices_in_units(self.problem, self.multipliers),
            "samples": self.samples,
            "policy": self.members,
            "remarks": [remark.text for remark in self.remarks],
            "settings": self.settings,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
        }
        out |= {name: x for name, x in (("gap", self.gap), ("max_slack", self.max_slack)) if x is not None}
        if self.conflict:
            out["conflict"] = self.conflict
        if self.stationary is not None:
            value, *constraints = map(float, self.stationary.values)
            out["stationary"] = StationaryReport(value, tuple(constraints), self.stationary.label)
        plain: dict[str, Plain] = to_plain(out)
        return plain


def constraint_reports(
    problem: CMDP, unit_values: Array, low: Array | None = None, high: Array | None = None
) -> tuple[ConstraintReport, ...]:
    """Rows of the answer from values ``(1+m,)`` in the paper's units; ``low`` and ``high`` likewise."""
    values, rows = problem.values_of(unit_values), []
    for i in range(problem.num_constraints):
        limits = None
        if low is not None and high is not None:
            ends = sorted(float(problem.values_of(x)[1 + i]) for x in (low, high))
            limits = (ends[0], ends[1])
        rows.append(constraint_report(problem, i, float(values[1 + i]), limits, 1e-8))
    return tuple(rows)


def member_reports(problem: CMDP, outcome: Outcome) -> tuple[MemberReport, ...]:
    """Every member's own values, heaviest first in the order of the mixture."""
    values = problem.values_of(outcome.member_values)
    return tuple(
        MemberReport(float(w), float(v[0]), tuple(map(float, v[1:])))
        for w, v in zip(outcome.mixture.weights, values, strict=True)
    )
