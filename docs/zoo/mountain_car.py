"""The picture of mountain-car in docs/zoo.md: ``python docs/zoo/mountain_car.py`` (needs matplotlib and gymnasium).

On the left the estimated value function of the heavier policy of a solve (its discounted reward from every position and velocity),
on the right the policy itself with rides from five starts, both over the whole box.
"""

from __future__ import annotations

import matplotlib as mpl

mpl.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from draw import BLUE, RED, STYLE, save

from saddleback import solve
from saddleback.instances.zoo import Instance, make
from saddleback.method.evaluators import LSTD
from saddleback.problem.policies import Policy

SIDE = 121
SAND = "#e8e4da"


def picture() -> None:
    """Solve, and draw both halves."""
    instance = make("mountain-car")
    problem = instance.problem
    solution = solve(problem, instance.simulator, samples=8_000, evaluator="rollouts", seed=0)
    assert solution.mixture is not None
    member = solution.mixture.members[int(np.argmax(solution.mixture.weights))]
    sides = [np.linspace(low, high, SIDE) for low, high in zip(problem.states.low, problem.states.high, strict=True)]
    mesh = np.stack([x.ravel() for x in np.meshgrid(*sides, indexing="ij")], axis=1)
    values = LSTD().value_function(problem, solution.prepared.evaluation_buffer, member)(mesh)
    reward = problem.values_of(values)[:, 0].reshape(SIDE, SIDE)
    chosen = member.probabilities(mesh).argmax(axis=1).reshape(SIDE, SIDE).astype(float)
    chosen[sides[0] >= 0.5] = np.nan  # beyond the flag nothing is decided
    extent = (*sides[0][[0, -1]], *sides[1][[0, -1]])
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 2.9), layout="constrained", sharey=True)
    image = left.imshow(reward.T, origin="lower", extent=extent, aspect="auto", cmap="viridis", interpolation="none")
    figure.colorbar(image, ax=left, label="reward, discounted")
    colours = mpl.colors.ListedColormap([BLUE, SAND, RED])
    right.imshow(
        chosen.T, origin="lower", extent=extent, aspect="auto", cmap=colours, vmin=0, vmax=2, interpolation="none"
    )
    for start in (-0.6, -0.55, -0.5, -0.45, -0.4):
        walk = ride(instance, member, start)
        right.plot(walk[:, 0], walk[:, 1], ".-", color="black", ms=3, lw=0.6)
    for axes in (left, right):
        axes.axvline(0.5, color="black", lw=0.8, ls=":")
        axes.set_xlabel("position")
    left.set_ylabel("velocity")
    words = ("push left", "coast", "push right")
    handles = [mpl.patches.Patch(color=colours(i), label=word) for i, word in enumerate(words)]
    right.legend(handles=handles, fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.15), frameon=False)
    save(figure, "mountain-car")


def ride(instance: Instance, policy: Policy, start: float) -> np.ndarray:
    """Where the car is at each decision until the flag, ``(n, 2)``."""
    x, path, rng = np.array([[start, 0.0]]), [], np.random.default_rng(0)
    for _ in range(40):
        path.append(x[0])
        if x[0, 0] >= 0.5:
            break
        x = instance.simulator.sample(x, policy.act(x, rng), rng).next_states
    return np.array(path)


if __name__ == "__main__":
    with mpl.rc_context(STYLE):
        picture()
