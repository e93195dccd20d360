"""Column generation on the true table against hand-solved problems, the occupancy linear program, and its own promises."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from exact.random_tables import degenerate_tables, random_table
from repository.offenders import expect_none
from saddleback import zoo
from saddleback.errors import InputError, NumericalError
from saddleback.exact import (
    best_policy,
    column_generation,
    mixture_values,
    policy_values,
    solve_by_columns,
    solve_exactly,
)
from saddleback.exact.occupancy_lp import ExactAnswer
from saddleback.simulators.table import Table

TOLERANCE = 1e-6


def machine(budget: float) -> Table:
    """Run (reward 3, cost 2, may break) or idle (reward 1); a repair costs 1. V* = 2 + 7B/9 for 0 ≤ B ≤ 18/5.

    ``test_occupancy_lp`` solves it by hand.
    """
    P = np.array([[[0.5, 0.5], [1, 0]], [[1, 0], [1, 0]]])
    reward, cost = [[3.0, 1], [0, 0]], [[[2.0, 0], [1, 1]]]
    return Table.of(P, reward, cost, [budget], gamma=0.5, rho=[1, 0], senses=["<="], names=["cost"])


def bandit(b: float) -> Table:
    """γ = 0 and three actions (r, c) = (1, 0), (0.8, 0.5), (0, 1): V* is their concave envelope."""
    return Table.of(np.ones((1, 3, 1)), [[1, 0.8, 0]], [[[0, 0.5, 1]]], [b], gamma=0.0, rho=[1.0])


def agree(table: Table, answer: ExactAnswer, truth: ExactAnswer | None = None) -> None:
    """The same verdict and numbers as the linear program, each within what it promises of itself."""
    truth = truth or solve_exactly(table)
    problem = table.problem()
    span, widths, H = float(problem.scale[0]), np.abs(problem.scale[1:]), problem.horizon
    assert answer.status == truth.status
    assert answer.method == "columns" and truth.method == "lp"
    # ζ is right to the tolerance, in spans; in the user's units to that of the smallest, or to rounding in the largest.
    assert answer.unit_slater == pytest.approx(truth.unit_slater, abs=1e-6 + 1e-9 * H)
    assert answer.slater == pytest.approx(truth.slater, abs=1e-6 * widths.min() + 1e-9 * H * widths.max())
    np.testing.assert_allclose(answer.reachable, truth.reachable, atol=1e-6 * widths.max())
    if answer.status == "infeasible":
        assert np.isnan(answer.value) and answer.policy is None and answer.mixture is None
        return
    # A threshold missed by a rounding error is worth its multiplier; "residual" is the error per 1 + Σλ.
    unit_multipliers = answer.multipliers * widths / span
    rounding = (1 + unit_multipliers.sum()) * (answer.residual + truth.residual) * span
    assert abs(answer.value - truth.value) <= 1e-6 * (span + abs(truth.value)) + rounding
    assert answer.gap <= TOLERANCE * span + 1e-13 * (1 + unit_multipliers.sum()) * H**2 * span
    assert truth.value <= answer.value + answer.gap + truth.gap + rounding
    assert answer.policy is not None and answer.mixture is not None
    assert len(answer.mixture.members) <= 1 + len(widths)
    for values in (policy_values(table, answer.policy), mixture_values(table, answer.mixture)):
        assert values[0] == pytest.approx(answer.value, abs=1e-6 * span)
        slack = (values[1:] - table.thresholds) / problem.scale[1:]
        assert slack.min() >= -2e-9 * H  # occupancies are known to 1e-9·H, and thresholds met within rounding


# ---- hand-solved ----------------------------------------------------------------------------------------------------


def test_a_machine_solved_by_hand() -> None:
    answer = solve_by_columns(machine(1.8))
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(3.4, abs=1e-12)
    assert answer.constraint_values == pytest.approx([1.8], abs=1e-12)
    assert answer.multipliers == pytest.approx([7 / 9], abs=1e-12)
    assert answer.slater == pytest.approx(1.8, abs=1e-12)
    assert answer.unit_slater == pytest.approx(0.9, abs=1e-12)
    assert answer.reachable == pytest.approx([0.0], abs=1e-12)
    np.testing.assert_allclose(answer.policy.probabilities(np.arange(2))[0], [4 / 9, 5 / 9], atol=1e-12)
    assert answer.residual < 1e-12 and answer.gap < 1e-12


def test_a_slack_budget_has_no_price() -> None:
    answer = solve_by_columns(machine(3.7))
    assert answer.value == pytest.approx(2 + 7 / 4 * 8 / 5, abs=1e-12)
    assert answer.multipliers == pytest.approx([0.0], abs=0)
    assert len(answer.mixture.members) == 1
    tie = solve_by_columns(machine(3.6))  # exactly what the unconstrained optimum spends
    assert tie.value == pytest.approx(answer.value, abs=1e-9)
    assert tie.multipliers == pytest.approx([0.0], abs=0)


def test_a_budget_of_nothing_is_feasible_without_room() -> None:
    answer = solve_by_columns(machine(0.0))
    assert answer.status == "optimal"
    assert answer.value == pytest.approx(2.0, abs=1e-9)
    assert answer.slater == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("b", "value", "prices"), [(0.25, 0.9, (0.4, 0.4)), (0.75, 0.4, (1.6, 1.6)), (0.5, 0.8, (0.4, 1.6))]
)
def test_a_bandit_follows_its_concave_envelope(b: float, value: float, prices: tuple[float, float]) -> None:
    answer = solve_by_columns(bandit(b))
    assert answer.value == pytest.approx(value, abs=1e-12)
    assert prices[0] - 1e-12 <= answer.multipliers[0] <= prices[1] + 1e-12  # at a kink any price between the slopes
    assert answer.slater == pytest.approx(1 - b, abs=1e-12)


def test_infeasible_is_a_verdict_with_its_proof() -> None:
    answer = solve_by_columns(machine(-0.5))
    assert answer.status == "infeasible"
    assert np.isnan(answer.value) and answer.policy is None and answer.mixture is None
    assert np.isnan(answer.constraint_values).all() and np.isnan(answer.multipliers).all()
    assert answer.max_slack == pytest.approx(-0.5, abs=1e-12)
    assert answer.gap < 1e-12
    assert answer.reachable == pytest.approx([0.0], abs=1e-12)


def test_constraints_that_are_reachable_only_one_at_a_time() -> None:
    table = Table.of(
        np.ones((1, 2, 1)), [[0.0, 1]], [[[1.0, 0]], [[0, 10.0]]], [0.75, 7.5], gamma=0.0, rho=[1.0], names=["a", "b"]
    )
    answer = solve_by_columns(table)  # playing the first with probability p: slacks p − 0.75 and 10(1 − p) − 7.5
    assert answer.status == "infeasible"
    assert answer.reachable == pytest.approx([1.0, 10.0], abs=1e-12)
    assert answer.unit_slater == pytest.approx(-0.25, abs=1e-12)
    assert answer.slater == pytest.approx(3.25 / 11 - 0.75, abs=1e-12)


def test_the_policy_is_defined_where_nobody_goes() -> None:
    """State 2 is never reached; there the best action for r + λc is the second."""
    P = np.zeros((3, 2, 3))
    P[:2, :, 0] = 1
    P[2, :, 2] = 1
    reward = np.array([[1.0, 0], [0, 0], [0, 1.0]])
    constraint = np.array([[[0.0, 1], [0, 0], [0, 0]]])
    answer = solve_by_columns(Table.of(P, reward, constraint, [1.0], gamma=0.5, rho=[1, 0, 0]))
    assert answer.value == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(answer.policy.table, [[0.5, 0.5], [1, 0], [0, 1]], atol=1e-12)


# ---- against the linear program -------------------------------------------------------------------------------------


ZOO = {name: {} for name in zoo.BY_NAME if name not in zoo.CONTINUOUS} | {
    "random-linear": {"states": 60},
    "ward": {"beds": 3, "waiting": 4, "limit": 0.4},
}
HARDER = [
    ("gridworld", {"width": 15, "height": 11, "gamma": 0.99, "limit": 5.0}),
    ("gridworld", {"width": 15, "height": 11, "gamma": 0.999}),
    ("queue", {"capacity": 300, "gamma": 0.999, "limit": 20.0}),
    ("wireless", {"capacity": 60, "gamma": 0.99}),
    ("hard-instance", {"gamma": 0.99, "zeta": 0.02}),
    ("garnet", {"states": 200, "constraints": 3, "gamma": 0.95}),
]


@pytest.mark.parametrize("name", ZOO)
def test_agrees_on_every_zoo_table(name: str) -> None:
    table = zoo.make(name, **ZOO[name]).table
    truth, answer = solve_exactly(table), solve_by_columns(table)
    agree(table, answer, truth)
    np.testing.assert_allclose(answer.multipliers, truth.multipliers, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), HARDER)
def test_agrees_on_larger_and_slower_zoo_tables(name: str, parameters: dict) -> None:
    table = zoo.make(name, **parameters).table
    agree(table, solve_by_columns(table))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.99])
def test_agrees_on_random_tables_in_odd_units(m: int, seed: int, gamma: float) -> None:
    table = random_table(seed, m=m, gamma=gamma)
    truth, answer = solve_exactly(table), solve_by_columns(table)
    agree(table, answer, truth)
    spans = np.abs(table.problem().scale)  # twelve states have few policies, so D has kinks and λ* is unique
    np.testing.assert_allclose(
        answer.multipliers * spans[1:] / spans[0], truth.multipliers * spans[1:] / spans[0], atol=1e-5
    )


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(s, marks=pytest.mark.check) for s in range(6, 40))])
def test_agrees_on_degenerate_tables(seed: int) -> None:
    """Ties, constants, deterministic moves, one state, one action, thresholds at the edge of what is reachable."""
    wrong, tables = [], degenerate_tables(seed)
    for where, table in tables.items():
        try:
            agree(table, solve_by_columns(table))
        except AssertionError as failed:
            wrong.append(f"{where}: {failed}")
    assert list(tables) == ["middle", "edge", "slack", "infeasible", "barely infeasible"]
    expect_none(wrong)


def test_a_little_infeasible_is_infeasible_and_rounding_is_not() -> None:
    table = random_table(2, m=1, gamma=0.99)
    problem = table.problem()
    top = best_policy(table, np.array([0.0, 1.0]))[1][1]
    for excess, status in ((1e-6, "infeasible"), (1e-8, "optimal"), (0.0, "optimal")):  # 1e-8 is 1e-10·H
        threshold = (top + excess) * problem.scale[1] + problem.base[1] * problem.horizon
        moved = dataclasses.replace(table, thresholds=np.array([threshold]))
        assert solve_by_columns(moved).status == status, excess


@pytest.mark.parametrize("limit", [0.05, 0.02])
def test_multipliers_have_no_cap(limit: float) -> None:
    table = zoo.make("gridworld", gamma=0.99, limit=limit).table
    answer = solve_by_columns(table)
    agree(table, answer)
    assert answer.multipliers[0] > 200


# ---- its own promises -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
def test_the_gap_is_what_was_asked_for_and_holds(tolerance: float) -> None:
    table = zoo.make("garnet", states=300, actions=5, gamma=0.95).table
    answer, truth = solve_by_columns(table, tolerance), solve_exactly(table)
    assert 0 <= answer.gap <= tolerance
    assert answer.value - 1e-9 <= truth.value <= answer.value + answer.gap + 1e-9
    loose = solve_by_columns(table, 1.0)
    assert loose.gap > 1e-4  # the gap is measured, not promised: a lazy solve has a large one
    assert truth.value <= loose.value + loose.gap


def test_policies_that_are_lied_about_do_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values too high by 0.01 in every column cannot close the gap: the upper limit does not depend on them."""
    table = zoo.make("garnet", states=300, actions=5, gamma=0.95).table
    honest = column_generation.price

    def lie(*arguments: object, **more: object) -> object:
        priced = honest(*arguments, **more)
        if priced.found is None:
            return priced
        limits = priced.found.limits
        return priced._replace(found=priced.found._replace(limits=type(limits)(limits.low - 0.01, limits.high - 0.01)))

    monkeypatch.setattr(column_generation, "price", lie)
    with pytest.raises(NumericalError, match=r"proved a gap of 0\.01"):
        solve_by_columns(table)


@pytest.mark.parametrize("seed", range(3))
def test_few_policies_are_priced(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 11, c alone and r alone included; with the master's own prices only it would take more."""
    table = zoo.make("garnet", states=2000, actions=5, seed=seed, gamma=0.95).table
    calls, ask = [], column_generation.Columns.ask

    def counted(self: column_generation.Columns, *arguments: object, **more: object) -> float:
        calls.append(arguments)
        return ask(self, *arguments, **more)

    monkeypatch.setattr(column_generation.Columns, "ask", counted)
    value = solve_by_columns(table, stationary=False).value
    assert len(calls) <= 11
    calls.clear()
    monkeypatch.setattr(column_generation, "interpolate", lambda *_: None)
    assert solve_by_columns(table, stationary=False).value == pytest.approx(value, abs=2e-6)
    assert len(calls) > 11


@pytest.mark.slow
def test_compiled_and_plain_agree() -> None:
    for m in (1, 2):
        table = zoo.make("garnet", states=400, actions=5, constraints=m, gamma=0.95).table
        plain, compiled = (solve_by_columns(table, compiled=c) for c in (False, True))
        assert compiled.value == pytest.approx(plain.value, abs=2e-6)
        agree(table, compiled)


def test_without_a_stationary_policy_there_is_a_mixture() -> None:
    table = zoo.make("garnet").table
    answer = solve_by_columns(table, stationary=False)
    assert answer.policy is None
    assert mixture_values(table, answer.mixture)[0] == pytest.approx(answer.value, abs=1e-9)


def test_units_do_not_matter() -> None:
    """Rewards in cents instead of euros, shifted, and costs turned into merits: the same policy."""
    table = zoo.make("garnet", states=40).table
    H = table.problem().horizon
    other = Table.of(
        table.P,
        100 * table.reward - 7,
        -3 * table.constraints,
        -3 * table.thresholds,
        gamma=table.gamma,
        rho=table.rho,
        senses=["<="],
        reward_range=(-7.0, 93.0),
        ranges=((-3.0, 0.0),),
    )
    a, b = solve_by_columns(table), solve_by_columns(other)
    assert b.value == pytest.approx(100 * a.value - 7 * H, abs=1e-8)
    assert b.multipliers == pytest.approx(a.multipliers * 100 / 3, rel=1e-8)
    np.testing.assert_allclose(a.policy.table, b.policy.table, atol=1e-8)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf])
def test_a_tolerance_is_a_positive_number(tolerance: float) -> None:
    with pytest.raises(InputError, match="`tolerance` must be a positive number"):
        solve_by_columns(machine(1.0), tolerance)


def test_a_discount_beyond_double_precision_is_refused() -> None:
    with pytest.raises(InputError, match="must leave a horizon"):
        dataclasses.replace(machine(1.0), gamma=1 - 1e-10).problem()


def test_a_verdict_that_cannot_be_reached_is_not_guessed() -> None:
    undecided = column_generation.Certified(
        column_generation.largest_slack(np.array([[-1.0]]), np.ones(1)), 1.0, np.ones(2)
    )
    with pytest.raises(NumericalError, match="beyond double precision"):
        column_generation._feasible(undecided, 1e-9)


def test_the_linear_program_reports_its_gap_too() -> None:
    answer = solve_exactly(machine(1.8))
    assert answer.method == "lp" and answer.mixture is None
    assert 0 <= answer.gap < 1e-12
