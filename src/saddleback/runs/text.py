"""Answers as tables a newcomer understands, for a terminal or a log.

Everything fits eighty columns and nothing is cut: numbers take at most nine characters and are never broken, names and
ranges may go over several lines. What users named themselves is printed as it is, brackets included.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from saddleback.runs.answer import Answer
from saddleback.runs.certificate_text import print_certificate
from saddleback.runs.numbers import between, confidence, number
from saddleback.runs.tables import add_row, empty_table, sentence
from saddleback.runs.verdict import Status

_WIDTH = 100
_MOST_MEMBERS = 6
_MOST_COLUMNS = 3  # constraints that fit beside each other in the table of members


def print_solution(console: Console, solution: Answer, check: Mapping[str, Any] | None = None) -> None:
    """The answer first, then what is proved, the truth where it is known, the members, and what to keep in mind."""
    problem, certificate = solution.problem, solution.certificate
    colour = {Status.SOLVED: "green", Status.INFEASIBLE: "red", Status.REFUTED: "red"}.get(solution.status, "yellow")
    headline = f"[bold]{escape(problem.name)}[/bold]: [{colour}]{solution.status.value}[/{colour}]."
    console.print(f"{headline} {escape(sentence(solution.message))}")
    if solution.max_slack is not None:
        console.print(f"The largest reachable slack is {number(solution.max_slack)} (negative: nothing is feasible).")
    if solution.mixture is not None:
        console.print(_answer_table(solution))
        console.print(_units(solution))
    if certificate is not None:
        strict = solution.settings.get("feasibility") == "strict"
        print_certificate(console, problem, certificate, strict=strict, total=solution.samples)
    if solution.mixture is None:
        return
    if check is not None:
        console.print(_truth_table(solution, check))
    console.print(_members_table(solution))
    console.print(
        f"{solution.samples:,} simulator calls, {solution.settings['coreset']} state-action pairs sampled, "
        f"{solution.settings['iterations']} dual iterations; solver {solution.settings['solver']}, "
        f"evaluator {solution.settings['evaluator']}, seed {solution.settings['seed']}."
    )
    for remark in solution.remarks:
        console.print(f"Note: {escape(remark.text)}.")


def as_text(solution: Answer) -> str:
    """What the command line prints, without colours."""
    console = Console(file=io.StringIO(), width=_WIDTH)
    with console.capture() as printed:
        print_solution(console, solution)
    return printed.get().rstrip("\n")


def as_html(solution: Answer) -> str:
    """The same for a notebook: one preformatted block."""
    console = Console(file=io.StringIO(), width=_WIDTH, record=True)
    print_solution(console, solution)
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def _limits(solution: Answer) -> list[str]:
    """The proved limits of reward and constraints, if there are any."""
    certificate = solution.certificate
    if certificate is None or certificate.value is None:
        return []
    return [between(certificate.value), *map(between, certificate.constraints)]


def _answer_table(solution: Answer) -> RichTable:
    proved = _limits(solution)
    head = "proved limits" if proved else "likely range"
    table = empty_table(
        "The policy, in your units", ["quantity", "wanted"], ["estimate", head, "slack", "price"], ranges=[head]
    )
    likely = ["", *("" if c.low is None else between((c.low, c.high)) for c in solution.constraints)]
    limits = proved or likely
    add_row(table, solution.problem.objective, solution.problem.wanted, number(solution.value), limits[0], "", "")
    # Where no mixture is feasible there are no prices.
    prices = solution.multipliers or (None,) * len(solution.constraints)
    for c, within, price in zip(solution.constraints, limits[1:], prices, strict=True):
        cells = number(c.value), within, number(c.slack), number(price)
        add_row(table, c.name, f"{c.sense} {number(c.threshold)}", *cells)
    return table


def _units(solution: Answer) -> str:
    problem, settings = solution.problem, solution.settings
    units = f"Values are expected discounted totals (discount {problem.gamma:g}, effective horizon {problem.horizon:.4g} steps)."
    if _limits(solution):
        return f"{units} 'Proved limits' come from fresh samples: see below."
    sure = confidence(1 - settings["delta"])
    return f"{units} 'Likely range' is measured from the samples at {sure} confidence; it is not a proof."


def _truth_table(solution: Answer, check: Mapping[str, Any]) -> RichTable:
    """What the policy is really worth, and the best that any policy is, from the known transition probabilities."""
    table = empty_table("The truth, from the known table", ["quantity", "wanted"], ["truth", "optimum"])
    best = check["optimum"]
    add_row(table, solution.problem.objective, solution.problem.wanted, number(check["value"]), number(best["value"]))
    optima = best["constraints"] or [None] * len(solution.constraints)  # empty where no policy meets the constraints
    for c, value, optimum in zip(solution.constraints, check["constraints"], optima, strict=True):
        add_row(table, c.name, f"{c.sense} {number(c.threshold)}", number(value), number(optimum))
    return table


def _members_table(solution: Answer) -> RichTable:
    order = sorted(solution.members, key=lambda m: -m.weight)
    wide = len(solution.constraints) > _MOST_COLUMNS
    names = [f"{c.name} ({c.sense} {number(c.threshold)})" for c in solution.constraints]
    heads = ["constraints it misses"] if wide else names
    title = (
        f"A mixture of {len(order)} polic{'y' if len(order) == 1 else 'ies'}, one drawn at the start of each episode"
    )
    table = empty_table(title, [], ["weight", solution.problem.objective, *heads], ranges=heads)
    for member in order[:_MOST_MEMBERS]:
        missed, cells = [], []
        for value, c in zip(member.constraints, solution.constraints, strict=True):
            holds = value >= c.threshold if c.sense == ">=" else value <= c.threshold
            missed += [] if holds else [c.name]
            cells.append(number(value) + ("" if holds else " (misses)"))
        if wide:
            cells = [", ".join(missed) or "none"]
        add_row(table, f"{member.weight:.4f}", number(member.value), *cells)
    rest = order[_MOST_MEMBERS:]
    if rest:
        add_row(table, f"{sum(m.weight for m in rest):.4f}", f"{len(rest)} more", *[""] * len(heads))
    return table
