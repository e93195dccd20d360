"""Gymnasium's toy-text tables: endings made absorbing, costs, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.exact import best_policy
from saddleback.problem.cmdp import Constraint
from saddleback.simulators import from_gymnasium_table
from simulators.one_problem import lake_constraints, lake_table


def free(limit: float = 1.0) -> list[Constraint]:
    return [Constraint("cost", lambda s, a: 1.0 * (a == 0), "<=", limit)]


def unconstrained(table: Any) -> float:
    problem = table.problem()
    return float(problem.values_of(best_policy(table, np.array([1.0, 0.0]))[1])[0])


def brute_force(env: Any, gamma: float) -> float:
    """Value iteration on P as Gymnasium means it: nothing comes after an ending."""
    P = env.unwrapped.P
    S, A = len(P), len(P[0])
    V = np.zeros(S)
    for _ in range(3000):
        V = np.array(
            [max(sum(p * (r + gamma * V[t] * (not d)) for p, t, r, d in P[s][a]) for a in range(A)) for s in range(S)]
        )
    return float(env.unwrapped.initial_state_distrib @ V)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "num_states"),
    [
        ("FrozenLake-v1", {"map_name": "4x4"}, 16),
        ("CliffWalking-v1", {"is_slippery": True}, 48),
    ],
)
def test_the_optimum_is_that_of_the_episodes(name: str, options: dict[str, Any], num_states: int) -> None:
    table = from_gymnasium_table(name, free(), gamma=0.97, **options)
    assert table.num_states == num_states and table.name == name
    assert unconstrained(table) == pytest.approx(brute_force(gymnasium.make(name, **options), 0.97), abs=1e-8)


def test_a_state_that_is_entered_both_ways_needs_one_more() -> None:
    """Taxi's places where a passenger is set down can also be driven to: endings lead to a state of their own."""
    table = from_gymnasium_table("Taxi-v4", free(), gamma=0.9)
    assert table.num_states == 501 and table.state_names is not None and table.state_names[500] == "done"
    last = table.P[500 * 6 :].toarray()
    assert np.all(last[:, 500] == 1) and not table.reward[500].any() and not table.constraints[:, 500].any()
    env = gymnasium.make("Taxi-v4").unwrapped
    rng = np.random.default_rng(0)
    policy = rng.integers(0, 6, 500)  # of one policy, since to iterate over values of all would take minutes here
    V, P = np.zeros(500), env.P
    for _ in range(200):
        V = np.array([sum(p * (r + 0.9 * V[t] * (not d)) for p, t, r, d in P[s][policy[s]]) for s in range(500)])
    rows = np.append(np.arange(500) * 6 + policy, 3000)
    chain = table.P[rows].toarray()
    ours = np.linalg.solve(np.eye(501) - 0.9 * chain, table.reward.ravel()[rows])
    np.testing.assert_allclose(ours[:500], V, atol=1e-6)


def test_absorbing_states_cost_nothing() -> None:
    table = lake_table()
    over = [5, 7, 11, 12, 15]
    assert not table.reward[over].any() and not table.constraints[:, over].any()
    np.testing.assert_array_equal(table.constraints[0, 0], [0.25, 0.25, 0.25, 1.0])
    np.testing.assert_array_equal(table.P.toarray().reshape(16, 4, 16)[over].sum(axis=1), 4 * np.eye(16)[over])


def test_transitions_may_cost() -> None:
    """One for every step into a hole: with γ = 1 this is the chance to fall, here in one step."""
    holes = np.zeros((16, 4, 16))
    holes[:, :, [5, 7, 11, 12]] = 1.0
    table = from_gymnasium_table("FrozenLake-v1", [Constraint("falls", holes, "<=", 0.1)], gamma=0.9)
    assert table.constraints[0, 4].tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3])
    assert table.constraints[0, 0].tolist() == [0, 0, 0, 0]
    assert not table.constraints[0, 5].any()
    land = np.zeros((500, 6, 500))
    land[:, 5] = 1.0  # setting down, even where it ends the ride
    taxi = from_gymnasium_table("Taxi-v4", [Constraint("stops", land, "<=", 2.0)], gamma=0.9)
    assert np.all(taxi.constraints[0, :500, 5] == 1) and not taxi.constraints[0, 500].any()


def little(P: Any, start: Any = (1.0, 0.0), **more: Any) -> Any:
    spaces = {"observation_space": gymnasium.spaces.Discrete(2), "action_space": gymnasium.spaces.Discrete(1)}
    bare = SimpleNamespace(P=P, initial_state_distrib=np.array(start), **spaces, **more)
    return SimpleNamespace(unwrapped=bare)


ON: dict[Any, Any] = {0: {0: [(1.0, 1, 2.0, True)]}, 1: {0: [(1.0, 0, 5.0, False)]}}


def test_a_start_in_an_ending_state_begins_there() -> None:
    """State 1 ends walks from state 0, but a walk that begins in it goes on: one more state."""
    alone = from_gymnasium_table(little(ON), free(), gamma=0.5)
    assert alone.num_states == 2 and alone.reward.tolist() == [[2.0], [0.0]]
    begun = from_gymnasium_table(little(ON, (0.5, 0.5)), free(), gamma=0.5)
    assert begun.num_states == 3 and begun.reward.tolist() == [[2.0], [5.0], [0.0]]
    assert begun.P.toarray().tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 1]]


def test_a_table_without_endings_stays_as_it_is() -> None:
    P = {s: {0: [(0.5, 0, 1.0, False), (0.5, 1, 3.0, False), (0.0, 1, 99.0, True)]} for s in (0, 1)}
    table = from_gymnasium_table(little(P), free(), gamma=0.5)
    assert table.P.toarray().tolist() == [[0.5, 0.5]] * 2 and table.reward.tolist() == [[2.0], [2.0]]


REFUSED: dict[str, tuple[Any, list[str]]] = {
    "no P": (gymnasium.make("CartPole-v1"), ["table `P`", "CartPoleEnv", "from_gymnasium"]),
    "fickle": (gymnasium.make("Taxi-v4", fickle_passenger=True), ["fickle_passenger"]),
    "missing pair": (little({0: ON[0]}), ["P[1][0]", "KeyError"]),
    "short entry": (little({0: {0: [(1.0, 1, 2.0)]}, 1: ON[1]}), ["P[0][0]", "terminated"]),
    "far state": (little({0: {0: [(1.0, 2, 0.0, False)]}, 1: ON[1]}), ["P[0][0]", "0 to 1", "2"]),
    "half a row": (little({0: {0: [(0.5, 1, 0.0, False)]}, 1: ON[1]}), ["P[state 0, action 0]", "sum to 1", "0.5"]),
    "NaN": (little({0: {0: [(1.0, 1, np.nan, False)]}, 1: ON[1]}), ["reward[0, 0]", "nan"]),
    "start": (little(ON, (1.0,)), ["rho", "(2,)", "(1,)"]),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_cannot_be_is_refused(fault: str) -> None:
    env, words = REFUSED[fault]
    with pytest.raises(InputError) as caught:
        from_gymnasium_table(env, free(), gamma=0.9)
    for word in words:
        assert word in str(caught.value)


def test_costs_are_checked() -> None:
    for signal, words in [(None, "must be known"), (np.zeros((16, 3)), r"\(16, 4\)"), (lambda s, a: 1.0, "vectorise")]:
        with pytest.raises(InputError, match=words):
            from_gymnasium_table("FrozenLake-v1", [Constraint("c", signal, "<=", 1.0)], gamma=0.9)
    with pytest.raises(InputError, match="at least one constraint"):
        from_gymnasium_table("FrozenLake-v1", [], gamma=0.9)


def test_per_step_thresholds_are_converted() -> None:
    each = [Constraint("cost", lambda s, a: 1.0 * (a == 0), "<=", 0.3, (0.0, 1.0), "per-step")]
    assert from_gymnasium_table("FrozenLake-v1", each, gamma=0.9).thresholds.tolist() == pytest.approx([3.0])
    assert lake_constraints()[0].units == "discounted" and lake_table().thresholds.tolist() == [4.0]
