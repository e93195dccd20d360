"""Every entry of every BY_NAME against the contract shipped in saddleback.testing, and contracts that can fail."""

import numpy as np
import pytest

from helpers import needs_by_name
from saddleback import testing
from saddleback.designs import BY_NAME as DESIGNS
from saddleback.features import FeatureFunction, FeatureMatrix, OneHot
from saddleback.instances.zoo import make
from saddleback.method.duals import BY_NAME as DUALS
from saddleback.method.evaluators import BY_NAME as EVALUATORS
from saddleback.method.evaluators import LSPE
from saddleback.method.evaluators.rollouts import Rollouts
from saddleback.method.oracles import InteractiveEvaluator, InteractiveSolver, Interval, Proposal
from saddleback.method.solvers import BY_NAME as SOLVERS
from saddleback.problem.policies import TabularPolicy


@pytest.mark.slow
@pytest.mark.parametrize("name", SOLVERS)
def test_solver(name):
    if package := needs_by_name(name).package:
        pytest.importorskip(package[0], reason=f"{package[0]} is not installed")
    solver = SOLVERS[name](steps=2000) if name == "stable-baselines3" else SOLVERS[name]()  # networks take their time
    if isinstance(solver, InteractiveSolver):
        testing.check_interactive_solver(solver)
    else:
        testing.check_solver(solver, tabular=needs_by_name(name).every_pair)


@pytest.mark.parametrize("name", EVALUATORS)
def test_evaluator(name):
    evaluator = EVALUATORS[name]()
    if isinstance(evaluator, InteractiveEvaluator):
        testing.check_interactive_evaluator(evaluator)
    else:
        testing.check_evaluator(evaluator, tabular=name.startswith("tabular"))


@pytest.mark.parametrize("name", DESIGNS)
def test_design(name):
    testing.check_design(DESIGNS[name](), tabular=name == "full")


def test_duals():
    assert set(DUALS) == {"projected-descent", "column-generation"}
    testing.check_dual(DUALS["column-generation"](np.array([0.3])), 1)
    testing.check_dual(DUALS["column-generation"](np.array([0.3, 0.2])), 2)
    testing.check_dual(DUALS["projected-descent"](np.array([0.3]), 10.0, 0.1, 500), 1)
    testing.check_dual(DUALS["projected-descent"](np.array([0.3, 0.2]), 10.0, 0.1, 500), 2)


def test_features():
    rng = np.random.default_rng(0)
    testing.check_features(OneHot(4, 3), np.arange(4))
    testing.check_features(FeatureMatrix(rng.random((4, 3, 2))), np.arange(4))
    square = FeatureFunction(lambda s, a: np.column_stack([s[:, 0] ** 2, a * s[:, 0]]), 2, 3)
    testing.check_features(square, rng.random((7, 1)))
    testing.check_features(make("hard-instance", dim=8).problem.features, np.arange(4))
    testing.check_features(make("hard-instance", dim=40).problem.features, np.arange(4))


class Unmetered(Rollouts):
    def evaluate_interactively(self, problem, sampler, policies):
        sampler._model.sample(np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.random.default_rng(0))
        return super().evaluate_interactively(problem, sampler, policies)


class Lazy:
    def solve(self, problem, buffer, mixing):
        return [TabularPolicy.deterministic(np.zeros(5), 3) for _ in mixing]


class Boastful(LSPE):
    def evaluate(self, problem, buffer, policy):
        return super().evaluate(problem, buffer, policy) * 0.5

    def interval(self, problem, buffer, policy, confidence):
        values = self.evaluate(problem, buffer, policy)
        return Interval(values, values)


class Endless:
    def propose(self, steps):
        return Proposal((1.0,), None, False)


def test_the_contracts_can_fail():
    with pytest.raises(AssertionError, match="below the optimum"):
        testing.check_solver(Lazy(), tolerance=1e-3)
    with pytest.raises(AssertionError, match="too far from the truth"):
        testing.check_evaluator(Boastful())
    with pytest.raises(AssertionError, match="through the sampler"):
        testing.check_interactive_evaluator(Unmetered())
    with pytest.raises(AssertionError, match="must end"):
        testing.check_dual(Endless(), 1, 100)
