"""The exact optimum against hand-solved problems, an independent dense linear program, and its own theory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from exact.random_tables import random_policy, random_table
from saddleback.errors import NumericalError
from saddleback.exact import best_policy, linear_program, policy_values, solve_exactly
from saddleback.simulators.table import Table


def machine(budget: float) -> Table:
    """Up: run (reward 3, cost 2, breaks with probability 1/2) or idle (reward 1). Down: repair (cost 1). γ = 1/2.

    With x = μ(up, run) the flow equations give μ(up, idle) = 2 − 5x/4 and μ(down) = x/4, so the reward is 2 + 7x/4 and
    the cost 9x/4: V* = 2 + 7B/9 for budgets 0 ≤ B ≤ 18/5, where x = 8/5 is reached.
    """
    P = np.array([[[0.5, 0.5], [1, 0]], [[1, 0], [1, 0]]])
    reward, cost = [[3.0, 1], [0, 0]], [[[2.0, 0], [1, 1]]]
    return Table.of(P, reward, cost, [budget], gamma=0.5, rho=[1, 0], senses=["<="], names=["cost"])


def bandit(b: float) -> Table:
    """γ = 0 and three actions (r, c) = (1, 0), (0.8, 0.5), (0, 1): V* is their concave envelope."""
    return Table.of(np.ones((1, 3, 1)), [[1, 0.8, 0]], [[[0, 0.5, 1]]], [b], gamma=0.0, rho=[1.0])


def test_a_machine_solved_by_hand() -> None:
    answer = solve_exactly(machine(1.8))
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(3.4, abs=1e-12)
    assert answer.constraint_values == pytest.approx([1.8], abs=1e-12)
    assert answer.multipliers == pytest.approx([7 / 9], abs=1e-12)
    assert answer.slater == pytest.approx(1.8, abs=1e-12)  # never running costs nothing
    assert answer.unit_slater == pytest.approx(0.9, abs=1e-12)  # costs span [0, 2]
    assert answer.reachable == pytest.approx([0.0], abs=1e-12)
    np.testing.assert_allclose(answer.policy.table[0], [4 / 9, 5 / 9], atol=1e-12)
    assert answer.residual < 1e-12


def test_a_slack_budget_has_no_price() -> None:
    answer = solve_exactly(machine(3.7))
    assert answer.value == pytest.approx(2 + 7 / 4 * 8 / 5, abs=1e-12)
    assert answer.multipliers == pytest.approx([0.0], abs=0)
    tie = solve_exactly(machine(3.6))  # exactly what the unconstrained optimum spends
    assert tie.value == pytest.approx(answer.value, abs=1e-9)
    assert tie.multipliers == pytest.approx([0.0], abs=0)


def test_a_budget_of_nothing_is_feasible_without_room() -> None:
    answer = solve_exactly(machine(0.0))
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(2.0, abs=1e-9)
    assert answer.slater == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "value", "price"), [(0.25, 0.9, 0.4), (0.75, 0.4, 1.6), (0.5, 0.8, None), (1.0, 0.0, None)]
)
def test_a_bandit_follows_its_concave_envelope(b: float, value: float, price: float | None) -> None:
    answer = solve_exactly(bandit(b))
    assert answer.value == pytest.approx(value, abs=1e-9)
    assert answer.slater == pytest.approx(1 - b, abs=1e-12)
    if price is None:  # a kink: any price between the slopes on its sides
        assert answer.multipliers[0] >= 0.4 - 1e-9
    else:
        assert answer.multipliers == pytest.approx([price], abs=1e-9)


def test_infeasible_is_a_verdict_without_numbers() -> None:
    answer = solve_exactly(machine(-0.5))
    assert answer.status == "infeasible"
    assert np.isnan(answer.value)
    assert np.isnan(answer.constraint_values).all() and np.isnan(answer.multipliers).all()
    assert answer.policy is None
    assert answer.max_slack == pytest.approx(-0.5, abs=1e-12)
    assert answer.reachable == pytest.approx([0.0], abs=1e-12)


def test_constraints_that_are_reachable_only_one_at_a_time() -> None:
    table = Table.of(
        np.ones((1, 2, 1)), [[0.0, 1]], [[[1.0, 0]], [[0, 10.0]]], [0.75, 7.5], gamma=0.0, rho=[1.0], names=["a", "b"]
    )
    answer = solve_exactly(table)  # playing the first with probability p: slacks p − 0.75 and 10(1 − p) − 7.5
    assert answer.status == "infeasible"
    assert answer.reachable == pytest.approx([1.0, 10.0], abs=1e-12)
    assert answer.unit_slater == pytest.approx(-0.25, abs=1e-12)
    assert answer.slater == pytest.approx(3.25 / 11 - 0.75, abs=1e-12)  # where the two slacks are equal


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99])
def test_agreement_with_an_independent_linear_program(m: int, seed: int, gamma: float) -> None:
    """Dense, in the user's units, by another interface; the two agree to 1e-7 of the signals' spans times H."""
    table = random_table(seed, m=m, gamma=gamma)
    answer = solve_exactly(table)
    S, A, H = table.num_states, table.num_actions, 1 / (1 - gamma)
    flow = np.repeat(np.eye(S), A, axis=1) - gamma * table.P.toarray().T
    sign = np.array([-1.0 if sense == ">=" else 1.0 for sense in table.senses])
    spans = np.ptp(table.constraints.reshape(m, -1), axis=1)
    rows, right = (sign / spans)[:, None] * table.constraints.reshape(m, -1), sign * table.thresholds / spans
    other = linprog(-table.reward.ravel() / 500, A_ub=rows, b_ub=right, A_eq=flow, b_eq=table.rho, method="highs")
    assert answer.status == "optimal" and other.status == 0
    assert answer.value / 500 == pytest.approx(-other.fun, abs=1e-7 * H)
    np.testing.assert_allclose(answer.multipliers * spans / 500, -other.ineqlin.marginals, atol=1e-6)
    np.testing.assert_allclose(policy_values(table, answer.policy)[0], answer.value, rtol=1e-10)
    slack = -sign * (answer.constraint_values - table.thresholds) / spans
    assert slack.min() >= -1e-10 * H
    assert answer.multipliers @ (slack * spans) <= 1e-7 * H * 500  # complementary slackness

    def widest(weights: np.ndarray) -> float:  # max z with weights·slack ≥ z
        z = (weights[:, None] * np.hstack([rows, (1 / weights)[:, None]]), weights * right)
        columns = np.hstack([flow, np.zeros((S, 1))])
        cost = np.append(np.zeros(S * A), -1.0)
        bounds = [(0, None)] * (S * A) + [(None, None)]
        return -float(linprog(cost, A_ub=z[0], b_ub=z[1], A_eq=columns, b_eq=table.rho, bounds=bounds).fun)

    assert answer.unit_slater == pytest.approx(widest(np.ones(m)), abs=1e-7 * H)
    assert answer.slater / spans.min() == pytest.approx(widest(spans / spans.min()), abs=1e-6 * H)


@pytest.mark.parametrize("seed", range(3))
def test_multipliers_are_the_price_of_a_threshold(seed: int) -> None:
    table = random_table(seed, m=2, tightness=0.5)
    answer = solve_exactly(table)
    for i, sense in enumerate(table.senses):
        step = 1e-6 * np.ptp(table.constraints[i])
        nearby = []
        for side in (-step, step):
            thresholds = table.thresholds.copy()
            thresholds[i] += side
            nearby.append(
                solve_exactly(
                    Table.of(
                        table.P,
                        table.reward,
                        table.constraints,
                        thresholds,
                        gamma=table.gamma,
                        rho=table.rho,
                        senses=table.senses,
                    )
                ).value
            )
        slope = (nearby[1] - nearby[0]) / (2 * step)
        # Values of size 5,000 are right to about 1e-11 of themselves, a difference over 2e-6 spans to about 0.05/span.
        assert (-slope if sense == ">=" else slope) == pytest.approx(answer.multipliers[i], abs=0.5 / (step / 1e-6))


def test_property_29_the_optimum_is_concave_and_non_increasing_in_the_threshold() -> None:
    table = random_table(11, m=1, gamma=0.9, tightness=0.0)
    problem = table.problem()
    free = best_policy(table, np.array([1.0, 0.0]))[1][1]
    top = best_policy(table, np.array([0.0, 1.0]))[1][1]
    unit_thresholds = np.linspace(free - 1, top, 25)
    values, prices = [], []
    for b in unit_thresholds:
        user = b * problem.scale[1] + problem.base[1] * problem.horizon
        moved = Table.of(
            table.P,
            table.reward,
            table.constraints,
            [user],
            gamma=table.gamma,
            rho=table.rho,
            senses=table.senses,
        )
        answer = solve_exactly(moved)
        assert answer.status == "optimal"
        values.append(answer.value / problem.scale[0])
        prices.append(answer.multipliers[0])
    F = np.array(values)
    assert np.all(np.diff(F) <= 1e-8)
    assert np.all(F[2:] - 2 * F[1:-1] + F[:-2] <= 1e-8)
    assert F[0] - F[-1] > 0.1
    assert np.all(np.diff(prices) >= -1e-6 * max(prices))


def at_unit_threshold(table: Table, b: float) -> Table:
    """The same problem with V_c ≥ b in the paper's units, whatever its sense and scale."""
    problem = table.problem()
    return dataclasses.replace(table, thresholds=np.array([b * problem.scale[1] + problem.base[1] * problem.horizon]))


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    gamma=st.sampled_from([0.0, 0.5, 0.95]),
    shares=st.lists(st.integers(-8, 32), min_size=3, max_size=3, unique=True),
)
def test_property_29_at_any_three_thresholds(seed: int, gamma: float, shares: list[int]) -> None:
    """F(b) never rises, and lies above the chord between its neighbours; from below the free optimum's V_c to max V_c.

    The linear program is right to 1e-9 of H; interpolation weights are at most one.
    """
    table = random_table(seed, m=1, gamma=gamma)
    problem = table.problem()
    free, top = (best_policy(table, row)[1][1] for row in np.eye(2))
    x, y, z = free + np.sort(np.array(shares)) / 32 * (top - free)
    F = [solve_exactly(at_unit_threshold(table, b)).value / problem.scale[0] for b in (x, y, z)]
    tolerance = 1e-8 / (1 - gamma)
    assert F[0] >= F[1] - tolerance
    assert F[1] >= F[2] - tolerance
    if z - x > 1e-6:
        w = (y - x) / (z - x)
        assert F[1] >= (1 - w) * F[0] + w * F[2] - tolerance


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), gamma=st.sampled_from([0.0, 0.5, 0.95]), margin=st.floats(1e-3, 1.0))
def test_property_28_verdicts_at_both_ends(seed: int, gamma: float, margin: float) -> None:
    """Beyond max V_c: infeasible, no policy, and how far. At b = 0, which every policy meets: λ* = 0, the free optimum."""
    table = random_table(seed, m=1, gamma=gamma)
    problem = table.problem()
    top = best_policy(table, np.array([0.0, 1.0]))[1][1]
    beyond = solve_exactly(at_unit_threshold(table, top + margin))
    assert beyond.status == "infeasible"
    assert beyond.policy is None and np.isnan(beyond.value)
    assert beyond.unit_slater == pytest.approx(-margin, abs=1e-9 / (1 - gamma))
    slack = solve_exactly(at_unit_threshold(table, 0.0))
    assert slack.status == "optimal"
    assert slack.multipliers.tolist() == [0.0]
    free = best_policy(table, np.array([1.0, 0.0]))[1]
    assert problem.unit_values_of(np.append(slack.value, slack.constraint_values))[0] == pytest.approx(
        free[0], abs=1e-9 / (1 - gamma)
    )


def test_the_policy_is_defined_where_nobody_goes() -> None:
    """State 2 is never reached; the Lagrangian r + λc must decide there, and there its best action is the second."""
    P = np.zeros((3, 2, 3))
    P[:2, :, 0] = 1
    P[2, :, 2] = 1
    reward = np.array([[1.0, 0], [0, 0], [0, 1.0]])
    constraint = np.array([[[0.0, 1], [0, 0], [0, 0]]])
    answer = solve_exactly(Table.of(P, reward, constraint, [1.0], gamma=0.5, rho=[1, 0, 0]))
    assert answer.value == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(answer.policy.table, [[0.5, 0.5], [1, 0], [0, 1]], atol=1e-12)


def test_at_most_as_many_random_states_as_constraints() -> None:
    for seed in range(5):
        answer = solve_exactly(random_table(seed, m=3, S=20))
        assert np.sum(answer.policy.table.max(axis=1) < 1 - 1e-9) <= 3


def trickle() -> tuple[Table, float]:
    """From the start one leaks into 300 good states, with probability 9e-10 each; or one takes 1e-4 a step for ever.

    The leak is worth γqH/(1 − γ(1 − q)) = 0.27 with q = 2.7e-7 and H = 1000, the sure thing 0.1.
    """
    n, gamma = 300, 0.999
    q = n * 9e-10
    P = np.zeros((n + 1, 2, n + 1))
    P[0, 0, 1:], P[0, 0, 0] = 9e-10, 1 - q
    P[0, 1, 0] = 1
    P[np.arange(1, n + 1), :, np.arange(1, n + 1)] = 1
    reward = np.ones((n + 1, 2))
    reward[0] = [0, 1e-4]
    constraint = np.zeros((1, n + 1, 2))
    constraint[0, 0, 0] = 1
    rho = np.zeros(n + 1)
    rho[0] = 1
    leak = gamma * q * 1000 / (1 - gamma * (1 - q))
    return Table.of(P, reward, constraint, [0.0], gamma=gamma, rho=rho), leak


def test_probabilities_that_highs_would_drop_are_kept() -> None:
    table, leak = trickle()
    answer = solve_exactly(table)
    assert answer.value == pytest.approx(leak, abs=1e-9)
    np.testing.assert_array_equal(answer.policy.table[0], [1, 0])
    flow = np.repeat(np.eye(301), 2, axis=1) - 0.999 * table.P.toarray().T
    other = linprog(-table.reward.ravel(), A_eq=flow, b_eq=table.rho, method="highs")  # HiGHS with its default
    assert other.status == 0
    assert -other.fun == pytest.approx(0.1, abs=1e-6)  # "optimal", of another program
    assert leak > 0.25


def test_an_answer_to_another_program_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_program, "SMALLEST_ENTRY", 1e-9)
    with pytest.raises(NumericalError, match="occupancy linear program was solved with a residual"):
        solve_exactly(trickle()[0])


@pytest.mark.slow
def test_no_policy_beats_the_optimum_by_more_than_the_multipliers_pay_for() -> None:
    table = random_table(3, m=2, tightness=0.3)
    answer = solve_exactly(table)
    assert answer.multipliers.max() > 0
    sign = np.array([1.0 if sense == ">=" else -1.0 for sense in table.senses])
    for seed in range(300):
        values = policy_values(table, random_policy(table, seed))
        slack = sign * (values[1:] - table.thresholds)
        bound = answer.value - answer.multipliers @ slack  # V_r ≤ V* − λᵀ(slack), whatever the policy
        assert values[0] <= bound + 1e-6
