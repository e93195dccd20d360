"""The pictures of docs/zoo.md: ``python docs/zoo/draw.py [NAME ...]`` writes docs/zoo/NAME.svg (needs matplotlib).

A problem with a table is drawn as its trade-off: the exact values of the policies that are optimal for some multiplier, the line of
mixtures between them, the threshold of the defaults and the optimum there. The two controls are drawn as the policy that a solve
from the simulator finds, over position and velocity.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np

from saddleback import solve
from saddleback.instances.zoo import BY_NAME, make
from saddleback.problem.finite_model import policy_iteration

HERE = Path(__file__).parent
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "saddleback",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
BLUE, RED, GREY = "#2b6ca3", "#b3402a", "#9a9a9a"
UNITS = {
    "wireless": ("energy (mJ)", "packets"),
    "gridworld": ("steps in the lake", "steps in the goal"),
    "queue": ("number in the system", "customers admitted"),
    "hard-instance": ("c", "r"),
    "routing": ("energy (J)", "customers served, less waiting"),
    "inventory": ("stock-outs", "money"),
    "maintenance": ("slots at work", "money"),
    "streaming": ("stalled slots", "minus cents"),
    "ward": ("emergencies sent away", "money"),
    "river-swim": ("strokes", "treasure"),
    "queue-network": ("backlog (capacities)", "worth admitted (capacities)"),
    "warehouse": ("unmet demand (mean demands)", "money"),
    "frozen-lake": ("falls", "arrivals"),
    "taxi": ("fuel (moves)", "reward"),
    "cliff-walking": ("steps along the edge", "reward"),
    "linear-quadratic": ("second moment", "minus control energy"),
}


def corners(name: str) -> tuple[np.ndarray, float, str]:
    """Values (constraint, reward) of policies that are optimal for a range of multipliers, the threshold, its sense."""
    instance = make(name)
    table = instance.table
    if table is None:  # constant gains: the closed form of linear_quadratic.py
        f = 0.8 - np.linspace(0, 0.6, 5)
        M = (1 + 0.95 * 20 * 0.04 / 3) / (1 - 0.95 * f**2)
        return np.column_stack([M, -((0.8 - f) ** 2) * M]), float(instance.problem.user_thresholds()[0]), "<="
    sign = 1.0 if table.senses[0] == ">=" else -1.0
    r, c = table.reward.ravel(), table.constraints[0].ravel()
    scale, signals, largest = np.ptp(r) / max(np.ptp(c), 1e-12), np.column_stack([c, r]), float(np.abs(r).max())
    points = []
    for weight in np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 43)]):
        prices, tie = np.array([sign * weight * scale, 1.0]), 1e-11 * largest * (1 + weight) / (1 - table.gamma)
        _, V = policy_iteration(table.P, signals, prices, table.gamma, np.zeros(table.num_states, dtype=np.int64), tie)
        points.append(table.rho @ V)
    return np.array(points), float(table.thresholds[0]), table.senses[0]


def turn(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> float:
    """Positive where a, b, c turn to the left."""
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))


def trade_off(name: str) -> None:
    points, threshold, sense = corners(name)
    points = points[np.lexsort((points[:, 1], points[:, 0]))]
    hull: list[np.ndarray] = []
    for p in points:  # the upper envelope, from left to right
        while len(hull) > 1 and turn(hull[-2], hull[-1], p) >= 0:
            hull.pop()
        hull.append(p)
    line = np.array(hull)
    figure, axes = plt.subplots(figsize=(4.2, 2.6), layout="constrained")
    low, high = line[:, 0].min(), line[:, 0].max()
    pad = 0.05 * (high - low or 1.0)
    met = (low - pad, threshold) if sense == "<=" else (threshold, high + pad)
    axes.axvspan(*met, color=GREY, alpha=0.15, lw=0)
    axes.axvline(threshold, color=GREY, lw=1)
    axes.plot(line[:, 0], line[:, 1], "o-", color=BLUE, ms=3, lw=1.2)
    axes.plot(threshold, np.interp(threshold, line[:, 0], line[:, 1]), "o", color=RED, ms=6)
    axes.set_xlim(low - pad, high + pad)
    x, y = UNITS.get(name, (make(name).problem.constraints[0].name, "reward"))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    save(figure, name)


def control(name: str, samples: int, labels: tuple[str, str], words: tuple[str, ...]) -> None:
    """The heavier member of the mixture, over the box."""
    instance = make(name)
    problem = instance.problem
    solution = solve(problem, instance.simulator, samples=samples, seed=0)
    assert solution.mixture is not None
    member = solution.mixture.members[int(np.argmax(solution.mixture.weights))]
    axes_of = [np.linspace(low, high, 61) for low, high in zip(problem.states.low, problem.states.high, strict=True)]
    mesh = np.stack([x.ravel() for x in np.meshgrid(*axes_of, indexing="ij")], axis=1)
    chosen = member.probabilities(mesh).argmax(axis=1).reshape(61, 61)
    figure, axes = plt.subplots(figsize=(4.2, 2.8), layout="constrained")
    colours = mpl.colors.ListedColormap([BLUE, "#e8e4da", RED])
    extent = (*axes_of[0][[0, -1]], *axes_of[1][[0, -1]])
    axes.imshow(chosen.T, origin="lower", extent=extent, aspect="auto", cmap=colours, vmin=0, vmax=2)
    x, path = problem.start.states[:1], []
    for _ in range(60):
        path.append(x[0])
        x = instance.simulator.sample(x, member.probabilities(x).argmax(axis=1), np.random.default_rng(0)).next_states
    walk = np.array(path)
    jumps = np.flatnonzero(np.abs(np.diff(walk[:, 0])) > np.pi) + 1  # an angle that wraps is no line across
    for piece in np.split(walk, jumps):
        axes.plot(piece[:, 0], piece[:, 1], ".-", color="black", ms=3, lw=0.7)
    axes.set_xlabel(labels[0])
    axes.set_ylabel(labels[1])
    handles = [mpl.patches.Patch(color=colours(i), label=word) for i, word in enumerate(words)]
    axes.legend(handles=handles, fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.16), frameon=False)
    save(figure, name)


def save(figure: plt.Figure, name: str) -> None:
    place = HERE / f"{name}.svg"
    figure.savefig(place, metadata={"Date": None})
    plt.close(figure)
    print(f"{place.name}: {place.stat().st_size / 1000:.1f} kB")


def main(names: list[str]) -> None:
    with mpl.rc_context(STYLE):
        for name in names or BY_NAME:
            if name == "mountain-car":
                from mountain_car import picture

                picture()
            elif name == "pendulum":
                control(name, 3000, ("angle from upright", "angular velocity"), ("−2 N m", "0", "2 N m"))
            else:
                trade_off(name)


if __name__ == "__main__":
    main(sys.argv[1:])
