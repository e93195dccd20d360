"""The monotone limits: the definition, monotonicity, translation, coverage."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from saddleback.certificates.values.intervals import Bets, expected_width, stakes

GOAL = np.log(1 / 0.05)


def one_pair(values_at: np.ndarray, counts: np.ndarray, stake: float) -> Bets:
    n = int(counts.sum())
    frequencies = scipy.sparse.csr_array((counts / n)[None])
    return Bets(frequencies, np.array([n]), np.array([stake]), GOAL)


@given(
    V=st.lists(st.floats(0, 10), min_size=3, max_size=3),
    raised=st.lists(st.floats(0, 3), min_size=3, max_size=3),
    counts=st.lists(st.integers(1, 50), min_size=3, max_size=3),
    stake=st.floats(0.001, 0.09),
)
def test_definition_monotone_and_translation(
    V: list[float], raised: list[float], counts: list[int], stake: float
) -> None:
    v, n = np.array(V), np.array(counts, dtype=float)
    bets = one_pair(v, n, stake)
    (limit,) = bets.upper(v)
    wealth = float(n @ np.log(1 - stake * (v - limit)))
    assert wealth == pytest.approx(GOAL, rel=1e-6)
    assert limit > (n @ v) / n.sum()
    assert bets.upper(v + 2.0)[0] == pytest.approx(limit + 2.0, abs=1e-7)
    assert bets.upper(v + np.array(raised))[0] >= limit - 1e-9
    assert bets.lower(v)[0] == pytest.approx(-bets.upper(-v)[0])
    assert bets.lower(v)[0] < (n @ v) / n.sum()


def test_a_function_wider_than_the_stakes_still_has_a_larger_limit() -> None:
    """Optimistic functions may leave the range the stakes were made for; the limit must only grow."""
    counts = np.array([99.0, 1.0])
    bets = one_pair(np.zeros(2), counts, 0.9)
    limits = [bets.upper(np.array([0.0, top]))[0] for top in (1.0, 1.5, 2.0, 5.0, 50.0)]
    assert limits == sorted(limits)
    assert limits[-1] > 40


@pytest.mark.parametrize("sign", [1, -1])
def test_coverage_of_one_pair(sign: int) -> None:
    """400 seeds at δ = .05 one-sided: fewer than 45 misses (1e-6)."""
    rng = np.random.default_rng(np.random.SeedSequence(21))
    p, V = np.array([0.7, 0.25, 0.05]), np.array([0.0, 1.0, 8.0])
    spread = float(np.sqrt(p @ V**2 - (p @ V) ** 2))
    missed = 0
    for _ in range(400):
        n = rng.multinomial(300, p).astype(float)
        stake = stakes(np.array([spread]), np.array([300]), GOAL, 8.0)[0]
        limit = one_pair(V, n, float(stake)).upper(sign * V)[0]
        missed += limit < sign * (p @ V)
    print(f"seed 21, sign {sign}: {missed} of 400 missed")
    assert missed < 45


def test_a_tenth_of_the_width_misses() -> None:
    """The control: the limit moved most of the way to the mean fails far more often than δ."""
    rng = np.random.default_rng(np.random.SeedSequence(22))
    p, V, missed = np.array([0.7, 0.25, 0.05]), np.array([0.0, 1.0, 8.0]), 0
    for _ in range(400):
        n = rng.multinomial(300, p).astype(float)
        mean = float(n @ V) / 300
        missed += mean + 0.1 * (one_pair(V, n, 0.05).upper(V)[0] - mean) < p @ V
    assert missed >= 45


def test_expected_width_is_about_right() -> None:
    rng = np.random.default_rng(np.random.SeedSequence(23))
    p, V = np.array([0.5, 0.3, 0.2]), np.array([0.0, 2.0, 5.0])
    spread = np.array([np.sqrt(p @ V**2 - (p @ V) ** 2)])
    for n in (50, 500, 50_000):
        counts = rng.multinomial(n, p).astype(float)
        stake = float(stakes(spread, np.array([n]), GOAL, 10.0)[0])
        width = one_pair(V, counts, stake).upper(V)[0] - counts @ V / n
        assert width == pytest.approx(expected_width(spread, np.array([float(n)]), GOAL, 10.0)[0], rel=0.35)
