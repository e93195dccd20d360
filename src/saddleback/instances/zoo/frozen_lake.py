"""Frozen lake, with a limit on falling in: Gymnasium's FrozenLake-v1 with a cost.

A walker crosses slippery ice from one corner to the other; a step goes where it is meant to or to either side with chance 1/3
each. Reward 1 for reaching the goal, which ends the episode, as does a hole. The walker who only wants to get there soon takes
risks; here the discounted probability of falling is limited. Source: Gymnasium's toy-text worlds, whose table is read from
the environment; the constraint is added here.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saddleback.errors import discount, number, require
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import Constraint
from saddleback.simulators.gymnasium_env import Maker
from saddleback.simulators.gymnasium_table import from_gymnasium_table

TILES = {"S": "start", "F": "ice", "H": "hole", "G": "goal"}


def frozen_lake(*, size: int = 4, slippery: bool = True, limit: float = 0.02, gamma: float = 0.95) -> Instance:
    """Cross the ice to the goal with a limit on falling into a hole (needs gymnasium).

    size: 4 or 8, the side of Gymnasium's map
    slippery: whether two steps in three go to a side
    limit: discounted probability of falling into a hole
    gamma: discount factor a step
    """
    require(size in (4, 8), "size", "must be 4 or 8", size, "Gymnasium has these two maps")
    number("limit", limit, 0.0)
    discount(gamma)
    env = Maker("FrozenLake-v1", {"map_name": f"{size}x{size}", "is_slippery": slippery})()
    tiles = [tile.decode() for tile in np.asarray(env.unwrapped.desc).ravel()]
    S = len(tiles)
    into_hole = np.zeros((S, 4, S))
    into_hole[:, :, [tile == "H" for tile in tiles]] = 1.0
    constraint = Constraint("falls", into_hole, "<=", limit, (0.0, 1.0))
    table = dataclasses.replace(
        from_gymnasium_table(env, [constraint], gamma=gamma, name="frozen-lake", reward_range=(0.0, 1.0)),
        state_names=[f"row {i // size}, column {i % size} ({TILES[tile]})" for i, tile in enumerate(tiles)],
    )
    summary = f"cross {size} x {size} fields of ice; discounted probability of falling in <= {limit:g}"
    return Instance.of_table(table, summary)
