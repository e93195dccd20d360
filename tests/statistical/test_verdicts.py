"""Feasible problems are never called infeasible, limits hold for observed rewards, and bent features are noticed."""

import numpy as np
import pytest
from scipy.stats import binom

from saddleback import Table, zoo
from saddleback.exact import mixture_values
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.verdict import Reason, Status
from saddleback.simulators.generative_model import GenerativeModel
from spelled_out import solve

pytestmark = pytest.mark.check


@pytest.mark.parametrize(
    ("mode", "dim", "samples"), [("default", 24, 100_000), ("literal", 24, 20_000), ("default", 40, 200_000)]
)
def test_a_feasible_problem_is_never_called_infeasible(mode, dim, samples):
    """Few samples for many dimensions: the solver's policy is poor, and that proves nothing about all policies."""
    for seed in range(4):
        instance = zoo.make("hard-instance", dim=dim)
        s = solve(instance.problem, instance.simulator, samples=samples, mode=mode, seed=seed, iterations=50)
        assert s.verdict.reason is not Reason.PROBABLY_NO_POLICY


@pytest.mark.parametrize("name", ["garnet", "queue", "wireless", "gridworld"])
def test_small_budgets_do_not_refute_feasible_problems(name):
    instance = zoo.make(name)
    for seed in range(8):
        for mode in ("default", "literal"):
            s = solve(instance.problem, instance.simulator, samples=6_000, mode=mode, seed=seed, iterations=30)
            assert s.verdict.reason is not Reason.PROBABLY_NO_POLICY


def test_literal_mode_does_not_call_a_dropped_constraint_solved():
    instance = zoo.make("wireless")
    s = solve(instance.problem, instance.simulator, samples=200_000, mode="literal", iterations=1)
    assert s.status is Status.BUDGET_EXHAUSTED


def test_limits_hold_for_observed_rewards():
    """One state, Bernoulli signals: of 200 runs at 95 % at most 30 may miss (chance 1e-6 at p = .06)."""
    problem = CMDP(
        gamma=0.5,
        start=Start.over_all([1.0]),
        num_actions=1,
        states=FiniteStates(1),
        reward=None,
        reward_range=(0, 1),
        constraints=[Constraint("c", None, ">=", 0.4, range=(0, 1))],
    )

    def sample(states, actions, rng):
        return states, (rng.random((len(states), 2)) < [0.3, 0.6]).astype(float)

    runs, misses = 200, 0
    for seed in range(runs):
        s = solve(problem, GenerativeModel(sample, FiniteStates(1), 2), samples=2000, seed=seed)
        misses += not s.constraints[0].low <= 1.2 <= s.constraints[0].high
    print(f"seeds 0..{runs - 1}: {misses} misses")
    assert misses <= int(binom.isf(1e-6, runs, 0.06))
    assert misses >= 1  # limits that never miss 200 times at 95 % would be far too wide (chance 4e-5)


def test_bent_features_get_no_guarantee_and_a_remark():
    """φ ≡ 1 cannot carry these rewards; the known signals alone show it."""
    rng = np.random.default_rng(0)
    table = Table.of(
        rng.dirichlet(np.ones(4), (4, 3)), rng.random((4, 3)), rng.random((1, 4, 3)), [0.5], gamma=0.5,
        rho=np.full(4, 0.25), phi=np.ones((4, 3, 1)), reward_range=(0, 1), ranges=((0, 1),),
    )  # fmt: skip
    s = solve(table.problem(), table.simulator(), samples=4_000_000, mode="literal", batch_size=20_000, iterations=50)
    assert any("not linear in the features" in r.text for r in s.remarks)
    assert any("no a-priori guarantee" in r.text for r in s.remarks)
    linear = zoo.make("random-linear")
    t = solve(linear.problem, linear.simulator, samples=50_000)
    assert not any("not linear" in r.text for r in t.remarks)
    assert mixture_values(linear.table, t.mixture).shape == (2,)


def test_threshold_at_the_very_edge():
    """A constant cost of 2 at γ = .8 costs exactly 10: '<= 10' is feasible for every policy."""
    P = np.full((2, 2, 2), 0.5)
    table = Table.of(P, np.eye(2), np.full((1, 2, 2), 2.0), [10.0], gamma=0.8, rho=[1.0, 0.0], senses=["<="])
    assert solve(table.problem(), table.simulator(), samples=10_000).status is Status.SOLVED
