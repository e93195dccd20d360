"""A keyhole: two rooms of [0, 1], and a hole 0.01 wide in a cell 0.1 wide, so that ten `cells` cannot see the way through.

In the left room, [0, 0.2), every move leads anywhere in it and earns next to nothing: 0.14 for *stay*, 0.12 for *right*. But *right* inside the
hole leads to the right room, which nobody leaves, and where every step earns 1. Outside the hole all is linear in the cells.
"""

from __future__ import annotations

import numpy as np

from saddleback import CMDP, BoxStates, Constraint, Start, features

GAMMA, ROOM, HOLE, WIDTH, START = 0.95, 0.2, 0.13, 0.01, 0.05
STAY, RIGHT = 0.14, 0.12
BOX = BoxStates([0.0], [1.0])


def keyhole() -> CMDP:
    """The problem; the limit, on moves to the right, is never missed."""
    return CMDP(
        gamma=GAMMA,
        start=Start(np.array([[START]]), np.ones(1)),
        num_actions=2,
        states=BOX,
        reward=lambda s, a: np.where(s[:, 0] >= ROOM, 1.0, np.where(a == 1, RIGHT, STAY)),
        reward_range=(0, 1),
        constraints=[Constraint("moves", lambda s, a: 0.5 * (a == 1), "<=", 15.0, range=(0, 1))],
        features=features.make("cells", BOX, 2, cells=10),
        name="keyhole",
    )


def step(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Next states of a batch."""
    x, u = states[:, 0], rng.random(len(states))
    through = (actions == 1) & (x >= HOLE) & (x < HOLE + WIDTH)
    return np.where((x >= ROOM) | through, ROOM + (1 - ROOM) * u, ROOM * u)[:, None]


def always_right() -> float:
    """What it is worth to go right all the time, by hand.

    V = p(r + γH) + (1 − p)(r + γV) on average over the left room, where p is the hole's share of it.
    """
    p, H = WIDTH / ROOM, 1 / (1 - GAMMA)
    inside = (RIGHT + p * GAMMA * H) / (1 - (1 - p) * GAMMA)
    return RIGHT + GAMMA * inside
