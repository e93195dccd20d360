"""A machine that must be up: replace it before it breaks, but not too often.

The machine is worn to one of ``grades`` degrees, 0 as new, or broken. A slot of work brings ``output`` money, less what wear takes
off, and the machine moves on: it breaks with a probability that grows with the square of the wear, else it wears by one degree with
probability ``wear``. Replacing it takes the slot and costs ``planned`` money. Replacing a broken machine costs ``emergency`` and
succeeds with probability ``swift``; else it is to be tried again. A broken machine earns nothing, and may be left alone. A standard
textbook form of the replacement problem, in which a control limit is optimal: replace from a certain degree of wear on.

Reward: money. Constraint: availability, the share of discounted time in which the machine works, "≥" a floor.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Range, Share, limited, memory
from saddleback.problem.cmdp import Constraint

RUN, REPLACE = 0, 1
MOST_WEAR_LOSS = 0.5  # of the output, at the last degree


def maintenance(
    *,
    grades: Annotated[int, Range(2)] = 10,
    wear: Share = 0.5,
    breakage: Share = 0.3,
    output: Amount = 1.0,
    planned: Amount = 5.0,
    emergency: Amount = 6.0,
    swift: Share = 0.3,
    floor: Share = 0.85,
    gamma: Discount = 0.95,
) -> Instance:
    """Run or replace a machine that wears, with a floor on its availability.

    grades: degrees of wear, the first as new
    wear: probability that a slot of work takes the machine to the next degree
    breakage: probability that a slot of work breaks the machine at the last degree; in proportion to wear squared before
    output: money a slot of work of a new machine brings; half of it at the last degree
    planned: money a replacement costs
    emergency: money the replacement of a broken machine costs
    swift: probability that the replacement of a broken machine succeeds within the slot
    floor: share of discounted time at work; the threshold of the constraint is floor * H
    gamma: discount factor a slot
    """
    S = grades + 1
    memory("grades", S * 2 * S, "use fewer degrees of wear")
    broken, degree = grades, np.arange(grades)
    breaks = breakage * (degree / (grades - 1)) ** 2
    P = np.zeros((S, 2, S))
    P[degree, RUN, broken] = breaks
    P[degree, RUN, np.minimum(degree + 1, grades - 1)] = (1 - breaks) * wear
    P[degree, RUN, degree] += (1 - breaks) * (1 - wear)
    P[degree, REPLACE, 0] = 1.0
    P[broken, RUN, broken] = 1.0
    P[broken, REPLACE, [0, broken]] = swift, 1 - swift
    reward = np.zeros((S, 2))
    reward[degree, RUN] = output * (1 - MOST_WEAR_LOSS * degree / (grades - 1))
    reward[degree, REPLACE], reward[broken, REPLACE] = -planned, -emergency
    works = np.zeros((S, 2))
    works[degree, RUN] = 1.0
    summary = f"replace a machine in time; it works at least {100 * floor:g} % of the time"
    constraint = Constraint("availability", works, ">=", floor / (1 - gamma), (0.0, 1.0))
    names = ["as new", *(f"worn {k} of {grades - 1}" for k in range(1, grades)), "broken"]
    return limited("maintenance", summary, P, reward, constraint, gamma=gamma, state_names=names)
