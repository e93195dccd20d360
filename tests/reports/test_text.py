"""What the command line prints: eighty columns, nothing cut, nothing misread as markup."""

from __future__ import annotations

import dataclasses
import io
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table as RichTable

from reports.printing import WIDTH, fits, printed, words
from saddleback import zoo
from saddleback.certificates import Certificate
from saddleback.errors import Remark
from saddleback.exact import mixture_values, solve_exactly
from saddleback.problem.criteria import UNSEEN
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.reports.text import print_exact
from saddleback.runs.answer import ConstraintReport, MemberReport
from saddleback.runs.constraint_report import shown_prices
from saddleback.runs.numbers import at_most, between, confidence, in_unit, limits_in, number, percent, symbol
from saddleback.runs.text import print_solution
from saddleback.runs.verdict import Reason, Shortfall, Status, Verdict
from saddleback.runs.words import sentence
from saddleback.simulators.table import Table
from saddleback.solving.solution import Solution
from spelled_out import solve

SETTINGS = {
    "delta": 0.05, "coreset": 12, "iterations": 1000, "seed": 0, "solver": "perturbed-model", "evaluator": "tabular-pe",
}  # fmt: skip


def bandit(thresholds: list[float], *, reward: float = 1.0, names: list[str] | None = None) -> Table:
    """One state, one action more than constraints: action i serves constraint i, the last one earns the reward."""
    m = len(thresholds)
    rewards, constraints = np.zeros((1, m + 1)), np.zeros((m, 1, m + 1))
    rewards[0, m] = reward
    constraints[np.arange(m), 0, np.arange(m)] = 1.0
    return Table.of(
        np.ones((1, m + 1, 1)), rewards, constraints, thresholds, gamma=0.0, rho=[1.0], names=names, name="bandit"
    )


def answer(
    table: Table,
    values: list[float],
    *,
    members: int = 2,
    remarks: tuple[Remark, ...] = (),
    certificate: Certificate | None = None,
) -> Solution:
    """A solution in which every number of constraint i is ``values[i]``."""
    problem = table.problem()
    rows = [
        ConstraintReport(c.name, v, b, c.sense, v - b, v, v)
        for c, v, b in zip(problem.constraints, values, table.thresholds, strict=True)
    ]
    mixture = MixturePolicy.of([TabularPolicy.deterministic(np.zeros(1), table.num_actions)], np.ones(1))
    return Solution(
        Verdict(Status.SOLVED, Reason.HOLDS_UP_TO_ACCURACY),
        problem,
        123_456,
        mixture,
        values[0],
        tuple(rows),
        tuple(abs(v) for v in values),
        tuple(MemberReport(1 / members, values[0], tuple(values)) for _ in range(members)),
        remarks=remarks,
        settings=SETTINGS,
        certificate=certificate,
    )


@settings(derandomize=True, deadline=None, max_examples=300)
@given(st.floats(-1e300, 1e300))
@example(-2.4805349167759607e-200)
def test_numbers_are_short_and_right(x: float) -> None:
    text = number(x)
    assert len(text) <= 9
    digits = 3 if 1e-99 <= abs(x) < 1e99 or x == 0 else 2  # three where the exponent has two places
    assert abs(float(text) - x) <= 5.01 * 10.0**-digits * abs(x)


def test_limits_are_words() -> None:
    assert between((1.0, 2.5)) == "1 to 2.5" and between(None) == "–"


def test_no_number_is_a_dash() -> None:
    assert number(None) == number(math.nan) == "–"
    assert number(1.209) == "1.209" and number(-0.00091184) == "-9.12e-04"


def test_a_solved_problem_end_to_end() -> None:
    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=100_000, iterations=100)
    truth = mixture_values(instance.table, solution.mixture)
    best = solve_exactly(instance.table)
    check = {
        "value": float(truth[0]),
        "constraints": truth[1:].tolist(),
        "optimum": {"value": best.value, "constraints": best.constraint_values.tolist()},
    }
    text = printed(print_solution, solution, check)
    assert text.startswith("wireless: solved. ")
    row = solution.constraints[0]
    for x in (solution.value, row.value, row.slack, row.low, row.high, *solution.multipliers, *truth, best.value):
        assert number(float(x)) in text.split()
    assert "<= 1.2" in text
    assert "expected discounted totals" in words(text) and "simulator calls" in words(text)
    assert all(f"Note: {remark.text}." in words(text) for remark in solution.remarks)
    assert "truth" not in printed(print_solution, solution)
    assert "likely range" in text and "proved" not in text.split("Note:")[0]


def test_a_certificate_takes_the_place_of_the_likely_range() -> None:
    instance = zoo.make("wireless")
    solution = solve(instance.problem, instance.simulator, samples=50_000, certificate=50_000)
    text = printed(print_solution, solution)
    proof = solution.certificate
    assert isinstance(proof, Certificate)
    assert "proved limits" in text and "likely range" not in text.lower()
    assert words(text).count(between(proof.value)) == 2  # beside the estimate, and among what is proved
    assert words(text).count(between(proof.constraints[0])) == 2
    assert "the limits shown are measured" not in words(text) and "a-priori" not in words(text)
    plain = solve(instance.problem, instance.simulator, samples=50_000)
    assert any("the limits shown are measured" in remark.text for remark in plain.remarks)  # or this tests nothing


def test_a_policy_without_prices_has_dashes() -> None:
    solution = dataclasses.replace(answer(bandit([0.1]), [0.5]), multipliers=())
    assert "–" in printed(print_solution, solution)


names = st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=60)
sizes = st.builds(
    lambda sign, x, e: sign * x * 10.0**e, st.sampled_from([-1, 1]), st.floats(1, 9.99), st.integers(-9, 9)
)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.lists(st.tuples(names, sizes), min_size=1, max_size=7, unique_by=lambda pair: pair[0]), st.integers(1, 9))
def test_any_names_and_numbers_fit(rows: list[tuple[str, float]], members: int) -> None:
    """Names of up to 60 characters, numbers of any size, one to seven constraints: numbers stay whole, names complete."""
    given_names, values = [name for name, _ in rows], [value for _, value in rows]
    table = bandit([0.1] * len(rows), names=given_names)
    check = {"value": values[0], "constraints": values, "optimum": {"value": values[0], "constraints": values}}
    proof = Certificate(
        0.95,
        1_000,
        0,
        (min(values), max(values)),
        tuple((v, v) for v in values),
        upper_bound=values[0],
        gap=abs(values[0]),
        assumes={"value": "nothing"},
    )
    with_proof = printed(print_solution, answer(table, values, members=members, certificate=proof), check)
    text = printed(print_solution, answer(table, values, members=members), check)
    for value in values:
        value, slack = (0.0 if abs(x) <= UNSEEN else x for x in (value, value - 0.1))  # of [0, 1], as H = 1
        assert number(value) in text.split()
        assert number(slack) in text.split()
        assert with_proof.split().count(number(value)) > text.split().count(number(value))
    table_text = text[text.index("quantity") : text.index("Values are")]
    for name in given_names:  # folded over lines, so the characters are counted, not the word found
        for character in set(name):
            assert table_text.count(character) >= name.count(character)
    exact = printed(print_exact, table.problem(), solve_exactly(table))
    assert exact.startswith("bandit: ")


def test_the_check_sees_a_cut_table() -> None:
    console = Console(file=io.StringIO(), width=WIDTH)
    table = RichTable("a", "b")
    table.add_row("x" * 60, "y" * 60)
    console.print(table)
    assert not fits(console.file.getvalue())  # type: ignore[attr-defined]
    assert not fits("x" * 81)


def test_an_infeasible_problem_shows_no_policy() -> None:
    problem = bandit([0.5]).problem()
    verdict = Verdict(Status.INFEASIBLE, Reason.NO_POLICY, shortfalls=(Shortfall("constraint-0", ">=", 0.5, 0.2),))
    text = printed(print_solution, Solution(verdict, problem, 10, max_slack=-0.3))
    assert words(text).startswith("bandit: infeasible. No policy meets 'constraint-0'")
    assert words(text).endswith(
        "By the estimates, which are no proof, the largest slack of 'constraint-0' that a policy reaches is -0.3 (negative: it is missed)."
    )
    assert "likely" not in text and "mixture" not in text


def test_members_say_which_constraints_they_miss() -> None:
    few = printed(print_solution, answer(bandit([0.2, 0.4]), [0.3, 0.3], members=1))
    assert few.count("(misses)") == 1
    assert "One policy, played in every episode" in words(few) and "mixture of 1" not in words(few)
    many = printed(print_solution, answer(bandit([0.1] * 5, names=list("abcde")), [0.3, 0, 0, 0.3, 0], members=9))
    assert many.count("b, c, e") == 6
    assert "3 more" in many
    none = printed(print_solution, answer(bandit([0.1] * 4), [0.3] * 4))
    assert none.count("none") == 2


def test_names_are_not_markup() -> None:
    """Square brackets mean colours to the printing library; in a user's names they mean square brackets."""
    table = bandit([0.1], names=["queue[/3] [red]"])
    text = printed(print_solution, answer(table, [0.5], remarks=(Remark("test", "see [bold]this[/bold]"),)))
    assert "queue[/3] [red]" in text and "see [bold]this[/bold]" in text
    assert "queue[/3] [red]" in printed(print_exact, table.problem(), solve_exactly(table))
    verdict = Verdict(Status.INFEASIBLE, Reason.NO_POLICY, shortfalls=(Shortfall("queue[/3]", ">=", 0.5, 0.2),))
    assert "o policy meets 'queue[/3]'" in printed(print_solution, Solution(verdict, table.problem(), 0))


@pytest.mark.parametrize("constraints", [[], [math.nan]])
def test_a_truth_without_an_optimum_has_dashes(constraints: list[float]) -> None:
    """The samples may say solved where the truth is just infeasible."""
    check = {"value": 0.5, "constraints": [0.4], "optimum": {"value": None, "constraints": constraints}}
    text = printed(print_solution, answer(bandit([0.1]), [0.5]), check)
    assert text.count("–") == 2 and "nan" not in text


def test_exact_answers() -> None:
    table = bandit([0.25, 0.125], reward=8.0, names=["first", "second"])
    text = printed(print_exact, table.problem(), solve_exactly(table))
    assert "optimal value 5" in text  # 8·(1 − 0.25 − 0.125)
    assert words(text).count(" 8 ") == 2  # each constraint takes the reward's place one for one
    assert "Slater constant (room left by the constraints): 0.3125 as a discounted total." in words(text)
    infeasible = bandit([0.75, 0.75])
    text = printed(print_exact, infeasible.problem(), solve_exactly(infeasible))
    said = "bandit: infeasible. The largest slack of the tightest constraint that a policy reaches is -0.25 as a discounted total"
    assert words(text) == f"{said} (negative: it is missed)."


def test_rounding_is_shown_as_nothing() -> None:
    """Values, limits, slacks and prices that are rounding of what the signals add up to, whatever their unit."""
    noise = [1.4e-16, -3.55e-15]
    problem = bandit([0.1, 0.1], reward=8.0).problem()
    for unit, x in zip((problem.reward_unit, *problem.units), (1e-9, *noise), strict=True):
        assert in_unit(unit, x) == "0" and limits_in(unit, (x, -x)) == "0 to 0" and unit.say(x, number) == "0"
        assert in_unit(unit, 3e-8) == "3e-08"
    assert shown_prices(problem, [5e-10, 0.25]) == [0.0, 0.25]
    small = dataclasses.replace(bandit([1e-13]), constraints=1e-12 * bandit([0.1]).constraints, ranges=((0.0, 1e-12),))
    assert in_unit(small.problem().units[0], 5e-13) == "5e-13"  # not noise, in a unit like this
    assert number(-0.0) == "0"
    verdict = Verdict(
        Status.UNDECIDED, Reason.PROBABLY_NO_POLICY, shortfalls=(Shortfall("a", "<=", 0.5, 1.4e-16, problem.units[0]),)
    )
    assert "(the best found: 0)" in sentence(verdict)


def test_a_forecast_names_the_samples() -> None:
    verdict = Verdict(Status.UNDECIDED, Reason.FEASIBILITY_OPEN, times=(3.3, 11.0))
    assert "3.3 to 11 times as many samples should settle it (`--samples 990000` to `--samples 3300000`)" in sentence(
        verdict, 299_000
    )
    assert "`--samples`" in sentence(Verdict(Status.UNDECIDED, Reason.FEASIBILITY_OPEN), 299_000)


def test_words_around_numbers() -> None:
    assert (at_most(12.3456), at_most(None)) == ("at most 12.35", "no bound")
    assert (between((None, 2.0)), between(None)) == ("– to 2", "–")
    assert (confidence(0.95), confidence(1 - 1e-6), percent(1 / 3)) == ("95 %", "99.9999 %", "33.3\u00a0%")
    assert (symbol(">="), symbol("<=")) == ("≥", "≤")
