"""``saddleback zoo``: the built-in problems."""

from __future__ import annotations

from typing import Any

from saddleback.cli.common import Console, Json, print_json
from saddleback.instances import zoo as problems


def zoo(as_json: Json = False) -> None:
    """List the built-in problems and their parameters."""
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "summary": (make.__doc__ or name).strip().splitlines()[0],  # no text under python -OO
            "parameters": {row.name: row.default for row in problems.describe(name)},
        }
        for name, make in problems.BY_NAME.items()
    ]
    if as_json:
        print_json({"problems": rows})
        return
    console = Console()
    for row in rows:
        parameters = ", ".join(f"{k}={v}" for k, v in row["parameters"].items())
        console.print(f"[bold]{row['name']}[/bold]  {row['summary']}", highlight=False)
        console.print("    " + parameters, style="dim", highlight=False)
