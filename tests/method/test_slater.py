"""The Slater constant and the three-way verdict."""

import numpy as np
import pytest

from helpers import random_table
from saddleback.exact import best_policy, policy_values, solve_exactly
from saddleback.method.framework import Oracle
from saddleback.method.oracles import Interval
from saddleback.method.slater import Slater, Verdict, estimate_slater
from saddleback.simulators.table import Table


def exact_slater(table, width=0.0):
    problem = table.problem()
    oracle = Oracle(
        lambda sigmas: [best_policy(table, s)[0] for s in sigmas],
        lambda p: problem.unit_values_of(policy_values(table, p)),
    )

    def interval(policy):
        v = problem.unit_values_of(policy_values(table, policy))
        return Interval(v - width, v + width)

    return estimate_slater(problem, oracle, interval, lambda s: best_policy(table, s)[1] @ s, accuracy=0.0)


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_equals_the_linear_program(seed, m):
    table = random_table(seed, m=m)
    slater = exact_slater(table)
    assert slater.estimate == pytest.approx(solve_exactly(table).unit_slater, abs=1e-7)
    assert slater.low <= slater.estimate + 1e-9
    assert slater.high >= slater.estimate - 1e-9


def test_three_verdicts():
    table = random_table(0, m=2)
    zeta = exact_slater(table).estimate

    def moved(shift):
        return Table.of(
            table.P, table.reward, table.constraints, table.thresholds + shift, gamma=table.gamma, rho=table.rho,
            reward_range=table.reward_range, ranges=table.ranges,
        )  # fmt: skip

    assert exact_slater(moved(zeta - 0.3), 0.2).verdict is Verdict.FEASIBLE
    assert exact_slater(moved(zeta), 0.2).verdict is Verdict.UNDECIDED
    assert exact_slater(moved(zeta + 0.3), 0.2).verdict is Verdict.INFEASIBLE


def test_verdict_boundaries():
    reach = np.zeros(1)
    assert Slater(0.0, 0.0, 0.0, reach, reach, None, reach).verdict is Verdict.FEASIBLE
    assert Slater(0.0, -1e-9, 0.0, reach, reach, None, reach).verdict is Verdict.UNDECIDED
    assert Slater(-1.0, -2.0, -1e-9, reach, reach, None, reach).verdict is Verdict.INFEASIBLE
