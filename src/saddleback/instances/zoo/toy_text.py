"""Gymnasium's toy-text worlds with a cost each, their tables read from the environments; the constraints are added here.

**Frozen lake.** A walker crosses slippery ice from one corner to the other; a step goes where it is meant to or to either side
with chance 1/3 each. Reward 1 for reaching the goal, which ends the episode, as does a hole. The walker who only wants to get
there soon takes risks; here the discounted probability of falling is limited.

**Taxi.** A taxi in a town of 5 x 5 fields fetches a passenger from one of four places and takes him to another: 500 states (place
of the taxi, of the passenger, destination), and moves, pick up and drop off as actions. A step costs 1, a wrong stop 10, and the
right drop off pays 20 and ends the episode. Fuel: 1 for each step in which the taxi moves, a discounted total "≤" a limit. Source:
T. Dietterich, Hierarchical reinforcement learning with the MAXQ value function decomposition, Journal of Artificial Intelligence
Research 13, 2000.

**Cliff walking.** A grid of 4 x 12 fields, start and goal at the two lower corners, the cliff between them. Reward −1 a step and
−100 for a fall, which ends at the start; the goal ends the episode. Constraint: steps begun on one of the ten fields at the edge, a
discounted total "≤" a limit. On slippery ground a step goes to either side with chance 1/3 each. Source: R. Sutton and A. Barto,
Reinforcement Learning: An Introduction, Example 6.6. Known answer on firm ground: the edge takes 13 steps, of which t = 2..11 are
dizzy. One row higher is two steps longer, wherever the climb is made, and needs no dizzy step. So the optimum mixes these two
walks in proportion to what the limit allows:

    V(n) = −(1 − γⁿ)H,     E = Σ_{t=2}^{11} γᵗ,     V* = V(15) + (V(13) − V(15))·min(1, limit/E)
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from saddleback.errors import require
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array
from saddleback.simulators.gymnasium_env import Maker
from saddleback.simulators.gymnasium_table import from_gymnasium_table

TILES = {"S": "start", "F": "ice", "H": "hole", "G": "goal"}
WIDTH, EDGE = 12, slice(25, 35)  # of the cliff: row 2, columns 1 to 10


def frozen_lake(*, size: int = 4, slippery: bool = True, limit: Amount = 0.02, gamma: Discount = 0.95) -> Instance:
    """Cross the ice to the goal with a limit on falling into a hole (needs gymnasium).

    size: 4 or 8, the side of Gymnasium's map
    slippery: whether two steps in three go to a side
    limit: discounted probability of falling into a hole
    gamma: discount factor a step
    """
    require(size in (4, 8), "size", "must be 4 or 8", size, "Gymnasium has these two maps")
    env = Maker("FrozenLake-v1", {"map_name": f"{size}x{size}", "is_slippery": slippery})()
    tiles = [tile.decode() for tile in np.asarray(env.unwrapped.desc).ravel()]
    S = len(tiles)
    into_hole = np.zeros((S, 4, S))
    into_hole[:, :, [tile == "H" for tile in tiles]] = 1.0
    names = [f"row {i // size}, column {i % size} ({TILES[tile]})" for i, tile in enumerate(tiles)]
    summary = f"cross {size} x {size} fields of ice; discounted probability of falling in <= {limit:g}"
    return _world("frozen-lake", env, ("falls", into_hole, limit), gamma, (0.0, 1.0), names, summary)


def taxi(*, limit: Amount = 6.0, rainy: bool = False, gamma: Discount = 0.95) -> Instance:
    """Fetch and deliver a passenger with a limit on fuel (needs gymnasium).

    limit: steps in which the taxi moves, discounted total
    rainy: whether one move in five goes to a side
    gamma: discount factor a step
    """
    env = Maker("Taxi-v4", {"is_rainy": rainy})()
    parts = [tuple(env.unwrapped.decode(s)) for s in range(500)]
    place = np.array([5 * row + column for row, column, *_ in parts])
    moves = np.broadcast_to((place[:, None] != place)[:, None, :], (500, 6, 500)).astype(np.float64)
    stops = ["at R", "at G", "at Y", "at B", "in the taxi"]
    names = [f"taxi at row {i}, column {j}; passenger {stops[at]}, to {'RGYB'[to]}" for i, j, at, to in parts]
    summary = f"a taxi fetches a passenger; discounted number of moves <= {limit:g}"
    return _world("taxi", env, ("fuel", moves, limit), gamma, (-10.0, 20.0), names, summary)


def cliff_walking(*, limit: Amount = 2.0, slippery: bool = False, gamma: Discount = 0.95) -> Instance:
    """Walk to the goal past a cliff with a limit on steps along its edge (needs gymnasium).

    limit: steps begun at the edge, discounted total
    slippery: whether two steps in three go to a side
    gamma: discount factor a step
    """
    env = Maker("CliffWalking-v1", {"is_slippery": slippery})()
    at_edge = np.zeros((4 * WIDTH, 4))
    at_edge[EDGE] = 1.0
    names = [f"row {s // WIDTH}, column {s % WIDTH}" for s in range(4 * WIDTH)]
    summary = f"walk past a cliff to the goal; discounted steps along its edge <= {limit:g}"
    return _world("cliff-walking", env, ("edge", at_edge, limit), gamma, (-100.0, 0.0), names, summary)


def _world(
    name: str,
    env: Any,
    limit: tuple[str, Array, float],
    gamma: float,
    reward_range: tuple[float, float],
    state_names: list[str],
    summary: str,
) -> Instance:
    """The instance of an environment with one limit: its name, what steps or pairs cost, and the discounted total."""
    constraint = Constraint(limit[0], limit[1], "<=", limit[2], (0.0, 1.0))
    table = from_gymnasium_table(env, [constraint], gamma=gamma, name=name, reward_range=reward_range)
    names = state_names + ["over"] * (table.num_states - len(state_names))
    return Instance.of_table(dataclasses.replace(table, state_names=names), summary)
