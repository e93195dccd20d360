"""What a certificate says, in the user's units, and its JSON form (docs/certificate.md has the schema).

All limits hold together with probability ``confidence`` over the fresh samples (those by start state among themselves); ``assumes`` says what each of them needs
besides. ``feasible`` is three-valued: *certified* when every constraint's limits lie on the right side of its threshold (up
to ``allowance``, what a relaxed request permits), *refuted* when one lies wholly on the wrong side, *undecided* otherwise.
Where nothing can be said a field is None, never a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from saddleback.certificates.linearity import LinearityReport
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array

SCHEMA = "saddleback-certificate/1"
Verdict = Literal["certified", "refuted", "undecided"]
Limits = tuple[float, float]


@dataclass(frozen=True)
class StartValues:
    """Limits of the values from one start state."""

    state: Any
    weight: float
    rollouts: int
    value: Limits
    constraints: tuple[Limits, ...]


@dataclass(frozen=True)
class Certificate:
    """Limits from samples drawn after the policy was frozen.

    ``slack_bound`` is an upper bound, in utilities, on the room that any policy leaves in all constraints together;
    negative proves that none is feasible. ``upper_bound`` is on what any policy earns; where a cost is minimised it is a
    lower bound on what any policy costs. ``evidence`` holds the numbers behind the limits, in utilities, and
    ``rollout_values`` ``(n, 1+m)`` those of the single rollouts, from which the intervals can be computed again.
    """

    confidence: float
    samples: int
    seed: int
    value: Limits | None = None
    constraints: tuple[Limits, ...] = ()
    upper_bound: float | None = None
    gap: float | None = None
    feasible: Verdict = "undecided"
    allowance: tuple[float, ...] = ()
    slack_bound: float | None = None
    assumes: dict[str, str] = field(default_factory=dict)
    by_start: tuple[StartValues, ...] = ()
    linearity: LinearityReport | None = None
    linear: dict[str, Any] | None = None
    leverage: dict[str, Any] | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    rollout_values: Array | None = field(default=None, repr=False, compare=False)

    @property
    def infeasible(self) -> bool:
        """Whether the samples prove that no policy meets the constraints."""
        return self.slack_bound is not None and self.slack_bound < 0

    def violation(self, problem: CMDP) -> Array:
        """By how much each constraint is missed at most, in utilities ``(m,)``."""
        ends = np.array([low if c.sense == ">=" else high for (low, high), c in self._rows(problem)])
        unit = (ends - problem.base[1:] * problem.horizon) / problem.scale[1:]
        return np.maximum(0.0, problem.thresholds - unit)

    def to_json(self) -> dict[str, Any]:
        """One JSON-ready object."""
        out: dict[str, Any] = {
            "schema": SCHEMA,
            "confidence": self.confidence,
            "value": _list(self.value),
            "constraints": [list(c) for c in self.constraints],
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "feasible": self.feasible,
            "allowance": list(self.allowance),
            "assumes": self.assumes,
            "samples": self.samples,
            "seed": self.seed,
            "by_start": [
                {
                    "state": np.asarray(s.state).tolist(),
                    "weight": s.weight,
                    "rollouts": s.rollouts,
                    "value": list(s.value),
                    "constraints": [list(c) for c in s.constraints],
                }
                for s in self.by_start
            ],
            "linearity": None if self.linearity is None else self.linearity.to_json(),
            "linear": self.linear,
            "leverage": self.leverage,
            "evidence": self.evidence,
            "remarks": list(self.remarks),
        }
        if self.slack_bound is not None:
            out["slack_bound"] = self.slack_bound
            out["infeasible"] = "proved" if self.infeasible else "not proved"
        return out

    def _rows(self, problem: CMDP) -> list[tuple[Limits, Any]]:
        return list(zip(self.constraints, problem.constraints, strict=True))


def verdict(problem: CMDP, low: Array, high: Array, allowance: float) -> Verdict:
    """Three-way, from limits ``(m,)`` of the constraints' values in utilities; ``allowance`` in utilities too."""
    b = problem.thresholds - allowance
    if np.all(low >= b):
        return "certified"
    return "refuted" if np.any(high < b) else "undecided"


def user_limits(problem: CMDP, low: Array, high: Array) -> tuple[Limits, ...]:
    """Limits ``(1+m,)`` in utilities as ordered pairs in the user's units."""
    ends = np.sort(np.array([problem.values_of(low), problem.values_of(high)]), axis=0)
    return tuple((float(a), float(b)) for a, b in ends.T)


def _list(limits: Limits | None) -> list[float] | None:
    return None if limits is None else list(limits)
