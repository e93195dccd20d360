"""Video without stalls at little expense: fetch from the free server or from the fast one that charges.

The player's buffer holds at most ``capacity`` segments. In a slot the chosen server delivers one segment with probability ``slow``
or ``fast`` (two, with the square of it), what does not fit is dropped, and the player plays one if the buffer was not
empty at the start of the slot; else the picture stands still. Source: the media-streaming problem of the experiments on
constrained reinforcement learning, in a standard form with a finite buffer.

Reward: minus the price of the fast server, in cents. Constraint: stalled slots, averaged over discounted time, "≤" a limit. The
optimal policy pays below a critical fill of the buffer, and mixes at one fill only.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from saddleback.errors import at_least, discount, number
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._check import effort, memory
from saddleback.simulators.table import Table

FREE, PAID = 0, 1


def streaming(
    *,
    capacity: int = 20,
    slow: float = 0.6,
    fast: float = 0.8,
    price: float = 1.0,
    limit: float = 0.1,
    gamma: float = 0.95,
) -> Instance:
    """Pay for the fast server only when the picture would stall.

    capacity: segments the buffer can hold
    slow: probability that the free server delivers a segment in a slot; two of them with its square
    fast: the same of the server that charges
    price: cents a slot of the fast server costs
    limit: share of stalled slots, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    """
    at_least("capacity", capacity, 2)
    number("slow", slow, 0.0, 1.0)
    number("fast", fast, 0.0, 1.0)
    number("price", price, 0.0, open_low=True)
    number("limit", limit, 0.0, 1.0)
    discount(gamma)
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
    table = Table.of(
        P,
        np.tile([0.0, -price], (S, 1)),
        np.repeat(fill == 0, 2).reshape(1, S, 2).astype(np.float64),
        [limit / (1 - gamma)],
        gamma=gamma,
        rho=(fill == 0).astype(np.float64),
        senses=["<="],
        names=["stall"],
        name="streaming",
        state_names=[f"{n} segments" for n in fill],
    )
    summary = f"stream a video at least cost; the picture stalls in at most {100 * limit:g} % of the slots"
    return Instance.of_table(table, summary)
