"""Strict feasibility at a fixed budget, against the best fixed target that could have been chosen in hindsight with the same calls.

A run knows neither the optimum nor how wide its certificate will be. Whoever knows both gives the solve half of the calls, rolls one
mixture out with the other half, and picks the one margin above the threshold that is certified in 19 of 20 seeds at the least loss.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from saddleback import Method, Solution, solve
from saddleback.certificates import Request, certify_guided, expected_fall
from saddleback.exact import mixture_values, solve_by_columns
from saddleback.instances.zoo import make
from saddleback.solving.strict import guide_of, retargeted

PROBLEMS = ("wireless", "queue", "inventory", "garnet", "random-linear", "ward")
MARGINS = (0.0, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0)  # in falls of the lower limit below the mean
OFTEN = 0.95


class Truth:
    """A problem of the zoo with its optimum, which no run may see."""

    def __init__(self, name: str) -> None:
        self.instance = make(name)
        self.problem, self.simulator = self.instance.problem, self.instance.simulator
        assert self.instance.table is not None
        self.table = self.instance.table
        self.best = solve_by_columns(self.table).value
        self.range = self.problem.reward_span * self.problem.horizon

    def loss(self, solution: Solution) -> float:
        """What the policy loses to the best one that meets the constraints; a false proof is a failure."""
        assert solution.mixture is not None
        values = mixture_values(self.table, solution.mixture)
        if solution.status.value == "solved":
            held = self.problem.unit_values_of(values)[1:] >= self.problem.thresholds - 1e-9
            assert held.all(), "proved to hold, and it does not"
        return float(self.best - values[0])


def ours(truth: Truth, samples: int, seeds: range) -> tuple[float, float]:
    """The share that ends certified, and the median loss."""
    found = [solve(truth.problem, truth.simulator, samples=samples, feasibility="strict", seed=s) for s in seeds]
    certified = [s.certificate is not None and s.certificate.feasible == "certified" for s in found]
    return float(np.mean(certified)), float(np.median([truth.loss(s) for s in found]))


def in_hindsight(truth: Truth, samples: int, seeds: range) -> tuple[float, float]:
    """The same of the best fixed target."""
    problem, half = truth.problem, samples // 2
    rows: dict[float, list[tuple[bool, float]]] = {margin: [] for margin in MARGINS}
    fall = None
    for seed in seeds:
        method = Method(certificate=0)
        base = solve(problem, truth.simulator, samples=half, feasibility="relaxed", seed=seed, method=method)
        request = Request(samples - half, seed, purpose="feasibility")
        if fall is None:
            fall = expected_fall(dataclasses.replace(guide_of(base), sigma=None), request).below[1:]
        for margin in MARGINS:
            aimed = retargeted(base, problem.thresholds + margin * fall)
            if aimed.mixture is None:
                rows[margin].append((False, np.inf))
                continue
            alone = dataclasses.replace(guide_of(aimed), sigma=None)
            proof = certify_guided(alone, truth.simulator.metered(), request)
            rows[margin].append((proof.feasible == "certified", truth.loss(aimed)))
    table = [(float(np.mean([c for c, _ in row])), float(np.median([x for _, x in row]))) for row in rows.values()]
    most = max(share for share, _ in table)
    return min((row for row in table if row[0] >= min(OFTEN, most)), key=lambda row: row[1])


@pytest.mark.study
@pytest.mark.parametrize("samples", [100_000, 1_000_000])
@pytest.mark.parametrize("name", PROBLEMS)
def test_as_good_as_the_best_fixed_target(name: str, samples: int) -> None:
    truth, seeds = Truth(name), range(20)
    share, loss = ours(truth, samples, seeds)
    best_share, best_loss = in_hindsight(truth, samples, seeds)
    print(
        f"{name}, {samples:,} calls, seeds 0 to 19: certified {share:.2f} (in hindsight {best_share:.2f}), "
        f"median loss {loss:.4g} (in hindsight {best_loss:.4g}) of an optimum of {truth.best:.4g}"
    )
    assert share >= (OFTEN if best_share >= OFTEN else best_share - 0.05)
    assert loss <= 1.5 * best_loss + 0.005 * truth.range


@pytest.mark.parametrize(("name", "most"), [("queue", 0.60), ("wireless", 0.65), ("maintenance", 0.9)])
def test_a_fixed_budget_is_well_spent(name: str, most: float) -> None:
    """100,000 calls: certified, where three times the loss, or no proof at all, was the rule; seed 0."""
    truth = Truth(name)
    share, loss = ours(truth, 100_000, range(1))
    assert share == 1.0
    assert loss <= most
