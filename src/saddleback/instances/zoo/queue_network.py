"""A network of queues of any size: admit or route bursts of packets, and keep the backlog low.

Two stations in a row hold up to ``capacity`` packets each, n₁ and n₂. In a slot a burst of 0, β or 2β packets comes (chance
0.3, 0.4, 0.3), and station i finishes σ_i packets with chance q_i, or none. What station 1 finishes goes on to station 2,
as far as there is room. Before the burst is seen it is

    0 turned away,      1 sent the whole way (worth 1 a packet),      2 sent straight to station 2 (worth ``short`` each)

    in₁ = min(burst, capacity − n₁) on route 1,     in₂ = min(burst, capacity − n₂) on route 2,     else 0
    out = min(n₂, done₂),     on = min(n₁, done₁, capacity − n₂ − in₂),     n₁' = n₁ − on + in₁,   n₂' = n₂ − out + on + in₂

Reward: worth of what is admitted. Constraint: packets in the network, averaged over discounted time, "≤" a limit. All sizes
are shares of the capacity (β = 6 %, σ = 10 % and 12 %, rounded to packets), and packets are counted in capacities, so the
problems with 32² = 1,024 and 1000² = 10⁶ states are the same one seen coarsely and finely. The simulator holds no table;
the features interpolate on a grid of knots (:mod:`saddleback.features.multilinear`), as many of them for every capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Grid, GridProblem, Outcomes, Range, Share, product
from saddleback.problem.cmdp import Constraint
from saddleback.problem.spaces import Actions, Array, States

BURST_SHARE, BURST_CHANCE = 0.06, np.array([0.3, 0.4, 0.3])  # bursts of 0, 1, 2 times the share
DONE_SHARE, DONE_CHANCE = (0.10, 0.12), (0.6, 0.5)  # a slot's work of each station, and its chance
REJECT, WHOLE, SHORT = range(3)
BEND = 1.5  # knots crowd the empty network, where the stations run dry and values bend


@dataclass(frozen=True)
class Network:
    """The true model, for any capacity."""

    capacity: int
    short: float

    @property
    def grid(self) -> Grid:
        """The states (n₁, n₂)."""
        return Grid(self.capacity, 2)

    @property
    def bursts(self) -> NDArray[np.int64]:
        """Packets in a burst, ``(3,)``."""
        return np.arange(3) * max(1, round(BURST_SHARE * self.capacity))

    def outcomes(self) -> Outcomes:
        """The twelve things that can happen in a slot."""
        done = [np.array([0, max(1, round(share * self.capacity))]) for share in DONE_SHARE]
        chances, which = product(BURST_CHANCE, *(np.array([1 - q, q]) for q in DONE_CHANCE))
        burst, done_1, done_2 = self.bursts[which[:, 0]], done[0][which[:, 1]], done[1][which[:, 2]]

        def step(states: States, actions: Actions, k: NDArray[np.int64]) -> States:
            n1, n2 = self.grid.split(states).T
            in_1, in_2 = self._admitted(n1, n2, actions, burst[k])
            on = np.minimum(np.minimum(n1, done_1[k]), self.capacity - n2 - in_2)
            return self.grid.join(n1 - on + in_1, n2 - np.minimum(n2, done_2[k]) + on + in_2)

        return Outcomes(self.grid.num_states, 3, chances, step)

    def _admitted(
        self, n1: NDArray[np.int64], n2: NDArray[np.int64], actions: Actions, burst: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return (
            np.where(actions == WHOLE, np.minimum(burst, self.capacity - n1), 0),
            np.where(actions == SHORT, np.minimum(burst, self.capacity - n2), 0),
        )

    def reward(self, states: States, actions: Actions) -> Array:
        """Expected worth of what is admitted, in capacities."""
        n1, n2 = self.grid.split(states).T
        total = np.zeros(len(states))
        for chance, burst in zip(BURST_CHANCE, self.bursts, strict=True):
            in_1, in_2 = self._admitted(n1, n2, actions, np.full(len(states), burst))
            total += chance * (in_1 + self.short * in_2)
        return total / self.capacity

    def backlog(self, states: States, actions: Actions) -> Array:
        """Packets in the network, in capacities."""
        return np.asarray(self.grid.split(states).sum(axis=1) / self.capacity)

    def problem(self, limit: float, gamma: float) -> GridProblem:
        """With a limit on the backlog, discounted average."""
        most = float(BURST_CHANCE @ self.bursts / self.capacity)
        backlog = Constraint("backlog", self.backlog, "<=", limit / (1 - gamma), (0.0, 2.0))
        return GridProblem("queue-network", self.grid, 0, self.outcomes(), self.reward, (0.0, most), backlog, gamma)


def queue_network(
    *,
    capacity: Annotated[int, Range(4, 10_000)] = 15,
    short: Share = 0.6,
    limit: Amount = 0.25,
    gamma: Discount = 0.95,
    knots: int = 9,
) -> Instance:
    """Admit and route bursts of packets in a network of two queues; up to a million states and more.

    capacity: packets each station can hold; (capacity + 1)^2 states, 31 gives a thousand and 999 a million
    short: worth of a packet that skips the first station, as a share of one that does not
    limit: packets in the network in capacities, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    knots: of the interpolation along each axis; the dimension is 3 * knots^2
    """
    summary = f"admit and route bursts in two queues of {capacity}; average backlog <= {limit:g} capacities"
    return Network(capacity, short).problem(limit, gamma).instance(knots, BEND, summary)
