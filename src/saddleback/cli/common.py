"""Options that several verbs share, and how an answer becomes JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from saddleback.files.json_file import to_plain

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="A .toml problem file, an .npz problem table, or a zoo problem (see `saddleback zoo`)."
    ),
]
StoredRun = Annotated[Path, typer.Argument(metavar="RUN", help="A folder that `saddleback solve --out` wrote.")]
ProblemFile = Annotated[
    Path | None,
    typer.Option("--problem", help="The problem file that the run was made from, which names code, named again."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("--set", help="name=value, a parameter of the zoo problem. May be repeated.")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same samples.")]


def print_json(data: dict[str, Any]) -> None:
    """One object, numbers with every digit."""
    typer.echo(json.dumps(data, indent=2, default=to_plain, allow_nan=False))
