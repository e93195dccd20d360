"""Ratios of two things measured in one run: the machine is shared, so neither time means much alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Row:
    """A ratio with the most it may be (``floor``) and where we want it (``aim``)."""

    name: str
    ratio: float
    floor: float
    aim: float
    seconds: float
    reference_seconds: float

    @property
    def passed(self) -> bool:
        return self.ratio <= self.floor


def ratio(ours: Callable[[], object], reference: Callable[[], object], repeats: int = 5) -> tuple[float, float, float]:
    """Median of paired ratios, and the median times of both sides; the two are timed alternately."""
    ours(), reference()
    pairs = []
    for _ in range(repeats):
        pairs.append((_seconds(ours), _seconds(reference)))
    return median(a / b for a, b in pairs), median(a for a, _ in pairs), median(b for _, b in pairs)


def _seconds(function: Callable[[], object]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
