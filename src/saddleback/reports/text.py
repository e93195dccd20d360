"""Answers as tables a newcomer understands, for a terminal or a log.

Everything fits eighty columns and nothing is cut: numbers take at most nine characters and are never broken, names and
ranges may go over several lines. What users named themselves is printed as it is, brackets included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.exact import ExactAnswer
from saddleback.problem import CMDP
from saddleback.solution import Solution, Status
from saddleback.tradeoff import Frontier

_MOST_MEMBERS = 6
_MOST_COLUMNS = 3  # constraints that fit beside each other in the table of members
_LONGEST_NUMBER = 9


def number(x: float | None) -> str:
    """Four significant digits, fewer where that would be long, or a dash where there is no number."""
    if x is None or math.isnan(x):
        return "–"
    return next(text for form in (".4g", ".2e", ".1e") if len(text := format(x, form)) <= _LONGEST_NUMBER)


def print_solution(console: Console, solution: Solution, check: Mapping[str, Any] | None = None) -> None:
    """The answer first, then the table, the truth where it is known, the members, and what to keep in mind."""
    problem = solution.problem
    colour = {Status.SOLVED: "green", Status.INFEASIBLE: "red"}.get(solution.status, "yellow")
    headline = f"[bold]{escape(problem.name)}[/bold]: [{colour}]{solution.status.value}[/{colour}]."
    console.print(f"{headline} {escape(_sentence(solution.message))}")
    if solution.max_slack is not None:
        console.print(f"The largest reachable slack is {number(solution.max_slack)} (negative: nothing is feasible).")
    if solution.mixture is None:
        return
    console.print(_answer_table(solution))
    console.print(
        f"Values are expected discounted totals (discount {problem.gamma:g}, effective horizon {problem.horizon:.4g} steps). "
        "'Likely range' is measured from the samples at "
        f"{100 * (1 - solution.settings['delta']):g} % confidence; it is not a proof."
    )
    if check is not None:
        console.print(_truth_table(solution, check))
    console.print(_members_table(solution))
    console.print(
        f"{solution.samples:,} simulator calls, {solution.settings['coreset']} state-action pairs sampled, "
        f"{solution.settings['iterations']} dual iterations; solver {solution.settings['solver']}, "
        f"evaluator {solution.settings['evaluator']}, seed {solution.settings['seed']}."
    )
    for remark in solution.remarks:
        console.print(f"Note: {escape(remark)}.")


def print_exact(console: Console, problem: CMDP, answer: ExactAnswer) -> None:
    """The known answer of a table."""
    name = f"[bold]{escape(problem.name)}[/bold]"
    if answer.status != "optimal":
        console.print(f"{name}: [red]infeasible[/red]. Largest reachable slack {number(answer.max_slack)}.")
        return
    console.print(f"{name}: optimal value {number(answer.value)} (discounted total).")
    price = "price (reward per unit of threshold)"
    table = _table(None, ["constraint", "wanted"], ["value", price], ranges=[price])
    rows = zip(
        problem.constraints, problem.user_thresholds(), answer.constraint_values, answer.multipliers, strict=True
    )
    for c, b, v, multiplier in rows:
        _add(table, c.name, f"{c.sense} {number(float(b))}", number(float(v)), number(float(multiplier)))
    console.print(table)
    console.print(f"Slater constant (room left by the constraints): {number(answer.slater)}. {answer.seconds:.3f} s.")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _table(title: str | None, words: Sequence[str], numbers: Sequence[str], *, ranges: Sequence[str] = ()) -> RichTable:
    """An empty table: ``words`` to the left, then ``numbers``, of which only ``ranges`` may be broken over lines."""
    table = RichTable(title=title, box=SIMPLE_HEAD, pad_edge=False)
    for column in words:
        table.add_column(escape(column), overflow="fold")
    for column in numbers:
        table.add_column(escape(column), justify="right", no_wrap=column not in ranges, overflow="fold")
    return table


def _add(table: RichTable, *cells: str) -> None:
    table.add_row(*map(escape, cells))


def _answer_table(solution: Solution) -> RichTable:
    numbers = ["estimate", "likely range", "slack", "price"]
    table = _table("The policy, in your units", ["quantity", "wanted"], numbers, ranges=["likely range"])
    _add(table, "reward", "largest", number(solution.value), "", "", "")
    for c, price in zip(solution.constraints, solution.multipliers, strict=True):
        limits = "" if c.low is None else f"{number(c.low)} to {number(c.high)}"
        _add(table, c.name, f"{c.sense} {number(c.threshold)}", number(c.value), limits, number(c.slack), number(price))
    return table


def _truth_table(solution: Solution, check: Mapping[str, Any]) -> RichTable:
    """What the policy is really worth, and the best that any policy is, from the known transition probabilities."""
    table = _table("The truth, from the known table", ["quantity", "wanted"], ["truth", "optimum"])
    best = check["optimum"]
    _add(table, "reward", "largest", number(check["value"]), number(best["value"]))
    optima = best["constraints"] or [None] * len(solution.constraints)  # empty where no policy meets the constraints
    for c, value, optimum in zip(solution.constraints, check["constraints"], optima, strict=True):
        _add(table, c.name, f"{c.sense} {number(c.threshold)}", number(value), number(optimum))
    return table


def _members_table(solution: Solution) -> RichTable:
    order = sorted(solution.members, key=lambda m: -m.weight)
    wide = len(solution.constraints) > _MOST_COLUMNS
    names = [f"{c.name} ({c.sense} {number(c.threshold)})" for c in solution.constraints]
    heads = ["constraints it misses"] if wide else names
    title = (
        f"A mixture of {len(order)} polic{'y' if len(order) == 1 else 'ies'}, one drawn at the start of each episode"
    )
    table = _table(title, [], ["weight", "reward", *heads], ranges=heads)
    for member in order[:_MOST_MEMBERS]:
        missed, cells = [], []
        for value, c in zip(member.constraints, solution.constraints, strict=True):
            holds = value >= c.threshold if c.sense == ">=" else value <= c.threshold
            missed += [] if holds else [c.name]
            cells.append(number(value) + ("" if holds else " (misses)"))
        if wide:
            cells = [", ".join(missed) or "none"]
        _add(table, f"{member.weight:.4f}", number(member.value), *cells)
    rest = order[_MOST_MEMBERS:]
    if rest:
        _add(table, f"{sum(m.weight for m in rest):.4f}", f"{len(rest)} more", *[""] * len(heads))
    return table


def print_frontier(console: Console, curve: Frontier) -> None:
    """Threshold, best reward, price and mixture, one row a threshold."""
    problem = curve.problem
    moving = problem.constraints[curve.constraint]
    console.print(
        f"[bold]{escape(problem.name)}[/bold]: the best reward against '{escape(moving.name)}' {moving.sense} threshold "
        f"(discounted totals), from {curve.parts.samples:,} simulator calls."
    )
    columns = [f"{moving.name} {moving.sense}", "reward", "price", "gap", "mixture"]
    table = _table(None, [], columns, ranges=["mixture"])
    for point in curve.points:
        mixture = " + ".join(f"{w:.3f}" for w in sorted(point.mixture.weights, reverse=True))
        _add(table, number(point.threshold), number(point.value), number(point.multiplier), number(point.gap), mixture)
    console.print(table)
    console.print("Estimates, not proofs; price is reward lost per unit of threshold.")
