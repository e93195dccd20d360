"""``saddleback check``: is the simulator what the problem says, and can its samples be trusted?"""

from __future__ import annotations

import math
from typing import Annotated

import typer
from rich.console import Console

from saddleback.cli.common import Json, Seed, Settings, Target, print_json
from saddleback.problem.cmdp import CMDP
from saddleback.runs.targets import load_target
from saddleback.simulators.checks import Report, run_checks
from saddleback.simulators.checks.finding import FALSE_ALARM

FOUND = 5
"""Exit code where a mistake was found: the code of a simulator that fails."""


def check(
    target: Target,
    settings: Settings = None,
    calls: Annotated[int, typer.Option(help="Simulator calls, at most.")] = 20_000,
    seed: Seed = 0,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings count as mistakes.")] = False,
    as_json: Json = False,
) -> None:
    """Look for mistakes in a simulator, its rewards, constraints and features: before samples are paid for."""
    instance = load_target(target, settings or [])
    report = run_checks(instance.problem, instance.simulator, calls=calls, seed=seed)
    if as_json:
        print_json({"target": target, "seed": seed, **report.to_json()})
    else:
        _print(Console(), instance.problem, report)
    raise typer.Exit(FOUND if report.errors or (strict and report.findings) else 0)


def _print(console: Console, problem: CMDP, report: Report) -> None:
    def say(text: str, style: str | None = None) -> None:
        console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)

    for finding in report.findings:
        say(
            f"{finding.severity} ({finding.check}): {finding.message}",
            "red" if finding.severity == "error" else "yellow",
        )
    for skipped in report.skipped:
        say(f"not checked: {skipped}.")
    warnings = len(report.findings) - report.errors
    counts = [f"{n} {word}{'' if n == 1 else 's'}" for n, word in ((report.errors, "error"), (warnings, "warning"))]
    verdict = ", ".join(counts) if report.findings else "no mistake found"
    say(f"{problem.name}: {verdict} in {report.calls:,} simulator calls.")
    thresholds = zip(problem.constraints, problem.user_thresholds(), strict=True)
    for constraint, total in thresholds:
        average = total / problem.horizon
        say(f"  {constraint.name} {constraint.sense} {total:g} as a discounted total, {average:g} as an average a step")
    if report.rank is not None:
        say(f"  {report.dim} features of rank {report.rank}, condition number {report.condition:.2g}")
    for words, seconds in (("alone", report.seconds_alone), ("in a batch", report.seconds_in_batch)):
        if math.isfinite(seconds):
            say(f"  {seconds * 1e6:,.3g} µs a call {words}, so a million take {_duration(seconds * 1e6)}")
    if report.tests:
        say(
            f"  {report.tests} groups of random tests; all together accuse a sound simulator with probability {FALSE_ALARM:g}"
        )


def _duration(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.1f} s"
