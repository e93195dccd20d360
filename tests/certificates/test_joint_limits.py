"""Limits of □ + γPV where a signal is only observed: the definition, what optimism needs of them, and what they gain."""

from __future__ import annotations

import dataclasses
import math
from functools import cache

import numpy as np
import pytest

from saddleback.certificates.bounds.bound import ExpectedRewards
from saddleback.certificates.bounds.joint import Expectation, JointLimits, KnownLimits
from saddleback.certificates.values.intervals import Bets, chernoff_upper
from saddleback.designs.design import full_design
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import CountedBuffer, cut
from saddleback.simulators.generative_model import Stream
from statistical.observed_signals import Observed, rare

DELTA, SIGMA = 0.02, np.array([0.4, 0.6])


@cache
def sampled(chance: float = 0.01, number: int = 4_000) -> tuple[Observed, CountedBuffer]:
    case = rare(chance, "constraint")
    design = full_design(*case.problem.pairs())
    how = {"seed": 3, "stream": Stream.CERTIFICATE, "joint": True}
    return case, cut(collect(case.simulator, case.problem, design, number, **how), case.problem, design, 1)


def some_value(seed: int = 0) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).random(5) * 4)


@pytest.mark.parametrize("stake", [0.05, 0.5, 5.0])
def test_the_definition(stake: float) -> None:
    """Each sample on its own, and the largest μ found by bisection; cut at what the variable can be."""
    (case, fresh), V, gamma = sampled(), some_value(), 0.9
    assert fresh.joint is not None
    limits = JointLimits(case.problem, fresh, SIGMA, np.full(10, stake), DELTA).upper(V)
    goal, most = math.log(5 / DELTA), 0.6 + gamma * V.max()
    for x in range(10):
        Y = 0.6 * fresh.joint.utilities[x][:, 0] + gamma * V[fresh.joint.next_states[x]]
        low, high = float(Y.max()) - 1 / stake, float(Y.max()) + goal
        for _ in range(80):
            mu = (low + high) / 2
            with np.errstate(divide="ignore"):
                beyond = np.log(np.maximum(1 - stake * (Y - mu), 0.0)).sum() > goal
            low, high = (low, mu) if beyond else (mu, high)
        wanted = min(max(low, most - 1 / stake), most) + 0.4 * fresh.utilities(case.problem)[x, 0]
        # Of a stake that is too high for the largest sample, the last hundredth of 1/g is not searched.
        assert -1e-7 <= limits[x] - wanted <= (0.01 / stake if stake > 0.3 else 0.0) + 1e-7


def test_monotone_and_moving_with_a_constant() -> None:
    (case, fresh), V = sampled(), some_value()
    limits = JointLimits(case.problem, fresh, SIGMA, np.full(10, 0.4), DELTA)
    raised = V + np.array([0.0, 0.3, 0.0, 1.0, 0.0])
    assert np.all(limits.upper(raised) >= limits.upper(V) - 1e-9)
    np.testing.assert_allclose(limits.upper(V + 2), limits.upper(V) + 0.9 * 2, atol=1e-7)
    assert np.all(limits.upper(V) >= limits.mean(V))
    np.testing.assert_allclose(
        limits.mean(V), fresh.utilities(case.problem) @ SIGMA + 0.9 * fresh.average(V[fresh.support])
    )


def test_a_signal_without_a_price_costs_nothing() -> None:
    """The limit is that of a problem in which everything is known, at the same stakes and with all of δ."""
    (case, fresh), V, sigma = sampled(), some_value(), np.array([1.0, 0.0])
    stakes = np.full(10, 0.3)
    joint = JointLimits(case.problem, fresh, sigma, stakes, DELTA).upper(V)
    known = KnownLimits(case.table.problem(), fresh, sigma, 0.9 * stakes, DELTA).upper(V)
    np.testing.assert_allclose(joint, np.minimum(known, case.table.reward.ravel() + 0.9 * V.max()), rtol=1e-7)


def test_noise_that_cancels_is_not_paid_for() -> None:
    """A signal that is high where the next value is low: the sum hardly varies, and neither part alone would show it."""
    case, fresh = sampled()
    joint = fresh.joint
    assert joint is not None
    V = np.array([0.0, 0.1, 0.2, 0.3, 0.4])
    told = [(1 - 1.5 * V[s])[:, None] for s in joint.next_states]  # .6·1.5 = γ
    together = dataclasses.replace(fresh, joint=dataclasses.replace(joint, utilities=told))
    means = np.array([u.mean() for u in told])
    together.signal_means = np.column_stack([np.zeros(10), means])
    limits = JointLimits(case.problem, together, SIGMA, np.full(10, 0.9), DELTA)
    assert np.abs(limits.upper(V) - limits.mean(V)).max() <= 1.05 * math.log(5 / DELTA) / (0.9 * 4_000)


@pytest.mark.parametrize("chance", [1e-1, 1e-2, 1e-3])
def test_narrower_than_two_limits_apart(chance: float) -> None:
    """Chernoff's limit of the mean and a limit of PV, half of δ each, which is what there was: at no pair as narrow."""
    (case, fresh), V, gamma = sampled(chance), some_value(), 0.9
    n, half = fresh.counts, math.log(5 / (DELTA / 2))
    expected = Expectation(case.problem, fresh, *ExpectedRewards.of(case.problem, fresh), SIGMA, DELTA).width(V, n)
    limits = JointLimits(case.problem, fresh, SIGMA, expected.stakes, DELTA)
    mean = fresh.utilities(case.problem)[:, 1]
    stakes = np.sqrt(2 * half / n) / np.sqrt(fresh.moments(V[fresh.support])[1])
    alone = Bets(fresh.empirical_model(), n, stakes, half).upper(V[fresh.support]) - fresh.average(V[fresh.support])
    apart = 0.6 * (chernoff_upper(mean, n, half) - mean) + gamma * alone
    together = limits.upper(V) - limits.mean(V)
    assert np.all(together < apart)
    assert np.all(expected.width < 1.5 * together) and np.all(expected.width > together / 1.5)


def test_what_was_never_seen_is_expected_to_cost_something() -> None:
    """Not one event in the earlier samples: half an event is expected, and a width of L/n at least."""
    case, fresh = sampled(1e-9)
    assert not np.any(fresh.utilities(case.problem)[:, 1])
    sigma, V = np.array([0.0, 1.0]), np.zeros(5)
    width, fall, stakes = Expectation(
        case.problem, fresh, *ExpectedRewards.of(case.problem, fresh), sigma, DELTA
    ).width(V, n := np.full(10, 10_000.0))
    least = math.log(5 / DELTA) / n
    assert np.all(width > least) and np.all(width < 3 * least)
    assert np.all(fall >= least) and np.all(fall <= width) and np.all(stakes <= 0.9)
