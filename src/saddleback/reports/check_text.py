"""What was found wrong with a simulator, for a terminal or a log."""

from __future__ import annotations

import math

from rich.console import Console

from saddleback.problem.cmdp import CMDP
from saddleback.runs.numbers import duration
from saddleback.simulators.checks import Report
from saddleback.simulators.checks.probe import FALSE_ALARM


def print_check(console: Console, problem: CMDP, report: Report) -> None:
    """The findings first, then a verdict and what was measured on the way."""

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
            million = 1e6 * seconds
            total = duration(million) if million >= 120 else f"{million:.1f} s"  # seconds, however quick the machine
            say(f"  {million:,.3g} µs a call {words}, so a million take {total}")
    if report.tests:
        say(
            f"  {report.tests} groups of random tests; all together accuse a sound simulator with probability {FALSE_ALARM:g}"
        )
