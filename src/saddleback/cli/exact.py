"""``saddleback exact``: the truth, where the table is known."""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Parameters, Target, print_json
from saddleback.reports.text import print_exact
from saddleback.runs.targets import load_target
from saddleback.runs.truth import exact_answer, exact_json
from saddleback.runs.verdict import ExitCode


def exact(
    target: Target,
    settings: Parameters = None,
    method: Annotated[str, typer.Option(help="columns, lp, or auto: columns for anything large.")] = "auto",
    as_json: Json = False,
) -> None:
    """The true optimum of a problem whose table is known: by column generation, or by the occupancy linear program."""
    instance = load_target(target, settings or [])
    answer = exact_answer(instance, method)
    if as_json:
        print_json(exact_json(instance, answer))
    else:
        print_exact(Console(), instance.problem, answer)
    raise typer.Exit(ExitCode.ANSWERED if answer.status == "optimal" else ExitCode.INFEASIBLE)
