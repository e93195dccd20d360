"""``saddleback new``: a first problem of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, print_json
from saddleback.instances.problem_file.starter import write_starter


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the two files are called, without an ending.")],
    as_json: Json = False,
) -> None:
    """Write a commented simulator and problem file to start from: NAME.py and NAME.toml, which run as they are."""
    simulator, problem = write_starter(name, Path())
    if as_json:
        print_json({"simulator": str(simulator), "problem": str(problem)})
        return
    console = Console()
    console.print(
        f"{simulator} is a simulator, {problem} says what is wanted of it. Both run as they are:", markup=False
    )
    for verb in (f"check {problem}", f"solve {problem} --out run", "report run"):
        console.print(f"  saddleback {verb}", markup=False, highlight=False)
