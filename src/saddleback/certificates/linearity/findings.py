"""What tests of linearity find: one finding a test, and a report of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from saddleback.files.json_file import Record, Whole, to_plain

PlainState = int | float | list[float]
"""A state as JSON has it."""


class Finding(Record, frozen=True, omit_defaults=False):
    """One test: it fails where ``statistic`` exceeds ``limit``. ``state``, ``action``: the worst pair, if there is one."""

    name: str
    passed: bool
    statistic: float
    limit: float
    meaning: str
    state: PlainState | None = None
    action: Whole | None = None
    z: float | None = None
    rigorous: bool = True


@dataclass(frozen=True)
class LinearityReport:
    """What was found. On a linear problem one of the tests (i) to (iii) fails with probability at most ``delta``.

    Test (iv), once joined, has the failure rate of the rollouts' intervals and of the fit's central-limit one.

    ``assumed`` is False for tables, where nothing is tested. ``samples`` are the simulator calls spent.
    """

    assumed: bool
    findings: tuple[Finding, ...]
    samples: int
    delta: float

    @property
    def failures(self) -> list[Finding]:
        """The tests that refute linearity."""
        return [f for f in self.findings if not f.passed]

    @property
    def passed(self) -> bool:
        """Whether nothing refutes linearity; a failure that is not rigorous only warns."""
        return not any(f.rigorous for f in self.failures)

    def joined(self, *findings: Finding) -> LinearityReport:
        """The report with further findings."""
        return replace(self, findings=self.findings + findings)

    def to_json(self) -> dict[str, Any]:
        """Numbers, strings and lists only."""
        return {
            "assumed": self.assumed,
            "passed": self.passed,
            "failures": [f.name for f in self.failures],
            "samples": self.samples,
            "delta": self.delta,
            "tests": [to_plain(f) for f in self.findings],
        }


def refuted(report: LinearityReport | None) -> bool:
    """Whether the samples speak against linearity."""
    return report is not None and not report.passed


def plain_state(state: Any) -> PlainState:
    """A state as JSON has it: a number or a list of numbers."""
    plain: PlainState = np.asarray(state).tolist()
    return plain
