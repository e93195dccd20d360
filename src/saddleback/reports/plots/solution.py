"""A solution in four panels.

    reward        proved limits of the policy's reward, the estimate, and what no policy exceeds
    constraints   proved limits of each constraint (or likely ones, dashed) against its threshold
    dual          the multipliers, iteration by iteration, and where they ended
    members       what each policy of the mixture does on its own; a larger point has more weight

Every number is in the user's units; values are discounted totals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.reports.plots.style import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    ORANGE,
    legend,
    new_figure,
    note,
    prepare,
)
from saddleback.runs.numbers import confidence, number, percent, symbol

_UNIT = "discounted total"


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
    prepare(ax, "Constraints", _UNIT, "")
    proof = solution.certificate
    for i, row in enumerate(solution.constraints):
        first = i == 0
        if proof is not None and proof.constraints:
            _interval(ax, i, proof.constraints[i], BLUE, f"proved, {confidence(proof.confidence)}" if first else None)
        elif row.low is not None and row.high is not None:
            _interval(ax, i, (row.low, row.high), BLUE, "likely range" if first else None, linestyle=(0, (2, 1.5)))
        ax.plot([row.value], [i], "o", color="black", markersize=5, label="estimate" if first else None)
        label = "threshold" if first else None
        ax.plot([row.threshold] * 2, [i - 0.35, i + 0.35], color=ORANGE, linewidth=2.2, label=label)
    rows = solution.constraints
    ax.set_yticks(range(len(rows)), [f"{r.name} {symbol(r.sense)} {number(r.threshold)}" for r in rows])
    ax.set_ylim(len(rows) - 0.4, -0.8 - 0.25 * len(rows))  # the first on top, and room for the legend
    legend(ax, loc="upper center", ncols=3)


def _dual(ax: Any, solution: Any) -> None:
    prepare(ax, "Dual trace", "iteration", "multiplier (reward per unit)")
    if solution.trace is None:
        note(ax, "no trace")
        return
    multipliers = np.where(np.isfinite(solution.trace.multipliers), solution.trace.multipliers, np.nan)
    iterations = np.arange(1, 1 + len(multipliers))
    few = len(iterations) <= 60
    for i, row in enumerate(solution.constraints):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)] if few else ""
        ax.plot(iterations, multipliers[:, i], color=colour, marker=marker, markersize=4, linewidth=1.3, label=row.name)
        if solution.multipliers:
            ax.axhline(solution.multipliers[i], color=colour, linewidth=0.9, linestyle=":")
    ax.xaxis.get_major_locator().set_params(integer=True)
    legend(ax)


def _members(ax: Any, solution: Any) -> None:
    row = solution.constraints[0]
    prepare(ax, "Members of the mixture", f"{row.name} ({_UNIT})", f"{solution.problem.objective} ({_UNIT})")
    x = [m.constraints[0] for m in solution.members]
    y = [m.value for m in solution.members]
    area = [30 + 220 * m.weight for m in solution.members]
    ax.scatter(x, y, s=area, color=BLUE, alpha=0.75, edgecolor="white", label="member (larger: more weight)")
    for member, cx, cy in zip(solution.members, x, y, strict=True):
        place = {"textcoords": "offset points", "xytext": (7, 5), "fontsize": 8, "color": GREY}
        ax.annotate(percent(member.weight), (cx, cy), **place)
    ax.plot([row.value], [solution.value], marker="*", markersize=13, color=GREEN, linestyle="", label="mixture")
    ax.axvline(row.threshold, color=ORANGE, linewidth=1.8, label=f"threshold ({symbol(row.sense)})")
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
