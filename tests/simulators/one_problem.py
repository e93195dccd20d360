"""Two problems, each told in every way an adapter understands: a queue without end, and the frozen lake, whose walks end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import scipy.sparse
from gymnasium.experimental.functional import FuncEnv

from saddleback.instances.zoo import make
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.simulators import (
    Table,
    from_function,
    from_functional,
    from_gymnasium,
    from_gymnasium_table,
    from_quantecon,
    from_sparse,
    read_drn,
    write_drn,
)
from saddleback.simulators.generative_model import GenerativeModel

Told = tuple[CMDP, GenerativeModel]

CAPACITY, ARRIVAL, SERVICE, GAMMA, LIMIT = 10, 0.6, 0.5, 0.95, 30.0


def queue_table() -> Table:
    table = make("queue", capacity=CAPACITY, arrival=ARRIVAL, service=SERVICE, gamma=GAMMA, limit=1.5).table
    assert table is not None
    return table


def chances(length: Any, gate: Any) -> tuple[Any, Any, Any]:
    """Of one less, as many, one more."""
    leaves, joins = np.where(length > 0, SERVICE, 0.0), np.where((gate == 1) & (length < CAPACITY), ARRIVAL, 0.0)
    return leaves * (1 - joins), leaves * joins + (1 - leaves) * (1 - joins), (1 - leaves) * joins


def one_step(length: int, gate: int, rng: np.random.Generator) -> int:
    down, same, up = chances(length, gate)
    u = rng.random() * (down + same + up)
    return length - 1 if u < down else length if u < down + same else length + 1


def many_steps(length: np.ndarray, gate: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    down, same, up = chances(length, gate)
    u = rng.random(len(length)) * (down + same + up)
    return length - 1 + (u >= down) + (u >= down + same)


def admitted(length: Any, gate: Any) -> Any:
    return np.where((gate == 1) & (length < CAPACITY), ARRIVAL, 0.0)


def one_step_with_signals(length: int, gate: int, rng: np.random.Generator) -> tuple[int, float, int]:
    return one_step(length, gate, rng), float(admitted(length, gate)), length


def one_step_by_name(length: int, gate: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"number": length, "reward": admitted(length, gate), "next_state": one_step(length, gate, rng)}


def many_steps_with_signals(length: np.ndarray, gate: np.ndarray, rng: np.random.Generator) -> Any:
    return many_steps(length, gate, rng), admitted(length, gate), length


class QueueEnv(gymnasium.Env[int, int]):
    """The queue as an environment that must be stepped through."""

    observation_space = gymnasium.spaces.Discrete(CAPACITY + 1)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.length = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        before = self.length
        self.length = one_step(before, action, self.np_random)
        return self.length, float(admitted(before, action)), False, False, {"cost": before}


def set_length(env: Any, length: int) -> None:
    env.unwrapped.length = length


class QueueFunctional(FuncEnv):
    """The queue as a functional environment."""

    def transition(self, state: int, action: int, rng: Any, params: Any = None) -> int:
        return one_step(state, action, rng)

    def reward(self, state: int, action: int, next_state: int, rng: Any, params: Any = None) -> float:
        return float(admitted(state, action))

    def terminal(self, state: int, rng: Any, params: Any = None) -> bool:
        return False

    def transition_info(self, state: int, action: int, next_state: int, params: Any = None) -> dict[str, Any]:
        return {"cost": state}


def observed(table: Table) -> CMDP:
    """The table's problem with reward and constraint to be observed."""
    known = table.problem()
    spans = [(s.low, s.high) for s in known.signals]
    return CMDP(
        gamma=table.gamma,
        start=Start.over_all(table.rho),
        num_actions=table.num_actions,
        states=FiniteStates(table.num_states),
        reward=None,
        reward_range=spans[0],
        constraints=[Constraint(table.names[0], None, table.senses[0], float(table.thresholds[0]), spans[1])],
    )


# ---- what a table can be told as ---------------------------------------------------------------------------------------


def known(table: Table) -> list[Constraint]:
    rows = zip(table.names, table.constraints, table.senses, table.thresholds.tolist(), strict=True)
    return [Constraint(*row) for row in rows]


def options(table: Table) -> dict[str, Any]:
    return {"gamma": table.gamma, "rho": table.rho, "reward_range": table.reward_range}


def dense(table: Table) -> np.ndarray:
    return table.P.toarray().reshape(table.num_states, table.num_actions, -1)


def sparse_list(table: Table) -> Table:
    P = [scipy.sparse.csc_matrix(dense(table)[:, a]) for a in range(table.num_actions)]
    return from_sparse(P, table.reward, known(table), **options(table))


def sparse_rows(table: Table) -> Table:
    reward = table.reward
    return from_sparse(table.P.tocoo(), lambda s, a: reward[s, a], known(table), **options(table))


def quantecon_product(table: Table) -> Table:
    return from_quantecon(
        table.reward,
        dense(table),
        table.gamma,
        rho=table.rho,
        constraints=known(table),
        reward_range=table.reward_range,
    )


def quantecon_pairs(table: Table) -> Table:
    """In an order of its own, and with a cost a row."""
    S, A = table.num_states, table.num_actions
    order = np.random.default_rng(0).permutation(S * A)
    constraints = [
        Constraint(c.name, np.ravel(c.signal)[order], c.sense, c.threshold)  # type: ignore[arg-type]
        for c in known(table)
    ]
    return from_quantecon(
        table.reward.ravel()[order],
        table.P[order],
        table.gamma,
        order // A,
        order % A,
        rho=table.rho,
        constraints=constraints,
        reward_range=table.reward_range,
    )


def through_drn(table: Table, folder: Path) -> Table:
    path = folder / f"{table.name}.drn"
    write_drn(table, path)
    constraints = [Constraint(c.name, None, c.sense, c.threshold) for c in known(table)]
    return read_drn(path, constraints, gamma=table.gamma, reward_range=table.reward_range)


TABLES: dict[str, Callable[[Table, Path], Table]] = {
    "sparse list": lambda table, folder: sparse_list(table),
    "sparse rows": lambda table, folder: sparse_rows(table),
    "QuantEcon product": lambda table, folder: quantecon_product(table),
    "QuantEcon pairs": lambda table, folder: quantecon_pairs(table),
    "DRN": through_drn,
}

# ---- what only a simulator can say -------------------------------------------------------------------------------------

S = CAPACITY + 1
SIGNALS = ("reward", "number")
KNOWN: dict[str, Callable[[], GenerativeModel]] = {
    "function": lambda: from_function(one_step, S),
    "batched function": lambda: from_function(many_steps, S, batched=True),
    "FuncEnv": lambda: from_functional(QueueFunctional(), S, signals=()),
    "Env": lambda: from_gymnasium(QueueEnv, set_state=set_length, states=S, terminates=False, signals=()),
}
OBSERVED: dict[str, Callable[[], GenerativeModel]] = {
    "function": lambda: from_function(one_step_with_signals, S, signals=SIGNALS),
    "function with names": lambda: from_function(one_step_by_name, S, signals=SIGNALS),
    "batched function": lambda: from_function(many_steps_with_signals, S, signals=SIGNALS, batched=True),
    "FuncEnv": lambda: from_functional(QueueFunctional(), S),
    "Env": lambda: from_gymnasium(QueueEnv(), set_state=set_length, states=S, terminates=False),
}

# ---- the frozen lake ---------------------------------------------------------------------------------------------------

LAKE_GAMMA, LAKE_LIMIT = 0.95, 4.0


def effort(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """What a move costs: going up is hard."""
    return np.where(actions == 3, 1.0, 0.25)


def lake_constraints() -> list[Constraint]:
    return [Constraint("effort", effort, "<=", LAKE_LIMIT, (0.0, 1.0))]


def lake_table() -> Table:
    return from_gymnasium_table(
        "FrozenLake-v1", lake_constraints(), gamma=LAKE_GAMMA, reward_range=(0.0, 1.0), map_name="4x4"
    )


class WithEffort(gymnasium.Wrapper[int, int, int, int]):
    """The cost where Gymnasium's users put it."""

    def step(self, action: int) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, reward, terminated, truncated, {**info, "cost": float(effort(0, np.array(action)))}


def sorted_lake() -> gymnasium.Env[int, int]:
    """The lake with the outcomes of a move in the order of their states, equal ones added: a table's order."""
    env = gymnasium.make("FrozenLake-v1", map_name="4x4")
    P = env.unwrapped.P  # type: ignore[attr-defined]
    for s, a in np.ndindex(16, 4):
        merged: dict[int, list[Any]] = {}
        for p, t, r, ends in P[s][a]:
            held = merged.setdefault(t, [0.0, t, r, ends])
            held[0] += p
        P[s][a] = [tuple(merged[t]) for t in sorted(merged)]
    return WithEffort(env)


def plain_lake() -> gymnasium.Env[int, int]:
    return WithEffort(gymnasium.make("FrozenLake-v1", map_name="4x4"))


def lake_told(reward: np.ndarray, cost: np.ndarray) -> CMDP:
    """The lake over 16 squares and one state more for walks that are over."""
    return CMDP(
        gamma=LAKE_GAMMA,
        start=Start(np.array([0]), np.ones(1)),
        num_actions=4,
        states=FiniteStates(17),
        reward=reward,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("effort", cost, "<=", LAKE_LIMIT, (0.0, 1.0))],
    )
