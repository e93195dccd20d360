"""The master problems against a linear program written another way, and the prices they set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from saddleback.exact.linear_program import best_reward, largest_slack

SIZES = st.tuples(st.integers(1, 12), st.integers(1, 4))


def points(seed: int, n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rewards and slacks on a coarse grid, so that ties happen; the first column meets every threshold."""
    rng = np.random.default_rng(seed)
    rewards, slacks = rng.integers(0, 6, n).astype(float), rng.integers(-4, 3, (n, m)).astype(float)
    slacks[0] = rng.integers(0, 3, m)
    return rewards, slacks


@settings(derandomize=True, deadline=None, max_examples=120)
@given(st.integers(0, 10_000), SIZES)
def test_best_reward(seed: int, size: tuple[int, int]) -> None:
    y, x = points(seed, *size)
    w, value, prices = best_reward(y, x)
    truth = linprog(-y, A_ub=-x.T, b_ub=np.zeros(x.shape[1]), A_eq=np.ones((1, len(y))), b_eq=[1.0])
    assert value == pytest.approx(-truth.fun, abs=1e-9)
    assert w.min() >= 0 and w.sum() == pytest.approx(1, abs=1e-12)
    assert w @ y == pytest.approx(value, abs=1e-9) and (w @ x).min() >= -1e-9
    assert np.count_nonzero(w) <= 1 + x.shape[1]
    assert prices[0] == 1 and prices.min() >= 0
    assert (y + x @ prices[1:]).max() == pytest.approx(value, abs=1e-9)  # no column is worth more: strong duality


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=120)
@given(st.integers(0, 10_000), SIZES)
def test_largest_slack(seed: int, size: tuple[int, int]) -> None:
    n, m = size
    _, x = points(seed, n, m)
    x[0] -= 3
    widths = np.random.default_rng(seed).choice([1.0, 10.0, 0.1], m)
    w, value, prices = largest_slack(x, widths)
    matrix = np.column_stack([-(x * widths).T, np.ones(m)])
    row = np.append(np.ones(n), 0.0)[None]
    cost = np.append(np.zeros(n), -1.0)
    truth = linprog(cost, A_ub=matrix, b_ub=np.zeros(m), A_eq=row, b_eq=[1.0], bounds=[(0, None)] * n + [(None, None)])
    assert value == pytest.approx(-truth.fun, abs=1e-8)
    assert (w @ (x * widths)).min() == pytest.approx(value, abs=1e-12) and np.count_nonzero(w) <= m
    assert prices[0] == 0 and (prices[1:] / widths).sum() == pytest.approx(1, abs=1e-12)
    assert (x @ prices[1:]).max() == pytest.approx(value, abs=1e-8)


def test_a_column_on_the_threshold_sets_the_least_price_that_keeps_it() -> None:
    """Points (0, 0), (−1, 1), (−1, 3): at x = 0 any price of at least 3 keeps the first on top."""
    w, value, prices = best_reward(np.array([0.0, 1.0, 3.0]), np.array([[0.0], [-1.0], [-1.0]]))
    assert value == 0 and w.tolist() == [1, 0, 0]
    assert prices.tolist() == [1, 3]
