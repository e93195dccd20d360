"""Admission control: let customers in, but keep the queue short.

A finite queue in discrete time. In every slot a customer arrives with probability ``arrival``, and if somebody is being
served at the start of the slot that service ends with probability ``service``. Before it is known whether anybody comes
the gate is opened (action 1) or closed (action 0); a full queue turns everybody away.

Reward: expected number of customers admitted, arrival·1[open and not full]. Constraint: number in the system, averaged
over discounted time, "≤" a limit. The optimal policy opens the gate below a critical length, closes it above and mixes at
one length only: more customers in the system can only make the next one more expensive.
"""

from __future__ import annotations

import numpy as np

from saddleback.errors import at_least, discount, number
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._check import memory
from saddleback.simulators.table import Table


def queue(
    *, capacity: int = 10, arrival: float = 0.6, service: float = 0.5, limit: float = 1.5, gamma: float = 0.95
) -> Instance:
    """Admit as many customers as a limit on the number in the system allows.

    capacity: customers the system can hold
    arrival: probability that a customer comes in a slot
    service: probability that the customer in service leaves in a slot
    limit: number in the system, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    """
    at_least("capacity", capacity, 1)
    number("arrival", arrival, 0.0, 1.0)
    number("service", service, 0.0, 1.0)
    number("limit", limit, 0.0)
    discount(gamma)
    S = capacity + 1
    memory("capacity", S * 2 * S, "hold fewer customers")
    length = np.arange(S)
    joins = np.zeros((S, 2))
    joins[:-1, 1] = arrival
    leaves = np.where(length > 0, service, 0.0)[:, None]
    P = np.zeros((S, 2, S))
    for step, chance in (
        (-1, leaves * (1 - joins)),
        (0, leaves * joins + (1 - leaves) * (1 - joins)),
        (1, (1 - leaves) * joins),
    ):
        s = length[(length + step >= 0) & (length + step < S)]  # the chance of leaving that range is zero
        P[s, :, s + step] = chance[s]
    H = 1 / (1 - gamma)
    table = Table.of(
        P,
        joins,
        np.repeat(length, 2).reshape(1, S, 2).astype(np.float64),
        [limit * H],
        gamma=gamma,
        rho=(length == 0).astype(np.float64),
        senses=["<="],
        names=["number-in-system"],
        name="queue",
        state_names=[f"{n} in system" for n in length],
    )
    summary = f"admit customers to a queue of {capacity}; average number in the system <= {limit:g}"
    return Instance.of_table(table, summary)
