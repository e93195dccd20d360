"""Two servers, one of them thirsty: send each customer to the fast server or to the slow one.

Two queues of at most ``capacity`` customers each, in discrete time. In a slot a customer arrives with probability ``arrival``, and
the busy servers finish with probabilities ``fast`` and ``slow``, all independent. Before it is known whether anybody comes, the next
customer's queue is chosen; one who finds it full is lost. A standard textbook form of routing to parallel queues.

Reward: expected number of customers served, fast·1[n_f > 0] + slow·1[n_s > 0], less ``waiting`` for each customer present.
Constraint: energy, 1 J for every slot in which the fast server works, "≤" a budget. Every policy obeys the balance of the
discounted totals of customers in, out and present,

    in − out = (1 − γ)/γ · present       (from n' = n + in − out, starting empty).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Count, Discount, Outcomes, Share, limited, memory, product
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Actions, States

SLOW, FAST = 0, 1


def routing(
    *,
    capacity: Count = 6,
    arrival: Share = 0.7,
    slow: Share = 0.3,
    fast: Share = 0.6,
    waiting: Amount = 0.05,
    budget: Amount = 0.3,
    gamma: Discount = 0.95,
) -> Instance:
    """Route customers to a slow or a fast server, with a limit on the fast one's energy.

    capacity: customers each queue can hold, the one in service included
    arrival: probability that a customer comes in a slot
    slow: probability that the slow server finishes in a slot
    fast: probability that the fast server finishes in a slot
    waiting: what a customer in either queue takes off the reward in a slot
    budget: energy of the fast server in J a slot, discounted average; the threshold of the constraint is budget * H
    gamma: discount factor a slot
    """
    n = capacity + 1
    memory("capacity", n * n * 2 * 8, "hold fewer customers")
    S = n * n
    chances, which = product(*(np.array([1 - p, p]) for p in (arrival, slow, fast)))

    def step(states: States, actions: Actions, k: NDArray[np.int64]) -> States:
        waiting_slow, waiting_fast = np.divmod(states, n)
        comes, slow_done, fast_done = which[k].T
        joins_slow = comes * (actions == SLOW) * (waiting_slow < capacity)
        joins_fast = comes * (actions == FAST) * (waiting_fast < capacity)
        left_slow = waiting_slow - slow_done * (waiting_slow > 0) + joins_slow
        return np.asarray(left_slow * n + waiting_fast - fast_done * (waiting_fast > 0) + joins_fast)

    waiting_slow, waiting_fast = np.divmod(np.arange(S), n)
    served = slow * (waiting_slow > 0) + fast * (waiting_fast > 0)
    present = waiting_slow + waiting_fast
    lengths = zip(waiting_slow, waiting_fast, strict=True)
    return limited(
        "routing",
        f"route customers to one of two queues; the fast server's energy <= {budget:g} J a slot",
        Outcomes(S, 2, chances, step).matrix(),
        np.repeat(served - waiting * present, 2).reshape(S, 2),
        Constraint("energy", (waiting_fast > 0)[:, None], "<=", budget / (1 - gamma)),
        gamma=gamma,
        state_names=[f"{i} at the slow server, {j} at the fast one" for i, j in lengths],
    )
