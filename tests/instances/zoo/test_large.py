"""A thousand and a million states: the same features, the same memory, and answers near the exact table's.

The tables are built here, for checking; the solver sees the simulator and the features alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from saddleback.exact import solve_by_columns
from saddleback.instances.zoo import make
from saddleback.instances.zoo.queue_network import Network
from saddleback.instances.zoo.warehouse import Warehouse
from saddleback.problem.finite_model import Resolvent
from saddleback.simulators.table import Table
from spelled_out import solve

NAMES = ("queue-network", "warehouse")
SAMPLES = 300_000


class Comparison(NamedTuple):
    dim: int
    value: float
    optimum: float
    constraint: float
    threshold: float

    @property
    def gap(self) -> float:
        """Share of V* that the policy's true value lacks."""
        return (self.optimum - self.value) / abs(self.optimum)

    @property
    def violation(self) -> float:
        """Share of the threshold by which the policy's true cost exceeds it."""
        return self.constraint / self.threshold - 1


def whole_table(name: str, capacity: int) -> Table:
    model = Network(capacity, 0.6).problem(0.25, 0.95) if name == "queue-network" else None
    return (model or Warehouse(capacity).problem(0.05, 0.95)).table()


def compare(name: str, capacity: int, **parameters: int) -> Comparison:
    """True values of the solved mixture, members evaluated on the whole table, against the exact optimum."""
    instance = make(name, capacity=capacity, **parameters)
    solution = solve(instance.problem, instance.simulator, samples=SAMPLES, seed=0)
    table = whole_table(name, capacity)
    assert instance.problem.user_thresholds()[0] == pytest.approx(table.thresholds[0])
    exact = solve_by_columns(table, 1e-4, stationary=False)
    signals = np.column_stack([table.reward.ravel(), table.constraints[0].ravel()])
    states, values = np.arange(table.num_states), []
    assert solution.mixture is not None
    for member in solution.mixture.members:
        rows = states * table.num_actions + member.probabilities(states).argmax(axis=1)
        values.append(table.rho @ Resolvent(table.P[rows], table.gamma, factored=False).values(signals[rows]))
    value, constraint = solution.mixture.weights @ np.array(values)
    assert instance.problem.features is not None
    found = Comparison(instance.problem.features.dim, value, exact.value, constraint, float(table.thresholds[0]))
    print(
        f"{name}, {table.num_states} states, d = {found.dim}, {SAMPLES} samples, seed 0: V = {value:.4f} of {exact.value:.4f} "
        f"(gap {100 * found.gap:.2f} %), cost {constraint:.4f} of {found.threshold:.4f} ({100 * found.violation:+.2f} %)"
    )
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("capacity", [31, 99, pytest.param(999, marks=pytest.mark.study)])
def test_near_the_exact_optimum(name: str, capacity: int) -> None:
    """Gap and violation at most 5 % of V* and of the threshold, with 243 or 256 features."""
    found = compare(name, capacity)
    assert 100 <= found.dim <= 300
    assert found.gap <= 0.05
    assert found.violation <= 0.05


@pytest.mark.slow
def test_coarse_features_are_told_apart() -> None:
    """The control: with four knots in all the same budget ends more than 5 % off."""
    found = compare("queue-network", 99, knots=2)
    assert max(found.gap, found.violation) > 0.05


CHILD = """
import sys
from saddleback import Method, solve, zoo
import saddleback.solving.solve

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

name, capacity, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
baseline = peak()
instance = zoo.make(name, capacity=capacity)
solution = solve(instance.problem, instance.simulator, samples=samples, seed=0, method=Method(certificate=0))
print(baseline, peak(), instance.problem.num_states, len(solution.mixture.members))
"""


def memory(name: str, capacity: int, samples: int) -> int:
    """Peak memory above the import baseline of a solve in a process of its own, in kB."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD, name, str(capacity), str(samples)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    baseline, top, states, members = run.stdout.split()
    print(f"{name}: {states} states, {samples} samples: {int(top) - int(baseline)} kB above {baseline} kB")
    assert int(members) >= 1
    return int(top) - int(baseline)


@pytest.mark.check
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux's account of peak memory")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("samples", [30_000, pytest.param(SAMPLES, marks=pytest.mark.study)])
def test_a_million_states_take_the_memory_of_a_thousand(name: str, samples: int) -> None:
    small, large = memory(name, 31, samples), memory(name, 999, samples)
    assert large <= 2 * small
