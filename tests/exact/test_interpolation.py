"""Guessing the multiplier at which a constraint is just met."""

from __future__ import annotations

import numpy as np
import pytest

from saddleback.exact.column_generation import interpolate


def frontier(lam: np.ndarray, curved: float) -> np.ndarray:
    """(V_r, V_c) of the best policy for r + λc on {y = 5√(1−x²) − curved·x²}: slope λ is at 5x/√(1−x²) + 2·curved·x."""
    low, high = np.zeros(len(lam)), np.ones(len(lam))
    for _ in range(200):
        x = (low + high) / 2
        with np.errstate(divide="ignore"):
            below = 5 * x / np.sqrt(1 - x**2) + 2 * curved * x < lam
        low, high = np.where(below, x, low), np.where(below, high, x)
    return np.column_stack([5 * np.sqrt(1 - low**2) - curved * low**2, low])


def ask(prices: list[tuple[float, float]], curved: float) -> np.ndarray:
    return frontier(np.array([np.inf if r == 0 else c / r for r, c in prices]), curved)


def test_an_ellipse_is_guessed_at_once() -> None:
    prices = [(0.0, 1.0), (1.0, 0.0)]
    for b in (0.1, 0.6, 0.95):
        lam = interpolate(np.array(prices), ask(prices, 0.0), b, tolerance=0.0)
        assert lam == pytest.approx(5 * b / np.sqrt(1 - b**2), rel=1e-6)


def test_other_curves_take_a_few_guesses() -> None:
    prices, b, curved = [(0.0, 1.0), (1.0, 0.0)], 0.4, 3.0
    truth = 5 * b / np.sqrt(1 - b**2) + 2 * curved * b
    errors = []
    for _ in range(5):
        lam = interpolate(np.array(prices), ask(prices, curved), b, tolerance=0.0)
        errors.append(abs(lam - truth))
        prices.append((1.0, lam))
    assert errors[0] > 0.1 and errors[-1] < 1e-6


def test_the_guess_goes_past_the_zero_by_what_the_tolerance_allows() -> None:
    prices, b = [(0.0, 1.0), (1.0, 0.0), (1.0, 2.5)], 0.5
    values = ask(prices, 0.0)
    truth, nearest = 5 * b / np.sqrt(1 - b**2), values[2, 1] - b
    assert nearest < 0  # so the other side is at larger λ
    lam = interpolate(np.array(prices), values, b, tolerance=1e-3)
    assert lam == pytest.approx(truth + 1e-3 / (2 * abs(nearest)), rel=1e-4)
    far = interpolate(np.array(prices), values, b, tolerance=1e9)  # but never past what is known to be too much
    assert truth < far < np.inf


@pytest.mark.parametrize(
    ("prices", "values"),
    [
        ([(0.0, 1.0)], [(1.0, 2.0)]),  # nothing known at λ = 0
        ([(0.0, 1.0), (1.0, 0.0)], [(1.0, 2.0), (3.0, 1.5)]),  # met already at λ = 0
        ([(0.0, 1.0), (1.0, 0.0)], [(3.0, 2.0), (3.0, 0.5)]),  # the constraint costs nothing
        ([(0.0, 1.0), (1.0, 0.0), (1.0, 0.5), (1.0, 0.6)], [(1, 2), (3, 0.5), (2, 1.5), (2, 0.9)]),  # not monotone
    ],
)
def test_no_guess_without_a_bracket(prices: list[tuple[float, float]], values: list[tuple[float, float]]) -> None:
    assert interpolate(np.array(prices), np.array(values, dtype=float), 1.0, 1e-6) is None
