"""Answers as tables a newcomer understands, for a terminal or a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable

from saddleback.exact import ExactAnswer
from saddleback.problem import CMDP
from saddleback.solution import Solution, Status

_MOST_MEMBERS = 6


def number(x: float | None) -> str:
    """Four significant digits, or a dash: tables must fit eighty columns."""
    return "–" if x is None else f"{x:.4g}"


def print_solution(console: Console, solution: Solution, check: Mapping[str, Any] | None = None) -> None:
    """The answer first, then the table, the members, and what to keep in mind."""
    problem = solution.problem
    colour = {Status.SOLVED: "green", Status.INFEASIBLE: "red"}.get(solution.status, "yellow")
    console.print(
        f"[bold]{problem.name}[/bold]: [{colour}]{solution.status.value}[/{colour}]. {_sentence(solution.message)}"
    )
    if solution.max_slack is not None:
        console.print(f"The largest reachable slack is {number(solution.max_slack)} (negative: nothing is feasible).")
    if solution.mixture is None:
        return
    console.print(_answer_table(solution, check))
    console.print(
        f"Values are expected discounted totals (discount {problem.gamma:g}, effective horizon {problem.horizon:.4g} steps). "
        "'Likely range' is measured from the samples at "
        f"{100 * (1 - solution.settings['delta']):g} % confidence; it is not a proof."
    )
    console.print(_members_table(solution))
    console.print(
        f"{solution.samples:,} simulator calls, {solution.settings['coreset']} state-action pairs sampled, "
        f"{solution.settings['iterations']} dual iterations; solver {solution.settings['solver']}, "
        f"evaluator {solution.settings['evaluator']}, seed {solution.settings['seed']}."
    )
    for remark in solution.remarks:
        console.print(f"Note: {remark}.")


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _answer_table(solution: Solution, check: Mapping[str, Any] | None) -> RichTable:
    table = RichTable(title="The policy, in your units", box=SIMPLE_HEAD)
    columns = ["quantity", "wanted", "estimate", "likely range", "slack", "price"]
    if check is not None:
        columns += ["truth", "optimum"]
    for column in columns:
        table.add_column(column, justify="left" if column in ("quantity", "wanted") else "right")
    row = ["reward", "largest", number(solution.value), "", "", ""]
    if check is not None:
        row += [number(check["value"]), number(check["optimum"]["value"])]
    table.add_row(*row)
    for i, c in enumerate(solution.constraints):
        limits = "" if c.low is None else f"{number(c.low)} to {number(c.high)}"
        row = [c.name, f"{c.sense} {number(c.threshold)}", number(c.value), limits, number(c.slack)]
        row.append(number(solution.multipliers[i]))
        if check is not None:
            row += [number(check["constraints"][i]), number(check["optimum"]["constraints"][i])]
        table.add_row(*row)
    return table


def _members_table(solution: Solution) -> RichTable:
    order = sorted(solution.members, key=lambda m: -m.weight)
    title = (
        f"A mixture of {len(order)} polic{'y' if len(order) == 1 else 'ies'}, one drawn at the start of each episode"
    )
    table = RichTable(title=title, box=SIMPLE_HEAD)
    table.add_column("weight", justify="right")
    table.add_column("reward", justify="right")
    for c in solution.constraints:
        table.add_column(f"{c.name} ({c.sense} {number(c.threshold)})", justify="right")
    for member in order[:_MOST_MEMBERS]:
        cells = []
        for value, c in zip(member.constraints, solution.constraints, strict=True):
            holds = value >= c.threshold if c.sense == ">=" else value <= c.threshold
            cells.append(number(value) + ("" if holds else " (misses)"))
        table.add_row(f"{member.weight:.4f}", number(member.value), *cells)
    rest = order[_MOST_MEMBERS:]
    if rest:
        table.add_row(f"{sum(m.weight for m in rest):.4f}", f"{len(rest)} more", *[""] * len(solution.constraints))
    return table


def print_exact(console: Console, problem: CMDP, answer: ExactAnswer) -> None:
    """The known answer of a table."""
    if answer.status != "optimal":
        console.print(
            f"[bold]{problem.name}[/bold]: [red]infeasible[/red]. Largest reachable slack {number(answer.max_slack)}."
        )
        return
    console.print(f"[bold]{problem.name}[/bold]: optimal value {number(answer.value)} (discounted total).")
    table = RichTable(box=SIMPLE_HEAD)
    for column in ("constraint", "wanted", "value", "price (reward per unit of threshold)"):
        table.add_column(column, justify="left" if column in ("constraint", "wanted") else "right")
    rows = zip(
        problem.constraints, problem.user_thresholds(), answer.constraint_values, answer.multipliers, strict=True
    )
    for c, b, v, price in rows:
        table.add_row(c.name, f"{c.sense} {number(float(b))}", number(float(v)), number(float(price)))
    console.print(table)
    console.print(f"Slater constant (room left by the constraints): {number(answer.slater)}. {answer.seconds:.3f} s.")
