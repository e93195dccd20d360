"""What every check is: a name, an outcome and the detail; and what a run was asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.runs.certificate_file import CertificateRecord, ConstraintRecord, ProblemRecord, SignalRecord
from saddleback.runs.evidence_file import BoundArrays
from saddleback.runs.run_folder import Run

ROUNDING = 1e-9
STARTS, STARTS_SHARE = 1 << 16, 0.1
"""Of a start distribution that can only be sampled: states drawn, and their share of δ."""

Outcome = Literal["agrees", "DISAGREES", "warning", "not checked"]


class Check(NamedTuple):
    """One statement that was looked at again; a warning is the run's own, and no fault of the proof."""

    name: str
    passed: bool
    detail: str
    outcome: Outcome = "agrees"

    @property
    def word(self) -> Outcome:
        """What came of it."""
        return self.outcome if self.passed else "DISAGREES"


def unchecked(name: str, why: str) -> Check:
    """A statement that cannot be looked at here."""
    return Check(name, True, why, "not checked")


@dataclass(frozen=True)
class Request:
    """What a run was asked for, as far as its proof depends on it; None where it is not known."""

    delta: float | None = None
    strict: bool = False
    epsilon: float | None = None

    @property
    def share(self) -> float:
        """Of δ that one certificate may spend: an adaptive solve may make several, with halves of what is left.

        So may a strict one, which is seen in its calls (:mod:`.statements`): an only attempt may spend all.
        """
        return 0.5 if self.epsilon is not None else 1.0

    @classmethod
    def of(cls, run: Run) -> Request:
        """From ``run.json``."""
        delta, epsilon = run.request.get("delta"), run.request.get("epsilon")
        again = run.solution.settings.get("dual", "column-generation") == "column-generation"
        return cls(
            float(delta) if isinstance(delta, (int, float)) else None,
            run.request.get("feasibility") == "strict" and run.mixture is not None and again,
            float(epsilon) if isinstance(epsilon, (int, float)) and not isinstance(epsilon, bool) else None,
        )


def observed_signals(record: ProblemRecord, bound: BoundArrays) -> NDArray[np.bool_]:
    """Which of reward and constraints only the simulator shows, ``(1+m,)``, where the problem itself is not there.

    Earlier versions did not say it: what was seen to vary is observed, and the rest is taken for known.
    """
    told = record.observed
    return np.asarray(bound.noise.max(axis=0) > 0 if told is None else told, dtype=bool)


def signals_of(certificate: CertificateRecord) -> list[SignalRecord | ConstraintRecord]:
    """Reward and constraints, in the order of all lists."""
    return [certificate.problem.reward, *certificate.problem.constraints]


def digits(x: float | None) -> str:
    """A number with its digits, or that there is none."""
    return "none" if x is None else f"{x:.9g}"


def words(limits: Sequence[float]) -> str:
    """Two limits."""
    return f"{limits[0]:.6g} to {limits[1]:.6g}"


def close(a: float, b: float) -> bool:
    """Equal up to rounding."""
    return math.isclose(a, b, rel_tol=ROUNDING, abs_tol=1e-12)


def size(signal: SignalRecord | ConstraintRecord, horizon: float, x: float) -> float:
    """What an error of rounding in the total ``x`` is relative to, in the user's units, which may be tiny."""
    return abs(x) + min(1.0, horizon * (abs(signal.base) + abs(signal.scale)))
