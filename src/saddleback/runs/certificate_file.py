"""The fields of ``certificate.json``; docs/certificate.md says what each means and how to check it by hand.

What :class:`~saddleback.certificates.Certificate` says, and the few numbers of the problem without which the limits cannot be
computed again: the discount, and the maps from the user's units to utilities.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from saddleback.certificates.certificate import Certificate, Evidence, Leverage, LinearValues, StartValues, Verdict
from saddleback.certificates.linearity.findings import Finding
from saddleback.certificates.values.averages import Averages
from saddleback.files.json_file import Limits, Record, Share, Whole, check, in_order, to_plain
from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import UnitName
from saddleback.problem.signals import Sense

_LEAST_LEVEL = 1e-200  # far below what may be asked for; 1/δ, and 1 over a part of it, are numbers


class SignalRecord(Record, frozen=True):
    """How a signal becomes a utility: a total is scale · utility + base · horizon."""

    base: float
    scale: float


class ConstraintRecord(Record, frozen=True):
    """A constraint in the user's units, with its threshold in utilities too."""

    name: str
    sense: Sense
    threshold: float
    base: float
    scale: float
    unit_threshold: float
    units: UnitName | None = None


class ProblemRecord(Record, frozen=True):
    """What a certificate must say of its problem to be checked without it.

    ``observed`` says of reward and constraints, in this order, which only the simulator shows (None: earlier versions).
    """

    name: str
    gamma: Annotated[float, Meta(ge=0, lt=1)]
    horizon: float
    states: Whole | None
    actions: Whole
    reward: SignalRecord
    constraints: list[ConstraintRecord]
    observed: list[bool] | None = None

    def __post_init__(self) -> None:
        check(bool(self.constraints), "there must be a constraint")
        check(abs(self.horizon * (1 - self.gamma) - 1) <= 1e-9, "the horizon must be 1/(1 - gamma)")
        check(all([self.reward.scale, *(c.scale for c in self.constraints)]), "every scale must not be zero")
        signals = 1 + len(self.constraints)
        check(self.observed is None or len(self.observed) == signals, f"observed must have {signals} entries")

    @staticmethod
    def of(problem: CMDP) -> ProblemRecord:
        """From the problem itself."""
        base, scale, b = problem.base.tolist(), problem.scale.tolist(), problem.thresholds.tolist()
        rows = zip(problem.constraints, problem.user_thresholds().tolist(), base[1:], scale[1:], b, strict=True)
        return ProblemRecord(
            problem.name,
            float(problem.gamma),
            problem.horizon,
            problem.num_states,
            problem.num_actions,
            SignalRecord(base[0], scale[0]),
            [ConstraintRecord(c.name, c.sense, x, low, span, unit, c.units) for c, x, low, span, unit in rows],
            problem.observed.tolist(),
        )


class LinearityRecord(Record, frozen=True):
    """What the tests of linearity found."""

    assumed: bool
    passed: bool
    failures: list[str]
    samples: Whole
    delta: float
    tests: list[Finding]


class AboutRecord(Record, frozen=True):
    """What a certificate is about: the SHA-256 of the files with policy, rollouts and bound, and the problem's digest."""

    problem: str
    policy: str | None = None
    rollouts: str | None = None
    bound: str | None = None


class CertificateRecord(Record, frozen=True, omit_defaults=False):
    """A certificate, with lists of the right lengths for its problem."""

    schema: Literal["saddleback-certificate/1"]
    confidence: Share
    value: Limits | None
    constraints: list[Limits]
    upper_bound: float | None
    gap: float | None
    feasible: Verdict
    allowance: list[float]
    assumes: dict[str, str]
    samples: Whole
    seed: Whole
    by_start: list[StartValues]
    linearity: LinearityRecord | None
    linear: LinearValues | None
    evidence: Evidence
    remarks: list[str]
    problem: ProblemRecord
    leverage: Leverage | None = None
    contradictions: tuple[str, ...] = ()
    averages: Averages | None = None
    about: AboutRecord | None = None
    slack_bound: float | UnsetType = UNSET
    infeasible: Literal["proved", "not proved"] | UnsetType = UNSET

    @property
    def proof_samples(self) -> int:
        """Simulator calls of the proof alone: without those for averages over time."""
        return self.samples - (0 if self.averages is None else self.averages.samples)

    def __post_init__(self) -> None:
        in_order(self.value, *self.constraints)
        m, rollouts, bound = len(self.problem.constraints), self.evidence.rollouts, self.evidence.bound
        rows = 0 if self.value is None else m
        check(len(self.constraints) == rows, f"constraints must have {rows} entries")
        check(len(self.allowance) == rows, f"allowance must have {rows} entries")
        check((rollouts is None) == (self.value is None), "evidence.rollouts must be there where a value is")
        levels = [*([rollouts.delta_of_each] if rollouts else []), *([bound.delta] if bound else [])]
        check(min(levels, default=1.0) >= _LEAST_LEVEL, f"the δ of a statement must be at least {_LEAST_LEVEL:g}")
        if rollouts is not None:
            for name in ("mean", "variance", "low", "high"):
                check(len(getattr(rollouts, name)) == 1 + m, f"evidence.rollouts.{name} must have {1 + m} entries")
            for name in ("tail", "known"):
                ends = getattr(rollouts, name) or rollouts.tail
                check([len(x) for x in ends] == [1 + m] * 2, f"evidence.rollouts.{name} must have 2 rows of {1 + m}")
        fitted = self.evidence.fitted
        if fitted is not None:
            lengths = (len(fitted.values), len(fitted.errors))
            check(lengths == (1 + m, 1 + m), f"evidence.fitted must have {1 + m} entries")
        if bound is not None:
            sigma = bound.sigma
            simplex = len(sigma) == 1 + m and min(sigma) >= 0 and abs(sum(sigma) - 1) <= 1e-9
            check(simplex, f"evidence.bound.sigma must be {1 + m} probabilities")


def certificate_fields(certificate: Certificate, problem: CMDP, about: AboutRecord | None = None) -> dict[str, Any]:
    """What the file holds, in its order; ``about`` names the files of a run that it belongs to."""
    fields = {**certificate.to_json(), "problem": to_plain(ProblemRecord.of(problem))}
    return fields if about is None else {**fields, "about": to_plain(about)}
