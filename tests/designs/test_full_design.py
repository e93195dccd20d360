"""Designs asked of a problem: the registered names, the candidates, and what is refused."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

from saddleback.designs import BY_NAME
from saddleback.designs.candidates import Full
from saddleback.designs.frank_wolfe import FrankWolfe
from saddleback.errors import InputError
from saddleback.features import FeatureFunction, FeatureMatrix, OneHot
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates, FiniteStates

S, A, D = 30, 4, 5


def problem(features, **changes):
    signal = np.random.default_rng(0).random((S, A))
    return CMDP(
        **{
            "gamma": 0.9,
            "start": Start.over_all(np.full(S, 1 / S)),
            "num_actions": A,
            "states": FiniteStates(S),
            "reward": signal,
            "constraints": [Constraint("cost", signal, "<=", 3.0)],
            "features": features,
        }
        | changes
    )


def continuous(candidates):
    def value(states, actions):
        return states[:, 0] * (actions + 1) / A

    def phi(states, actions):
        return np.column_stack([np.ones(len(states)), states[:, 0], actions / A, states[:, 0] * actions])

    return CMDP(
        gamma=0.9,
        start=Start(np.array([[0.5]]), np.array([1.0])),
        num_actions=A,
        states=BoxStates(np.array([0.0]), np.array([1.0])),
        reward=value,
        constraints=[Constraint("cost", value, "<=", 3.0, (0.0, 1.0))],
        features=FeatureFunction(phi, 4, A),
        reward_range=(0.0, 1.0),
        candidates=candidates,
    )


def simplex_features():
    return FeatureMatrix(np.random.default_rng(1).dirichlet(np.full(D, 0.3), size=(S, A)))


@pytest.mark.parametrize("name", BY_NAME)
def test_every_named_design_spans_and_states_its_g(name):
    p = problem(simplex_features())
    design = BY_NAME[name]().design(p)
    Phi = p.features.phi.reshape(S * A, D)
    assert design.complete and design.rank == D
    assert np.array_equal(design.features, p.features.at(design.states, design.actions))
    assert design.leverage(Phi).max() == pytest.approx(design.leverage_bound, rel=1e-12)
    theta = np.arange(D) + 0.5
    assert np.allclose(design.fit(design.features @ theta), theta, rtol=0, atol=1e-11)
    if name != "full":
        assert design.leverage_bound <= 2 * D and design.size <= 2 * D
    assert BY_NAME[name]().design(p).weights.tobytes() == design.weights.tobytes()  # replayable


def test_names_choose_the_initialisation():
    assert BY_NAME["frank-wolfe"]().initialization == "symmetric"
    assert BY_NAME["frank-wolfe-literal"](tolerance=0.5) == FrankWolfe(0.5, "literal")


def test_full_design_of_a_table():
    for features in (None, OneHot(S, A)):
        design = Full().design(problem(features))
        assert design.features is None and design.size == S * A and design.lebesgue == 1.0
        assert np.array_equal(design.states * A + design.actions, np.arange(S * A))
    linear = Full().design(problem(simplex_features()))
    assert linear.size == S * A and np.allclose(linear.weights, 1 / (S * A))


def test_full_design_refuses_a_table_with_holes():
    p = problem(None, candidates=(np.arange(3), np.zeros(3, dtype=np.int64)))
    with pytest.raises(InputError, match="`candidates` must be all pairs of a finite state space"):
        Full().design(p)
    with pytest.raises(InputError, match="must have one entry for each of the 120 pairs, got 8"):
        Full().design(problem(OneHot(2, A)))


def test_tabular_problems_are_sent_to_the_full_design():
    with pytest.raises(InputError, match="`features` must be given for this design, got None; use the design 'full'"):
        FrankWolfe().design(problem(None))


def test_one_hot_frank_wolfe_is_the_full_design():
    design = FrankWolfe().design(problem(OneHot(S, A)))
    assert design.size == S * A and design.leverage_bound == pytest.approx(S * A)
    assert np.allclose(design.operator, np.eye(S * A), atol=1e-12)


def test_a_pool_of_candidates_makes_an_incomplete_design():
    rng = np.random.default_rng(2)
    pool = rng.random((200, 1)), rng.integers(0, A, 200)
    for rule in (FrankWolfe(0.1), Full()):
        design = rule.design(continuous(pool))
        assert not design.complete and design.rank == 4
        assert all(np.any(np.all(s == pool[0], axis=1)) for s in design.states)
    assert not FrankWolfe().design(continuous(None)).complete  # points that fill the box
    unbounded = dataclasses.replace(continuous(pool), states=BoxStates(np.array([-np.inf]), np.array([np.inf])))
    with pytest.raises(InputError, match="`candidates` must be given for a state space without bounds"):
        FrankWolfe().design(dataclasses.replace(unbounded, candidates=None))


@pytest.mark.parametrize(
    ("states", "actions", "message"),
    [
        (np.array([0, S]), np.array([0, 0]), f"must lie in the state and action spaces, got state {S}, action 0"),
        (np.array([0, 1]), np.array([0, -1]), "must lie in the state and action spaces, got state 1, action -1"),
        (np.array([0, 1]), np.array([0]), "as many integer actions as states"),
        (np.array([0, 1]), np.array([0.0, 1.0]), "as many integer actions as states"),
        (np.array([], dtype=int), np.array([], dtype=int), "as many integer actions as states, at least one"),
        (np.array([0.0, 1.0]), np.array([0, 1]), "states must be an integer array"),
    ],
)
def test_bad_candidates_are_named(states, actions, message):
    with pytest.raises(InputError, match=message):
        FrankWolfe().design(problem(simplex_features(), candidates=(states, actions)))


@dataclass(frozen=True)
class Careless:
    """A feature map of someone else's that checks nothing."""

    phi: np.ndarray
    num_actions: int = A
    direct: bool = False

    @property
    def dim(self):
        return D

    def at(self, states, actions):
        return self.phi[states, actions]

    def all(self, states):
        return self.phi[states]

    values = maximum = argmax = all


def test_careless_feature_maps_are_caught():  # property 33, features
    good = simplex_features().phi
    with pytest.raises(InputError, match=r"must give a float64 array \(120, 5\) for 120 pairs, got float32"):
        FrankWolfe().design(problem(Careless(good.astype(np.float32))))
    with pytest.raises(InputError, match=r"got float64 \(120, 4\)"):
        FrankWolfe().design(problem(Careless(good[..., :4])))
    bad = good.copy()
    bad[7, 2, 3] = np.nan
    with pytest.raises(InputError, match="must be finite, got nan in column 3 at state 7, action 2"):
        FrankWolfe().design(problem(Careless(bad)))


def test_features_are_read_in_pieces(monkeypatch):
    p = problem(simplex_features())
    whole = FrankWolfe().design(p)
    monkeypatch.setattr("saddleback.designs.candidates._CHUNK", 7)
    pieces = FrankWolfe().design(p)
    assert np.array_equal(pieces.weights, whole.weights) and np.array_equal(pieces.states, whole.states)


def test_too_many_candidates_are_refused_before_they_fill_the_memory():
    def zero(states, actions):
        return np.zeros(len(states))

    p = problem(
        OneHot(50_000, A),
        states=FiniteStates(50_000),
        reward=zero,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("cost", zero, "<=", 1.0, (0.0, 1.0))],
    )
    with pytest.raises(InputError, match="`candidates` must be few enough for their features to fit in 8 GiB"):
        FrankWolfe().design(p)
