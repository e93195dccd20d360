"""What the default saves: its error at 10⁴ samples against the literal mode's at 10⁶, over random linear problems."""

import numpy as np
import pytest

from saddleback import zoo
from saddleback.exact import mixture_values, solve_exactly
from spelled_out import solve

pytestmark = pytest.mark.check


def error_of(instance, solution):
    """max(V* − V, violation) of the returned mixture, in utilities."""
    problem = instance.problem
    truth = problem.unit_values_of(mixture_values(instance.table, solution.mixture))
    exact = solve_exactly(instance.table)
    best = problem.unit_values_of(np.array([exact.value, *exact.constraint_values]))
    return max(float(best[0] - truth[0]), float((problem.thresholds - truth[1:]).max()))


def check(seeds, literal_batches):
    instances = [zoo.make("random-linear", gamma=0.95, dim=10, seed=s) for s in seeds]
    ours = [error_of(i, solve(i.problem, i.simulator, samples=10_000)) for i in instances]
    literal = {}
    for T in literal_batches:
        errors = []
        for i in instances:
            probe = solve(i.problem, i.simulator, samples=20_000, mode="literal", iterations=1)
            M = 1_000_000 // (2 * probe.settings["coreset"]) // T
            s = solve(i.problem, i.simulator, samples=1_000_000, mode="literal", batch_size=M, resolution=200)
            errors.append(error_of(i, s))
        literal[T] = float(np.median(errors))
    best = min(literal.values())
    print(f"seeds {seeds[0]}..{seeds[-1]}: default at 1e4 {np.median(ours):.4f}, literal at 1e6 by T {literal}")
    assert np.median(ours) < best


def test_default_at_1e4_beats_literal_at_1e6():
    check(range(5), [500])


@pytest.mark.study
def test_default_at_1e4_beats_literal_at_1e6_on_20_problems():
    check(range(20), [50, 500, 5000])
