"""Strict feasibility at a fixed budget, against the best fixed target that could have been chosen in hindsight with the same calls.

A run knows neither the optimum nor how wide its certificate will be. Whoever knows both gives the solve half of the calls, rolls one
mixture out with the other half, and picks the one margin above the threshold that is certified in 19 of 20 seeds at the least loss.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from saddleback import Method, solve
from saddleback.certificates import Request, certify_guided, expected_fall
from saddleback.exact import mixture_values, solve_by_columns
from saddleback.instances.zoo import make
from saddleback.problem.policies import MixturePolicy
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

    def loss(self, mixture: MixturePolicy) -> float:
        """What the policy loses to the best one that meets the constraints."""
        return float(self.best - mixture_values(self.table, mixture)[0])

    def meets(self, mixture: MixturePolicy) -> bool:
        """Whether the constraints hold."""
        values = self.problem.unit_values_of(mixture_values(self.table, mixture))
        return bool(np.all(values[1:] >= self.problem.thresholds - 1e-9 * self.problem.horizon))


class Row(NamedTuple):
    """The share that ends certified, the median loss, and how many proofs are false."""

    share: float
    loss: float
    false: int = 0


def ours(truth: Truth, samples: int, seeds: range) -> Row:
    """What `solve` does with so many calls."""
    losses, proved, false = list[float](), 0, 0
    for seed in seeds:
        found = solve(truth.problem, truth.simulator, samples=samples, feasibility="strict", seed=seed)
        assert found.mixture is not None
        losses.append(truth.loss(found.mixture))
        if found.certificate is not None and found.certificate.feasible == "certified":
            proved += 1
            false += not truth.meets(found.mixture)
    return Row(proved / len(seeds), float(np.median(losses)), false)


def in_hindsight(truth: Truth, samples: int, seeds: range) -> Row:
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
            rows[margin].append((proof.feasible == "certified", truth.loss(aimed.mixture)))
    table = [Row(float(np.mean([c for c, _ in row])), float(np.median([x for _, x in row]))) for row in rows.values()]
    most = max(row.share for row in table)
    return min((row for row in table if row.share >= min(OFTEN, most)), key=lambda row: row.loss)


@pytest.mark.study
@pytest.mark.parametrize("samples", [100_000, 1_000_000])
@pytest.mark.parametrize("name", PROBLEMS)
def test_as_good_as_the_best_fixed_target(name: str, samples: int) -> None:
    truth, seeds = Truth(name), range(20)
    found, best = ours(truth, samples, seeds), in_hindsight(truth, samples, seeds)
    print(
        f"{name}, {samples:,} calls, seeds 0 to 19: certified {found.share:.2f} (in hindsight {best.share:.2f}), {found.false} false, "
        f"median loss {found.loss:.4g} (in hindsight {best.loss:.4g}) of an optimum of {truth.best:.4g}, range {truth.range:.4g}"
    )
    assert found.false <= binom.isf(1e-6, len(seeds), 0.05)
    assert found.share >= (OFTEN if best.share >= OFTEN else best.share - 0.05)
    assert found.loss <= 1.5 * best.loss + 0.005 * truth.range


@pytest.mark.parametrize(("name", "most"), [("queue", 0.60), ("wireless", 0.65), ("maintenance", 0.9)])
def test_a_fixed_budget_is_well_spent(name: str, most: float) -> None:
    """100,000 calls: certified, where three times the loss, or no proof at all, was the rule; seed 0."""
    row = ours(Truth(name), 100_000, range(1))
    assert row.share == 1.0
    assert row.loss <= most
