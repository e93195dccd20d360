"""All samples find the policy; what they flatter it by is measured and taken off.

The actions of the first problem differ by less than its few samples can tell, so that they flatter what they choose. Seeds are fixed: 0 … 29, and a run repeats bit for bit, so that nothing is a false alarm.
"""

import numpy as np
import pytest

from saddleback import Method, zoo
from saddleback.exact import mixture_values, solve_exactly
from saddleback.method.evaluators.lstd import LSTD
from saddleback.method.framework import Outcome
from saddleback.method.solvers.plug_in import PlugIn
from saddleback.sampling.buffer import counted
from saddleback.simulators.table import Table
from saddleback.solving.find import mixture_interval
from saddleback.solving.pooling import optimism
from saddleback.solving.prepare import prepare
from saddleback.solving.prepared import oracle_of
from spelled_out import solve

SEEDS = range(30)


def alike(S=12, A=8, gamma=0.9):
    """Actions that differ a little in where they lead; the reward and the constraint are those of the state."""
    rng = np.random.default_rng(11)
    P = 0.8 * rng.dirichlet(np.full(S, 0.3), size=S)[:, None] + 0.2 * rng.dirichlet(np.full(S, 0.3), size=(S, A))
    reward, cost = (np.repeat(x[:, None], A, axis=1) for x in rng.random((2, S)))
    return Table.of(P, reward, [cost], [0.0], gamma=gamma, rho=np.full(S, 1 / S))


def error_in_standard_errors(table, seed, buffers):
    """(estimate − truth) of the reward in standard errors of the estimate."""
    problem = table.problem()
    found = solve(problem, table.simulator(), samples=40 * 96, seed=seed, buffers=buffers)
    members = np.zeros((len(found.mixture.members), 2))
    limits = mixture_interval(found.prepared, Outcome(found.mixture, members, [], 0), 0.6826894921370859)
    truth = mixture_values(table, found.mixture)[0]
    return (found.value - truth) / (problem.scale[0] * (limits.high - limits.low)[0] / 2)


def test_what_the_samples_flatter_is_taken_off():
    table = alike()
    mended = np.mean([error_in_standard_errors(table, s, None) for s in SEEDS])
    plain = np.mean([error_in_standard_errors(table, s, 1) for s in SEEDS])
    print(f"seeds {SEEDS}: mean error {mended:.2f} standard errors, {plain:.2f} where nothing is taken off")
    assert plain > 1.5  # the control: one buffer for both, unmended
    assert abs(mended) < plain / 3


def test_equal_halves_flatter_nothing():
    instance = zoo.make("garnet")
    parts = prepare(instance.problem, instance.simulator, 20_000, 0, Method())
    problem, half = parts.problem, parts.solver_buffer
    oracle = oracle_of(problem, PlugIn(), half, LSTD(), half, None)
    alone = lambda sigmas: PlugIn().solve(problem, half, sigmas), lambda policy: LSTD().evaluate(problem, half, policy)
    np.testing.assert_array_equal(optimism(problem, oracle, [[alone, alone]], lambda _: np.ones(2)).bias, 0.0)


def test_what_is_known_exactly_is_flattered_by_nothing():
    """Whoever never transmits earns 0, and the samples say so without an error."""
    instance = zoo.make("wireless", capacity=4)
    parts = prepare(instance.problem, instance.simulator, 5_000, 0, Method())
    assert np.all(parts.optimism.bias != 0)
    _, values = parts.oracle(np.array([0.0, 1.0]))
    assert parts.problem.values_of(values)[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["garnet", "random-linear"])
def test_all_samples_find_the_policy_and_none_is_left(name):
    instance = zoo.make(name)
    parts = prepare(instance.problem, instance.simulator, 30_011, 0, Method())
    assert parts.samples == instance.simulator.num_queries == 30_011
    assert parts.buffer.counts.sum() == 30_011 - parts.buffer.num_unused
    if parts.design.operator is None:
        assert parts.buffer.num_unused == 0
        sigma = np.array([1.0, 0.0])
        best = counted(parts.buffer)
        expected = PlugIn().solve(parts.problem, best, sigma[None])[0]
        actions = expected.act(np.arange(parts.problem.num_states), np.random.default_rng(0))
        found = parts.oracle(sigma)[0].act(np.arange(parts.problem.num_states), np.random.default_rng(0))
        np.testing.assert_array_equal(found, actions)


@pytest.mark.parametrize("method", [Method(buffers=2), Method(resolution=50), Method(mode="literal", resolution=50)])
def test_samples_stay_apart_where_that_is_asked_for_or_promised(method):
    instance = zoo.make("garnet")
    parts = prepare(instance.problem, instance.simulator, 20_000, 0, method)
    assert parts.pool is None and parts.optimism is None
    assert parts.buffer is parts.evaluation_buffer


def test_a_relaxed_target_lies_inside_where_the_limit_binds():
    instance = zoo.make("queue")
    exact = solve_exactly(instance.table)
    assert exact.multipliers[0] > 0
    found = solve(instance.problem, instance.simulator, samples=40_000)
    row = found.constraints[0]
    width = (row.high - row.low) / (2 * 1.959964)
    inside = instance.problem.constraints[0].threshold - row.value
    assert 0.3 * width < abs(inside) < 0.9 * width
    exactly = solve(instance.problem, instance.simulator, samples=40_000, buffers=2)
    assert exactly.constraints[0].value == pytest.approx(instance.problem.constraints[0].threshold, abs=1e-6)
