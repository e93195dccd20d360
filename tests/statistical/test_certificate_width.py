"""How tight a certificate is at a million simulator calls, beside what the worst case would ask for."""

from __future__ import annotations

import numpy as np
import pytest

from saddleback import zoo
from saddleback.exact import mixture_values, solve_exactly
from saddleback.theory import plan
from spelled_out import solve

pytestmark = pytest.mark.check


def certified_gap(seed: int, calls: int) -> tuple[float, float]:
    """Certified and true gap on the random linear problem of that seed, d = 8, γ = .9, H = 10."""
    instance = zoo.make("random-linear", dim=8, gamma=0.9, seed=seed)
    before = instance.simulator.num_queries
    solution = solve(instance.problem, instance.simulator, samples=calls // 2, certificate=calls // 2, seed=1000 + seed)
    assert instance.simulator.num_queries - before <= calls
    assert solution.mixture is not None and solution.certificate is not None
    true = float(solve_exactly(instance.table).value) - float(mixture_values(instance.table, solution.mixture)[0])
    gap = solution.certificate.gap
    assert gap is not None and gap >= true
    return float(gap), true


def check(seeds: range, calls: int, most: float) -> None:
    found = np.array([certified_gap(seed, calls) for seed in seeds])
    worst_case = plan(0.1, 0.05, kind="linear", gamma=0.9, zeta=0.5, feasibility="relaxed", dimension=8)
    median, true = np.median(found, axis=0)
    print(
        f"random-linear, problems {seeds}, {calls:,} calls in all: certified gap {median:.4f} (median; largest "
        f"{found[:, 0].max():.4f}), true {true:.4f}; the worst case would need {worst_case.samples:.2g} samples for .1"
    )
    assert median <= most


def test_tightness() -> None:
    check(range(3), 400_000, 0.10)


@pytest.mark.study
def test_tightness_at_a_million_calls() -> None:
    check(range(20), 1_000_000, 0.10)
