"""Functional environments as simulators: terminal states, keys, states of other kinds, faults."""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium
import numpy as np
import pytest
from gymnasium.experimental.functional import FuncEnv

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.spaces import BoxStates
from saddleback.simulators import from_functional
from simulators.one_problem import QueueFunctional


class Drop(NamedTuple):
    height: float
    speed: float


class Falling(FuncEnv):
    """A drop in gusts of wind that is over on the ground."""

    def transition(self, state: Drop, action: float, rng: Any, params: Any = None) -> Drop:
        draw = rng.normal() if isinstance(rng, np.random.Generator) else np.random.default_rng(rng).normal()
        return Drop(max(state.height - state.speed, 0.0), state.speed + action + 0.01 * draw)

    def reward(self, state: Drop, action: float, next_state: Drop, rng: Any, params: Any = None) -> float:
        return state.height - next_state.height

    def terminal(self, state: Drop, rng: Any, params: Any = None) -> bool:
        return state.height == 0.0

    def transition_info(self, state: Drop, action: float, next_state: Drop, params: Any = None) -> dict[str, Any]:
        return {"cost": action, "wear": 3.0}


AIR = BoxStates(np.array([0.0, -10.0]), np.array([10.0, 10.0]))
OPTIONS: dict[str, Any] = {"actions": [0.5, 1.0], "unpack": lambda x: Drop(*x.tolist())}
STATES = np.array([[5.0, 1.0], [0.5, 1.0], [0.0, 2.0]])


def test_terminal_states_absorb_and_cost_nothing() -> None:
    model = from_functional(Falling(), AIR, **OPTIONS)
    drawn = model.sample(STATES, np.array([1, 0, 1]), np.random.default_rng(0))
    assert drawn.next_states[:, 0].tolist() == [4.0, 0.0, 0.0]
    assert drawn.next_states[2].tolist() == [0.0, 2.0]
    assert drawn.signals is not None and drawn.signals.tolist() == [[1.0, 1.0], [0.5, 0.5], [0.0, 0.0]]


def test_signals_are_found_by_name() -> None:
    model = from_functional(Falling(), AIR, signals=(None, "wear", "reward"), **OPTIONS)
    drawn = model.sample(STATES[:1], np.array([1]), np.random.default_rng(0))
    assert drawn.signals is not None and drawn.signals.tolist() == [[0.0, 3.0, 1.0]]


def key(rng: np.random.Generator) -> int:
    return int(rng.integers(2**32))


class Keyed(Falling):
    """Takes keys only, and never the same one twice."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def note(self, rng: Any) -> None:
        assert isinstance(rng, int)
        self.seen.append(rng)

    def transition(self, state: Drop, action: float, rng: Any, params: Any = None) -> Drop:
        self.note(rng)
        return super().transition(state, action, rng)

    def reward(self, state: Drop, action: float, next_state: Drop, rng: Any, params: Any = None) -> float:
        self.note(rng)
        return super().reward(state, action, next_state, rng)

    def terminal(self, state: Drop, rng: Any, params: Any = None) -> bool:
        self.note(rng)
        return super().terminal(state, rng)


def test_every_use_has_a_key_of_its_own() -> None:
    env = Keyed()
    from_functional(env, AIR, key=key, **OPTIONS).sample(STATES, np.zeros(3, int), np.random.default_rng(0))
    assert len(env.seen) == len(set(env.seen)) == 3 + 3 + 1  # the last state is terminal


def test_keys_are_made_from_the_generator() -> None:
    model = from_functional(Falling(), AIR, key=key, **OPTIONS)
    states, actions = np.tile(STATES[:1], (50, 1)), np.zeros(50, int)
    one, again, other = (model.sample(states, actions, np.random.default_rng(s)).next_states for s in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert len(np.unique(one[:, 1])) == 50 and not np.any(one[:, 1] == other[:, 1])


def test_states_of_another_kind_are_packed() -> None:
    backwards = from_functional(
        Falling(), AIR, actions=[0.5], pack=lambda d: (d.speed, d.height), unpack=lambda x: Drop(x[1], x[0]), signals=()
    )
    drawn = backwards.sample(np.array([[1.0, 5.0]]), np.array([0]), np.random.default_rng(0))
    assert drawn.next_states[0, 1] == 4.0 and drawn.signals is None


def test_faults_are_named_with_their_pair() -> None:
    model = from_functional(QueueFunctional(), 11, signals=("reward", "price"))
    with pytest.raises(SimulatorError, match=r"no 'price' in transition_info \(it has 'cost'\).*state 4, action 1"):
        model.sample(np.array([4]), np.array([1]), np.random.default_rng(0))
    with pytest.raises(SimulatorError, match=r"raised AttributeError.*state \[0. 2.\], action 0, sample 0"):
        from_functional(Falling(), AIR).sample(STATES[2:], np.array([0]), np.random.default_rng(0))
    with pytest.raises(InputError, match=r"actions\[0\].*num_actions=2"):
        from_functional(Falling(), AIR, **OPTIONS).sample(STATES[:1], np.array([2]), np.random.default_rng(0))
    with pytest.raises(InputError, match=r"FuncEnv with `transition`.*from_gymnasium"):
        from_functional(gymnasium.make("CartPole-v1").unwrapped, 3)
