"""A copy per action: blocks, the short way to the values, and its memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.features import (
    Constant,
    FeatureFunction,
    Joined,
    PerAction,
    RadialBasis,
    Stacked,
    StateMatrix,
    Tiles,
    WithConstant,
    make,
    with_constant,
)
from saddleback.problem.spaces import BoxStates

BOX = BoxStates([0.0, 0.0], [1.0, 1.0])


def test_blocks_by_hand():
    phi = PerAction(StateMatrix(np.array([[1.0, 2.0], [3.0, 4.0]])), 3)
    assert np.array_equal(phi.at(np.array([1, 0]), np.array([0, 2])), [[3, 4, 0, 0, 0, 0], [0, 0, 0, 0, 1, 2]])
    assert np.array_equal(phi.all(np.array([0]))[0], [[1, 2, 0, 0, 0, 0], [0, 0, 1, 2, 0, 0], [0, 0, 0, 0, 1, 2]])
    theta = np.array([1.0, 0.0, 0.0, 1.0, -1.0, -1.0])
    assert np.array_equal(phi.values(np.array([0, 1]), theta), [[1, 2, -3], [3, 4, -7]])
    assert np.array_equal(phi.maximum(np.array([0, 1]), theta), [2, 4])
    assert np.array_equal(phi.argmax(np.array([0, 1]), theta), [1, 1])


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(0, 300), st.integers(1, 5), st.integers(1, 6), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_the_short_way_is_the_long_way(n, A, k, m, seed):
    """Each value is a sum of k products either way: they differ by 2k rounding errors of Σ|ψ_i θ_i| at most."""
    rng = np.random.default_rng(seed)
    psi, theta = rng.standard_normal((max(n, 1), k)), rng.standard_normal((A * k, m) if m else A * k)
    phi, states = PerAction(StateMatrix(psi), A), np.arange(n)
    Q = phi.all(states) @ theta
    atol = 2 * k * 2**-52 * k * np.abs(psi).max() * np.abs(theta).max() if theta.size else 0
    assert np.allclose(phi.values(states, theta), Q, rtol=0, atol=atol)
    assert np.allclose(phi.maximum(states, theta), Q.max(axis=1), rtol=0, atol=atol)


def test_pieces_join_without_a_seam(monkeypatch):
    rng = np.random.default_rng(0)
    states, phi = rng.random((1003, 2)), PerAction(RadialBasis(BOX, 4), 3)
    theta = rng.standard_normal((phi.dim, 2))
    whole = phi.values(states, theta), phi.maximum(states, theta), phi.argmax(states, theta[:, 0])
    monkeypatch.setattr("saddleback.features.per_action._PIECE", 1000)
    pieces = phi.values(states, theta), phi.maximum(states, theta), phi.argmax(states, theta[:, 0])
    for one, two in zip(whole, pieces, strict=True):
        assert np.allclose(one, two, rtol=0, atol=1e-13)


@pytest.mark.parametrize("psi", [RadialBasis(BOX, 8), Tiles(BOX, 7, 2)])
def test_memory_does_not_hold_features_of_all_states(psi):
    """10^5 states, five actions: φ would take 10^5·5·5·64 numbers (1.3 GB) and ψ 51 MB; the maxima alone are 0.8 MB."""
    n, phi = 100_000, PerAction(psi, 5)
    states, theta = np.random.default_rng(0).random((n, 2)), np.ones(phi.dim)
    for call, most in ((phi.maximum, 16 << 20), (phi.argmax, 16 << 20), (phi.values, 20 << 20)):
        tracemalloc.start()
        call(states, theta)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most


def test_held_features_are_the_same_by_position():
    rng = np.random.default_rng(0)
    states, some = rng.random((200, 2)), np.array([7, 7, 199, 0])
    psi = Joined([Tiles(BOX, 3, 2), RadialBasis(BOX, 3), Constant()])
    phi, theta = PerAction(psi, 2), rng.standard_normal(2 * psi.dim)
    held = phi.held(states)
    assert np.array_equal(held.at(some, np.array([0, 1, 0, 1])), phi.at(states[some], np.array([0, 1, 0, 1])))
    assert np.allclose(held.values(some, theta), phi.values(states[some], theta), rtol=0, atol=1e-13)
    again = held.held(np.arange(100)).held(np.array([5]))
    assert np.array_equal(again.all(np.array([0])), phi.all(states[5:6]))


def test_a_pair_map_is_no_state_map():
    pairs = FeatureFunction(lambda s, a: s, 2, 2)
    with pytest.raises(InputError, match="must be a map of states, got FeatureFunction"):
        PerAction(pairs, 2)
    with pytest.raises(InputError, match="at most 20000"):
        PerAction(RadialBasis(BOX, 100), 3)


def test_stacked_maps_add_their_values():
    rng = np.random.default_rng(0)
    one, two = PerAction(Tiles(BOX, 2, 2), 3), FeatureFunction(lambda s, a: s * a[:, None], 2, 3)
    both, states, theta = Stacked([one, two]), rng.random((20, 2)), rng.random(one.dim + 2)
    assert both.dim == one.dim + 2
    values = one.values(states, theta[:-2]) + two.values(states, theta[-2:])
    assert np.array_equal(both.values(states, theta), values)
    with pytest.raises(InputError, match="same actions"):
        Stacked([one, PerAction(Tiles(BOX, 2, 2), 2)])
    for empty in (Stacked, Joined):
        with pytest.raises(InputError, match="a map at least"):
            empty([])


def test_a_constant_is_added_where_it_is_missing():
    states = np.random.default_rng(0).random((50, 2))
    tiles, bumps = Tiles(BOX, 2), RadialBasis(BOX, 2, normalised=False)
    assert with_constant(tiles) is tiles
    joined = with_constant(bumps)
    assert joined.constant and joined.dim == bumps.dim + 1
    assert np.array_equal(joined.at(states)[:, -1], np.ones(50))
    known = PerAction(tiles, 2)
    assert with_constant(known) is known
    barycentric = FeatureFunction(lambda s, a: np.column_stack([s[:, 0], 1 - s[:, 0]]), 2, 2)
    assert isinstance(with_constant(barycentric), WithConstant)  # nobody looked
    assert with_constant(barycentric, states) is barycentric  # the pool shows 1 = φ_1 + φ_2
    missing = FeatureFunction(lambda s, a: s, 2, 2)
    added = with_constant(missing, states)
    assert isinstance(added, WithConstant)
    assert np.array_equal(added.at(states, np.zeros(50, dtype=np.int64)), np.column_stack([states, np.ones(50)]))
    assert make("random-fourier", BOX, 2, num=10).dim == 22
    assert make("random-fourier", BOX, 2, num=10, constant=False).dim == 20
