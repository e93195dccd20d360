"""What problems of the zoo are built of: ranges of parameters, what a table may cost, tables with one limit, chance with few
outcomes, and states on a grid.

A parameter's type says what it may be (``capacity: Count = 10``); :func:`saddleback.instances.zoo.make` refuses the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import InputError, at_least, discount, number
from saddleback.features import Frame, MultilinearInterpolation, PerAction
from saddleback.files.memory import require_room
from saddleback.instances.instance import Instance, landmarks
from saddleback.problem.cmdp import CMDP, Constraint, SignalFunction, Start
from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table

# ---- parameters ------------------------------------------------------------------------------------------------------------


class Range(NamedTuple):
    """Values from ``low`` to ``high``: whole numbers where ``low`` is one. ``open_low`` leaves ``low`` itself out."""

    low: float
    high: float = math.inf
    open_low: bool = False

    def check(self, name: str, value: Any) -> None:
        """Refuse a value outside."""
        if isinstance(self.low, int):
            at_least(name, value, self.low, None if math.isinf(self.high) else int(self.high))
        else:
            number(name, value, self.low, self.high, open_low=self.open_low)


class DiscountRange(Range):
    """0 ≤ γ < 1."""

    def check(self, name: str, value: Any) -> None:
        """Refuse a value outside."""
        discount(value)


Count = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0)]
Amount = Annotated[float, Range(0.0)]
Share = Annotated[float, Range(0.0, 1.0)]
Discount = Annotated[float, DiscountRange(0.0, 1.0)]
Knots = Annotated[int, Range(2, 200)]

# ---- what a table may cost -------------------------------------------------------------------------------------------------

MEMORY_LIMIT = 4 << 30
"""Bytes a problem of the zoo may take before it is refused."""

_BYTES_PER_ENTRY = 80  # at the peak, the sampler and copies that nobody can write into included (measured: 67 to 70)

_MOST_STEPS = 6e8  # numbers of P times sweeps of value iteration: about five seconds
_OVERHEAD = 2e5  # of a signal's optimum, however small the table is
_DENSE = 1000  # states up to which values are solved for, without sweeps
_DIGITS = 27.6  # −log 10⁻¹²: sweeps to the accuracy of the reference values, in horizons


def memory(name: str, entries: int, remedy: str) -> None:
    """Refuse a table whose ``entries`` (of P, and per pair of features and signals) would exceed ``MEMORY_LIMIT``."""
    need = entries * _BYTES_PER_ENTRY
    if need <= MEMORY_LIMIT:
        require_room(need, "the table", remedy, name)
    else:
        huge = entries > 10**300  # more than float64 can say
        found = "more than 1e+300 numbers" if huge else f"{entries:.3g} numbers, about {need / 2**30:.3g} GiB"
        raise InputError(name, f"must give a table of at most {MEMORY_LIMIT / 2**30:.0f} GiB", found, remedy)


def effort(name: str, num_states: int, entries: int, gamma: float, remedy: str, num_signals: int = 2) -> None:
    """Refuse a table whose reference values (:func:`saddleback.instances.instance.landmarks`) would take more than a few seconds.

    A name with settings may come from a stranger's run: building it must not keep anyone waiting.
    """
    steps: float = _OVERHEAD + num_states**3 / 30  # a few dense systems of equations
    if num_states > _DENSE:
        steps = _OVERHEAD + entries * max(1.0, _DIGITS / (1 - gamma))
    if num_signals * steps > _MOST_STEPS:
        rule = f"must give a table whose reference values take at most {_MOST_STEPS:.0e} steps"
        raise InputError(name, rule, f"about {num_signals * steps:.0e}", remedy)


# ---- tables with one limit -------------------------------------------------------------------------------------------------


def limited_table(
    name: str, P: Any, reward: Array, limit: Constraint, *, gamma: float, rho: Any = None, **more: Any
) -> Table:
    """A table with one constraint, whose threshold is a discounted total.

    The constraint's signal is ``(S, A)``, or ``(S, 1)`` or ``(A,)`` where it depends on the state or the action alone.
    ``rho`` is the start, state 0 if left out; ``more`` are other fields of a table.
    """
    cost = np.ascontiguousarray(np.broadcast_to(np.asarray(limit.signal, dtype=np.float64), reward.shape))[None]
    if limit.range is not None:
        more["ranges"] = (limit.range,)
    start = np.eye(1, len(reward))[0] if rho is None else rho
    more |= {"senses": [limit.sense], "names": [limit.name], "name": name}
    return Table.of(P, reward, cost, [limit.threshold], gamma=gamma, rho=start, **more)


def limited(name: str, summary: str, P: Any, reward: Array, limit: Constraint, **more: Any) -> Instance:
    """The instance of such a table."""
    return Instance.of_table(limited_table(name, P, reward, limit, **more), summary)


# ---- chance with a few outcomes --------------------------------------------------------------------------------------------

Step = Callable[[States, Actions, NDArray[np.int64]], States]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Models with s' = step(s, a, k) with probability p_k, k = 1..K, whatever the pair.

    ``step(states, actions, outcomes)`` is vectorised and deterministic; ``chances`` ``(K,)`` sum to one. Sampling needs no
    table and no memory that grows with the states; writing the table down, for checks, is one call of ``step`` for each
    outcome.
    """

    num_states: int
    num_actions: int
    chances: Array
    step: Step

    def sample(self, states: States, actions: Actions, rng: np.random.Generator) -> States:
        """One next state per pair."""
        k = np.searchsorted(np.cumsum(self.chances)[:-1], rng.random(len(states)), side="right")
        return self.step(states, actions, k)

    def simulator(self) -> GenerativeModel:
        """Gen."""
        return GenerativeModel(self.sample, FiniteStates(self.num_states))

    def matrix(self) -> scipy.sparse.csr_array:
        """P ``(S·A, S)``, row s·A + a; outcomes that lead to the same state are added up."""
        S, A, K = self.num_states, self.num_actions, len(self.chances)
        pairs = np.arange(S * A)
        following = np.empty((S * A, K), dtype=np.int32)
        for k in range(K):
            following[:, k] = self.step(pairs // A, pairs % A, np.full(S * A, k))
        P = scipy.sparse.csr_array(
            (np.tile(self.chances, S * A), following.ravel(), np.arange(0, S * A * K + 1, K)), shape=(S * A, S)
        )
        P.sum_duplicates()
        return P


def product(*laws: Array) -> tuple[Array, NDArray[np.int64]]:
    """Independent laws as one: chances ``(K,)`` and, for each outcome, the outcome of each law, ``(K, len(laws))``."""
    grid = np.stack(np.meshgrid(*(np.arange(len(law)) for law in laws), indexing="ij"), axis=-1).reshape(-1, len(laws))
    chances = np.prod([law[grid[:, i]] for i, law in enumerate(laws)], axis=0)
    return np.asarray(chances), grid


# ---- states on a grid ------------------------------------------------------------------------------------------------------

_TABLE_STATES = 5000  # up to which an instance carries its table; a larger table is built on request only


@dataclass(frozen=True)
class Grid:
    """The states (x₁, …, x_k) ∈ {0..top}^k, numbered row by row."""

    top: int
    axes: int

    @property
    def num_states(self) -> int:
        """(top + 1)^k."""
        return int((self.top + 1) ** self.axes)

    def split(self, states: States) -> NDArray[np.int64]:
        """Coordinates ``(n, k)``."""
        return np.stack(np.unravel_index(states, (self.top + 1,) * self.axes), axis=1)

    def join(self, *coordinates: NDArray[np.int64]) -> NDArray[np.int64]:
        """States of coordinates ``(n,)`` each."""
        state = coordinates[0]
        for x in coordinates[1:]:
            state = state * (self.top + 1) + x
        return state

    def points(self, states: States) -> Array:
        """Coordinates as numbers, ``(n, k)``."""
        return self.split(states).astype(np.float64)

    def interpolation(
        self, num_knots: int, num_actions: int, bend: float = 1.0
    ) -> tuple[PerAction, tuple[States, Actions]]:
        """Features whose knots are states, at (i/(num_knots−1))^bend of each axis, and the knots with all actions as candidates.

        A bend above 1 crowds zero.
        """
        knots = np.unique(np.round(np.linspace(0.0, 1.0, num_knots) ** bend * self.top))
        frame = Frame(np.zeros(self.axes), np.full(self.axes, float(self.top)), self.points)
        psi = MultilinearInterpolation(frame, (knots,) * self.axes)
        nodes = self.join(*psi.points().astype(np.int64).T)
        return PerAction(psi, num_actions, direct=True), with_all_actions(nodes, num_actions)


def with_all_actions(states: States, num_actions: int) -> tuple[States, Actions]:
    """Each state with each action, the states running fastest: the order of φ's blocks."""
    return np.concatenate([states] * num_actions), np.repeat(np.arange(num_actions), len(states))


@dataclass(frozen=True, eq=False)
class GridProblem:
    """A problem on a grid of any size: its reward and its limit's signal are functions, the limit a total."""

    name: str
    grid: Grid
    start: int
    outcomes: Outcomes
    reward: SignalFunction
    span: tuple[float, float]  # of the reward
    limit: Constraint
    gamma: float

    def table(self) -> Table:
        """Everything written out: for checks only, and some 600 bytes a state."""
        S, A = self.grid.num_states, self.outcomes.num_actions
        states, actions = np.repeat(np.arange(S), A), np.tile(np.arange(A), S)
        reward = self.reward(states, actions).reshape(S, A)
        limit = replace(self.limit, signal=self.limit.signal(states, actions).reshape(S, A))
        rho, span = np.eye(1, S, self.start)[0], self.span
        P = self.outcomes.matrix()
        return limited_table(self.name, P, reward, limit, gamma=self.gamma, rho=rho, reward_range=span)

    def instance(self, knots: int, bend: float, summary: str) -> Instance:
        """The simulator holds no table, and the features have as many ``knots`` for every size."""
        at_least("knots", knots, 2, self.grid.top + 1)
        features, candidates = self.grid.interpolation(knots, self.outcomes.num_actions, bend)
        problem = CMDP(
            gamma=self.gamma,
            start=Start(np.array([self.start]), np.array([1.0])),
            num_actions=self.outcomes.num_actions,
            states=FiniteStates(self.grid.num_states),
            reward=self.reward,
            constraints=[self.limit],
            features=features,
            reward_range=self.span,
            candidates=candidates,
            name=self.name,
        )
        table = self.table() if self.grid.num_states <= _TABLE_STATES else None
        known = {} if table is None else landmarks(table)
        return Instance(self.name, problem, self.outcomes.simulator(), table, summary, known)
