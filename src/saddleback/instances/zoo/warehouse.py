"""Two goods in one warehouse: order lots so as to earn, and leave little demand unmet.

Stocks y₁, y₂ of at most ``capacity`` items each. At the start of a slot a lot of good 1, of good 2, of both or of none is
ordered and comes at once (cut to what fits); then demand for both goods comes, independently, and is met as far as it goes:

    z_i = min(capacity, y_i + lot_i),     sold_i = min(z_i, D_i),     unmet_i = D_i − sold_i,     y_i' = z_i − sold_i

Reward: revenue of what is sold, less the price of what is ordered, a fee for each lorry that comes, and rent on z.
Constraint: unmet demand as a share of the mean demand, averaged over discounted time, "≤" a limit. Sizes are shares of the
capacity, and items are counted in capacities, so that 32² = 1,024 and 1000² = 10⁶ states are one problem seen coarsely and
finely. The simulator holds no table; the features interpolate on a grid of knots (:mod:`saddleback.features.multilinear`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Discount, Grid, GridProblem, Outcomes, Range, Share, product
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Actions, Array, States

DEMAND_SHARE = ((0.0, 0.10, 0.24), (0.04, 0.08, 0.16))  # of the capacity
DEMAND_CHANCE = (np.array([0.3, 0.4, 0.3]), np.array([0.4, 0.4, 0.2]))
LOT_SHARE = (0.30, 0.22)
REVENUE, PRICE = np.array([5.0, 4.0]), np.array([2.0, 2.0])  # money for a capacity of items
FEE, RENT = 0.25, 0.25  # money for a lorry, and for a capacity of items in a slot
BEND = 1.5  # knots crowd empty shelves, where demand is lost and values bend


@dataclass(frozen=True)
class Warehouse:
    """The true model, for any capacity."""

    capacity: int

    @property
    def grid(self) -> Grid:
        """The states (y₁, y₂)."""
        return Grid(self.capacity, 2)

    @property
    def lots(self) -> NDArray[np.int64]:
        """Items ordered of each good by each action, ``(4, 2)``."""
        lot = [max(1, round(share * self.capacity)) for share in LOT_SHARE]
        return np.array([[0, 0], [lot[0], 0], [0, lot[1]], lot])

    @property
    def demands(self) -> NDArray[np.int64]:
        """Items asked for, ``(2, 3)``."""
        return np.round(np.array(DEMAND_SHARE) * self.capacity).astype(np.int64)

    @property
    def mean_demands(self) -> Array:
        """Items of each good, ``(2,)``."""
        return np.array([p @ d for p, d in zip(DEMAND_CHANCE, self.demands, strict=True)])

    def outcomes(self) -> Outcomes:
        """The nine pairs of demands."""
        chances, which = product(*DEMAND_CHANCE)
        demand = self.demands[[0, 1], which]  # (9, 2)

        def step(states: States, actions: Actions, k: NDArray[np.int64]) -> States:
            left = np.maximum(self._filled(states, actions) - demand[k], 0)
            return self.grid.join(left[:, 0], left[:, 1])

        return Outcomes(self.grid.num_states, 4, chances, step)

    def _filled(self, states: States, actions: Actions) -> NDArray[np.int64]:
        """z, ``(n, 2)``."""
        return np.asarray(np.minimum(self.grid.split(states) + self.lots[actions], self.capacity))

    def _sold(self, filled: NDArray[np.int64]) -> Array:
        """E[sold], items, ``(n, 2)``."""
        sold = np.zeros(filled.shape)
        for i, (chance, demand) in enumerate(zip(DEMAND_CHANCE, self.demands, strict=True)):
            sold[:, i] = np.minimum(filled[:, i, None], demand) @ chance
        return sold

    def profit(self, states: States, actions: Actions) -> Array:
        """Expected profit of the slot."""
        z = self._filled(states, actions)
        ordered, lorries = z - self.grid.split(states), (self.lots[actions] > 0).sum(axis=1)
        money = self._sold(z) @ REVENUE - ordered @ PRICE - RENT * z.sum(axis=1)
        return np.asarray(money / self.capacity - FEE * lorries)

    def unmet(self, states: States, actions: Actions) -> Array:
        """Expected unmet demand as a share of the mean demand."""
        lost = self.mean_demands - self._sold(self._filled(states, actions))
        return np.asarray(lost.sum(axis=1) / self.mean_demands.sum())

    def problem(self, limit: float, gamma: float) -> GridProblem:
        """With a limit on unmet demand, discounted average; it begins with both shelves half full."""
        worst = -float(self.lots[3] @ PRICE) / self.capacity - 2 * FEE - 2 * RENT  # lots that nobody wants
        span = worst, float(self.mean_demands @ REVENUE) / self.capacity  # and all demand met from stock
        start = self.capacity // 2 * (self.capacity + 2)
        unmet = Constraint("unmet", self.unmet, "<=", limit / (1 - gamma), (0.0, 1.0))
        return GridProblem("warehouse", self.grid, start, self.outcomes(), self.profit, span, unmet, gamma)


def warehouse(
    *,
    capacity: Annotated[int, Range(4, 10_000)] = 15,
    limit: Share = 0.05,
    gamma: Discount = 0.95,
    knots: int = 8,
) -> Instance:
    """Order lots of two goods with little unmet demand; up to a million states and more.

    capacity: items of each good the warehouse can hold; (capacity + 1)^2 states, 31 gives a thousand and 999 a million
    limit: unmet demand as a share of the mean demand, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    knots: of the interpolation along each axis; the dimension is 4 * knots^2
    """
    summary = f"order two goods for shelves of {capacity}; unmet demand <= {100 * limit:g} % of the mean"
    return Warehouse(capacity).problem(limit, gamma).instance(knots, BEND, summary)
