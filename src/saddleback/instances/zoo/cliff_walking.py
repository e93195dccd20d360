"""Along the edge of a cliff, with a limit on dizzy steps: Gymnasium's CliffWalking-v1 with a cost.

A grid of 4 x 12 fields, start and goal at the two lower corners, the cliff between them. Reward as in Gymnasium: −1 a step and
−100 for a fall, which ends at the start; the goal ends the episode. Constraint: steps begun on one of the ten fields at the
edge, a discounted total "≤" a limit. On slippery ground a step goes to either side with chance 1/3 each. Source: R. Sutton and
A. Barto, Reinforcement Learning: An Introduction, Example 6.6, as in Gymnasium's toy-text worlds; the constraint is added here.

Known answer on firm ground. The edge takes 13 steps, of which t = 2..11 are dizzy. One row higher is two steps longer, wherever the
climb is made, and needs no dizzy step. So the optimum mixes these two walks in proportion to what the limit allows:

    V(n) = −(1 − γⁿ)H,     E = Σ_{t=2}^{11} γᵗ,     V* = V(15) + (V(13) − V(15))·min(1, limit/E)
"""

from __future__ import annotations

import dataclasses

import numpy as np

from saddleback.errors import discount, number
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import Constraint
from saddleback.simulators.gymnasium_env import Maker
from saddleback.simulators.gymnasium_table import from_gymnasium_table

WIDTH, EDGE = 12, slice(25, 35)  # row 2, columns 1 to 10


def cliff_walking(*, limit: float = 2.0, slippery: bool = False, gamma: float = 0.95) -> Instance:
    """Walk to the goal past a cliff with a limit on steps along its edge (needs gymnasium).

    limit: steps begun at the edge, discounted total
    slippery: whether two steps in three go to a side
    gamma: discount factor a step
    """
    number("limit", limit, 0.0)
    discount(gamma)
    env = Maker("CliffWalking-v1", {"is_slippery": slippery})()
    at_edge = np.zeros((4 * WIDTH, 4))
    at_edge[EDGE] = 1.0
    table = from_gymnasium_table(
        env,
        [Constraint("edge", at_edge, "<=", limit, (0.0, 1.0))],
        gamma=gamma,
        name="cliff-walking",
        reward_range=(-100.0, 0.0),
    )
    names = [f"row {s // WIDTH}, column {s % WIDTH}" for s in range(4 * WIDTH)]
    table = dataclasses.replace(table, state_names=names + ["over"] * (table.num_states - len(names)))
    summary = f"walk past a cliff to the goal; discounted steps along its edge <= {limit:g}"
    return Instance.of_table(table, summary)
