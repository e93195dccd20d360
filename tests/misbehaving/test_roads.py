"""Whichever way samples are drawn, the simulator is examined first: with an honest solution in hand, a bad one is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from misbehaving.kinds import KINDS, model_of, problem_of
from saddleback import Method, SimulatorError, Solution, frontier, issue_certificate, solve
from saddleback.sampling.executors import open_executor
from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.fingerprint import CHECK_CALLS
from saddleback.solving.prepare import prepare

HONEST = solve(problem_of({}), model_of({}), samples=4_000, seed=0)
ROADS: dict[str, Callable[[Any], Any]] = {
    "solve": lambda model: solve(problem_of({}), model, samples=4_000, seed=1),
    "solve, no certificate": lambda model: solve(
        problem_of({}), model, samples=4_000, seed=1, method=Method(certificate=0)
    ),
    "to an accuracy": lambda model: solve(problem_of({}), model, epsilon=1.0, max_samples=8_000, seed=1),
    "prepare": lambda model: prepare(problem_of({}), model, 4_000, 1, Method()),
    "reuse": lambda model: solve(problem_of({}), model, samples=4_000, seed=1, reuse=HONEST),
    "certificate": lambda model: issue_certificate(HONEST, model, samples=4_000, seed=5),
    "frontier": lambda model: frontier(HONEST, num_points=3).certified(model, samples=4_000, seed=6),
}


@pytest.mark.parametrize("road", ROADS)
def test_a_bad_simulator_is_refused_on_every_road(road: str) -> None:
    assert isinstance(HONEST, Solution)
    ROADS[road](model_of({}))
    with pytest.raises(SimulatorError, match=r"state \d, action \d.*seed key .* = \(\d+, 9, "):
        ROADS[road](model_of(KINDS["first row only"]()))


def test_the_calls_are_counted_as_checks() -> None:
    problem, model = problem_of({}), model_of({})
    with open_executor(problem=problem, simulator=model) as executor:
        found = solve(problem, model, samples=4_000, seed=1, executor=executor)
    assert executor.check_calls > CHECK_CALLS
    assert model.num_queries == found.samples <= 4_000 * 1.1


@pytest.mark.slow
def test_workers_are_asked_where_workers_draw() -> None:
    with Joblib(2) as executor, pytest.raises(SimulatorError, match="batch of several pairs"):
        solve(problem_of({}), model_of(KINDS["first row only"]()), samples=4_000, seed=1, executor=executor)
