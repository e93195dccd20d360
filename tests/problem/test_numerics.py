"""Decisions that must not depend on the last bits: rounded plans, ties by index, variances that are rounding errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import random_table, tabular_buffer
from saddleback.designs.candidates import largest
from saddleback.designs.exchange import exchange_weights
from saddleback.designs.frank_wolfe import optimal_weights
from saddleback.method.master_lp import solve_master
from saddleback.problem.numerics import falling_order, first_largest, on_grid, rounded

NOISE = 1e-13


def shaken(x, seed):
    """The same numbers as another processor might have them."""
    return x * (1 + NOISE * np.random.default_rng(seed).uniform(-1, 1, np.shape(x)))


@given(st.floats(1e-200, 1e200), st.integers(1, 12))
def test_rounding_keeps_so_many_digits(x, digits):
    assert abs(rounded(x, digits) / x - 1) <= 0.51 * 10.0 ** (1 - digits)
    assert rounded(-x, digits) == -rounded(x, digits)


def test_rounding_leaves_zeros_and_infinities():
    assert rounded([0.0, np.inf, -np.inf]).tolist() == [0.0, np.inf, -np.inf]
    assert np.isnan(rounded(np.nan))
    assert on_grid([0.0, 0.0]).tolist() == [0.0, 0.0]


def test_a_share_that_is_known_by_eye_survives_its_rounding_error():
    third = np.array([1 / 3, 0.25, 0.1 + 0.2])
    for seed in range(20):
        assert np.array_equal(rounded(shaken(third, seed)), rounded(third))
        assert np.array_equal(on_grid(shaken(third, seed)), on_grid(third))


def test_ties_go_to_the_first_index():
    Q = np.array([[1.0, 1.0, 0.5], [0.2, 0.7, 0.7], [-3.0, -3.0, -3.0], [0.0, 0.0, 0.0]])
    for seed in range(20):
        assert first_largest(shaken(Q, seed), axis=1).tolist() == [0, 1, 0, 0]
    assert first_largest(np.array([1.0, 1.0 + 1e-6])) == 1  # a real difference decides


def test_without_a_tolerance_ties_would_fall_either_way():
    assert len({int(shaken(np.ones(3), seed).argmax()) for seed in range(50)}) == 3


def test_order_and_selection_of_equal_values():
    values = np.array([2.0, 3.0, 2.0, 3.0, 1.0, 3.0])
    for seed in range(20):
        x = shaken(values, seed)
        assert falling_order(x).tolist() == [1, 3, 5, 0, 2, 4]
        assert sorted(largest(x, 2).tolist()) == [1, 3]
        assert sorted(largest(x, 4).tolist()) == [0, 1, 3, 5]


def symmetric_features():
    """Many copies of few directions: nothing but ties."""
    return np.repeat(np.vstack([np.eye(4), -np.eye(4), np.ones((1, 4)) / 2]), 30, axis=0)


@pytest.mark.parametrize("design", [exchange_weights, optimal_weights])
def test_a_design_full_of_ties_is_the_same_after_rounding_errors(design):
    plain = design(symmetric_features(), 0.01).weights
    for seed in range(5):
        other = design(shaken(symmetric_features(), seed), 0.01).weights
        assert np.array_equal(np.flatnonzero(plain), np.flatnonzero(other))
        np.testing.assert_allclose(plain, other, atol=1e-7)


@pytest.mark.parametrize("m", [1, 2])
def test_of_policies_worth_the_same_the_first_is_mixed(m):
    rng = np.random.default_rng(5)
    columns = np.repeat(rng.random((6, 1 + m)), 3, axis=0)
    target = np.full(m, 0.5)
    plain = solve_master(columns, target)
    assert plain is not None
    for seed in range(20):
        other = solve_master(shaken(columns, seed), target)
        assert np.array_equal(np.flatnonzero(plain.weights), np.flatnonzero(other.weights))
        np.testing.assert_allclose(other.weights, plain.weights, atol=1e-6)
        np.testing.assert_allclose(other.multipliers, plain.multipliers, rtol=1e-10)


def test_the_variance_of_a_pair_with_one_next_state_is_zero():
    _, buffer = tabular_buffer(random_table(3, S=5, A=2, gamma=0.9), 40, 1)
    V = 1e3 + np.arange(5.0)[buffer.support] / 7
    mean, variance = buffer.moments(V)
    samples = buffer.samples().next_states
    np.testing.assert_allclose(mean, [V[s].mean() for s in samples], rtol=1e-12)
    np.testing.assert_allclose(variance, [V[s].var() for s in samples], rtol=1e-7, atol=1e-12)
    constant = np.where(np.arange(len(buffer.support)) < 10**9, 1 / 3, 0.0)
    assert np.all(buffer.moments(constant)[1] == 0.0)
