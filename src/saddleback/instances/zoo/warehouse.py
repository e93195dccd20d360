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

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import at_least, discount, number
from saddleback.instances.instance import Instance
from saddleback.instances.landmarks import landmarks
from saddleback.instances.zoo._grid import Grid
from saddleback.instances.zoo._outcomes import TABLE_STATES, Outcomes, product
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.table import Table

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

    @property
    def start(self) -> int:
        """Both shelves half full."""
        return self.capacity // 2 * (self.capacity + 2)

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

    @property
    def span(self) -> tuple[float, float]:
        """Bounds on the profit: lots that nobody wants, or all demand met from stock."""
        worst = -float(self.lots[3] @ PRICE) / self.capacity - 2 * FEE - 2 * RENT
        return worst, float(self.mean_demands @ REVENUE) / self.capacity

    def table(self, limit: float, gamma: float) -> Table:
        """Everything written out: for checks only, and some 600 bytes a state."""
        S = self.grid.num_states
        states, actions = np.repeat(np.arange(S), 4), np.tile(np.arange(4), S)
        return Table.of(
            self.outcomes().matrix(),
            self.profit(states, actions).reshape(S, 4),
            self.unmet(states, actions).reshape(1, S, 4),
            [limit / (1 - gamma)],
            gamma=gamma,
            rho=(np.arange(S) == self.start).astype(np.float64),
            senses=["<="],
            names=["unmet"],
            reward_range=self.span,
            ranges=((0.0, 1.0),),
            name="warehouse",
        )


def warehouse(*, capacity: int = 15, limit: float = 0.05, gamma: float = 0.95, knots: int = 8) -> Instance:
    """Order lots of two goods with little unmet demand; up to a million states and more.

    capacity: items of each good the warehouse can hold; (capacity + 1)^2 states, 31 gives a thousand and 999 a million
    limit: unmet demand as a share of the mean demand, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    knots: of the interpolation along each axis; the dimension is 4 * knots^2
    """
    at_least("capacity", capacity, 4, 10_000)
    number("limit", limit, 0.0, 1.0)
    discount(gamma)
    at_least("knots", knots, 2, capacity + 1)
    model = Warehouse(capacity)
    features, candidates = model.grid.interpolation(knots, 4, BEND)
    table = model.table(limit, gamma) if model.grid.num_states <= TABLE_STATES else None
    problem = CMDP(
        gamma=gamma,
        start=Start(np.array([model.start]), np.array([1.0])),
        num_actions=4,
        states=FiniteStates(model.grid.num_states),
        reward=model.profit,
        constraints=[Constraint("unmet", model.unmet, "<=", limit / (1 - gamma), (0.0, 1.0))],
        features=features,
        reward_range=model.span,
        candidates=candidates,
        name="warehouse",
    )
    summary = f"order two goods for shelves of {capacity}; unmet demand <= {100 * limit:g} % of the mean"
    known = {} if table is None else landmarks(table)
    return Instance("warehouse", problem, model.outcomes().simulator(), table, summary, known)
