"""``saddleback check``: is the simulator what the problem says, and can its samples be trusted?"""

from __future__ import annotations

from contextlib import closing
from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Parameters, Seed, Target, Timeout, print_json
from saddleback.cli.drawing import TimeLimit, Workers, announce
from saddleback.errors import at_least
from saddleback.reports.text import print_check
from saddleback.runs.targets import load_target
from saddleback.runs.verdict import ExitCode
from saddleback.sampling.examination import questions_drawn
from saddleback.sampling.executors import make
from saddleback.simulators.checks import LEAST_CALLS, MOST_CALLS, run_checks
from saddleback.solving.progress import display


def check(
    target: Target,
    settings: Parameters = None,
    calls: Annotated[int, typer.Option("--budget", "--calls", help="Simulator calls, at most.")] = 20_000,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings count as mistakes.")] = False,
    workers: Workers = 1,
    timeout: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Look for mistakes in a simulator, its rewards, constraints and features: before samples are paid for."""
    at_least("--budget", calls, LEAST_CALLS, MOST_CALLS, "fewer would show little, more would hardly show more")
    instance = load_target(target, settings or [])
    problem, model = instance.problem, instance.simulator
    with display() as show, closing(make(None, workers)) as crew:
        report = run_checks(
            problem,
            model,
            calls=calls,
            seed=seed,
            time_limit=time_limit,
            draw_all=None if workers == 1 else questions_drawn(problem, model, crew),
            progress=show,
            say=lambda text: announce(f"check: {text}; --budget and --time-limit make it less."),
        )
    if as_json:
        print_json({"target": target, "seed": seed, **report.to_json()})
    else:
        print_check(Console(), problem, report)
    mistaken = report.errors or (strict and report.findings)
    raise typer.Exit(ExitCode.FAULT if mistaken else ExitCode.ANSWERED)
