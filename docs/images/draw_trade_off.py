"""The README's picture: ``python docs/images/draw_trade_off.py`` writes docs/images/trade_off.svg (needs matplotlib).

A million simulator calls of the wireless example for the trade-off and two million for its band; the true table is not used.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from saddleback import frontier, solve, zoo

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "saddleback",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
BLUE, RED, GREY = "#2b6ca3", "#b3402a", "#6b6b6b"


def main() -> None:
    """Solve, certify, draw."""
    sensor = zoo.make("wireless")
    solution = solve(sensor.problem, sensor.simulator, samples=1_000_000, seed=0)
    curve = frontier(solution, num_points=40).certified(sensor.simulator, samples=2_000_000, seed=1)
    x = np.array([p.threshold for p in curve.points])
    low = np.array([0.0 if p.low is None else p.low for p in curve.points])
    budget = float(sensor.problem.user_thresholds()[0])
    here = curve.at(budget)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
        axes.fill_between(x, low, [p.high for p in curve.points], color=BLUE, alpha=0.18, lw=0)
        axes.plot(x, [p.value for p in curve.points], color=BLUE)
        axes.axvline(budget, color=GREY, lw=1, ls=":")
        axes.errorbar(
            budget, here.value, [[here.value - here.low], [here.high - here.value]], fmt="o", color=RED, capsize=4
        )
        said = f"budget {budget:g} mJ: {here.value:.1f} packets\nproved: the best lies within {here.low:.1f} to {here.high:.1f}"
        axes.annotate(said, (budget, here.value), (budget + 0.25, here.value - 4.2), color=RED)
        axes.set(xlabel="energy budget (mJ)", ylabel="packets delivered", xlim=(0, float(x.max())), ylim=(0, None))
        path = Path(__file__).parent / "trade_off.svg"
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


if __name__ == "__main__":
    main()
