"""Column generation: the linear program's answer from a handful of oracle calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from helpers import random_table
from saddleback import zoo
from saddleback.exact import best_policy, policy_values, solve_exactly
from saddleback.method.duals import ColumnGeneration, ProjectedDescent
from saddleback.method.duals.column_generation import column_shift
from saddleback.method.framework import Oracle, run
from saddleback.method.master_lp import matrix_game, solve_master, upper_bound
from saddleback.method.oracles import OracleErrors
from saddleback.runs.settings import Method
from saddleback.simulators.table import Table
from saddleback.solving.prepare import prepare
from saddleback.theory.meta_theorem import column_guarantee


def exact_oracle(table):
    """Solver and evaluator on the true table, in the paper's units."""
    problem = table.problem()
    return Oracle(
        lambda sigmas: [best_policy(table, s)[0] for s in sigmas],
        lambda p: problem.unit_values_of(policy_values(table, p)),
    )


def feasible_table(seed, m):
    """A random table whose thresholds bind but can be met together."""
    table = random_table(seed, S=8, m=m)
    problem = table.problem()
    reward_best = best_policy(table, np.eye(1 + m)[0])[1][1:]
    all_best = best_policy(table, np.append(0.0, np.ones(m) / m))[1][1:]
    b = 0.5 * (reward_best + all_best)
    return Table.of(
        table.P, table.reward, table.constraints, np.minimum(b, all_best), gamma=problem.gamma, rho=table.rho,
        reward_range=table.reward_range, ranges=table.ranges,
    )  # fmt: skip


@pytest.mark.parametrize("m", [1, 2, 4])
@pytest.mark.parametrize("seed", range(8))
def test_equals_the_occupancy_program(seed, m):
    """The value, at most m + 1 policies, and the multipliers of the linear program (property 17)."""
    table = feasible_table(seed, m)
    problem = table.problem()
    dual = ColumnGeneration(problem.thresholds, 1e-9)
    outcome = run(exact_oracle(table), dual)
    exact = solve_exactly(table)
    best = problem.unit_values_of(np.array([exact.value, *exact.constraint_values]))[0]
    assert outcome.values[0] == pytest.approx(best, abs=1e-7)
    assert np.all(outcome.values[1:] >= problem.thresholds - 1e-8)
    assert len(outcome.mixture.members) <= m + 1
    assert dual.gap(outcome.steps) <= 1e-7
    prices = np.array(dual.propose(outcome.steps).multipliers)
    # Multipliers may be degenerate; what they must do is certify the value.
    columns = np.array([s.values for s in outcome.steps])
    assert (columns[:, 0] + columns[:, 1:] @ prices).max() - prices @ problem.thresholds == pytest.approx(
        best, abs=1e-6
    )
    if m == 1:
        np.testing.assert_allclose(problem.multipliers_of(prices), exact.multipliers, atol=1e-5)
    assert len(outcome.steps) <= {1: 15, 2: 25, 4: 40}[m]


@pytest.mark.parametrize("name", [n for n in zoo.BY_NAME if n not in zoo.CONTINUOUS])
def test_on_every_zoo_table(name):
    small = (
        {"beds": 3, "waiting": 4, "limit": 0.4} if name == "ward" else {}
    )  # the linear program takes minutes for more
    table = zoo.make(name, **small).table
    problem = table.problem()
    outcome = run(exact_oracle(table), ColumnGeneration(problem.thresholds, 1e-9))
    exact = solve_exactly(table)
    assert problem.values_of(outcome.values)[0] == pytest.approx(exact.value, abs=1e-6 * (1 + abs(exact.value)))
    assert len(outcome.steps) <= 15


def test_multipliers_above_a_hundred_are_found():
    """A constraint worth little reward per unit: λ* > 100 in the paper's units, where a cap would have stuck."""
    P = np.zeros((2, 2, 2))
    P[:, :, 1] = 1.0
    P[1, :, 1] = 1.0
    reward = np.array([[1.0, 0.0], [0.0, 0.0]])
    cost = np.array([[0.0, 0.004], [0.0, 0.0]])
    table = Table.of(P, reward, cost[None], [0.002], gamma=0.5, rho=[1.0, 0.0], reward_range=(0, 1), ranges=((0, 1),))
    problem = table.problem()
    dual = ColumnGeneration(problem.thresholds, 1e-9)
    outcome = run(exact_oracle(table), dual)
    assert dual.propose(outcome.steps).multipliers[0] == pytest.approx(250.0)
    assert outcome.values[0] == pytest.approx(0.5)


def test_inactive_constraint_takes_one_call():
    table = random_table(2)
    outcome = run(exact_oracle(table), ColumnGeneration(np.zeros(1)))
    assert len(outcome.steps) == 1
    assert len(outcome.mixture.members) == 1


@pytest.mark.parametrize("m", [1, 3])
def test_infeasible_target_ends_with_the_best_effort(m):
    table = random_table(3, m=m)
    problem = table.problem()
    beyond = problem.thresholds + solve_exactly(table).unit_slater + 0.2
    dual = ColumnGeneration(beyond)
    outcome = run(exact_oracle(table), dual)
    assert not dual.feasible(outcome.steps)
    assert dual.gap(outcome.steps) == np.inf
    assert np.min(outcome.values[1:] - beyond) == pytest.approx(-0.2, abs=1e-6)


def test_jointly_tight_constraints_need_phase_one():
    """No single c_j alone, nor any mixture of those, is feasible; μᵀc is."""
    reward = np.array([[1.0, 0.0, 0.0, 0.0]])
    first, second = np.array([[0.0, 1.0, 0.0, 0.7]]), np.array([[0.0, 0.0, 1.0, 0.7]])
    table = Table.of(
        np.ones((1, 4, 1)), reward, np.array([first, second]), [0.6, 0.6], gamma=0.0, rho=[1.0],
        reward_range=(0, 1), ranges=((0, 1), (0, 1)),
    )  # fmt: skip
    dual = ColumnGeneration(table.problem().thresholds)
    outcome = run(exact_oracle(table), dual)
    assert dual.feasible(outcome.steps)
    assert outcome.values[0] == pytest.approx(solve_exactly(table).value, abs=1e-9)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(-0.2, 1.2))
def test_hull_master_equals_linprog(seed, k, b):
    columns = np.random.default_rng(seed).random((k, 2))
    ours = solve_master(columns, np.array([b]))
    theirs = linprog(
        -columns[:, 0], A_ub=-columns[:, 1:].T, b_ub=[-b], A_eq=np.ones((1, k)), b_eq=[1.0], method="highs"
    )
    assert (ours is None) == (theirs.status == 2)
    if ours is None:
        return
    assert ours.value == pytest.approx(-theirs.fun, abs=1e-9)
    assert (ours.weights > 0).sum() <= 2
    assert ours.weights @ columns[:, 1] >= b - 1e-12
    lagrangian = (columns[:, 0] + ours.multipliers[0] * (columns[:, 1] - b)).max()
    assert lagrangian == pytest.approx(ours.value, abs=1e-9)  # λ̂ certifies Z
    assert upper_bound(columns, ours.multipliers[None], np.array([b]), ours.value)[1] <= 1e-9


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_prices_support_the_hull_at_its_vertices(seed, k):
    """With the target exactly at a column: r_i + λ(c_i − b) ≤ the value for all i, which any segment's slope need not give."""
    columns = np.random.default_rng(seed).random((k, 2))
    for b in columns[:, 1]:
        master = solve_master(columns, np.array([b]))
        lagrangian = columns[:, 0] + float(master.multipliers[0]) * (columns[:, 1] - b)
        # Values are compared to 1e-9, and a corner is one to 1e-8.
        assert lagrangian.max() <= master.value + 1.1e-8 * (1 + master.multipliers[0])


def test_matrix_game_of_matching_pennies():
    weights, prices, value = matrix_game(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    np.testing.assert_allclose(weights, [0.5, 0.5])
    np.testing.assert_allclose(prices, [0.5, 0.5])
    assert value == pytest.approx(0.0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["garnet", "random-linear"])
def test_equals_a_long_subgradient_run(name):
    """Same buffers: 2·10⁴ literal iterations approach what column generation finds at once (property 18)."""
    instance = zoo.make(name, **({"states": 40} if name == "random-linear" else {}))
    parts = prepare(instance.problem, instance.simulator, 100_000, 1, Method(resolution=400))
    b, H = instance.problem.thresholds, instance.problem.horizon
    columns = run(parts.oracle, ColumnGeneration(b, 1e-7))
    K, U = 20_000, 20.0
    steps = run(parts.oracle, ProjectedDescent(b, U, U / (H * np.sqrt(K)), K))
    # The regret of the average: UH/(2√K) in the reward, H/√K in the constraint.
    assert abs(columns.values[0] - steps.values[0]) <= U * H / (2 * np.sqrt(K)) + 1e-6
    assert steps.values[1] >= b[0] - H / np.sqrt(K)
    assert abs(steps.values[1] - columns.values[1]) <= 0.01 * H


def realised(instance, seed, samples, m):
    """One default run with f_m and f_e computed from the true table, against the guarantee of column generation."""
    problem, table = instance.problem, instance.table
    parts = prepare(problem, instance.simulator, samples, seed, Method())
    tau, b = 1e-6 * problem.horizon, problem.thresholds
    outcome = run(parts.oracle, ColumnGeneration(b, tau))
    truth = {id(p): problem.unit_values_of(policy_values(table, p)) for p, _ in parts.oracle.columns}
    f_e = max(float(np.abs(values - truth[id(p)]).max()) for p, values in parts.oracle.columns)
    f_m = 0.0
    for sigma in parts.oracle.asked:
        policy, _ = parts.oracle(sigma)
        f_m = max(f_m, float((best_policy(table, sigma)[1] - truth[id(policy)]) @ sigma))
    values = outcome.mixture.weights @ np.array([truth[id(p)] for p in outcome.mixture.members])
    shifted = b + f_m + f_e + tau  # b⁺
    users = shifted * problem.scale[1:] + problem.base[1:] * problem.horizon
    harder = Table.of(
        table.P, table.reward, table.constraints, users, gamma=table.gamma, rho=table.rho, senses=table.senses,
        names=table.names, reward_range=table.reward_range, ranges=table.ranges,
    )  # fmt: skip
    exact = solve_exactly(harder)
    best = -np.inf
    if exact.status == "optimal":
        best = float(problem.unit_values_of(np.array([exact.value, *exact.constraint_values]))[0])
    assert np.all(values[1:] >= b - f_e - 1e-9)
    assert values[0] >= best - (f_m + 2 * f_e + tau) - 1e-9
    return len(outcome.steps), f_m, f_e


def check_realised(m, seeds, most_calls):
    calls = []
    for seed in seeds:
        instance = zoo.make("garnet", constraints=m, seed=seed, states=20, actions=3)
        calls.append(realised(instance, seed, 60_000, m))
    worst = np.max(calls, axis=0)
    print(
        f"m = {m}, seeds {seeds[0]}..{seeds[-1]}: at most {worst[0]:.0f} calls, f_m {worst[1]:.3g}, f_e {worst[2]:.3g}"
    )
    assert worst[0] <= most_calls


@pytest.mark.slow
@pytest.mark.parametrize(("m", "most_calls"), [(1, 15), (4, 40)])
def test_calls_and_guarantee_with_realised_errors(m, most_calls):
    check_realised(m, range(8), most_calls)


@pytest.mark.study
@pytest.mark.parametrize(("m", "most_calls"), [(1, 15), (4, 40)])
def test_calls_and_guarantee_on_50_seeds(m, most_calls):
    check_realised(m, range(50), most_calls)


def test_guarantee_formulas():
    errors, tau = OracleErrors(0.1, 0.2), 0.05
    relaxed = 3.0 + column_shift(errors, tau, strict=False)
    promise = column_guarantee(errors, tau, target=relaxed, horizon=10.0, zeta=1.0, threshold=3.0)
    assert promise.reward_loss == pytest.approx(0.55)
    assert promise.violation == pytest.approx(0.55)
    strict = 3.0 + column_shift(errors, tau, strict=True)
    promise = column_guarantee(errors, tau, target=strict, horizon=10.0, zeta=1.0, threshold=3.0)
    assert promise.violation == 0.0
    assert promise.reward_loss == pytest.approx(min(10.0, 0.55 * (1 + 10.0)))
    assert column_guarantee(errors, tau, target=3.9, horizon=10.0, zeta=0.5, threshold=3.0).reward_loss == 10.0


def test_phase_one_survives_a_degenerate_game():
    """Columns that improve nothing by themselves can still lead to a feasible mixture (several optimal prices)."""
    rows = [[0, 0, 0], [1, -1, -1], [-1, 1, -1], [-1, -1, 1], [0.9, 0.9, -1], [0.9, -1, 0.9], [-1, 0.9, 0.9]]
    c = (np.array(rows, dtype=float).T[:, None, :] + 1) / 2
    reward = np.zeros((1, 7))
    reward[0, 0] = 1.0
    table = Table.of(
        np.ones((1, 7, 1)), reward, c, [0.55] * 3, gamma=0.0, rho=[1.0], reward_range=(0, 1), ranges=((0, 1),) * 3
    )
    dual = ColumnGeneration(table.problem().thresholds)
    outcome = run(exact_oracle(table), dual)
    assert dual.feasible(outcome.steps)
    assert outcome.values[0] == pytest.approx(solve_exactly(table).value, abs=1e-6)
