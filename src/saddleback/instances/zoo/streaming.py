"""Video without stalls at little expense: fetch from the free server or from the fast one that charges.

The player's buffer holds at most ``capacity`` segments. In a slot the chosen server delivers one segment with probability ``slow``
or ``fast`` (two, with the square of it), what does not fit is dropped, and the player plays one if the buffer was not
empty at the start of the slot; else the picture stands still. Source: the media-streaming problem of the experiments on
constrained reinforcement learning, in a standard form with a finite buffer.

Reward: minus the price of the fast server, in cents. Constraint: stalled slots, averaged over discounted time, "≤" a limit. The
optimal policy pays below a critical fill of the buffer, and mixes at one fill only.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import scipy.sparse

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Discount, Range, Share, effort, limited, memory
from saddleback.problem.cmdp import Constraint

FREE, PAID = 0, 1


def streaming(
    *,
    capacity: Annotated[int, Range(2)] = 20,
    slow: Share = 0.6,
    fast: Share = 0.8,
    price: Annotated[float, Range(0.0, open_low=True)] = 1.0,
    limit: Share = 0.1,
    gamma: Discount = 0.95,
) -> Instance:
    """Pay for the fast server only when the picture would stall.

    capacity: segments the buffer can hold
    slow: probability that the free server delivers a segment in a slot; two of them with its square
    fast: the same of the server that charges
    price: cents a slot of the fast server costs
    limit: share of stalled slots, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    """
    S = capacity + 1
    memory("capacity", S * 2 * 3, "use a smaller buffer")
    effort("capacity", S, S * 2 * 3, gamma, "use a smaller buffer, or a smaller gamma")
    fill = np.arange(S)
    rows, columns, chances = [], [], []
    for action, p in ((FREE, slow), (PAID, fast)):
        for segments, chance in enumerate((1 - p, p - p * p, p * p)):
            rows.append(fill * 2 + action)
            columns.append(np.minimum(fill - (fill > 0) + segments, capacity))
            chances.append(np.full(S, chance))
    P = scipy.sparse.csr_array(
        (np.concatenate(chances), (np.concatenate(rows), np.concatenate(columns))), shape=(S * 2, S)
    )
    summary = f"stream a video at least cost; the picture stalls in at most {100 * limit:g} % of the slots"
    reward, stalls = (
        np.tile([0.0, -price], (S, 1)),
        Constraint("stall", (fill == 0)[:, None], "<=", limit / (1 - gamma)),
    )
    names = [f"{n} segments" for n in fill]
    return limited("streaming", summary, P, reward, stalls, gamma=gamma, state_names=names)
