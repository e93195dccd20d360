"""``saddleback frontier``: the whole trade-off from one set of samples."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import (
    At,
    Console,
    Json,
    Limits,
    Parameters,
    Seed,
    Timeout,
    constraint_named,
    print_json,
    totals_at,
)
from saddleback.cli.drawing import Workers, announce
from saddleback.errors import require
from saddleback.problem.phases import phase
from saddleback.reports.text import frontier_json, print_frontier
from saddleback.runs.limits import with_limit_settings
from saddleback.runs.run_folder import load_run
from saddleback.runs.settings import Method, Settings
from saddleback.runs.targets import load_run_problem, load_target
from saddleback.runs.unfinished import is_unfinished
from saddleback.runs.verdict import ExitCode
from saddleback.sampling.executors import open_executor
from saddleback.solving.frontier import Frontier
from saddleback.solving.frontier import frontier as trade_off
from saddleback.solving.prepare import prepare
from saddleback.solving.progress import display
from saddleback.solving.stored_frontier import stored_frontier


def frontier(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="As for `solve`, or a folder that `solve --out` wrote, whose own samples are enough."
        ),
    ],
    settings: Parameters = None,
    limit: Limits = None,
    constraint: Annotated[
        str | None, typer.Option(help="Name of the constraint whose threshold moves.", show_default="the first")
    ] = None,
    points: Annotated[int, typer.Option(help="Number of thresholds.")] = 20,
    at: At = None,
    samples: Annotated[
        int | None, typer.Option(help="Simulator calls for the curve, over all buffers.", show_default="1000000")
    ] = None,
    certificate_samples: Annotated[
        int, typer.Option(help="Further calls for a confidence band around the true curve; 0 for none.")
    ] = 0,
    delta: Annotated[float, typer.Option(help="One minus the confidence of the band.")] = 0.05,
    seed: Seed = 0,
    workers: Workers = 1,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """The best reward against one constraint's threshold, the others held, from one set of samples."""
    Settings(delta=delta, seed=seed)  # which are checked there
    rule = "must not be negative"
    require(certificate_samples >= 0, "--certificate-samples", rule, certificate_samples, "0 means no band")
    if os.path.isdir(target) or is_unfinished(Path(target)):
        given = {"--set": settings, "--limit": limit, "--samples": samples}
        for name, value in {**given, "--certificate-samples": certificate_samples or None}.items():
            rule = "must not be given with a run, whose own samples are used"
            told = " ".join(value) if isinstance(value, list) else value
            require(value is None, name, rule, told, "leave it out, or name the problem itself")
        stored = load_run(target)
        problem = load_run_problem(stored)
        moving = constraint_named(problem, constraint)
        wanted = None if at is None else totals_at(problem, moving, at)
        _show(stored_frontier(stored, problem, constraint, points, wanted), as_json, of_run=True)
        return
    instance = load_target(target, with_limit_settings(settings, limit))
    problem, model = instance.problem, instance.simulator
    moving = constraint_named(problem, constraint)
    wanted = None if at is None else totals_at(problem, moving, at)
    name = problem.constraints[moving].name
    for text in (text for text in limit or () if text.partition("=")[0].strip() == name):
        announce(
            f"--limit {text} changes nothing: the threshold of '{name}' is the one that moves; --at says where to."
        )
    with (
        display() as progress,
        open_executor(workers, None, timeout, problem=problem, simulator=model, progress=progress) as crew,
    ):
        parts = prepare(problem, model, 1_000_000 if samples is None else samples, seed, Method(), executor=crew)
        with phase("computing the frontier"):
            curve = trade_off(parts, moving, points, thresholds=wanted)
        if certificate_samples:
            with phase("proving a band around the frontier"):
                curve = curve.certified(model, samples=certificate_samples, seed=seed, delta=delta, executor=crew)
    _show(curve, as_json)
    if curve.band is not None and curve.band.contradictions:
        raise typer.Exit(ExitCode.UNDECIDED)


def _show(curve: Frontier, as_json: bool, of_run: bool = False) -> None:
    if as_json:
        print_json(frontier_json(curve))
    else:
        print_frontier(Console(), curve, of_run)
