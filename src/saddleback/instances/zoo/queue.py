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

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Count, Discount, Share, limited, memory
from saddleback.problem.cmdp import Constraint


def queue(
    *, capacity: Count = 10, arrival: Share = 0.6, service: Share = 0.5, limit: Amount = 1.5, gamma: Discount = 0.95
) -> Instance:
    """Admit as many customers as a limit on the number in the system allows.

    capacity: customers the system can hold
    arrival: probability that a customer comes in a slot
    service: probability that the customer in service leaves in a slot
    limit: number in the system, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    """
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
    summary = f"admit customers to a queue of {capacity}; average number in the system <= {limit:g}"
    constraint = Constraint("number-in-system", length[:, None], "<=", limit * (1 / (1 - gamma)))
    names = [f"{n} in system" for n in length]
    return limited("queue", summary, P, joins, constraint, gamma=gamma, state_names=names)
