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

    @property
    def most(self) -> float:
        """The largest reward."""
        return float(BURST_CHANCE @ self.bursts / self.capacity)

    def table(self, limit: float, gamma: float) -> Table:
        """Everything written out: for checks only, and some 500 bytes a state."""
        S = self.grid.num_states
        states, actions = np.repeat(np.arange(S), 3), np.tile(np.arange(3), S)
        return Table.of(
            self.outcomes().matrix(),
            self.reward(states, actions).reshape(S, 3),
            self.backlog(states, actions).reshape(1, S, 3),
            [limit / (1 - gamma)],
            gamma=gamma,
            rho=(np.arange(S) == 0).astype(np.float64),
            senses=["<="],
            names=["backlog"],
            reward_range=(0.0, self.most),
            ranges=((0.0, 2.0),),
            name="queue-network",
        )


def queue_network(
    *, capacity: int = 15, short: float = 0.6, limit: float = 0.25, gamma: float = 0.95, knots: int = 9
) -> Instance:
    """Admit and route bursts of packets in a network of two queues; up to a million states and more.

    capacity: packets each station can hold; (capacity + 1)^2 states, 31 gives a thousand and 999 a million
    short: worth of a packet that skips the first station, as a share of one that does not
    limit: packets in the network in capacities, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a slot
    knots: of the interpolation along each axis; the dimension is 3 * knots^2
    """
    at_least("capacity", capacity, 4, 10_000)
    number("short", short, 0.0, 1.0)
    number("limit", limit, 0.0)
    discount(gamma)
    at_least("knots", knots, 2, capacity + 1)
    model = Network(capacity, short)
    features, candidates = model.grid.interpolation(knots, 3, BEND)
    table = model.table(limit, gamma) if model.grid.num_states <= TABLE_STATES else None
    problem = CMDP(
        gamma=gamma,
        start=Start(np.array([0]), np.array([1.0])),
        num_actions=3,
        states=FiniteStates(model.grid.num_states),
        reward=model.reward,
        constraints=[Constraint("backlog", model.backlog, "<=", limit / (1 - gamma), (0.0, 2.0))],
        features=features,
        reward_range=(0.0, model.most),
        candidates=candidates,
        name="queue-network",
    )
    summary = f"admit and route bursts in two queues of {capacity}; average backlog <= {limit:g} capacities"
    known = {} if table is None else landmarks(table)
    return Instance("queue-network", problem, model.outcomes().simulator(), table, summary, known)
