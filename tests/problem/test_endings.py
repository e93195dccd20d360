"""Ends, successors and totals: read as users write them, refused where they cannot be, and what follows from them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from helpers import ending_table
from saddleback import CMDP, Constraint
from saddleback.errors import InputError
from saddleback.exact.values import best_policy
from saddleback.problem.digest import problem_digest
from saddleback.problem.endings import limits_at_start, overall_limits, path_totals, value_limits, zero
from saddleback.problem.spaces import BoxStates


def chain(**more: Any) -> CMDP:
    """Three states in a row, the last an end unless ``more`` says otherwise."""
    cost = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    known: dict[str, Any] = {"states": 3, "actions": 2, "reward": 2 * cost, "terminal": [2], "start": 0, "gamma": 0.9}
    return CMDP(**{**known, "constraints": [Constraint("cost", cost, "<=", 1.0, (0, 1))], **more})


@pytest.mark.parametrize("given", [[2], np.array([False, False, True]), lambda s: s == 2, (s for s in [2])])
def test_terminal_states_in_every_form(given: Any) -> None:
    problem = chain(terminal=given)
    assert problem.ended(np.array([0, 2, 1])).tolist() == [False, True, False]
    assert dataclasses.replace(problem, gamma=0.5).terminal is not None, "a copy has them too"


def test_names_of_states_and_boxes() -> None:
    named = chain(states=["low", "high", "over"], terminal=["over"], start="low")
    assert named.ended(np.arange(3)).tolist() == [False, False, True]
    constraint = Constraint("cost", lambda s, a: 0.0 * s[:, 0], "<=", 1.0, (0, 1))
    box = CMDP(
        gamma=0.9, states=BoxStates([0.0, 0.0], [1.0, 1.0]), actions=2, start=np.array([0.5, 0.0]), reward=None,
        reward_range=(0, 1), constraints=[constraint], terminal=lambda states: states[:, -1] == 1, candidates=None,
    )  # fmt: skip
    assert box.ended(np.array([[0.1, 1.0], [1.0, 0.0]])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("more", "name", "rule"),
    [
        ({"terminal": "over"}, "terminal", "must say which states are ends"),
        ({"terminal": [0, 1, 2]}, "terminal", "must leave a state to act in"),
        ({"terminal": [7]}, "state", "must lie in the state space"),
        ({"terminal": np.ones(2, dtype=bool)}, "terminal", "must have shape"),
        ({"terminal": lambda s: 1.5}, "terminal", "must return True or False"),
        ({"terminal": lambda s, a: True}, "terminal", "must be a function of one state"),
        ({"terminal": [1]}, "reward", "must be 0 at a terminal state"),
        ({"reward_total": (1, 2)}, "reward_total", "must have a total"),
        ({"reward_total": 3}, "reward_total", "must have a total"),
        ({"successors": np.ones((2, 3))}, "successors", "must have shape"),
        ({"successors": lambda s, a: 5}, "successors of state 0, action 0", "must be a list of states"),
        ({"successors": {(2, 0): [0, 2]}}, "successors of state 2, action 0", "must be the terminal state itself"),
        ({"successors": [[[], []]] * 3}, "successors of state 0, action 0", "must be at least one state"),
    ],
)
def test_what_cannot_be_is_refused(more: dict[str, Any], name: str, rule: str) -> None:
    with pytest.raises(InputError) as error:
        chain(**more)
    assert error.value.name == name and rule in error.value.rule and error.value.remedy


def test_a_range_without_zero_cannot_end() -> None:
    constraint = Constraint("cost", np.ones((3, 2)), "<=", 1.0, (0.5, 1.0))
    with pytest.raises(InputError, match="must have a range that holds 0"):
        chain(constraints=[constraint])


def test_a_function_that_pays_at_an_end_is_refused_when_it_is_asked() -> None:
    problem = chain(reward=lambda s, a: 1.0, reward_range=(0, 1))
    with pytest.raises(InputError, match="must be 0 at a terminal state"):
        problem.utilities(np.array([2]), np.array([0]))


@pytest.mark.parametrize(
    "given",
    [
        lambda s, a: [s, min(s + 1, 2)],
        {(s, a): [s, min(s + 1, 2)] for s in range(3) for a in range(2)},
        [[[s, min(s + 1, 2)]] * 2 for s in range(3)],
        scipy.sparse.csr_array(np.repeat([[1, 1, 0], [0, 1, 1], [0, 0, 1]], 2, axis=0)),
    ],
)
def test_successors_in_every_form(given: Any) -> None:
    problem = chain(successors=given)
    assert problem.successors is not None
    assert (
        problem.successors.toarray().astype(int).tolist() == np.repeat([[1, 1, 0], [0, 1, 1], [0, 0, 1]], 2, 0).tolist()
    )


def test_the_longest_path_where_no_cycle_earns() -> None:
    """Onwards only: at most 2 rewards of 2 and 2 costs from state 0. With a way to stay, action 1 earns for ever."""
    onwards = chain(successors=lambda s, a: [min(s + 1, 2)])
    most = path_totals(onwards)
    assert most is not None
    v = most * np.abs(onwards.scale)  # reward, and minus cost
    assert v[1, :, 0].tolist() == [4.0, 2.0, 0.0] and v[0, :, 0].tolist() == [0.0, 0.0, 0.0]
    assert v[0, :, 1].tolist() == [-2.0, -1.0, 0.0] and v[1, :, 1].tolist() == [0.0, 0.0, 0.0]
    staying = path_totals(chain(successors=lambda s, a: [s, min(s + 1, 2)]))
    assert staying is not None and np.isinf(staying[1, :2, 0]).all() and staying[1, 2, 0] == 0.0


def test_no_policy_leaves_what_totals_and_paths_allow() -> None:
    """On the rungs: the best and the worst policy of either signal, at γ from .5 to .999, with totals and with successors."""
    for gamma in (0.5, 0.95, 0.999):
        for more in ({}, {"declares_successors": True}, {"reward_total": None, "totals": None}):
            table = ending_table(3, gamma, **more)
            problem = table.problem()
            low, high = limits_at_start(problem)
            for sigma in np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]):
                values = best_policy(table, sigma)[1]
                assert np.all(values <= high + 1e-9 * problem.horizon) and np.all(
                    values >= low - 1e-9 * problem.horizon
                )
            everywhere = value_limits(problem, np.arange(7))
            assert everywhere[:, 5:] == pytest.approx(np.broadcast_to(zero(problem) * problem.horizon, (2, 2, 2)))
            assert np.all(overall_limits(problem)[0] <= low) and np.all(overall_limits(problem)[1] >= high)


def test_the_digest_knows_what_is_declared_and_what_is_not() -> None:
    """Of a problem that declares nothing it is what it was before there was anything to declare."""
    plain = chain(terminal=None)
    others = [
        chain(), chain(terminal=None, reward_total=(0, 4)), chain(terminal=None, successors=lambda s, a: [0, 1, 2]),
        chain(reward_total=(0, 4)), chain(reward_total=(0, 5)),
    ]  # fmt: skip
    digests = [problem_digest(problem) for problem in (plain, *others)]
    assert len(set(digests)) == len(digests)
