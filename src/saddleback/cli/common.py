"""What the verbs share: their options, JSON, and answers of known tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saddleback.exact import ExactAnswer, solve_by_columns, solve_exactly
from saddleback.files.json_file import to_plain
from saddleback.instances.instance import Instance

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A .toml problem file, an .npz problem table, or a zoo problem (see `saddleback zoo`)."
    ),
]
ProblemFile = Annotated[
    Path | None,
    typer.Option("--problem", help="The problem file that the run was made from, which names code, named again."),
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="name=value, a parameter of the zoo problem. May be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same samples.")]

LARGE = 2000
"""State-action pairs above which the linear program is left to ``exact --method lp``."""


def exact_answer(instance: Instance, method: str = "auto") -> ExactAnswer:
    """The true optimum of a known table."""
    assert instance.table is not None
    large = instance.table.reward.size > LARGE
    columns = method == "columns" or (method == "auto" and large)
    return solve_by_columns(instance.table) if columns else solve_exactly(instance.table)


def exact_json(instance: Instance, answer: ExactAnswer) -> dict[str, Any]:
    """The true optimum as one JSON-ready object."""
    problem, optimal = instance.problem, answer.status == "optimal"
    rows = []
    for c, b, v in zip(problem.constraints, problem.user_thresholds(), answer.constraint_values, strict=True):
        slack = (v - b) if c.sense == ">=" else (b - v)
        rows.append({"name": c.name, "value": float(v), "threshold": float(b), "sense": c.sense, "slack": float(slack)})
    out = {
        "status": "solved" if optimal else "infeasible",
        "value": float(answer.value) if optimal else None,
        "constraints": rows if optimal else [],
        "multipliers": answer.multipliers.tolist() if optimal else [],
        "slater": float(answer.slater),
        "gap": float(answer.gap),
        "method": answer.method,
        "seconds": answer.seconds,
    }
    if not optimal:
        out["max_slack"] = float(answer.max_slack)
    return out


def print_json(data: dict[str, Any]) -> None:
    """One object, numbers with every digit."""
    typer.echo(json.dumps(data, indent=2, default=to_plain, allow_nan=False))
