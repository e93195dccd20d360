"""Feature maps in the method: groups of one state are one-hot features, and tiles of a box find what a table finds."""

import dataclasses

import numpy as np
import pytest

from helpers import random_design, random_table, sampled
from saddleback.features import Aggregation, OneHot, PerAction, StateMatrix, make
from saddleback.method.solvers import LSMDVI, PlugIn
from saddleback.problem.spaces import FiniteStates
from saddleback.simulators.table import Table


@pytest.mark.parametrize("solver", [LSMDVI(), PlugIn()])
@pytest.mark.parametrize("direct", [False, True])
def test_groups_of_one_are_one_hot(solver, direct):
    """The order of the features differs, the samples do not: the same values up to rounding, and the same policy."""
    table, states = random_table(3), np.arange(6)
    problem = dataclasses.replace(table.problem(), features=OneHot(6, 3))
    grouped = dataclasses.replace(problem, features=PerAction(Aggregation(np.arange(6)), 3, direct=direct))
    sigma, policies = np.array([[0.6, 0.4]]), []
    for p in (problem, grouped):
        buffer = sampled(table, p, random_design(p, 0), 60, 15)
        policies.append(solver.solve(p, buffer, sigma)[0])
    one, two = (p.features.values(states, p.theta) for p in policies)
    assert np.allclose(one, two, rtol=1e-9)
    assert np.array_equal(policies[0].probabilities(states), policies[1].probabilities(states))


def test_what_is_linear_in_the_features_is_learned_through_them():
    """P and r linear in bumps of the state's number: LS-MDVI on bumps and on their matrix is one computation."""
    rng, S, A = np.random.default_rng(5), 12, 2
    features = make("radial-basis", FiniteStates(S), A, grid=4)
    phi = features.all(np.arange(S))
    P = phi @ rng.dirichlet(np.full(S, 0.3), features.dim)
    P /= P.sum(axis=-1, keepdims=True)
    reward, cost = phi @ rng.random(features.dim), phi @ rng.random(features.dim)
    ranges = {"reward_range": (0.0, 1.0), "ranges": ((0.0, 1.0),)}
    table = Table.of(P, reward, cost[None], [1.0], gamma=0.7, rho=np.full(S, 1 / S), phi=phi, **ranges)
    by_matrix = table.problem()
    held = PerAction(StateMatrix(features.state_features.at(np.arange(S))), A)
    thetas = []
    for problem in (by_matrix, *(dataclasses.replace(by_matrix, features=f) for f in (features, held))):
        buffer = sampled(table, problem, random_design(problem, 1), 40, 10)
        thetas.append(LSMDVI().solve(problem, buffer, np.array([[0.5, 0.5]]))[0].theta)
    assert np.allclose(thetas[0], thetas[1], rtol=1e-8) and np.allclose(thetas[0], thetas[2], rtol=1e-8)
