"""A problem as people write it: states, actions, start and signals in the user's own words, and the map to integers."""

from __future__ import annotations

import dataclasses
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.names import Action, ListedStates, ProductStates, state_space
from saddleback.problem.policies import TabularPolicy
from saddleback.problem.signals import PairFunction
from saddleback.problem.spaces import BoxStates, FiniteStates

COST = Constraint("wear", np.arange(15.0).reshape(5, 3), "<=", 40.0)


def machine(**changes: Any) -> CMDP:
    arguments: dict[str, Any] = {
        "gamma": 0.9,
        "states": 5,
        "actions": ["run hard", "run gently", "repair"],
        "start": 0,
        "reward": np.arange(15.0).reshape(5, 3)[::-1],
        "constraints": [COST],
    }
    return CMDP(**{**arguments, **changes})


# ---- states ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("states", [5, 5.0, np.int64(5), range(5), [0, 1, 2, 3, 4], np.arange(5), FiniteStates(5)])
def test_the_states_0_to_4_however_they_are_written(states: Any) -> None:
    space = state_space(states)
    assert type(space) is FiniteStates and space.num == 5 and not space.named
    assert space.index(np.int8(3)) == 3 and space.own(np.array([4, 0])) == [4, 0] and space.name(2) == "2"


def test_a_declared_list_keeps_its_order() -> None:
    space = state_space(["new", "worn", ("broken", 2)])
    assert isinstance(space, ListedStates) and space.num == 3 and space.named
    assert [space.index(s) for s in ("new", "worn", ("broken", 2))] == [0, 1, 2]
    assert space.index(["broken", np.int64(2)]) == 2, "a list or NumPy's numbers are as good"
    assert space.own([2, 0]) == [("broken", 2), "new"] and space.state(1) == "worn"
    with pytest.raises(InputError, match=r"'wron'.*did you mean worn"):
        space.index("wron")
    assert isinstance(state_space(itertools.product(range(2), "ab")), ListedStates)
    assert isinstance(state_space(range(1, 6)), ListedStates), "1 to 5 are names, not places"


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(1, 4), st.integers(1, 3)), min_size=1, max_size=3), st.data())
def test_a_product_of_ranges_is_counted_through_and_back(ranges: list[tuple[int, int, int]], data: Any) -> None:
    factors = tuple(range(first, first + step * number, step) for first, number, step in ranges)
    space = state_space(factors)
    assert isinstance(space, ProductStates)
    every = list(itertools.product(*factors))
    assert space.own(np.arange(space.num)) == every, "the last factor is the fastest"
    i = data.draw(st.integers(0, space.num - 1))
    assert space.index(every[i]) == space.index(np.array(every[i])) == i
    with pytest.raises(InputError, match="must be a tuple of"):
        space.index((*every[i][:-1], factors[-1][-1] + 1))


def test_a_factor_is_a_number_a_range_or_a_list_of_names() -> None:
    space = ProductStates((2, range(5, 7), ["day", "night"]))
    assert space.shape == (2, 2, 2) and space.state(3) == (0, 6, "night") and space.index((1, 5, "night")) == 5
    assert "0..1 × 5..6 × {day, night}" in repr(space)
    assert space == ProductStates((2, range(5, 7), ["day", "night"])) != ProductStates((2, range(5, 7), ["a", "b"]))
    assert pickle.loads(pickle.dumps(space)) == space


def test_a_space_shows_its_names_where_reports_look_for_them() -> None:
    problem = machine(states=["a", "b", "c", "d", "e"], start="b")
    assert problem.state_names is not None and list(problem.state_names) == list("abcde")
    assert FiniteStates(10**6).names() is None, "too many to list"
    assert machine().state_names is None
    assert machine(state_names=list("vwxyz")).state_names == list("vwxyz")


# ---- actions -----------------------------------------------------------------------------------------------------------


def test_actions_are_a_number_or_names() -> None:
    assert machine().num_actions == 3 and machine().actions == ("run hard", "run gently", "repair")
    assert machine(actions=3).actions is None and machine(actions=None, num_actions=3).num_actions == 3
    assert machine(actions=range(3), num_actions=3).num_actions == 3
    assert machine().action_name(2) == "repair" and machine(actions=3).action_name(2) == "2"
    assert machine().action_index("repair") == machine().action_index(2) == 2
    with pytest.raises(InputError, match=r"'repiar'.*did you mean repair"):
        machine().action_index("repiar")


def test_an_action_is_a_number_that_answers_to_its_name() -> None:
    repair = Action(1, ("wait", "repair"))
    assert repair == 1 and repair == "repair" and repair != "wait" and repair != 0 and {1: "x"}[repair] == "x"
    assert [10, 20][repair] == 20 and str(repair) == "repair" and pickle.loads(pickle.dumps(repair)) == "repair"
    with pytest.raises(InputError, match=r"'repiar'.*did you mean repair"):
        _ = repair == "repiar"


# ---- start -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "states", "weights"),
    [
        (3, [3], [1.0]),
        (3.0, [3], [1.0]),
        ({0: 0.25, 4: 0.75}, [0, 4], [0.25, 0.75]),
        ([0.5, 0, 0, 0, 0.5], [0, 4], [0.5, 0.5]),
        (np.array([0, 0, 1.0, 0, 0]), [2], [1.0]),
        (Start.over_all([0, 1, 0, 0, 0]), [1], [1.0]),
    ],
)
def test_where_a_process_begins(start: Any, states: list[int], weights: list[float]) -> None:
    found = machine(start=start).start
    assert found.states.tolist() == states and found.weights.tolist() == weights


def test_a_start_in_the_users_own_states() -> None:
    tuples = {"states": (range(5), range(1)), "start": (3, 0)}
    assert machine(**tuples).start.states.tolist() == [3]
    assert machine(**{**tuples, "start": {(1, 0): 0.5, (2, 0): 0.5}}).start.states.tolist() == [1, 2]
    assert machine(states=list("abcde"), start="c").start.states.tolist() == [2]
    with pytest.raises(InputError, match=r"`start`.*\(3, 7\)"):
        machine(**{**tuples, "start": (3, 7)})


def test_points_of_a_box_to_start_from() -> None:
    def box(start: Any) -> Start:
        cost = Constraint("c", lambda s, a: 0.0, "<=", 1.0, range=(0, 1))
        fields: dict[str, Any] = {"reward": lambda s, a: s[:, 0], "reward_range": (-1, 1), "constraints": [cost]}
        return CMDP(gamma=0.5, states=BoxStates([-1, -1], [1, 1]), num_actions=2, start=start, **fields).start

    assert box([0.0, 0.5]).states.tolist() == [[0.0, 0.5]]
    assert box([[0, 0], [1, 1]]).weights.tolist() == [0.5, 0.5]
    assert box({(0, 0): 0.25, (1, 1): 0.75}).weights.tolist() == [0.25, 0.75]
    with pytest.raises(InputError, match="2 entries"):
        box(0.0)


# ---- signals -----------------------------------------------------------------------------------------------------------


def values(problem: CMDP, column: int = 0) -> np.ndarray:
    unit = problem.utilities(*problem.pairs())[:, column]
    return (unit * problem.scale[column] + problem.base[column]).reshape(-1, problem.num_actions)


REWARD = np.arange(15.0).reshape(5, 3) / 7


@pytest.mark.parametrize(
    "reward",
    [
        REWARD,
        REWARD.tolist(),
        lambda states, actions: REWARD[states, actions],
        lambda state, action: REWARD.tolist()[state][action],
        lambda state, action: float(REWARD[int(state), int(action)]),
    ],
)
def test_a_reward_is_the_same_however_it_is_written(reward: Any) -> None:
    problem = machine(reward=reward, reward_range=(0, 2))
    np.testing.assert_allclose(values(problem), REWARD, rtol=1e-12)
    np.testing.assert_allclose(values(dataclasses.replace(problem, gamma=0.5)), REWARD, rtol=1e-12)
    np.testing.assert_allclose(problem.utilities(np.array([3]), np.array([1]))[0, 0], REWARD[3, 1] / 2)


def test_one_value_a_state_is_that_of_all_its_actions() -> None:
    np.testing.assert_allclose(values(machine(reward=np.arange(5.0))), np.repeat(np.arange(5.0)[:, None], 3, axis=1))


def test_functions_of_one_pair_are_given_the_users_own_words() -> None:
    seen: list[Any] = []

    def cost(state: Any, action: Any) -> float:
        seen.append((state, action))
        x, y = state
        return 1.0 if action == "repair" and y == "night" else x / 10

    problem = machine(
        states=(range(1, 3), ["day", "night"]),
        start=(1, "day"),
        reward=np.ones((4, 3)),
        constraints=[Constraint("wear", cost, "<=", 3.0, range=(0, 1))],
    )
    expected = [[0.1, 0.1, 0.1], [0.1, 0.1, 1.0], [0.2, 0.2, 0.2], [0.2, 0.2, 1.0]]
    np.testing.assert_allclose(values(problem, 1), expected)
    assert seen[0] == ((1, "day"), 0) and len(seen) == 12
    np.testing.assert_allclose(values(problem, 1), expected)
    assert len(seen) == 12, "what is known is not asked again"


def test_points_are_not_mistaken_for_a_batch() -> None:
    """A function of one point indexes its coordinates; a batch of as many points would have the same shape."""
    box = BoxStates([-1, -1], [1, 1])
    states, actions = np.array([[0.5, 0.25], [1.0, 0.0]]), np.array([0, 1])
    of_one = PairFunction("r", lambda s, a: s[0] + s[1] + a, box, None)
    of_many = PairFunction("r", lambda s, a: s[:, 0] + s[:, 1] + a, box, None)
    assert of_one(states, actions).tolist() == of_many(states, actions).tolist() == [0.75, 2.0]


# ---- answers in the user's words ---------------------------------------------------------------------------------------


def test_a_policy_is_shown_in_the_users_words() -> None:
    problem = machine(states=list("abcde"), start="a")
    assert problem.described(TabularPolicy.deterministic([0, 1, 2, 0, 1], 3))["c"] == "repair"
    half = TabularPolicy.stochastic(np.tile([0.5, 0.0, 0.5], (5, 1)))
    assert problem.described(half)["e"] == {"run hard": 0.5, "repair": 0.5}
    assert machine(actions=3).described(half)[4] == {0: 0.5, 2: 0.5}
