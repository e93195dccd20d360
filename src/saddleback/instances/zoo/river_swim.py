"""River-swim with tired arms: the treasure is upstream, and every stroke against the current counts.

A chain of ``length`` places along a river that flows to the left. Drifting (action 0) always takes the swimmer one place down.
Swimming up (action 1) succeeds with probability ``up``, leaves the swimmer where he is with the probability that is left, and loses
a place with probability ``down``; at the ends what would leave the chain stays. Drifting at the lower end pays ``small``, swimming
at the upper end 1. The chain is the RiverSwim of Strehl and Littman (An analysis of model-based interval estimation for Markov
decision processes, Journal of Computer and System Sciences 74, 2008); ends and rewards are simplified, and the limit on effort is added here.

Reward: as above. Constraint: strokes, 1 for each slot of swimming, averaged over discounted time, "≤" a limit.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saddleback.errors import require
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Discount, Range, Share, limited, memory
from saddleback.problem.cmdp import Constraint

DRIFT, SWIM = 0, 1


def river_swim(
    *,
    length: Annotated[int, Range(2)] = 6,
    up: Share = 0.35,
    down: Share = 0.05,
    small: Share = 0.005,
    limit: Share = 0.5,
    gamma: Discount = 0.95,
) -> Instance:
    """Swim up a river to the treasure with a limit on the strokes.

    length: places along the river
    up: probability that swimming gains a place
    down: probability that swimming loses a place
    small: reward for drifting at the lower end; the upper end pays 1
    limit: strokes a slot, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    """
    require(up + down <= 1, "down", f"must be at most 1 - up = {1 - up:g}", down, "lower one of the two")
    S = length
    memory("length", S * 2 * S, "use a shorter river")
    place = np.arange(S)
    below, above = np.maximum(place - 1, 0), np.minimum(place + 1, S - 1)
    P = np.zeros((S, 2, S))
    P[place, DRIFT, below] = 1.0
    for target, chance in ((above, up), (below, down), (place, 1 - up - down)):
        P[place, SWIM, target] += chance
    reward = np.zeros((S, 2))
    reward[0, DRIFT], reward[S - 1, SWIM] = small, 1.0
    summary = f"swim up a river of {length} places; strokes in at most {100 * limit:g} % of the slots"
    more = {"state_names": [f"place {x}" for x in place], "reward_range": (0.0, 1.0)}
    constraint = Constraint("effort", np.array([0.0, 1.0]), "<=", limit / (1 - gamma))
    return limited("river-swim", summary, P, reward, constraint, gamma=gamma, **more)
