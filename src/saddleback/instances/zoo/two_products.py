"""Two products in one shop: order lots of both every morning, keep shelves lean, and seldom turn a customer away.

Stocks s = (s₁, s₂), s_i ∈ {0..shelf_i}. An order of (q₁, q₂) lots comes at once, as far as the shelves have room:

    y_i = min(shelf_i, s_i + LOT·q_i),     s'_i = max(y_i − D_i, 0)

Demand (D₁, D₂) is joint: a day is quiet or busy for both products alike, and on top of that each has a luck of its own,

    D_i = round(demand_i · w · z_i),   w ∈ {0.7, 1.3},  z_i ∈ {0.4, 0.8, 1.2, 1.6}

so 2·4·4 = 32 outcomes, whatever the size of the shop; round is to the nearest whole number. What exceeds y_i is lost.

Reward: Σ_i margin_i·E[min(D_i, y_i)] − HOLDING·E[s'₁ + s'₂] − DRIVE·1[q ≠ 0] − HANDLING·(lots that come). The drive is shared, so
orders of both products are best placed together, in large lots and seldom. Two constraints, discounted averages: ``unmet``, the mean
over the products of the share of their mean demand that is lost, and ``stock``, the items left in the evening as a share of all
shelves. They pull against each other: what serves every customer fills the shelves.

At the defaults 54·55 = 2,970 states and 5·6 = 30 actions: a table of middle size, of whose 89,100 pairs any good policy uses few.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Outcomes, Range, Share, memory, product
from saddleback.problem.spaces import Actions, Array, States
from saddleback.simulators.table import Table

SEASONS = np.array([0.7, 1.3])  # a quiet and a busy day, equally likely
LUCK = np.array([0.4, 0.8, 1.2, 1.6])
CHANCES = np.array([1, 3, 3, 1]) / 8  # of the luck: a mean of one
LOT = 5  # items
HOLDING, DRIVE, HANDLING = 0.1, 6.0, 0.5  # money for an item a night, a delivery, a lot

Shelf = Annotated[int, Range(1, 60)]
Lots = Annotated[int, Range(1, 5)]
Demand = Annotated[float, Range(1.0, 1e6)]  # less would leave goods on the shelves for ever


def two_products(
    *,
    first_shelf: Shelf = 53,
    second_shelf: Shelf = 54,
    first_lots: Lots = 4,
    second_lots: Lots = 5,
    first_demand: Demand = 7.0,
    second_demand: Demand = 9.0,
    first_margin: Amount = 0.5,
    second_margin: Amount = 2.0,
    unmet: Share = 0.04,
    stock: Share = 0.14,
    gamma: Discount = 0.95,
) -> Instance:
    """Order two products, with limits on unmet demand and on the stock.

    first_shelf: items of the first product that the shop can hold; the states are (first_shelf + 1) * (second_shelf + 1)
    second_shelf: the same of the second
    first_lots: most lots of the first product in a delivery; the actions are (first_lots + 1) * (second_lots + 1)
    second_lots: the same of the second
    first_demand: mean number of items of the first product asked for a day, before rounding
    second_demand: the same of the second
    first_margin: money for an item of the first product sold
    second_margin: the same of the second
    unmet: lost share of the mean demand, mean of the two products, discounted average; its threshold is unmet * H
    stock: items left in the evening as a share of all shelves, discounted average; its threshold is stock * H
    gamma: discount factor a day
    """
    shelf, lots = np.array([first_shelf, second_shelf]), np.array([first_lots, second_lots])
    S, A = int(np.prod(shelf + 1)), int(np.prod(lots + 1))
    chances, demand = _days(np.array([first_demand, second_demand]))
    memory("first_shelf", S * A * len(chances), "use smaller shelves, or fewer lots")
    came, y = _morning(shelf, lots)  # (S·A, 2)
    sells = [chances @ np.minimum(demand[:, [i]], np.arange(shelf[i] + 1)) for i in (0, 1)]  # E[min(D, y)] at each y
    sold = np.column_stack([sells[0][y[:, 0]], sells[1][y[:, 1]]])
    left, served = y - sold, sold / (chances @ demand)
    money = first_margin * sold[:, 0] + second_margin * sold[:, 1] - HOLDING * left.sum(axis=1)
    money -= DRIVE * came.any(axis=1) + HANDLING * -(-came // LOT).sum(axis=1)  # a lot that is opened is handled whole
    signals = np.stack([1.0 - served.mean(axis=1), left.sum(axis=1) / shelf.sum()]).reshape(2, S, A)

    def evening(states: States, actions: Actions, k: NDArray[np.int64]) -> States:
        rest = np.maximum(y[states * A + actions] - demand[k], 0)
        return np.asarray(rest[:, 0] * (second_shelf + 1) + rest[:, 1])

    table = Table.of(
        Outcomes(S, A, chances, evening).matrix(),
        money.reshape(S, A),
        signals,
        np.array([unmet, stock]) / (1 - gamma),
        gamma=gamma,
        rho=np.eye(1, S)[0],
        senses=["<=", "<="],
        names=["unmet", "stock"],
        ranges=((0.0, 1.0), (0.0, 1.0)),
        name="two-products",
        state_names=[f"{i} of the first, {j} of the second" for i in range(shelf[0] + 1) for j in range(shelf[1] + 1)],
    )
    summary = f"order two products; unmet demand <= {100 * unmet:g} %, shelves filled <= {100 * stock:g} %"
    return Instance.of_table(table, summary)


def _days(mean: Array) -> tuple[Array, NDArray[np.int64]]:
    """The chances ``(32,)`` and the demands ``(32, 2)`` of a day."""
    chances, kind = product(np.full(2, 0.5), CHANCES, CHANCES)
    return chances, np.floor(mean * SEASONS[kind[:, :1]] * LUCK[kind[:, 1:]] + 0.5).astype(np.int64)


def _morning(shelf: NDArray[np.int64], lots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items that come, and y, ``(S·A, 2)`` each."""
    stock, order = (product(*map(np.ones, size + 1))[1] for size in (shelf, lots))
    came = np.minimum(LOT * order, (shelf - stock)[:, None])
    return came.reshape(-1, 2), (stock[:, None] + came).reshape(-1, 2)
