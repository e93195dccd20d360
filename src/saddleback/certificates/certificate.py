"""What a certificate says, in the user's units, and its JSON form (docs/certificate.md has the schema).

All limits hold together with probability ``confidence`` over the fresh samples (those by start state among themselves); ``assumes`` says what each of them needs
besides. ``feasible`` is three-valued: *certified* when every constraint's limits lie on the right side of its threshold (up
to ``allowance``, what a relaxed request permits), *refuted* when one lies wholly on the wrong side, *undecided* otherwise.
Where nothing can be said a field is None, never a number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from saddleback.certificates.linearity.findings import LinearityReport, PlainState
from saddleback.certificates.values.averages import Averages
from saddleback.errors import Remark
from saddleback.files.json_file import Limits, Plain, Record, Share, Whole, in_order, to_plain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array

SCHEMA = "saddleback-certificate/1"
ROUNDING = 1e-9
"""Of H: limits that miss a threshold by no more meet it, a threshold beyond reach by no more is within it, and a bound on the room of
all policies that is no further below zero proves nothing."""

Verdict = Literal["certified", "refuted", "undecided"]
SUSPECTED = (
    "what the proof assumes does not hold (features that cannot carry the problem, signals outside their declared ranges, "
    "simulator calls that are not independent), or the code that was given is at fault: run `saddleback check`"
)
"""What a contradiction is evidence of, in words."""


class StartValues(Record, frozen=True):
    """Limits of the values from one start state."""

    state: PlainState
    weight: float
    rollouts: Whole
    value: Limits
    constraints: tuple[Limits, ...]

    def __post_init__(self) -> None:
        in_order(self.value, *self.constraints)


class LinearValues(Record, frozen=True):
    """Tighter limits of the mixture's values, if the problem is linear in its features as ``assumes`` says."""

    value: Limits
    constraints: tuple[Limits, ...]
    assumes: str

    def __post_init__(self) -> None:
        in_order(self.value, *self.constraints)


class Leverage(Record, frozen=True):
    """The largest leverage among the ``candidates`` of the design, and the largest that was ``seen``, with its pair."""

    candidates: float
    seen: float
    state: PlainState | None
    action: Whole


class RolloutEvidence(Record, frozen=True):
    """What the intervals follow from, in utilities: one entry a signal, and the rollouts of each member.

    ``low`` and ``high`` are what no rollout can leave, ``tail`` what the cap of the rollouts may hide below and above, and
    ``known`` what the values cannot leave by what is known without samples (None: earlier versions, 0 and H).
    """

    number: Whole
    steps: Whole
    method: str
    delta_of_each: Share
    mean: tuple[float, ...]
    variance: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    tail: tuple[tuple[float, ...], tuple[float, ...]]
    by_member: tuple[Whole, ...]
    known: tuple[tuple[float, ...], tuple[float, ...]] | None = None


class BoundEvidence(Record, frozen=True):
    """What the upper bound follows from, in utilities: max_π V_□^π(ρ) ≤ ``value`` for □ = σᵀ(r, c)."""

    kind: str
    sigma: tuple[float, ...]
    value: float
    estimate: float
    delta: Share
    samples: Whole
    thresholds: tuple[float, ...] = ()


class FittedEvidence(Record, frozen=True):
    """What earlier samples made of the mixture, and the error that they leave, in utilities: one entry a signal."""

    values: tuple[float, ...]
    errors: tuple[float, ...]


class Evidence(Record, frozen=True):
    """The numbers behind the limits; None where there are no such limits."""

    rollouts: RolloutEvidence | None = None
    bound: BoundEvidence | None = None
    fitted: FittedEvidence | None = None


_NO_EVIDENCE = Evidence()


@dataclass(frozen=True)
class Certificate:
    """Limits from samples drawn after the policy was frozen.

    ``slack_bound`` is an upper bound, in utilities, on the room that any policy leaves in all constraints together;
    negative proves that none is feasible. ``upper_bound`` is on what any policy earns; where a cost is minimised it is a
    lower bound on what any policy costs. ``arrays`` are what limits ("rollouts") and bound ("bound") can be computed again
    from, in utilities, by name (docs/certificate.md). ``averages`` are estimates over time that no statement rests on; their calls
    are among the ``samples``. Where there are ``contradictions`` nothing is decided, and there is neither a
    bound nor a gap.
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
    linear: LinearValues | None = None
    leverage: Leverage | None = None
    evidence: Evidence = _NO_EVIDENCE
    remarks: tuple[Remark, ...] = ()
    contradictions: tuple[Remark, ...] = ()
    averages: Averages | None = None
    arrays: dict[str, dict[str, Array]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def infeasible(self) -> bool:
        """Whether the samples prove that no policy meets the constraints."""
        return self.slack_bound is not None and self.slack_bound < 0

    @property
    def proof_samples(self) -> int:
        """Simulator calls of the proof alone: without those for averages over time."""
        return self.samples - (0 if self.averages is None else self.averages.samples)

    @property
    def rollout_values(self) -> Array | None:
        """Of the single rollouts, ``(n, 1+m)``, in utilities; None where there are none."""
        return self.arrays.get("rollouts", {}).get("values")

    def violation(self, problem: CMDP) -> Array:
        """By how much each constraint is missed at most, in utilities ``(m,)``."""
        rows = zip(self.constraints, problem.constraints, strict=True)
        ends = np.array([low if c.sense == ">=" else high for (low, high), c in rows])
        unit = (ends - problem.base[1:] * problem.horizon) / problem.scale[1:]
        return np.maximum(0.0, problem.thresholds - unit)

    def to_json(self) -> dict[str, Plain]:
        """One JSON-ready object."""
        out: dict[str, object] = {
            "schema": SCHEMA,
            "confidence": self.confidence,
            "value": self.value,
            "constraints": self.constraints,
            "upper_bound": self.upper_bound,
            "gap": self.gap,
            "feasible": self.feasible,
            "allowance": self.allowance,
            "assumes": self.assumes,
            "samples": self.samples,
            "seed": self.seed,
            "by_start": self.by_start,
            "linearity": None if self.linearity is None else self.linearity.to_json(),
            "linear": self.linear,
            "leverage": self.leverage,
            "evidence": self.evidence,
            "remarks": [remark.text for remark in self.remarks],
            "contradictions": [remark.text for remark in self.contradictions],
            "averages": self.averages,
        }
        if self.slack_bound is not None:
            out["slack_bound"] = self.slack_bound
            out["infeasible"] = "proved" if self.infeasible else "not proved"
        plain: dict[str, Plain] = to_plain(out)
        return plain


def verdict(problem: CMDP, low: Array, high: Array, allowance: float) -> Verdict:
    """Three-way, from limits ``(m,)`` of the constraints' values in utilities; ``allowance`` in utilities too.

    H is a rounded number, and so is a threshold: what differs by no more than rounding is equal.
    """
    b = problem.thresholds - allowance - ROUNDING * problem.horizon
    if np.all(low >= b):
        return "certified"
    return "refuted" if np.any(high < b) else "undecided"


def user_limits(problem: CMDP, low: Array, high: Array) -> tuple[Limits, ...]:
    """Limits ``(1+m,)`` in utilities as ordered pairs in the user's units."""
    ends = np.sort(np.array([problem.values_of(low), problem.values_of(high)]), axis=0)
    return tuple((float(a), float(b)) for a, b in ends.T)
