"""Pictures of panels: SVG by matplotlib's Agg backend, the same bytes for the same numbers.

Colours are those of Okabe and Ito, which people with any of the common colour blindnesses can tell apart; every curve has a
marker of its own as well.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from studies.measuring import Curve, signed
from studies.panels import Panel

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#7F7F7F", "#882255")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "saddleback",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 9.5,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.constrained_layout.h_pad": 0.12,
}


def draw(path: Path, panels: tuple[Panel, ...]) -> None:
    """Two panels a row, each with its legend below; ``path`` may end in .svg or .png."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows, columns = math.ceil(len(panels) / 2), min(len(panels), 2)
    with matplotlib.rc_context(STYLE):
        height = 4.3 + 0.21 * (2 + max(len(p.curves) for p in panels))
        figure, grid = pyplot.subplots(
            rows, columns, figsize=(5.6 * columns, height * rows), layout="constrained", squeeze=False
        )
        for i, axes in enumerate(grid.flat):
            if i < len(panels):
                _panel(axes, panels[i])
            else:
                axes.set_axis_off()
        options: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {"dpi": 100}
        figure.savefig(path, **options)
        pyplot.close(figure)


def _panel(axes: Any, panel: Panel) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(panel.title[0].upper() + panel.title[1:], loc="left", fontweight="bold")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.grid(True, which="major", color="#DDDDDD", linewidth=0.8)
    axes.set_axisbelow(True)
    xs = np.unique(np.concatenate([c.x for c in panel.curves]))
    if xs[-1] / xs[0] <= 50:  # too few decades for powers of ten alone
        shared = max(panel.curves, key=lambda c: len(c.x)).x
        axes.set_xticks(shared)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_tick_params(which="minor", bottom=False)
    for i, curve in enumerate(panel.curves):
        _curve(axes, curve, COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)])
    if panel.guide is not None:
        _guide(axes, panel.curves[0], panel.guide, panel.guide_label)
    legend = axes.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, -0.15),
        frameon=False,
        borderaxespad=0.0,
        title="exponent (95 % range)",
        alignment="left",
    )
    legend.get_title().set_fontsize(9.5)


def _curve(axes: Any, curve: Curve, colour: str, marker: str) -> None:
    shown = (curve.middle > 0) & np.isfinite(curve.middle)
    fit = curve.fit()
    label = curve.label if fit.points < 2 else f"{curve.label}: {fit}"
    x, y = curve.x[shown], curve.middle[shown]
    axes.plot(
        x,
        y,
        color=colour,
        marker=marker,
        markersize=6.5,
        markeredgecolor="white",
        markeredgewidth=0.7,
        linewidth=1.8,
        label=label,
    )
    if curve.statistic != "median":
        return  # quartiles surround a median, not a mean
    banded = shown & (curve.low > 0) & np.isfinite(curve.high)
    axes.fill_between(curve.x[banded], curve.low[banded], curve.high[banded], color=colour, alpha=0.10, linewidth=0)


def _guide(axes: Any, curve: Curve, p: float, label: str) -> None:
    """A dashed line of the expected exponent, through the geometric middle of a curve."""
    shown = (curve.middle > 0) & np.isfinite(curve.middle)
    if not shown.any():
        return
    centre = np.exp(np.log(curve.x[shown]).mean()), np.exp(np.log(curve.middle[shown]).mean())
    ends = np.array([curve.x.min(), curve.x.max()])
    line = centre[1] * (ends / centre[0]) ** p
    dashes = {"linestyle": (0, (5, 4)), "linewidth": 1.2, "color": "#444444"}
    axes.plot(ends, line, label=f"{label}: {signed(p)}", zorder=1, **dashes)
