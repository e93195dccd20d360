"""Intervals for bounded means: they cover, they are narrow, and they are what the formulas say."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saddleback.certificates.values.intervals import BY_NAME, Bounds, betting, maurer_pontil
from saddleback.errors import InputError

METHODS = list(BY_NAME)


def samples(seed: int, n: int, kind: str) -> tuple[np.ndarray, float]:
    rng = np.random.default_rng(np.random.SeedSequence([20, seed]))
    if kind == "rare":
        return (rng.random(n) < 0.02).astype(float), 0.02
    if kind == "narrow":
        return 0.4 + 0.02 * rng.random(n), 0.41
    return rng.beta(2, 5, n), 2 / 7


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["rare", "narrow", "beta"])
def test_coverage(method: str, kind: str) -> None:
    """400 seeds at δ = .05: 45 misses or more have probability 1e-6 if the interval is right."""
    missed = 0
    for seed in range(400):
        x, mean = samples(seed, 200, kind)
        low, high = BY_NAME[method](x, 0.0, 1.0, 0.05)
        missed += not low <= mean <= high
    print(f"{method}, {kind}: seeds 0..399, {missed} misses")
    assert missed < 45


def test_too_narrow_an_interval_is_caught() -> None:
    missed = 0
    for seed in range(400):
        x, mean = samples(seed, 200, "beta")
        missed += abs(x.mean() - mean) > 1.28 * math.sqrt(10 / (49 * 8) / 200)
    assert missed >= 45, missed


def test_betting_is_near_the_central_limit_and_beats_maurer_pontil() -> None:
    x, _ = samples(0, 20_000, "beta")
    half = betting(x, 0.0, 1.0, 0.05).half_width
    limit = math.sqrt(2 * x.var() * math.log(2 / 0.05) / len(x))
    assert half <= 1.1 * limit
    assert half < 0.9 * maurer_pontil(x, 0.0, 1.0, 0.05).half_width


def test_the_range_costs_betting_little() -> None:
    x, _ = samples(1, 5_000, "narrow")
    assert betting(x, -10.0, 10.0, 0.05).half_width < 0.3 * maurer_pontil(x, -10.0, 10.0, 0.05).half_width


@pytest.mark.parametrize("method", METHODS)
@given(
    x=st.lists(st.floats(0, 1), min_size=1, max_size=40),
    shift=st.floats(-5, 5),
    scale=st.floats(0.1, 10),
    delta=st.floats(0.001, 0.5),
)
def test_ends_are_ordered_within_range_and_move_with_the_units(
    method: str, x: list[float], shift: float, scale: float, delta: float
) -> None:
    y = np.array(x)
    low, high = BY_NAME[method](y, 0.0, 1.0, delta)
    assert -1e-12 <= low <= high <= 1 + 1e-12
    if method != "betting":  # bets are made in order: what comes first may rule out the mean of all, at a large δ
        assert low <= y.mean() + 1e-9 and high >= y.mean() - 1e-9
    moved = BY_NAME[method](scale * y + shift, shift, scale + shift, delta)
    np.testing.assert_allclose(moved, (scale * low + shift, scale * high + shift), rtol=0, atol=1e-4 * scale)


@pytest.mark.parametrize("method", METHODS)
def test_more_confidence_is_wider(method: str) -> None:
    x, _ = samples(3, 300, "beta")
    widths = [BY_NAME[method](x, 0.0, 1.0, delta).half_width for delta in (0.2, 0.05, 0.001)]
    assert widths == sorted(widths)


def test_betting_excludes_exactly_where_the_capital_reaches_its_goal() -> None:
    """The limit against a direct search over means with the definition written out again."""
    x, _ = samples(4, 400, "beta")
    low, high = betting(x, 0.0, 1.0, 0.05)

    def rich(mean: float, y: np.ndarray) -> bool:
        need, n, total, square, capital = math.log(2 / 0.05), len(y), 0.5, 0.01, 0.0
        for i, value in enumerate(y):
            stake = min(math.sqrt(2 * need / (n * max(square / (i + 1), 1e-12))), 0.75 / mean)
            capital += math.log1p(stake * (value - mean))
            if capital >= need:
                return True
            total += value
            square += (value - total / (i + 2)) ** 2
        return False

    assert rich(low - 1e-4, x) and not rich(low + 1e-4, x)
    assert rich(1 - high - 1e-4, 1 - x) and not rich(1 - high + 1e-4, 1 - x)


def test_extremes() -> None:
    assert betting(np.zeros(100), 0.0, 1.0, 0.05).low == 0.0
    assert betting(np.ones(100), 0.0, 1.0, 0.05).high == pytest.approx(1.0)
    assert betting(np.zeros(100), 0.0, 1.0, 0.05).high < 0.08
    assert betting(np.full(3, 2.0), 2.0, 2.0, 0.05) == Bounds(2.0, 2.0)
    assert maurer_pontil(np.array([0.3]), 0.0, 1.0, 0.05) == Bounds(0.0, 1.0)


@pytest.mark.parametrize("method", METHODS)
def test_wrong_input(method: str) -> None:
    with pytest.raises(InputError, match="must lie in"):
        BY_NAME[method](np.array([0.5, 1.5]), 0.0, 1.0, 0.05)
    with pytest.raises(InputError, match="at least one"):
        BY_NAME[method](np.zeros(0), 0.0, 1.0, 0.05)
    with pytest.raises(InputError, match="delta"):
        BY_NAME[method](np.zeros(2), 0.0, 1.0, 1.5)
