"""Signals kept with their next states: the same samples, and where values are many, a spread that only widens limits."""

from __future__ import annotations

import numpy as np
import pytest

from helpers import ending_table
from saddleback import CMDP, Constraint
from saddleback.designs.design import full_design
from saddleback.sampling.buffer import JointSamples
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.joint_samples import CELLS, weighed
from saddleback.simulators.function import from_function
from saddleback.simulators.generative_model import Stream
from statistical.observed_signals import coins, rare


def of_one_pair(states: np.ndarray, values: np.ndarray) -> JointSamples:
    return JointSamples([states], [values[:, None]], np.array([1]))


def test_distinct_samples_are_counted() -> None:
    states, u = np.array([2, 0, 2, 2, 0]), np.array([0.5, 0.0, 0.5, 1.0, 0.0])
    first, s, values, counts = weighed(of_one_pair(states, u), np.array([0.2, 0.8]))
    assert (first.tolist(), s.tolist(), counts.tolist()) == ([0, 3], [0, 2, 2], [2, 2, 1])
    assert values.tolist() == pytest.approx([0.0, 0.4, 0.8])


def test_several_signals_are_weighed_together() -> None:
    joint = JointSamples(
        [np.zeros(3, dtype=int), np.ones(1, dtype=int)],
        [np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.ones((1, 2))],
        np.array([0, 2]),
    )
    first, states, values, counts = weighed(joint, np.array([0.25, 0.5, 0.25]))
    assert first.tolist() == [0, 2, 3] and states.tolist() == [0, 0, 1]
    assert values.tolist() == [0.25, 0.5, 0.5] and counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("shape", ["even", "steep", "narrow"])
def test_many_values_are_spread_so_that_limits_only_widen(shape: str) -> None:
    """Seed 5, 20,000 values: every sum of a concave falling function is no larger than before, and the mean no smaller."""
    rng = np.random.default_rng(5)
    draws = rng.random(20_000)
    values = {"even": draws, "steep": draws**9, "narrow": 0.3 + 1e-6 * draws}[shape]
    states = rng.integers(0, 2, len(values))
    _, s, spread, counts = weighed(of_one_pair(states, values), np.array([0.0, 1.0]))
    assert len(counts) <= 2 * (CELLS + 1) and counts.min() >= 1
    width = float(np.ptp(values)) / CELLS
    for state in (0, 1):
        own, there = values[states == state], s == state
        assert counts[there].sum() == len(own)
        mean = float(counts[there] @ spread[there]) / len(own)
        assert -1e-12 <= mean - own.mean() <= CELLS * width / len(own)
        for g in (0.1, 0.5, 0.95):
            before, after = np.log1p(-g * own).sum(), counts[there] @ np.log1p(-g * spread[there])
            assert after <= before + 1e-9
            assert after >= before - CELLS * width * g / (1 - g) - len(own) * (g * width / (1 - g)) ** 2


def test_they_are_the_samples_of_the_buffer() -> None:
    case = rare(0.2, "constraint")
    design = full_design(*case.problem.pairs())
    counts = np.arange(3_000, 3_010) * 2  # more than a block of some pairs
    drawn = collect(case.simulator, case.problem, design, counts, seed=1, stream=Stream.CERTIFICATE, joint=True)
    plain = collect(case.simulator, case.problem, design, counts, seed=1, stream=Stream.CERTIFICATE)
    fresh, sigma = cut(drawn, case.problem, design, 1), np.array([0.3, 0.7])
    assert cut(plain, case.problem, design, 1).joint is None and fresh.joint is not None
    first, states, values, together = weighed(fresh.joint, sigma)
    n = np.add.reduceat(together, first[:-1])
    np.testing.assert_array_equal(n, fresh.counts)
    means = np.add.reduceat(together * values, first[:-1]) / n
    np.testing.assert_allclose(means, 0.7 * fresh.utilities(case.problem)[:, 1], atol=1e-12)
    V = np.arange(5.0)
    np.testing.assert_allclose(np.add.reduceat(together * V[states], first[:-1]) / n, fresh.average(V[fresh.support]))
    assert all(np.array_equal(a, b) for a, b in zip(drawn.next_states, plain.next_states, strict=True))


def test_what_comes_together_stays_together() -> None:
    """A signal that tells the next state: every sample kept has both."""
    problem = CMDP(
        0.9, start=0, num_actions=1, states=3, reward=np.ones((3, 1)), reward_range=(0.0, 1.0),
        constraints=[Constraint("told", None, ">=", 1.0, (0.0, 2.0))],
    )  # fmt: skip

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> object:
        following = rng.integers(0, 3, len(states))
        return following, following.astype(float)

    model, design = from_function(sample, 3, signals=(None, "told"), batched=True), full_design(*problem.pairs())
    drawn = collect(model, problem, design, 9_000, seed=0, stream=Stream.CERTIFICATE, joint=True)
    joint = cut(drawn, problem, design, 1).joint
    assert joint is not None
    _, states, values, counts = weighed(joint, np.array([0.0, 1.0]))
    np.testing.assert_array_equal(values, states / 2)
    assert len(counts) == 9 and counts.sum() == 27_000


def test_pairs_without_samples_showed_nothing() -> None:
    case = coins(ending_table(), "reward")
    design = full_design(*case.problem.pairs())
    drawn = collect(case.simulator, case.problem, design, 50, seed=1, stream=Stream.CERTIFICATE, joint=True)
    fresh = cut(drawn, case.problem, design, 1)
    assert fresh.joint is not None and fresh.certain is not None and fresh.certain.any()
    first, states, values, counts = weighed(fresh.joint, np.array([1.0] + [0.0] * case.problem.num_constraints))
    for x in np.flatnonzero(fresh.certain):
        assert np.diff(first)[x] == 1 and counts[first[x]] == 1 and values[first[x]] == 0.0
        assert states[first[x]] == design.states[x]
