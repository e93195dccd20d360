"""The band on the frontier: around the true one at every threshold, and narrower with more samples."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from saddleback import frontier, zoo
from saddleback.exact import solve_exactly
from saddleback.simulators.table import Table
from spelled_out import solve


def true_value(table: Table, threshold: float) -> float | None:
    answer = solve_exactly(dataclasses.replace(table, thresholds=np.array([threshold])))
    return float(answer.value) if answer.status == "optimal" else None


@pytest.mark.check
@pytest.mark.parametrize("name", ["garnet", "random-linear", "wireless"])
def test_the_true_frontier_lies_within(name: str) -> None:
    """One band at δ = 1e-6, twelve thresholds, each of them checked."""
    instance = zoo.make(name)
    solution = solve(instance.problem, instance.simulator, samples=200_000, seed=2)
    before = instance.simulator.num_queries
    widths = []
    for seed, samples in ((3, 400_000), (4, 3_200_000)):
        curve = frontier(solution, num_points=12).certified(instance.simulator, samples=samples, seed=seed, delta=1e-6)
        assert instance.simulator.num_queries - before <= samples
        before = instance.simulator.num_queries
        for point in curve.points:
            truth = true_value(instance.table, point.threshold)
            assert point.high is not None
            if truth is not None:
                assert point.high >= truth - 1e-9
                assert point.low is None or point.low <= truth + 1e-9
            else:
                assert point.low is None  # no policy can be proved to meet what none meets
        middle = curve.points[5]
        assert middle.low is not None
        widths.append(middle.high - middle.low)
    print(f"{name}: width in the middle {widths[0]:.3f} at 4e5 samples, {widths[1]:.3f} at 3.2e6 (seeds 2, 3, 4)")
    assert widths[1] < 0.6 * widths[0]


@pytest.mark.slow
def test_a_threshold_asked_later_has_limits_too() -> None:
    instance = zoo.make("garnet")
    solution = solve(instance.problem, instance.simulator, samples=100_000, seed=2)
    curve = frontier(solution, num_points=8).certified(instance.simulator, samples=300_000, seed=4)
    before = instance.simulator.num_queries
    low, high = curve.range
    point = curve.at(0.4 * low + 0.6 * high)
    assert point.low < point.value < point.high
    assert instance.simulator.num_queries == before
    assert {"low", "high"} <= set(point.to_json())


@pytest.mark.slow
def test_upper_limits_fall_with_the_threshold_and_are_concave() -> None:
    instance = zoo.make("garnet")
    solution = solve(instance.problem, instance.simulator, samples=100_000, seed=2)
    curve = frontier(solution, num_points=10).certified(instance.simulator, samples=300_000, seed=4)
    highs = np.array([p.high for p in curve.points])
    assert np.all(np.diff(highs) <= 1e-9)
    assert np.all(np.diff(highs, 2) <= 1e-9)


@pytest.mark.slow
def test_no_upper_curve_where_linearity_is_refuted() -> None:
    instance = zoo.make("random-linear", misspecification=0.5, seed=5)
    solution = solve(instance.problem, instance.simulator, samples=200_000, seed=0)
    curve = frontier(solution, num_points=6).certified(instance.simulator, samples=400_000, seed=1)
    assert not curve.band.linearity.passed
    H = instance.problem.horizon
    assert all(point.high == pytest.approx(H) for point in curve.points)  # what no policy exceeds, and no more
    assert all(point.low is None or point.low <= point.high for point in curve.points)
