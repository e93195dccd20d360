"""Start distributions: states that are given twice, and what a sample of ρ may hide."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from saddleback import frontier, zoo
from saddleback.certificates.guide import NUM_STARTS, hidden_by_starts
from saddleback.errors import InputError
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.settings import Method
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepare import prepare
from saddleback.solving.promise import oracle_errors
from spelled_out import solve


def test_a_state_that_is_given_twice_has_the_sum_of_its_weights() -> None:
    start = Start(np.array([3, 1, 3]), np.array([0.5, 0.2, 0.3]))
    assert start.states.tolist() == [1, 3] and np.allclose(start.weights, [0.2, 0.8])
    points = Start(np.zeros((2, 1)), np.array([0.5, 0.5]))
    assert len(points.states) == 2


def test_repeated_starts_change_no_width() -> None:
    """The same ρ, written once and 1,024 times: the same limits."""
    instance = zoo.make("queue")
    often = dataclasses.replace(instance.problem, start=Start.equally(np.zeros(1024, dtype=np.int64)))
    once, many = (solve(p, instance.simulator, samples=40_000, seed=3) for p in (instance.problem, often))
    for x, y in zip(once.constraints, many.constraints, strict=True):
        assert np.isclose(x.low, y.low, rtol=1e-9) and np.isclose(x.high, y.high, rtol=1e-9)
    assert many.stationary is not None


def heads(number: int, rng: np.random.Generator) -> Any:
    return rng.integers(0, 2, number)


def coin(start: Start) -> tuple[CMDP, GenerativeModel]:
    """Two states that never change; every policy earns the share of starts in state 1."""
    space = FiniteStates(2)
    problem = CMDP(
        gamma=0.5,
        start=start,
        num_actions=2,
        states=space,
        reward=np.array([[0.0, 0.0], [1.0, 1.0]]),
        constraints=[Constraint("second", np.array([[0.0, 1.0], [0.0, 1.0]]), ">=", 0.5, (0.0, 1.0))],
        reward_range=(0.0, 1.0),
        name="coin",
    )
    return problem, GenerativeModel(lambda states, actions, rng: states, space)


def test_the_band_speaks_of_the_distribution_not_of_a_sample() -> None:
    """F = 1 for every policy. A sample of nine starts says .44 or 1.5; the band must hold the truth all the same."""
    problem, model = coin(Start.sampled(heads, 9, seed=2))
    seen = float(problem.start.weights @ (problem.start.states == 1)) * 2
    assert abs(seen - 1.0) > 0.2  # the sample is far off
    curve = frontier(prepare(problem, model, 4000, 0, Method()), 0, 3).certified(model, samples=20_000, seed=1)
    for point in curve.points:
        assert point.value > 1.2  # what the sample says
        assert point.high is not None and 1.0 <= point.high < 1.2 and (point.low is None or point.low <= 1.0)


def test_certificates_hold_the_truth_and_nothing_is_promised_beforehand() -> None:
    problem, model = coin(Start.sampled(heads, 9, seed=2))
    found = solve(problem, model, samples=4000, certificate=8000, seed=5)
    assert found.certificate is not None and found.certificate.value is not None
    low, high = found.certificate.value
    assert low <= 1.0 <= high
    assert high - low >= 2 * hidden_by_starts(problem, 0.05) * 0.99
    parts = prepare(problem, model, 4000, 0, Method(resolution=20))
    assert oracle_errors(parts, 0.05).both == np.inf


def test_an_accuracy_that_a_sample_of_starts_cannot_show_is_refused() -> None:
    problem, model = coin(Start.sampled(heads, 9))
    least = 2.2 * hidden_by_starts(problem, 0.05)
    assert least == pytest.approx(2.2 * 2 * np.sqrt(np.log(2 * 3 / 0.005) / (2 * NUM_STARTS)))
    with pytest.raises(InputError, match="start distribution is a sampler"):
        solve(problem, model, epsilon=0.9 * least)
