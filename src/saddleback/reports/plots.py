"""Figures for papers and slides: ``saddleback.plot(answer)`` draws a solution or a frontier (docs/plots.md shows them).

A solution has four panels:

    reward        proved limits of the policy's reward, the estimate, and what no policy exceeds
    constraints   proved limits of each constraint (or likely ones, dashed) against its threshold
    dual          the multipliers, iteration by iteration, and where they ended
    members       what each policy of the mixture does on its own; a larger point has more weight

A frontier has two: above, the curve F̂ with the band that holds for all thresholds at once (once it is certified), its
corners, and the problem's own threshold; below, the multiplier: what one unit more of the threshold is worth, −dF̂/db up to
its sign. Every number is in the user's units: rewards are discounted totals, constraints what they were given in.

matplotlib is loaded when something is drawn, and its global state (pyplot, rcParams) is never touched. The colours can be
told apart by the colour-blind (Okabe and Ito).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.errors import InputError, optional_package, require
from saddleback.runs.numbers import confidence, number, percent, symbol, wanted
from saddleback.solving.frontier import Frontier
from saddleback.solving.solution import Solution

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6E6E6E"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PANEL = (4.4, 3.0)
"""Inches of one panel, wide and high: half the width of a page."""

_TEXT, _SMALL = 9.5, 8.5
_UNIT = "discounted total"


def plot(answer: Solution | Frontier, panel: str | None = None, ax: Any = None, chosen: float | None = None) -> Any:
    """Draw an answer, and return its matplotlib ``Figure``, which is neither shown nor saved.

    Parameters
    ----------
    answer  a solution with a policy, or a frontier
    panel   of a solution: reward, constraints, dual or members; all four if None
    ax      the matplotlib axes to draw on, for a solution one panel and for a frontier the curve alone; new ones if None
    chosen  of a frontier: the threshold to mark, a discounted total; the problem's own if None
    """
    if isinstance(answer, Frontier):
        require(panel is None, "panel", "must be left out for a frontier", repr(panel), "it belongs to a solution")
        return plot_frontier(answer, ax, chosen)
    if isinstance(answer, Solution):
        require(chosen is None, "chosen", "must be left out for a solution", chosen, "it belongs to a frontier")
        return plot_solution(answer, panel, ax)
    rule, remedy = "must be a Solution or a Frontier", "draw what saddleback.solve or saddleback.frontier returned"
    raise InputError("answer", rule, type(answer).__name__, remedy)


def plot_solution(solution: Any, panel: str | None = None, ax: Any = None) -> Any:
    """The whole figure, or one ``panel``, on ``ax`` if it is given; the figure is returned."""
    if solution.mixture is None:
        remedy = "solution.message says why there is none"
        raise InputError("solution", "must hold a policy to be drawn", solution.status.value, remedy)
    if panel is not None and panel not in PANELS:
        raise InputError("panel", f"must be one of {', '.join(PANELS)}", repr(panel), "or leave it out for all of them")
    if panel is None and ax is not None:
        raise InputError("panel", "must be named where axes are given", None, f"choose one of {', '.join(PANELS)}")
    if panel is not None:
        figure, axes = (ax.figure, [ax]) if ax is not None else new_figure(1, 1)
        PANELS[panel](axes[0], solution)
        return figure
    figure, axes = new_figure(2, 2)
    for draw, each in zip(PANELS.values(), axes, strict=True):
        draw(each, solution)
    return figure


def _reward(ax: Any, solution: Any) -> None:
    prepare(ax, solution.problem.objective.capitalize(), _UNIT, "")
    proof = solution.certificate
    if proof is not None and proof.value is not None:
        _interval(ax, 0, proof.value, BLUE, f"proved, {confidence(proof.confidence)}")
    ax.plot([solution.value], [0], "o", color="black", markersize=5, label="estimate")
    if proof is not None and proof.upper_bound is not None:
        ax.axvline(
            proof.upper_bound,
            color=ORANGE,
            linewidth=1.6,
            linestyle="--",
            label=f"no policy {'costs less' if solution.problem.minimise else 'exceeds'}",
        )
    ax.set_yticks([0], [solution.problem.objective])
    ax.set_ylim(-1, 1)
    legend(ax, loc="upper center", ncols=2)


def _constraints(ax: Any, solution: Any) -> None:
    problem, units = solution.problem, solution.problem.units
    prepare(ax, "Constraints", units[0].words if len(set(units)) == 1 else "each in its own unit", "")
    proof = solution.certificate
    for i, (row, unit) in enumerate(zip(solution.constraints, units, strict=True)):
        first = i == 0
        if proof is not None and proof.constraints:
            limits = unit.limits_of(proof.constraints[i])
            _interval(ax, i, limits, BLUE, f"proved, {confidence(proof.confidence)}" if first else None)
        elif row.low is not None and row.high is not None:
            limits = unit.limits_of((row.low, row.high))
            _interval(ax, i, limits, BLUE, "likely range" if first else None, linestyle=(0, (2, 1.5)))
        ax.plot([unit.of(row.value)], [i], "o", color="black", markersize=5, label="estimate" if first else None)
        label = "threshold" if first else None
        ax.plot([unit.of(row.threshold)] * 2, [i - 0.35, i + 0.35], color=ORANGE, linewidth=2.2, label=label)
    rows = solution.constraints
    names = [f"{c.name} {wanted(c, unit, signs=True)}" for c, unit in zip(problem.constraints, units, strict=True)]
    ax.set_yticks(range(len(rows)), names)
    ax.set_ylim(len(rows) - 0.4, -0.8 - 0.25 * len(rows))  # the first on top, and room for the legend
    legend(ax, loc="upper center", ncols=3)


def _dual(ax: Any, solution: Any) -> None:
    prepare(ax, "Dual trace", "iteration", "multiplier (reward per unit)")
    if solution.trace is None:
        note(ax, "no trace")
        return
    sizes = np.array([unit.size for unit in solution.problem.units])
    multipliers = np.where(np.isfinite(solution.trace.multipliers), solution.trace.multipliers * sizes, np.nan)
    iterations = np.arange(1, 1 + len(multipliers))
    few = len(iterations) <= 60
    for i, row in enumerate(solution.constraints):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)] if few else ""
        ax.plot(iterations, multipliers[:, i], color=colour, marker=marker, markersize=4, linewidth=1.3, label=row.name)
        if solution.multipliers:
            ax.axhline(solution.multipliers[i] * sizes[i], color=colour, linewidth=0.9, linestyle=":")
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend(ax)


def _members(ax: Any, solution: Any) -> None:
    row, unit = solution.constraints[0], solution.problem.units[0]
    prepare(ax, "Members of the mixture", f"{row.name} ({unit.words})", f"{solution.problem.objective} ({_UNIT})")
    x = [unit.of(m.constraints[0]) for m in solution.members]
    y = [m.value for m in solution.members]
    area = [30 + 220 * m.weight for m in solution.members]
    ax.scatter(x, y, s=area, color=BLUE, alpha=0.75, edgecolor="white", label="member (larger: more weight)")
    for member, cx, cy in zip(solution.members, x, y, strict=True):
        place = {"textcoords": "offset points", "xytext": (7, 5), "fontsize": 8, "color": GREY}
        ax.annotate(percent(member.weight), (cx, cy), **place)
    mixture = [unit.of(row.value)], [solution.value]
    ax.plot(*mixture, marker="*", markersize=13, color=GREEN, linestyle="", label="mixture")
    ax.axvline(unit.of(row.threshold), color=ORANGE, linewidth=1.8, label=f"threshold ({symbol(row.sense)})")
    ax.margins(0.15)
    legend(ax)


def _interval(ax: Any, y: float, limits: Any, colour: str, label: str | None, linestyle: Any = "-") -> None:
    ax.plot(list(limits), [y, y], color=colour, linewidth=3.2, linestyle=linestyle, label=label)
    ax.plot(list(limits), [y, y], linestyle="", marker="|", markersize=11, markeredgewidth=2, color=colour)


PANELS: dict[str, Callable[[Any, Any], None]] = {
    "reward": _reward,
    "constraints": _constraints,
    "dual": _dual,
    "members": _members,
}
"""What can be drawn by itself."""


def plot_frontier(frontier: Any, ax: Any = None, chosen: float | None = None) -> Any:
    """The curve and its price, or on ``ax`` the curve alone; ``chosen`` is the threshold to mark, the problem's own if None."""
    if not frontier.points:
        raise InputError("frontier", "must have points to be drawn", "none", "make it with saddleback.frontier")
    constraint, unit = frontier.problem.constraints[frontier.constraint], frontier.unit
    if ax is not None:
        _curve(ax, frontier, chosen)
        ax.set_xlabel(f"threshold of {constraint.name} ({unit.words})")
        return ax.figure
    figure, (above, below) = new_figure(2, 1, sharex=True, height_ratios=[2, 1])
    figure.set_size_inches(5.4, 4.8)
    _curve(above, frontier, chosen)
    prepare(below, "", f"threshold of {constraint.name} ({unit.words})", "multiplier")
    points = frontier.points
    x, y = [unit.of(p.threshold) for p in points], [unit.price_of(p.multiplier) for p in points]
    below.plot(x, y, color=GREY, linewidth=1.6, drawstyle="steps-mid")
    return figure


def _curve(ax: Any, frontier: Any, chosen: float | None) -> None:
    problem, unit = frontier.problem, frontier.unit
    constraint = problem.constraints[frontier.constraint]
    prepare(ax, f"Best {problem.objective} against {constraint.name}", "", f"{problem.objective} ({_UNIT})")
    points = frontier.points
    x, value = np.array([unit.of(p.threshold) for p in points]), np.array([p.value for p in points])
    if frontier.band is not None:
        low = np.array([np.nan if p.low is None else p.low for p in points])
        high = np.array([np.nan if p.high is None else p.high for p in points])
        label = f"proved, {confidence(frontier.band.confidence)}, all thresholds at once"
        ax.fill_between(x, low, high, color=BLUE, alpha=0.18, linewidth=0, label=label)
        for limit in (low, high):
            ax.plot(x, limit, color=BLUE, linewidth=0.7, alpha=0.7)
    ax.plot(x, value, color=BLUE, linewidth=2, label="from the samples")
    if problem.num_constraints == 1:
        corners = np.array(frontier.breakpoints()) / (unit.size, 1.0)
        inside = (corners[:, 0] >= x.min() - 1e-9) & (corners[:, 0] <= x.max() + 1e-9)
        ax.plot(*corners[inside].T, "o", color=BLUE, markersize=4, label="one policy alone")
    own = float(problem.user_thresholds()[frontier.constraint]) if chosen is None else chosen
    shown = unit.of(own)
    if x.min() <= shown <= x.max():
        point = frontier.at(own)
        label = f"{'chosen' if chosen is not None else 'asked for'}: {number(shown)}{unit.suffix}"
        ax.axvline(shown, color=ORANGE, linewidth=1.4, linestyle="--")
        ax.plot([shown], [point.value], marker="*", markersize=13, color=GREEN, linestyle="", label=label)
    legend(ax)


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
