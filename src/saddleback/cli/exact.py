"""``saddleback exact``: the truth, where the table is known."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from saddleback.cli.common import Json, Settings, Target, exact_answer, exact_json, print_json
from saddleback.errors import InputError
from saddleback.runs.targets import load_target
from saddleback.runs.text import print_exact


def exact(
    target: Target,
    settings: Settings = None,
    method: Annotated[str, typer.Option(help="columns, lp, or auto: columns for anything large.")] = "auto",
    as_json: Json = False,
) -> None:
    """The true optimum of a problem whose table is known: by column generation, or by the occupancy linear program."""
    instance = load_target(target, settings or [])
    if instance.table is None:
        raise typer.BadParameter(f"'{target}' has no table to solve exactly; known facts: {instance.known}")
    if method not in ("auto", "columns", "lp"):
        raise InputError("--method", "must be auto, columns or lp", repr(method), "leave it out for the usual one")
    answer = exact_answer(instance, method)
    if as_json:
        print_json(exact_json(instance, answer))
    else:
        print_exact(Console(), instance.problem, answer)
    if answer.status != "optimal":
        raise typer.Exit(3)
