"""Every feature map against the contract shipped in saddleback.testing, on boxes and on numbered states."""

import numpy as np
import pytest

from saddleback import testing
from saddleback.features import (
    BY_NAME,
    FeatureFunction,
    FeatureMap,
    Frame,
    Joined,
    PerAction,
    RadialBasis,
    Stacked,
    StateFunction,
    StateMatrix,
    Tiles,
    WithConstant,
    make,
)
from saddleback.instances.zoo import make as make_problem
from saddleback.problem.spaces import BoxStates, Features, FiniteStates

BOX = BoxStates([-1.2, -0.07], [0.6, 0.07])
IN_BOX = np.random.default_rng(0).uniform(BOX.low, BOX.high, (60, 2))
OF_COORDINATES = ["cells", "tiles", "multilinear", "radial-basis", "fourier", "polynomial", "random-fourier"]
IN_CODE = ["matrix", "function"]


def test_the_lists_are_complete():
    assert set(BY_NAME) == {*OF_COORDINATES, *IN_CODE, "one-hot", "aggregation"}


@pytest.mark.parametrize("name", OF_COORDINATES)
def test_maps_of_coordinates(name):
    for space, states in ((BOX, IN_BOX), (FiniteStates(1000), np.arange(0, 1000, 17))):
        features = make(name, space, 3)
        assert isinstance(features, Features)
        testing.check_features(features, states)
        testing.check_features(features.held(states), np.arange(len(states)))


def test_maps_of_finite_states():
    testing.check_features(make("one-hot", FiniteStates(6), 2), np.arange(6))
    groups = make("aggregation", FiniteStates(6), 2, groups=[0, 0, 1, 1, 2, 2])
    testing.check_features(groups, np.arange(6))
    testing.check_features(groups.held(np.array([5, 0])), np.arange(2))


def test_compositions():
    rng = np.random.default_rng(1)
    psi = Joined([Tiles(BOX, 3, 2), StateFunction(lambda s: s**2, 2), RadialBasis(BOX, 3)])
    phi = PerAction(psi, 4)
    pairs = FeatureFunction(lambda s, a: np.column_stack([a * s[:, 0], s[:, 1]]), 2, 4)
    for features in (phi, PerAction(psi, 4, direct=True), Stacked([phi, pairs]), WithConstant(pairs)):
        testing.check_features(features, IN_BOX)
    testing.check_features(phi.held(IN_BOX), np.arange(60))
    testing.check_features(PerAction(StateMatrix(rng.random((5, 3))), 2), np.arange(5))


def test_a_constant_beside_an_argmax_oracle():
    """2^35 actions: the maximum is φ's own plus θ's last entry, without a look at the actions."""
    features = make_problem("hard-instance", dim=40).problem.features
    with_one, theta = WithConstant(features), np.random.default_rng(2).standard_normal(41)
    testing.check_features(with_one, np.arange(4))
    assert with_one.direct
    assert np.array_equal(with_one.maximum(np.arange(4), theta), features.maximum(np.arange(4), theta[:-1]) + theta[-1])


@pytest.mark.parametrize("name", OF_COORDINATES)
def test_a_state_has_the_same_features_in_any_company_and_precision(name):
    features, actions = make(name, BOX, 2), np.arange(60) % 2
    together = features.at(IN_BOX, actions)
    alone = np.concatenate([features.at(IN_BOX[i : i + 1], actions[i : i + 1]) for i in range(60)])
    assert np.array_equal(together, alone)
    single = IN_BOX.astype(np.float32)
    assert features.at(single, actions).dtype == np.float64
    assert np.array_equal(features.at(single, actions), features.at(single.astype(np.float64), actions))


def test_no_states_are_no_rows():
    for name in OF_COORDINATES:
        features, none = make(name, BOX, 3), np.empty((0, 2))
        assert features.at(none, np.empty(0, dtype=np.int64)).shape == (0, features.dim)
        assert features.maximum(none, np.ones((features.dim, 2))).shape == (0, 2)


def test_rows_are_enough_for_a_map_of_ones_own():
    class Products(FeatureMap):
        dim, num_actions = 2, 3

        def at(self, states, actions):
            return states * actions[:, None]

    testing.check_features(Products(), IN_BOX)
    assert isinstance(Products(), Features) and not Products().direct


def test_the_contract_can_fail():
    class Wrong(PerAction):
        def maximum(self, states, theta):
            return super().maximum(states, theta) + 1e-3

    with pytest.raises(AssertionError, match="largest value"):
        testing.check_features(Wrong(Tiles(Frame.of(BOX)), 2), IN_BOX)
