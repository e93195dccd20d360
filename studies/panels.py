"""What a study measures: panels of curves, and the rows of its tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from studies.measuring import Curve, signed

LAST = 3  # points at the end of a curve whose own exponent is given: it shows whether the curve bends


@dataclass(frozen=True, eq=False)
class Panel:
    """One pair of logarithmic axes; ``guide`` is the exponent of the dashed line, ``problem`` what was run."""

    title: str
    x_label: str
    y_label: str
    problem: str
    curves: tuple[Curve, ...]
    guide: float | None = None
    guide_label: str = "the paper's rate"

    def curve(self, label: str) -> Curve:
        """The curve of that label, or the one that a label was merged into."""
        return next(c for c in self.curves if label in c.label.split(", "))


Figures = dict[str, tuple[Panel, ...]]
"""The panels of each picture, by the picture's name."""


def by_title(figures: Figures) -> dict[str, Panel]:
    """All panels, by their titles."""
    return {panel.title: panel for panels in figures.values() for panel in panels}


POINT_COLUMNS = (
    "figure",
    "panel",
    "curve",
    "statistic",
    "x",
    "value",
    "lower quartile",
    "upper quartile",
    "unanswered",
    "seeds",
)
FIT_COLUMNS = ("panel", "curve", "seeds", "exponent", f"last {LAST}", "paper", "at the first x", "at the last x")


def point_rows(figures: Figures) -> Iterator[list[str]]:
    """Every point, for the CSV file."""
    for name, panels in figures.items():
        for panel in panels:
            for c in panel.curves:
                for i, x in enumerate(c.x):
                    numbers = (x, c.middle[i], c.low[i], c.high[i], c.unanswered[i])
                    yield [name, panel.title, c.label, c.statistic, *(f"{n:.6g}" for n in numbers), c.seeds]


def fit_rows(figures: Figures) -> Iterator[list[str]]:
    """Every exponent, for the Markdown table."""
    for panels in figures.values():
        for panel in panels:
            for c in panel.curves:
                paper = "" if c.paper is None else signed(c.paper)
                ends = (compact(c.middle[0]), compact(c.middle[-1]))
                yield [panel.title, c.label, c.seeds, str(c.fit()), str(c.fit(LAST)), paper, *ends]


def compact(number: float) -> str:
    """Three digits: 0.0123, 12.3, 1,234,567."""
    return f"{number:,.0f}" if 1000 <= number < np.inf else f"{number:.3g}"
