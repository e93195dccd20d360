"""Taxi with a small tank: Gymnasium's Taxi-v4 with a cost.

A taxi in a town of 5 x 5 fields fetches a passenger from one of four places and takes him to another: 500 states (place of the
taxi, of the passenger, destination), and moves, pick up and drop off as actions. As in Gymnasium a step costs 1, a wrong stop
10, and the right drop off pays 20 and ends the episode. Fuel: 1 for each step in which the taxi moves, a discounted total "≤" a
limit. Source: T. Dietterich, Hierarchical reinforcement learning with the MAXQ value function decomposition, Journal of
Artificial Intelligence Research 13, 2000, as in Gymnasium's toy-text worlds; the fuel is added here.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saddleback.errors import discount, number
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import Constraint
from saddleback.simulators.gymnasium_env import Maker
from saddleback.simulators.gymnasium_table import from_gymnasium_table


def taxi(*, limit: float = 6.0, rainy: bool = False, gamma: float = 0.95) -> Instance:
    """Fetch and deliver a passenger with a limit on fuel (needs gymnasium).

    limit: steps in which the taxi moves, discounted total
    rainy: whether one move in five goes to a side
    gamma: discount factor a step
    """
    number("limit", limit, 0.0)
    discount(gamma)
    env = Maker("Taxi-v4", {"is_rainy": rainy})()
    parts = [tuple(env.unwrapped.decode(s)) for s in range(500)]
    place = np.array([5 * row + column for row, column, *_ in parts])
    moves = np.broadcast_to((place[:, None] != place)[:, None, :], (500, 6, 500)).astype(np.float64)
    table = from_gymnasium_table(
        env,
        [Constraint("fuel", moves, "<=", limit, (0.0, 1.0))],
        gamma=gamma,
        name="taxi",
        reward_range=(-10.0, 20.0),
    )
    names = [_name(*part) for part in parts] + ["over"] * (table.num_states - 500)
    table = dataclasses.replace(table, state_names=names)
    summary = f"a taxi fetches a passenger; discounted number of moves <= {limit:g}"
    return Instance.of_table(table, summary)


def _name(row: int, column: int, passenger: int, destination: int) -> str:
    where = "in the taxi" if passenger == 4 else f"at {'RGYB'[passenger]}"
    return f"taxi at row {row}, column {column}; passenger {where}, to {'RGYB'[destination]}"
