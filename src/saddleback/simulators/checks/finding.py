"""What the checks say."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

FALSE_ALARM = 1e-6
"""Chance that all tests together accuse a sound simulator of anything."""

Key = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """One mistake in one sentence with its remedy, and the state, action and seed key that show it.

    ``key`` is (seed, stream, pair, block): ``saddleback.simulators.generative_model.generator(*key)`` is the random stream of the call.
    """

    check: str
    severity: Literal["error", "warning"]
    message: str
    state: Any = None
    action: int | None = None
    key: Key | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        state = self.state.tolist() if isinstance(self.state, (np.ndarray, np.generic)) else self.state
        return {
            "check": self.check,
            "severity": self.severity,
            "message": self.message,
            "state": state,
            "action": self.action,
            "key": None if self.key is None else list(self.key),
        }


@dataclass
class Report:
    """All that was found; ``calls`` counts simulator calls, ``skipped`` says which checks could not be made."""

    findings: list[Finding] = field(default_factory=list)
    calls: int = 0
    tests: int = 0
    seconds_alone: float = math.nan
    seconds_in_batch: float = math.nan
    dim: int | None = None
    rank: int | None = None
    condition: float | None = None
    skipped: list[str] = field(default_factory=list)

    @property
    def errors(self) -> int:
        """How many findings are errors."""
        return sum(f.severity == "error" for f in self.findings)

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "clean": not self.findings,
            "errors": self.errors,
            "findings": [f.to_json() for f in self.findings],
            "calls": self.calls,
            "tests": self.tests,
            "false_alarm": FALSE_ALARM,
            "seconds_per_call": {"alone": _number(self.seconds_alone), "in_batch": _number(self.seconds_in_batch)},
            "features": {"dim": self.dim, "rank": self.rank, "condition": _number(self.condition)},
            "skipped": self.skipped,
        }


def _number(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)
