"""A shop that must seldom be out of stock: order every morning, sell during the day, lose what is not there.

Stock s ∈ {0..capacity}. An order of q items comes at once, y = min(capacity, s + q); demand D ~ Poisson(``demand``) follows, and
what it exceeds y by is lost: s' = max(y − D, 0). The newsvendor's problem repeated, with lost sales and a service level.

Reward: price·E[min(D, y)] − cost·(y − s) − holding·E[(y − D)⁺]. Constraint: probability of a stock-out, P(D > y), averaged over
discounted days, "≤" a limit.

Known answer. Write the bill of an order as −cost·y today and +γ·cost·s' tomorrow; then for a start without stock the discounted
reward and the penalty λ·P(D > y) are Σ_t γᵗ g_λ(y_t), with g a function of y_t alone, up to a constant that no policy changes:

    m(y) = E[min(D, y)],   g_λ(y) = price·m(y) − holding·(y − m(y)) − cost·(y − γ(y − m(y))) − λP(D > y)

Each term is largest at y*(λ) = argmax g_λ. Ordering up to y* every day can always be done, since s' ≤ y*: it is optimal, for each λ.
So the constrained optimum lies on the upper envelope of the points (H·P(D > y), H·g_0(y)), y = 0..capacity: a mixture of two
neighbouring order-up-to levels of that envelope.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Count, Discount, Range, Share, limited, memory
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Array


def inventory(
    *,
    capacity: Count = 15,
    demand: Annotated[float, Range(0.0, 1e6, open_low=True)] = 5.0,
    price: Amount = 4.0,
    cost: Amount = 2.0,
    holding: Amount = 0.5,
    limit: Share = 0.05,
    gamma: Discount = 0.9,
) -> Instance:
    """Order stock with a limit on the probability of a stock-out.

    capacity: items the shop can hold
    demand: mean number of items asked for a day (Poisson)
    price: money for an item sold
    cost: money for an item ordered
    holding: money for an item left over at the end of a day
    limit: probability of a stock-out a day, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a day
    """
    S = A = capacity + 1
    memory("capacity", S * A * S, "hold fewer items")
    level = np.minimum(np.arange(S)[:, None] + np.arange(A), capacity)  # y, (S, A)
    sold, stock_out, after = _day(capacity, demand)
    ordered = level - np.arange(S)[:, None]
    return limited(
        "inventory",
        f"order stock for a mean demand of {demand:g}; stock-outs on at most {100 * limit:g} % of the days",
        after[level],
        price * sold[level] - cost * ordered - holding * (level - sold[level]),
        Constraint("stock-out", stock_out[level], "<=", limit / (1 - gamma), (0.0, 1.0)),
        gamma=gamma,
        state_names=[f"{s} in stock" for s in range(S)],
    )


def levels(*, capacity: int, demand: float, price: float, cost: float, holding: float, gamma: float) -> Array:
    """(H·P(D > y), H·g_0(y)) of ordering up to y = 0..capacity every day from an empty shop, ``(capacity + 1, 2)``."""
    H, y = 1 / (1 - gamma), np.arange(capacity + 1)
    m, stock_out, _ = _day(capacity, demand)
    return np.column_stack([stock_out, price * m - holding * (y - m) - cost * (y - gamma * (y - m))]) * H


def _day(capacity: int, demand: float) -> tuple[Array, Array, Array]:
    """E[min(D, y)] and P(D > y), ``(capacity+1,)``, and the law of max(y − D, 0) for every y, rows."""
    from scipy.special import gammaln, pdtrc, xlogy  # slow to import, and needed by this problem alone

    y = np.arange(capacity + 1)
    chance = np.exp(xlogy(y, demand) - demand - gammaln(y + 1))  # P(D = n)
    above = np.asarray(pdtrc(y, demand), dtype=np.float64)  # P(D > n)
    sold = np.concatenate([[0.0], np.cumsum(above)[:-1]])  # E[min(D, y)] = Σ_{n<y} P(D > n)
    after = np.zeros((capacity + 1, capacity + 1))
    for level in y:
        after[level, level::-1] = chance[: level + 1]
        after[level, 0] = 1.0 - after[level, 1:].sum()
    return np.asarray(sold), above, after
