"""A robot that may wade: reach the goal soon, but spend little time in the lake.

The start is the lower left corner, the goal the lower right one, and between them lies a lake that narrows upwards:
the cell (column x, row y) is water where y < min(x, width − 1 − x), the top row always dry. Crossing one row higher takes
two steps more and saves two steps in the water, so the frontier between speed and time in the lake has many corners.

A move goes where it is meant to with probability 1 − slip and to either side with slip/2; walls hold the robot back. The
goal is absorbing. Reward: 1 for every step in the goal, so that an undisturbed walk of n steps is worth γⁿH. Constraint:
discounted number of steps in the lake "≤" a limit.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Range, Share, effort, limited, memory
from saddleback.problem.cmdp import Constraint

MOVES = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])  # (dx, dy): up, right, down, left


def gridworld(
    *,
    width: Annotated[int, Range(3)] = 7,
    height: Annotated[int, Range(2)] = 5,
    slip: Share = 0.1,
    limit: Amount = 1.0,
    gamma: Discount = 0.9,
) -> Instance:
    """Reach the goal across or around a lake.

    width: columns; the goal is width - 1 steps to the right of the start
    height: rows
    slip: probability that a move goes to one of the two sides instead
    limit: discounted number of steps in the lake
    gamma: discount factor a step
    """
    S, A = width * height, len(MOVES)
    memory("width", S * A * 3, "make the grid smaller")
    effort("width", S, S * A * 3, gamma, "make the grid smaller, or gamma")
    y, x = np.divmod(np.arange(S), width)
    goal = width - 1
    water = (y < np.minimum(x, width - 1 - x)) & (y < height - 1)
    arrival = np.empty((S, A), dtype=np.int64)  # where a move leads when it does not slip
    for a, (dx, dy) in enumerate(MOVES):
        arrival[:, a] = np.clip(y + dy, 0, height - 1) * width + np.clip(x + dx, 0, width - 1)
    arrival[goal] = goal
    ways = np.stack([arrival, np.roll(arrival, 1, axis=1), np.roll(arrival, -1, axis=1)], axis=2)  # meant, two sides
    chance = np.broadcast_to([1 - slip, slip / 2, slip / 2], (S, A, 3))
    P = scipy.sparse.csr_array(
        (chance.ravel(), (np.repeat(np.arange(S * A), 3), ways.ravel())), shape=(S * A, S)
    )  # equal ways add up
    kind = np.where(water, "lake", np.where(np.arange(S) == goal, "goal", "dry"))
    return limited(
        "gridworld",
        f"reach the goal of a {width} x {height} grid with at most {limit:g} discounted steps in the lake",
        P,
        np.repeat(np.arange(S) == goal, A).reshape(S, A).astype(np.float64),
        Constraint("lake", water[:, None], "<=", limit),
        gamma=gamma,
        state_names=[f"column {i}, row {j} ({k})" for i, j, k in zip(x, y, kind, strict=True)],
    )
