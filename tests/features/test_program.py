"""A feature map written as steps says the same as the map itself, in NumPy; and what has no program says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddleback import BoxStates, FeatureFunction, InputError
from saddleback.features import (
    BY_NAME,
    Constant,
    Frame,
    Joined,
    PerAction,
    Polynomial,
    RadialBasis,
    Stacked,
    StateFunction,
    WithConstant,
    make,
)
from saddleback.features.program import OPERATIONS, Program, ProgramFeatures, program_of
from saddleback.instances import zoo
from saddleback.problem.spaces import Features

BOX = BoxStates(np.array([-1.2, -0.07, 0.0]), np.array([0.6, 0.07, 5.0]))
OF_NUMBERS = {"one-hot", "matrix", "function", "aggregation"}  # of states that are numbered, or of code
PLACES = [[-1.2, 0.0, 0.6], [-0.07, 0.01, 0.07], [0.0, 1.0, 1.5, 5.0]]
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "radial-basis": [{"grid": 3}, {"grid": [2, 1, 4], "normalised": False}, {"centres": [[0, 0, 1], [0.5, 0.01, 3]]}],
    "fourier": [{"order": 2}, {"order": 3, "degree": 3}],
    "polynomial": [{"degree": 3}, {"degree": 2, "basis": "power"}, {"degree": 0}],
    "multilinear": [{"knots": 3}, {"knots": PLACES}],
}


def states_of(box: BoxStates) -> Any:
    """Points inside, outside, at corners and at the edges of cells."""
    low, high = np.nan_to_num(box.low, neginf=-3.0), np.nan_to_num(box.high, posinf=3.0)
    inside = np.random.default_rng(3).uniform(low, high, (200, len(low)))
    edges = low + (high - low) * np.repeat(np.linspace(0, 1, 9)[:, None], len(low), axis=1)
    return np.concatenate([inside, edges, inside[:20] * 3])


def same(features: Features, box: BoxStates = BOX) -> ProgramFeatures:
    program = program_of(features)
    assert program is not None
    found, states = ProgramFeatures(program), states_of(box)
    theta = np.random.default_rng(4).standard_normal((features.dim, 2))
    assert (found.dim, found.num_actions) == (features.dim, features.num_actions)
    for ours, theirs in (
        (found.values(states, theta), features.values(states, theta)),
        (found.at(states, np.arange(len(states)) % 2), features.at(states, np.arange(len(states)) % 2)),
    ):
        assert np.abs(ours - theirs).max() <= 1e-12 * (1 + np.abs(theirs).max())
    assert np.array_equal(found.argmax(states, theta[:, 0]), features.argmax(states, theta[:, 0]))
    return found


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in OF_NUMBERS])
def test_every_map_of_coordinates(name: str) -> None:
    for settings in [{}, *SETTINGS.get(name, [])]:
        if name == "fourier" and not settings:
            settings = {"order": 2}
        same(make(name, BOX, 3, **settings))
        same(make(name, BOX, 2, **settings, constant=False))


def test_what_is_put_together() -> None:
    rbf, poly = RadialBasis(BOX, 2), Polynomial(BOX, 1)
    same(PerAction(Joined([rbf, poly, Constant()]), 2))
    same(Stacked([PerAction(rbf, 2), WithConstant(PerAction(poly, 2))]))
    again = same(WithConstant(Stacked([PerAction(poly, 2), PerAction(rbf, 2)])))
    assert program_of(again) is again.program


@pytest.mark.parametrize("name", ["linear-quadratic", "mountain-car"])
def test_continuous_problems_of_the_zoo(name: str) -> None:
    problem = zoo.make(name).problem
    assert isinstance(problem.states, BoxStates) and problem.features is not None
    same(problem.features, problem.states)


def test_what_has_no_program() -> None:
    def function(states: Any, *_: Any) -> Any:
        return np.ones((len(states), 1))

    assert program_of(FeatureFunction(function, 1, 2)) is None
    assert program_of(PerAction(StateFunction(function, 1), 2)) is None
    looked_up = Frame(np.zeros(1), np.ones(1), np.zeros((4, 1)))
    assert program_of(PerAction(RadialBasis(looked_up, 2), 2)) is None
    assert program_of(make("fourier", BoxStates(np.zeros(1), np.ones(1)), 1, order=4000)) is None, "too long"
    assert program_of(None) is None


def test_a_strangers_program_is_refused() -> None:
    layout = np.zeros((1, 2), dtype=np.int64)
    with pytest.raises(InputError, match="known operation"):
        Program((("Exec", "x"),), {}, "t0", layout, 1)
    with pytest.raises(InputError, match="known operation"):
        Program((("Exp", "t0"),), {}, "t0", layout, 1)
    with pytest.raises(InputError, match="places of 1 numbers"):
        Program((), {}, "x", layout + 1, 1)
    wrong = Program((("Columns", "x", "c0"),), {"c0": np.full((1, 1), 7.0)}, "t0", layout, 1)
    with pytest.raises(InputError, match="fit each other"):
        wrong.rows(np.zeros((3, 1)))
    assert "Exec" not in OPERATIONS
