"""Curves of errors, and the exponent of a power law through them.

    typical error ≈ C·xᵖ:      p by least squares of log(median) on log(x), or of another quantile

The range of p is a percentile bootstrap: seeds are drawn again with replacement, the same ones at every x, because runs with
one seed share samples (the first N of 2N are the same N). A run without an answer counts as an infinite error; a median of
zero or infinity has no logarithm and is left out of the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

RESAMPLES = 1000
NOTHING = 1e-9  # an error below this is rounding: the answer is exact


class Fit(NamedTuple):
    """The exponent p with its 95 % range, and the number of medians behind it."""

    slope: float
    low: float
    high: float
    points: int

    def __str__(self) -> str:
        if self.points < 2:
            return "none"
        return f"{self.slope:.2f} ({self.low:.2f} to {self.high:.2f})".replace("-", "−")

    @property
    def short(self) -> str:
        """The exponent alone, for a sentence whose range is in the table."""
        return f"{self.slope:.2f}".replace("-", "−")


@dataclass(frozen=True, eq=False)
class Curve:
    """A statistic of the errors at each x ``(n,)``, their quartiles, and the statistic for resampled seeds ``(n, R)``.

    ``unanswered`` is the share of runs without an answer at each x; ``paper`` the exponent that the paper's rate implies.
    """

    label: str
    x: Array
    middle: Array
    low: Array
    high: Array
    resampled: Array
    seeds: str
    unanswered: Array
    paper: float | None = None
    statistic: str = "median"

    @classmethod
    def of(
        cls,
        label: str,
        x: ArrayLike,
        errors: ArrayLike,
        seeds: Sequence[int],
        paper: float | None = None,
        level: float | None = 0.5,
    ) -> Curve:
        """From the errors ``(n, number of seeds)`` of single runs; ``level`` None takes the mean, not a quantile."""
        e = exact_zeros(np.asarray(errors, dtype=np.float64))
        low, high = quantile(e, 0.25), quantile(e, 0.75)
        unanswered = np.isinf(e).mean(axis=1)
        at = np.asarray(x, dtype=np.float64)
        drawn = np.stack([quantile(e[:, c], level) for c in resamples(e.shape[1])], axis=1)
        name = {None: "mean", 0.5: "median"}.get(level, f"quantile {level}")
        return cls(label, at, quantile(e, level), low, high, drawn, spelled(seeds), unanswered, paper, name)

    def fit(self, last: int | None = None) -> Fit:
        """The exponent over all x, or over the ``last`` few."""
        first = 0 if last is None else max(0, len(self.x) - last)
        x, y = self.x[first:], self.middle[first:]
        usable = (y > 0) & np.isfinite(y)
        drawn = slopes(x[usable], self.resampled[first:][usable])
        drawn = drawn[np.isfinite(drawn)]
        if not drawn.size:
            return Fit(np.nan, np.nan, np.nan, 0)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Fit(float(slopes(x[usable], y[usable][:, None])[0]), float(low), float(high), int(usable.sum()))


def signed(number: float) -> str:
    """The number with a minus sign rather than a hyphen."""
    return f"{number:g}".replace("-", "−")


def slopes(x: Array, y: Array) -> Array:
    """p of y ≈ C·xᵖ for each column of y ``(n, k)``, over the entries that have a logarithm; NaN where no two x do."""
    usable = (y > 0) & np.isfinite(y)
    number = np.maximum(usable.sum(axis=0), 1)
    u = np.where(usable, np.log(x)[:, None], 0.0)
    v = np.log(np.where(usable, y, 1.0))
    centred = np.where(usable, u - u.sum(axis=0) / number, 0.0)
    spread = (centred**2).sum(axis=0)
    return np.where(spread > 0, (centred * v).sum(axis=0) / np.where(spread > 0, spread, 1.0), np.nan)


def quantile(errors: Array, level: float | None) -> Array:
    """A quantile of each row, always an observed value (or the mean of two for a median); infinities stay infinite.

    ``level`` None is the mean of each row instead.
    """
    if level is None:
        return np.asarray(errors.mean(axis=1))
    ordered, n = np.sort(errors, axis=1), errors.shape[1]
    if level == 0.5:
        return np.asarray((ordered[:, (n - 1) // 2] + ordered[:, n // 2]) / 2)
    return np.asarray(ordered[:, max(0, math.ceil(level * n) - 1)])


def exact_zeros(errors: Array) -> Array:
    """Rounding errors are none."""
    return np.where(np.abs(errors) <= NOTHING, 0.0, errors)


def resamples(number: int) -> NDArray[np.int64]:
    """``RESAMPLES`` draws of ``number`` columns with replacement, the same at every call."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    return rng.integers(0, number, size=(RESAMPLES, number))


def spelled(seeds: Sequence[int]) -> str:
    """Runs of consecutive numbers by their ends: 0, 1, 2, 3, 5, 7, 8 is "0-3 5 7-8"."""
    runs: list[list[int]] = []
    for seed in seeds:
        if runs and seed == runs[-1][-1] + 1:
            runs[-1].append(seed)
        else:
            runs.append([seed])
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
