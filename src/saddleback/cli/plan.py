"""``saddleback plan``: what an accuracy would cost, before it is paid for."""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Limits, Parameters, Seed, Target, Timeout, print_json
from saddleback.cli.drawing import Budget, TimeLimit, Workers, announce
from saddleback.reports.forecast_text import forecast_json, print_forecast, solve_command
from saddleback.runs.limits import with_limit_settings
from saddleback.runs.targets import load_target
from saddleback.runs.verdict import ExitCode, Status
from saddleback.sampling.executors import open_executor
from saddleback.solving.forecast import forecast
from saddleback.solving.progress import display


def plan(
    target: Target,
    epsilon: Annotated[float, typer.Option(help="The accuracy wanted of the discounted reward.")],
    settings: Parameters = None,
    limit: Limits = None,
    delta: Annotated[float, typer.Option(help="One minus the confidence.")] = 0.05,
    feasibility: Annotated[
        str,
        typer.Option(help="strict: constraints are proved to hold; relaxed: they hold up to the accuracy of the run."),
    ] = "strict",
    samples: Annotated[
        int | None, typer.Option(help="Simulator calls of the pilot.", show_default="20000, more for large problems")
    ] = None,
    budget: Budget = None,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Say what an accuracy would cost in simulator calls, time and memory: proved for the worst case, and likely."""
    chosen = with_limit_settings(settings, limit)
    instance = load_target(target, chosen)
    problem, model = instance.problem, instance.simulator
    with (
        display() as show,
        open_executor(workers, None, timeout, problem=problem, simulator=model, progress=show) as crew,
    ):
        found = forecast(
            problem,
            model,
            epsilon=epsilon,
            delta=delta,
            feasibility=feasibility,  # type: ignore[arg-type]
            samples=samples,
            seed=seed,
            budget=budget,
            time_limit=time_limit,
            executor=crew,
            progress=show,
            say=lambda text: announce(f"plan: {text}; --budget and --time-limit make it less."),
        )
    command = solve_command(target, chosen, found)
    if as_json:
        print_json(forecast_json(found, command))
    else:
        print_forecast(Console(), found, command)
    if found.solution.status is Status.INFEASIBLE:
        raise typer.Exit(ExitCode.INFEASIBLE)
    raise typer.Exit(ExitCode.UNDECIDED if found.recommended == "neither" else ExitCode.ANSWERED)
