"""Certificates against the truth: coverage, width, answer rate, and controls that must alarm.

Every statement of a certificate holds with probability 1 − δ, so over N seeded runs the misses of each are at most
Bin(N, δ); at δ = .05 the alarm is raised at 21 of 120 (or 87 of 1000), which happens with probability 1e-6 if the claim is
true. The truth comes from the tables, which no part of the certificate has seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from saddleback import zoo
from saddleback.exact import mixture_values, solve_exactly
from spelled_out import solve

pytestmark = pytest.mark.check

DELTA = 0.05


@dataclass(frozen=True)
class Case:
    """A zoo problem, samples for solve and certificate each, and the widths that the certificate must keep, of H·scale."""

    name: str
    settings: tuple[tuple[str, Any], ...]
    samples: int
    feasibility: str
    value_width: float
    gap: float


CASES = {
    "wireless, strict": Case("wireless", (), 60_000, "strict", 0.08, 0.16),
    "queue": Case("queue", (("capacity", 4),), 60_000, "relaxed", 0.08, 0.15),
    "garnet": Case("garnet", (("states", 12), ("actions", 3)), 40_000, "relaxed", 0.05, 0.12),
    "random-linear": Case("random-linear", (), 30_000, "relaxed", 0.06, 0.06),
    "random-linear, two constraints": Case(
        "random-linear", (("constraints", 2), ("dim", 5), ("states", 60), ("seed", 4)), 30_000, "relaxed", 0.08, 0.08
    ),
}


@dataclass
class Count:
    """Misses by statement, answers, and widths."""

    runs: int = 0
    misses: dict[str, int] = field(default_factory=dict)
    certified: int = 0
    gaps: list[float] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    def add(self, statement: str, missed: bool) -> None:
        self.misses[statement] = self.misses.get(statement, 0) + bool(missed)


@cache
def instance(case: str) -> zoo.Instance:
    return zoo.make(CASES[case].name, **dict(CASES[case].settings))


@cache
def optimum(case: str) -> float:
    return float(solve_exactly(instance(case).table).value)


def count(case: str, runs: int, first_seed: int) -> Count:
    setting, found = CASES[case], Count(runs)
    problem, V_star = instance(case).problem, optimum(case)
    unit = problem.horizon * float(problem.scale[0])
    for seed in range(first_seed, first_seed + runs):
        solution = solve(
            problem,
            instance(case).simulator,
            samples=setting.samples,
            certificate=setting.samples,
            feasibility=setting.feasibility,  # type: ignore[arg-type]
            delta=DELTA,
            seed=seed,
            purpose="gap",  # every statement is counted, the bound over all policies too
        )
        c = solution.certificate
        if solution.mixture is None or c is None or c.gap is None:
            continue
        truth = mixture_values(instance(case).table, solution.mixture)
        found.gaps.append(c.gap / unit)
        found.widths.append((c.value[1] - c.value[0]) / unit)
        for j, (low, high) in enumerate([c.value, *c.constraints]):
            found.add(f"interval {j}", not low <= truth[j] <= high)
        found.add("upper bound", c.upper_bound < V_star)
        found.add("gap", c.gap < V_star - truth[0])
        holds = np.all(problem.unit_values_of(truth)[1:] >= problem.thresholds)
        found.certified += c.feasible == "certified"
        found.add("strict feasibility", c.feasible == "certified" and not holds)
        found.add("refutation", c.feasible == "refuted" and holds)
        # Controls: an interval of one standard error, and the confidence of the upper bound taken off twice.
        rolled, bound = c.evidence.rollouts, c.evidence.bound
        error = np.sqrt(np.array(rolled.variance) / rolled.number)
        z = (np.array(rolled.mean) - problem.unit_values_of(truth)) / np.maximum(error, 1e-12)
        found.add("control: one standard error", abs(z[0]) > 1.0)
        sigma = np.array(bound.sigma)
        below = 2 * bound.estimate - bound.value
        unit_below = below / sigma[0] - (sigma[1:] / sigma[0]) @ problem.thresholds
        found.add(
            "control: bound less twice its confidence",
            unit_below < problem.unit_values_of(np.array([V_star, *truth[1:]]))[0],
        )
    return found


def check(case: str, runs: int, first_seed: int) -> None:
    found, setting = count(case, runs, first_seed), CASES[case]
    limit = int(binom.isf(1e-6, runs, DELTA)) + 1
    answered = len(found.gaps)
    print(
        f"{case}: seeds {first_seed}..{first_seed + runs - 1}, {answered} answered, {found.certified} certified feasible, "
        f"median gap {np.median(found.gaps):.4f} H, median width {np.median(found.widths):.4f} H, alarm at {limit}: {found.misses}"
    )
    assert answered >= 0.9 * runs
    assert np.median(found.gaps) <= setting.gap and np.median(found.widths) <= setting.value_width
    if setting.feasibility == "strict":
        assert found.certified >= 0.9 * runs
    for statement, misses in found.misses.items():
        assert (misses >= limit) == statement.startswith("control"), statement


def test_coverage() -> None:
    check("wireless, strict", 120, 10_000)


@pytest.mark.study
@pytest.mark.parametrize("case", CASES)
def test_coverage_at_length(case: str) -> None:
    check(case, 1000, 20_000)
