"""``saddleback plan``: what an accuracy would cost, before it is paid for."""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Parameters, Seed, Target, Timeout, print_json
from saddleback.reports.forecast_text import forecast_json, print_forecast, solve_command
from saddleback.runs.targets import load_target
from saddleback.runs.verdict import ExitCode, Status
from saddleback.solving.forecast import forecast


def plan(
    target: Target,
    epsilon: Annotated[float, typer.Option(help="The accuracy wanted of the discounted reward.")],
    settings: Parameters = None,
    delta: Annotated[float, typer.Option(help="One minus the confidence.")] = 0.05,
    feasibility: Annotated[str, typer.Option(help="relaxed or strict.")] = "relaxed",
    samples: Annotated[
        int | None, typer.Option(help="Simulator calls of the pilot.", show_default="20000, more for large problems")
    ] = None,
    seed: Seed = 0,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Say what an accuracy would cost in simulator calls, time and memory: proved for the worst case, and likely."""
    instance = load_target(target, settings or [])
    found = forecast(
        instance.problem,
        instance.simulator,
        epsilon=epsilon,
        delta=delta,
        feasibility=feasibility,  # type: ignore[arg-type]
        samples=samples,
        seed=seed,
    )
    command = solve_command(target, settings or [], found)
    if as_json:
        print_json(forecast_json(found, command))
    else:
        print_forecast(Console(), found, command)
    if found.solution.status is Status.INFEASIBLE:
        raise typer.Exit(ExitCode.INFEASIBLE)
    raise typer.Exit(ExitCode.UNDECIDED if found.recommended == "neither" else ExitCode.ANSWERED)
