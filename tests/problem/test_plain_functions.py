"""``as_simulator``: functions of one pair and of arrays are told apart, and pairs never share their luck."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.cmdp import CMDP, Constraint
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.executors.shipping import pack, unpack
from saddleback.simulators.function import Batched, Looped, as_simulator
from saddleback.simulators.generative_model import GenerativeModel

STATES, ACTIONS = np.repeat(np.arange(5), 400), np.tile(np.arange(2), 1000)


def chain(**changes: Any) -> CMDP:
    fields: dict[str, Any] = {
        "gamma": 0.9,
        "states": 5,
        "actions": 2,
        "start": 0,
        "reward": np.arange(10.0).reshape(5, 2),
        "constraints": [Constraint("c", np.ones((5, 2)), "<=", 20.0)],
    }
    return CMDP(**{**fields, **changes})


def square(**changes: Any) -> CMDP:
    cost = Constraint("c", lambda s, a: a * 1.0, "<=", 20.0, range=(0, 1))
    fields = {"reward": lambda s, a: s[:, 0], "reward_range": (-1, 1), "constraints": [cost]}
    return chain(states=BoxStates([-1, -1], [1, 1]), start=[0, 0], **fields, **changes)


def kept_in_range(s: Any, a: Any, rng: Any) -> Any:
    return min(max(s + (1 if rng.random() < 0.5 else -1), 0), 4)


def typed(state: int, action: int, rng: Any) -> Any:
    return state


def typed_arrays(states: np.ndarray, actions: np.ndarray, rng: Any) -> Any:
    return states


OF_ONE = {
    "if": kept_in_range,
    "one draw for all": lambda s, a, rng: (s + (rng.random() < 0.5)) % 5,
    "one draw among many": lambda s, a, rng: (rng.binomial(s, 0.5) + (rng.random() < 0.5)) % 5,
    "as many draws for any batch": lambda s, a, rng: (s + (rng.random(10) < 0.5).sum()) % 5,
    "no draw": lambda s, a, rng: s,
    "annotated": typed,
    "a dict": lambda s, a, rng: {"next_state": int(rng.integers(5))},
}
OF_MANY = {
    "draws of the batch's size": lambda s, a, rng: (s + (rng.random(len(s)) < 0.5)) % 5,
    "draws from arrays": lambda s, a, rng: rng.binomial(s, 0.5),
    "draws where needed": lambda s, a, rng: np.where(a == 1, 0, s) + 0 * rng.random((a == 1).sum()).sum().astype(int),
    "annotated": typed_arrays,
    "a dict": lambda s, a, rng: {"next_state": rng.integers(5, size=len(s))},
}


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_pair_are_looped(name: str) -> None:
    model = as_simulator(chain(), OF_ONE[name])
    assert isinstance(model._sample, Looped) and model.num_queries == 0
    assert model.sample(STATES, ACTIONS, np.random.default_rng(0)).next_states.shape == (2000,)


@pytest.mark.parametrize("name", OF_MANY)
def test_functions_of_arrays_are_called_once(name: str) -> None:
    model = as_simulator(chain(), OF_MANY[name])
    assert isinstance(model._sample, Batched) and model.num_queries == 0
    assert model.sample(STATES, ACTIONS, np.random.default_rng(0)).next_states.shape == (2000,)


def test_pairs_do_not_share_their_luck() -> None:
    """One draw for the whole batch has the right shape; asked for 400 samples of one pair it would give one of them."""
    drawn = as_simulator(chain(), OF_ONE["one draw for all"]).sample(STATES, ACTIONS, np.random.default_rng(0))
    moved = (drawn.next_states != STATES).reshape(5, 400).mean(axis=1)
    assert np.all((moved > 0.4) & (moved < 0.6)), moved
    shared = GenerativeModel(OF_ONE["one draw for all"], chain().states)  # the same function, believed to take arrays
    alike = shared.sample(STATES, ACTIONS, np.random.default_rng(0)).next_states != STATES
    assert alike.all() or not alike.any(), "the negative control"


def test_noise_of_one_point_is_not_noise_of_a_batch() -> None:
    one = as_simulator(square(), lambda x, a, rng: np.clip(x + rng.normal(size=2), -1, 1))
    many = as_simulator(square(), lambda x, a, rng: np.clip(x + rng.normal(size=x.shape), -1, 1))
    assert isinstance(one._sample, Looped) and isinstance(many._sample, Batched)


def test_the_choice_may_be_made_by_hand() -> None:
    assert isinstance(as_simulator(chain(), OF_MANY["draws from arrays"], batched=False)._sample, Looped)
    assert isinstance(as_simulator(chain(), lambda s, a, rng: s, batched=True)._sample, Batched)
    with pytest.raises(InputError, match="`batched` must be left out for states of your own"):
        as_simulator(chain(states=list("abcde"), start="a"), lambda s, a, rng: s, batched=True)


def test_observed_signals_are_those_that_the_problem_does_not_know() -> None:
    problem = chain(reward=None, reward_range=(0, 4))
    for answer in (lambda s, a, rng: (s, 2.0 * a), lambda s, a, rng: (s, [2.0 * a])):
        drawn = as_simulator(problem, answer).sample(np.arange(5), np.arange(5) % 2, np.random.default_rng(0))
        assert drawn.signals is not None and drawn.signals.tolist() == [[2.0 * (i % 2), 0.0] for i in range(5)]
    with pytest.raises(SimulatorError, match=r"returned 2 things where no signal is named.*reward=None"):
        as_simulator(chain(), lambda s, a, rng: (int(s), 1.0))


def test_tuples_go_in_and_tuples_come_out() -> None:
    def move(state: Any, action: Any, rng: Any) -> Any:
        x, light = state
        assert light in ("day", "night") and action in ("stay", "go")
        return (min(x + (action == "go"), 9), "night" if light == "day" else "day")

    problem = chain(
        states=(range(5, 10), ["day", "night"]),
        start=(5, "day"),
        actions=["stay", "go"],
        reward=np.zeros((10, 2)),
        constraints=[Constraint("c", np.ones((10, 2)), "<=", 20.0)],
    )
    model = as_simulator(problem, move)
    drawn = model.sample(np.array([0, 9]), np.array([1, 0]), np.random.default_rng(0))
    assert problem.states.own(drawn.next_states) == [(6, "night"), (9, "day")]
    wrong = as_simulator(problem, lambda s, a, rng: (s[0] + 1, "day"))
    with pytest.raises(SimulatorError, match=r"\(10, 'day'\).*at state \(9, 'night'\), action 1"):
        wrong.sample(np.array([0, 9]), np.array([1, 1]), np.random.default_rng(0))
    sent = unpack(pack(model._sample))
    assert sent(np.array([0, 9]), np.array([1, 0]), np.random.default_rng(0)).tolist() == drawn.next_states.tolist()


def test_a_function_that_fails_either_way_is_reported_with_its_pair() -> None:
    with pytest.raises(SimulatorError, match=r"NameError.*one pair.*pairs at once.*state 0, action 0"):
        as_simulator(chain(), lambda s, a, rng: undefined)  # noqa: F821


def test_a_simulator_stays_what_it_is() -> None:
    model = GenerativeModel(lambda s, a, rng: s, chain().states)
    assert as_simulator(chain(), model) is model
    with pytest.raises(InputError, match="`simulator` must have the problem's states"):
        as_simulator(chain(), GenerativeModel(lambda s, a, rng: s, 4))
    with pytest.raises(InputError, match="must return 2 signals"):
        as_simulator(chain(reward=None, reward_range=(0, 1)), model)
