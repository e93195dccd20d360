"""The trade-off: the best reward against one constraint's threshold, with what is proved of it, and its price.

Above, the curve F̂ with the band that holds for all thresholds at once (once the frontier is certified), its corners, and the
problem's own threshold. Below, the multiplier: what one unit more of the threshold is worth, −dF̂/db up to its sign.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.reports.plots.style import BLUE, GREEN, GREY, ORANGE, legend, new_figure, prepare
from saddleback.runs.numbers import confidence, number

_UNIT = "discounted total"


def plot_frontier(frontier: Any, ax: Any = None, chosen: float | None = None) -> Any:
    """The curve and its price, or on ``ax`` the curve alone; ``chosen`` is the threshold to mark, the problem's own if None."""
    if not frontier.points:
        raise InputError("frontier", "must have points to be drawn", "none", "make it with saddleback.frontier")
    constraint = frontier.problem.constraints[frontier.constraint]
    if ax is not None:
        _curve(ax, frontier, chosen)
        ax.set_xlabel(f"threshold of {constraint.name} ({_UNIT})")
        return ax.figure
    figure, (above, below) = new_figure(2, 1, sharex=True, height_ratios=[2, 1])
    figure.set_size_inches(5.4, 4.8)
    _curve(above, frontier, chosen)
    prepare(below, "", f"threshold of {constraint.name} ({_UNIT})", "multiplier")
    points = frontier.points
    x, y = [p.threshold for p in points], [p.multiplier for p in points]
    below.plot(x, y, color=GREY, linewidth=1.6, drawstyle="steps-mid")
    return figure


def _curve(ax: Any, frontier: Any, chosen: float | None) -> None:
    problem = frontier.problem
    constraint = problem.constraints[frontier.constraint]
    prepare(ax, f"Best {problem.objective} against {constraint.name}", "", f"{problem.objective} ({_UNIT})")
    points = frontier.points
    x, value = np.array([p.threshold for p in points]), np.array([p.value for p in points])
    if frontier.band is not None:
        low = np.array([np.nan if p.low is None else p.low for p in points])
        high = np.array([np.nan if p.high is None else p.high for p in points])
        label = f"proved, {confidence(frontier.band.confidence)}, all thresholds at once"
        ax.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0, label=label)
        for limit in (low, high):
            ax.plot(x, limit, color=BLUE, linewidth=0.7, alpha=0.7)
    ax.plot(x, value, color=BLUE, linewidth=2, label="from the samples")
    if problem.num_constraints == 1:
        corners = np.array(frontier.breakpoints())
        inside = (corners[:, 0] >= x.min() - 1e-9) & (corners[:, 0] <= x.max() + 1e-9)
        ax.plot(*corners[inside].T, "o", color=BLUE, markersize=4, label="one policy alone")
    own = float(problem.user_thresholds()[frontier.constraint]) if chosen is None else chosen
    if x.min() <= own <= x.max():
        point = frontier.at(own)
        label = f"{'chosen' if chosen is not None else 'asked for'}: {number(own)}"
        ax.axvline(own, color=ORANGE, linewidth=1.4, linestyle="--")
        ax.plot([own], [point.value], marker="*", markersize=13, color=GREEN, linestyle="", label=label)
    legend(ax)
