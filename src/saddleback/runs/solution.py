"""§3, what a run returns: the mixture, its values in the user's units, and an honest status.

Inside, everything is in the paper's units; this is the one place where values and multipliers are turned back into the
user's. A run that did not reach what was asked says so in its :class:`Status` and message; it never returns silently, and
never a number beside a failure.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np

from saddleback.method.framework import Outcome
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import Array


class Certified(Protocol):
    """What a certificate shows to whoever prints it: :class:`saddleback.certificates.Certificate`."""

    @property
    def samples(self) -> int:
        """Simulator calls spent on it."""
        ...

    def to_json(self) -> dict[str, Any]:
        """One JSON-ready object."""
        ...


class Status(Enum):
    """How a run ended; each has an exit code on the command line."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    UNDECIDED = "undecided"
    BUDGET_EXHAUSTED = "budget-exhausted"

    @property
    def exit_code(self) -> int:
        """0 solved, 3 infeasible, 4 undecided or out of budget."""
        return {"solved": 0, "infeasible": 3}.get(self.value, 4)


@dataclass(frozen=True)
class ConstraintReport:
    """One constraint of the answer, in the user's units; ``slack`` is positive when the constraint holds."""

    name: str
    value: float
    threshold: float
    sense: str
    slack: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MemberReport:
    """One member of the mixture: its weight and what it does on its own."""

    weight: float
    value: float
    constraints: tuple[float, ...]


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
class Solution:
    """A policy with what is known about it. ``mixture``, ``value`` and the rest are None where there is no answer.

    ``gap`` is what the dual left open between the mixture and its own upper bound, in the user's reward; what is proved
    is in ``certificate``. ``samples`` counts all simulator calls, the certificate's included. ``prepared`` holds the
    samples and oracles, for a later ``solve(..., reuse=solution)`` or a frontier, and ``orders`` what the dual was told. ``certificate_seeds`` have been used to prove something of these
    samples: a second proof needs another.
    """

    status: Status
    message: str
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
    remarks: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    certificate: Certified | None = None
    prepared: Any = field(default=None, repr=False)
    orders: Any = field(default=None, repr=False)
    certificate_seeds: tuple[int, ...] = ()
    slater_prices: Array | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """One JSON-ready object; the keys are the command line's contract."""
        out: dict[str, Any] = {
            "status": self.status.value,
            "message": self.message,
            "value": self.value,
            "constraints": [_without_none(vars(c)) for c in self.constraints],
            "multipliers": list(self.multipliers),
            "samples": self.samples,
            "policy": [
                {"weight": m.weight, "value": m.value, "constraints": list(m.constraints)} for m in self.members
            ],
            "remarks": list(self.remarks),
            "settings": self.settings,
            "certificate": None if self.certificate is None else self.certificate.to_json(),
        }
        if self.gap is not None:
            out["gap"] = self.gap
        if self.max_slack is not None:
            out["max_slack"] = self.max_slack
        if self.stationary is not None:
            value, *constraints = map(float, self.stationary.values)
            out["stationary"] = {"value": value, "constraints": constraints, "label": self.stationary.label}
        return out

    def plot(self, panel: str | None = None, ax: Any = None) -> Any:
        """A matplotlib Figure of the answer, or of one ``panel`` (reward, constraints, dual, members), on ``ax`` if given."""
        from saddleback.reports.plots import plot_solution

        return plot_solution(self, panel, ax)


def constraint_reports(
    problem: CMDP, unit_values: Array, low: Array | None = None, high: Array | None = None
) -> tuple[ConstraintReport, ...]:
    """Rows of the answer from values ``(1+m,)`` in the paper's units; ``low`` and ``high`` likewise."""
    values, thresholds = problem.values_of(unit_values), problem.user_thresholds()
    rows = []
    for i, c in enumerate(problem.constraints):
        value, threshold = float(values[1 + i]), float(thresholds[i])
        slack = value - threshold if c.sense == ">=" else threshold - value
        if abs(slack) <= 1e-8 * problem.horizon * abs(problem.scale[1 + i]):
            slack = 0.0  # met exactly, up to rounding
        limits: tuple[float | None, float | None] = (None, None)
        if low is not None and high is not None:
            ends = sorted(float(problem.values_of(x)[1 + i]) for x in (low, high))
            limits = (ends[0], ends[1])
        rows.append(ConstraintReport(c.name, value, threshold, c.sense, slack, *limits))
    return tuple(rows)


def member_reports(problem: CMDP, outcome: Outcome) -> tuple[MemberReport, ...]:
    """Every member's own values, heaviest first in the order of the mixture."""
    values = problem.values_of(outcome.member_values)
    return tuple(
        MemberReport(float(w), float(v[0]), tuple(map(float, v[1:])))
        for w, v in zip(outcome.mixture.weights, values, strict=True)
    )


def _without_none(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if v is not None}
