"""``saddleback check``: is the simulator what the problem says, and can its samples be trusted?"""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Parameters, Seed, Target, Timeout, print_json
from saddleback.reports.text import print_check
from saddleback.runs.targets import load_target
from saddleback.runs.verdict import ExitCode
from saddleback.simulators.checks import run_checks


def check(
    target: Target,
    settings: Parameters = None,
    calls: Annotated[int, typer.Option(help="Simulator calls, at most.")] = 20_000,
    seed: Seed = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings count as mistakes.")] = False,
    timeout: Timeout = 60.0,
    as_json: Json = False,
) -> None:
    """Look for mistakes in a simulator, its rewards, constraints and features: before samples are paid for."""
    instance = load_target(target, settings or [])
    report = run_checks(instance.problem, instance.simulator, calls=calls, seed=seed)
    if as_json:
        print_json({"target": target, "seed": seed, **report.to_json()})
    else:
        print_check(Console(), instance.problem, report)
    mistaken = report.errors or (strict and report.findings)
    raise typer.Exit(ExitCode.FAULT if mistaken else ExitCode.ANSWERED)
