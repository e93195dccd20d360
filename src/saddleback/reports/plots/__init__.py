"""Figures for papers and slides: ``saddleback.plot(answer)`` draws a solution or a frontier (docs/plots.md shows them).

matplotlib is loaded when something is drawn, and its global state (pyplot, rcParams) is never touched.
"""

from __future__ import annotations

from typing import Any

from saddleback.errors import InputError, require
from saddleback.reports.plots.frontier import plot_frontier
from saddleback.reports.plots.solution import PANELS, plot_solution
from saddleback.solving.frontier import Frontier
from saddleback.solving.solution import Solution

__all__ = ["PANELS", "plot", "plot_frontier", "plot_solution"]


def plot(answer: Solution | Frontier, panel: str | None = None, ax: Any = None, chosen: float | None = None) -> Any:
    """Draw an answer, and return its matplotlib ``Figure``, which is neither shown nor saved.

    Parameters
    ----------
    answer  a solution with a policy, or a frontier
    panel   of a solution: reward, constraints, dual or members; all four if None
    ax      the matplotlib axes to draw on, for a solution one panel and for a frontier the curve alone; new ones if None
    chosen  of a frontier: the threshold to mark, in the user's units; the problem's own if None
    """
    if isinstance(answer, Frontier):
        require(panel is None, "panel", "must be left out for a frontier", repr(panel), "it belongs to a solution")
        return plot_frontier(answer, ax, chosen)
    if isinstance(answer, Solution):
        require(chosen is None, "chosen", "must be left out for a solution", chosen, "it belongs to a frontier")
        return plot_solution(answer, panel, ax)
    rule, remedy = "must be a Solution or a Frontier", "draw what saddleback.solve or saddleback.frontier returned"
    raise InputError("answer", rule, type(answer).__name__, remedy)
