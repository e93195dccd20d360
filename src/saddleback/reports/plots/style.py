"""What the figures share: colours that the colour-blind can tell apart (Okabe and Ito), sizes, and empty axes."""

from __future__ import annotations

from typing import Any

from saddleback.errors import optional_package

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6E6E6E"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PANEL = (4.4, 3.0)
"""Inches of one panel, wide and high: half the width of a page."""

_TEXT, _SMALL = 9.5, 8.5


def new_figure(rows: int, columns: int, **options: Any) -> tuple[Any, list[Any]]:
    """A figure with its axes, row by row."""
    matplotlib = optional_package("matplotlib.figure", "plots", "drawing")
    figure = matplotlib.Figure(figsize=(PANEL[0] * columns, PANEL[1] * rows), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def prepare(ax: Any, title: str, x_label: str, y_label: str) -> None:
    """Quiet axes with a title on the left."""
    ax.set_title(title, loc="left", fontsize=_TEXT + 1, fontweight="bold")
    ax.set_xlabel(x_label, fontsize=_TEXT)
    ax.set_ylabel(y_label, fontsize=_TEXT)
    ax.tick_params(labelsize=_SMALL)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color="#E2E2E2", linewidth=0.7)
    ax.set_axisbelow(True)


def legend(ax: Any, **options: Any) -> None:
    """The legend, in a frame that hides what is behind it."""
    ax.legend(fontsize=_SMALL, framealpha=0.9, edgecolor="#DDDDDD", **options)


def note(ax: Any, text: str) -> None:
    """A word in the middle of axes that have nothing to show."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", fontsize=_TEXT, color=GREY)
