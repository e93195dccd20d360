"""Figures for papers and slides: what ``solution.plot()`` and ``frontier.plot()`` draw (docs/plots.md shows them).

matplotlib is loaded when something is drawn, and its global state (pyplot, rcParams) is never touched.
"""

from saddleback.reports.plots.frontier import plot_frontier
from saddleback.reports.plots.solution import PANELS, plot_solution

__all__ = ["PANELS", "plot_frontier", "plot_solution"]
