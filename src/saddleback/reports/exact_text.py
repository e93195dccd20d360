"""The true optimum of a table, for a terminal or a log."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from saddleback.exact import ExactAnswer
from saddleback.problem.cmdp import CMDP
from saddleback.runs.numbers import number
from saddleback.runs.tables import add_row, empty_table


def print_exact(console: Console, problem: CMDP, answer: ExactAnswer) -> None:
    """The known answer of a table."""
    name = f"[bold]{escape(problem.name)}[/bold]"
    if answer.status != "optimal":
        console.print(f"{name}: [red]infeasible[/red]. Largest reachable slack {number(answer.max_slack)}.")
        return
    console.print(f"{name}: optimal value {number(answer.value)} (discounted total).")
    price = "price (reward per unit of threshold)"
    table = empty_table(None, ["constraint", "wanted"], ["value", price], ranges=[price])
    rows = zip(
        problem.constraints, problem.user_thresholds(), answer.constraint_values, answer.multipliers, strict=True
    )
    for c, b, v, multiplier in rows:
        add_row(table, c.name, f"{c.sense} {number(float(b))}", number(float(v)), number(float(multiplier)))
    console.print(table)
    console.print(f"Slater constant (room left by the constraints): {number(answer.slater)}. {answer.seconds:.3f} s.")
