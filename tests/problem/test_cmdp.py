"""The problem in the user's units and the one map to the paper's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.features import FeatureFunction, FeatureMatrix
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates, FiniteStates


def make(**changes):
    rng = np.random.default_rng(0)
    arguments = {
        "gamma": 0.9,
        "start": Start.over_all([0.5, 0.5, 0.0]),
        "num_actions": 2,
        "states": FiniteStates(3),
        "reward": rng.random((3, 2)) * 7 - 3,
        "constraints": [
            Constraint("service", rng.random((3, 2)), ">=", 4.0),
            Constraint("energy", rng.random((3, 2)) * 5 + 2, "<=", 40.0),
        ],
    }
    return CMDP(**{**arguments, **changes})


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.floats(-50, 50), min_size=3, max_size=3))
def test_map_and_back(values):
    problem = make()
    v = np.array(values)
    np.testing.assert_allclose(problem.values_of(problem.unit_values_of(v)), v, atol=1e-9)


def test_utilities_are_in_the_unit_interval_and_costs_are_turned_round():
    problem = make()
    states, actions = problem.pairs()
    u = problem.utilities(states, actions)
    assert u.min() == 0.0
    assert u.max() == 1.0
    cost = np.asarray(problem.constraints[1].signal)[states, actions]
    assert np.argmax(u[:, 2]) == np.argmin(cost)


def test_values_of_a_constant_policy_agree_in_both_units():
    """A chain that stays in state 0: V_x = x/(1−γ), and the unit value maps onto it, for rewards and both senses."""
    problem = make()
    u = problem.utilities(np.array([0]), np.array([1]))[0] * problem.horizon
    raw = [np.asarray(x)[0, 1] for x in (problem.reward, *(c.signal for c in problem.constraints))]
    np.testing.assert_allclose(problem.values_of(u), np.array(raw) * problem.horizon)


def test_slack_signs_agree_between_units():
    problem = make()
    v = np.array([0.0, 5.0, 30.0])  # both constraints hold
    assert np.all(problem.unit_values_of(v)[1:] > problem.thresholds)
    np.testing.assert_allclose(problem.user_thresholds(), [4.0, 40.0])


def test_multipliers_are_reward_per_unit_of_threshold():
    """Doubling a cost's unit halves its price."""
    base, doubled = make(), make()
    c = doubled.constraints[1]
    doubled = make(constraints=[doubled.constraints[0], Constraint("energy", 2 * np.asarray(c.signal), "<=", 80.0)])
    one = base.multipliers_of(np.array([1.0, 1.0]))
    two = doubled.multipliers_of(np.array([1.0, 1.0]))
    np.testing.assert_allclose(two, one * [1.0, 0.5])
    assert np.all(one > 0)


def test_per_step_units():
    c = Constraint("service", np.random.default_rng(0).random((3, 2)), ">=", 0.4, units="per-step")
    assert make(constraints=[c]).user_thresholds()[0] == pytest.approx(4.0)


def test_observed_signals_are_marked():
    problem = make(reward=None, reward_range=(0, 2))
    assert problem.observed.tolist() == [True, False, False]
    assert np.isnan(problem.utilities(np.array([0]), np.array([0]))[0, 0])


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"gamma": 1.0}, "gamma"),
        ({"gamma": -0.1}, "gamma"),
        ({"reward": np.zeros((3, 3))}, "reward"),
        ({"reward": np.full((3, 2), np.nan)}, r"reward\[0, 0\]"),
        ({"reward": np.zeros((3, 2), dtype=np.float32)}, "float64"),
        ({"reward": np.arange(6.0).reshape(3, 2), "reward_range": (0, 4)}, "state 2, action 1"),
        ({"reward": lambda s, a: s}, "declare its range"),
        ({"constraints": []}, "at least one constraint"),
        ({"constraints": [Constraint("x", np.ones((3, 2)), "==", 1.0)]}, "sense"),
        ({"constraints": [Constraint("x", np.ones((3, 2)), ">=", np.inf)]}, "finite threshold"),
        ({"constraints": [Constraint("x", np.ones((3, 2)), ">=", 1.0)] * 2}, "distinct names"),
        ({"start": Start(np.array([3]), np.array([1.0]))}, "start.states"),
        ({"start": Start(np.array([0]), np.array([0.5]))}, "start.weights"),
        ({"num_actions": 0}, "num_actions"),
    ],
)
def test_bad_input_names_the_culprit(changes, name):
    with pytest.raises(InputError, match=name):
        make(**changes)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_rewards_are_refused(dtype):
    """Property 33: rewards and constraints, as arrays and as functions; whole numbers and booleans lose nothing."""
    low = np.zeros((3, 2), dtype=dtype)
    with pytest.raises(InputError, match=f"`reward` must be float64 .* got {low.dtype}"):
        make(reward=low)
    with pytest.raises(InputError, match=f"`x` must be float64 .* got {low.dtype}"):
        make(constraints=[Constraint("x", low, "<=", 1.0)])
    states, actions = make().pairs()
    for problem in (
        make(reward=lambda s, a: low[s, a], reward_range=(0, 1)),
        make(constraints=[Constraint("x", lambda s, a: low[s, a], "<=", 1.0, range=(0, 1))]),
    ):
        with pytest.raises(InputError, match=f"must be float64 .* got {low.dtype}"):
            problem.utilities(states, actions)
    for whole in (np.arange(6).reshape(3, 2), np.eye(3, 2, dtype=bool)):
        assert make(reward=whole).utilities(states, actions).dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_features_are_refused(dtype):
    """Property 33: feature matrices when they are made, feature functions when they are asked."""
    phi = np.ones((3, 2, 4), dtype=dtype)
    with pytest.raises(InputError, match=f"`phi` must be float64, got {phi.dtype}"):
        FeatureMatrix(phi)
    asked = FeatureFunction(lambda states, actions: phi[states, actions], 4, 2)
    with pytest.raises(InputError, match=f"must return a float64 array .* got {phi.dtype}"):
        asked.at(np.array([0, 1]), np.array([0, 1]))


def test_rho_must_be_a_distribution():
    with pytest.raises(InputError, match="sum to 1"):
        Start.over_all([0.5, 0.4])
    with pytest.raises(InputError, match=r"rho\[1\]"):
        Start.over_all([1.5, -0.5])


def test_continuous_problem():
    box = BoxStates(np.array([-1.0, 0.0]), np.array([1.0, np.inf]))
    problem = CMDP(
        gamma=0.5,
        start=Start(np.array([[0.0, 1.0]]), np.array([1.0])),
        num_actions=2,
        states=box,
        reward=lambda s, a: s[:, 0],
        reward_range=(-1, 1),
        constraints=[Constraint("c", lambda s, a: a * 1.0, ">=", 0.5, range=(0, 1))],
    )
    assert problem.num_states is None
    np.testing.assert_allclose(problem.utilities(np.array([[0.0, 3.0]]), np.array([1])), [[0.5, 1.0]])
    assert box.outside(np.array([[0.0, np.nan], [0.5, 2.0]])).tolist() == [True, False]
    with pytest.raises(InputError, match="candidates"):
        problem.pairs()
    with pytest.raises(InputError, match="low < high"):
        BoxStates(np.array([1.0]), np.array([0.0]))
