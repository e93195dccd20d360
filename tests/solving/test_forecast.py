"""Forecasts of what an accuracy costs: honest labels, right units, and how near the guess comes."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from saddleback import InputError, Table, zoo
from saddleback.problem.spaces import FiniteStates
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.forecast import forecast
from saddleback.theory import plan
from spelled_out import solve


def asked(table: Table, epsilon: float, **options: Any) -> Any:
    return forecast(table.problem(), table.simulator(), epsilon=epsilon, **options)


def test_the_pilot_is_counted() -> None:
    table = random_table(1)
    model = table.simulator()
    found = forecast(table.problem(), model, epsilon=0.5)
    assert found.pilot_samples == model.num_queries
    assert 20_000 < found.pilot_samples < 25_000
    assert found.coreset == 18
    assert found.slater is not None and found.slater.low <= found.slater.estimate <= found.slater.high


@pytest.mark.slow
def test_the_worst_case_is_the_theorys() -> None:
    """With ε in utilities: in units of 3 an accuracy of 0.3 is 0.1."""
    table = random_table(1)
    thrice = dataclasses.replace(table, reward=3 * table.reward, reward_range=(0.0, 3.0))
    found = asked(thrice, 0.3, delta=0.1, feasibility="relaxed")
    wanted = plan(0.1, 0.1, kind="tabular", gamma=0.8, feasibility="relaxed", num_pairs=18)
    assert found.worst is not None
    assert found.worst.samples == wanted.samples
    assert found.worst.label == "rigorous"
    assert found.worst.seconds == pytest.approx(found.worst.samples * found.seconds_per_call)
    linear = zoo.make("random-linear", states=20, dim=3)
    other = forecast(linear.problem, linear.simulator, epsilon=0.5, feasibility="relaxed")
    assert other.worst is not None and other.worst.num_pairs == other.coreset < 100


@pytest.mark.slow
def test_units_do_not_matter() -> None:
    """The same problem in other units of the reward has the same costs."""
    table = random_table(1)
    in_cents = dataclasses.replace(table, reward=100 * table.reward, reward_range=(0.0, 100.0))
    one, other = asked(table, 0.2), asked(in_cents, 20.0)
    assert one.likely == pytest.approx(other.likely, rel=1e-6)
    assert one.worst.samples == other.worst.samples


@pytest.mark.slow
def test_more_accuracy_costs_more() -> None:
    table = dataclasses.replace(random_table(1), thresholds=np.array([3.8]))  # binds: the most there is is 4.1
    costs = [asked(table, epsilon, feasibility="relaxed").likely for epsilon in (1.0, 0.3, 0.1)]
    assert costs == sorted(costs) and costs[0] < costs[-1]
    assert asked(table, 0.3, feasibility="strict").likely > costs[1]


@pytest.mark.slow
def test_memory_is_that_of_the_way_recommended() -> None:
    found = asked(random_table(1), 0.2)
    assert found.recommended == "adaptive" and found.recommended_bytes == found.likely_bytes
    assert found.likely_bytes < found.worst_bytes  # thousands of times the samples
    assert asked(random_table(1), 0.05).likely_bytes > found.likely_bytes
    other = dataclasses.replace(found, likely=None)
    assert other.recommended == "worst-case" and other.recommended_bytes == found.worst_bytes
    assert dataclasses.replace(other, worst=None).recommended_bytes is None


def test_the_simulators_speed_is_measured() -> None:
    """A simulator that sleeps a microsecond a call is not taken for a fast one."""
    table = random_table(1)
    fast = table.simulator()

    def slowly(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        time.sleep(1e-6 * len(states))
        return fast.sample(states, actions, rng).next_states

    found = forecast(table.problem(), GenerativeModel(slowly, FiniteStates(6)), epsilon=1.0)
    assert 1e-6 < found.seconds_per_call < 1e-4


@pytest.mark.slow
def test_what_cannot_be_said_is_not_said() -> None:
    table = random_table(1)
    hopeless = asked(dataclasses.replace(table, thresholds=np.array([4.9])), 0.5)
    assert (hopeless.worst, hopeless.likely, hopeless.recommended) == (None, None, "neither")
    assert "no policy" in hopeless.why_no_worst
    tight = asked(dataclasses.replace(table, thresholds=np.array([4.1])), 0.5, feasibility="strict")
    assert tight.worst is None and "room" in tight.why_no_worst
    tiny = asked(table, 1e-9)
    assert tiny.worst is None and tiny.likely is None and "more than 1e+13" in tiny.why_no_likely


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 5.1}, r"\(0, 5\]"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": 1.0, "samples": 1}, "samples"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"epsilon": 1.0, "seed": -1}, "seed"),
        ({"epsilon": 1.0, "feasibility": "maybe"}, "feasibility"),
    ],
)
def test_bad_arguments(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        asked(random_table(1), **options)


CASES = [
    ("random-linear", {}, 0.5), ("random-linear", {}, 0.1), ("queue", {}, 2.0), ("queue", {}, 0.5), ("wireless", {}, 4.0),
    ("wireless", {}, 2.0), ("garnet", {"states": 20}, 0.5), ("garnet", {"states": 20}, 0.2), ("gridworld", {}, 1.0),
]  # fmt: skip


def ratio(name: str, parameters: dict[str, Any], epsilon: float, feasibility: Any) -> float:
    """What an adaptive run took, over what was forecast."""
    first, second = zoo.make(name, **parameters), zoo.make(name, **parameters)
    found = forecast(first.problem, first.simulator, epsilon=epsilon, feasibility=feasibility)
    done = solve(second.problem, second.simulator, epsilon=epsilon, feasibility=feasibility, max_samples=20_000_000)
    assert found.likely is not None
    print(f"{name} {feasibility} ε = {epsilon}: {done.samples:,} taken, {found.likely:,} forecast")
    return done.samples / found.likely


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[:3:2])
def test_the_guess_comes_near(case: tuple[str, dict[str, Any], float]) -> None:
    assert 1 / 5 < ratio(*case, "relaxed") < 5


@pytest.mark.study
@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
@pytest.mark.parametrize("case", CASES)
def test_the_guess_comes_near_everywhere(case: tuple[str, dict[str, Any], float], feasibility: str) -> None:
    assert 1 / 5 < ratio(*case, feasibility) < 5
