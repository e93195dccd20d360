"""``saddleback frontier``: the whole trade-off from one set of samples."""

from __future__ import annotations

from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, Parameters, Seed, Target, Timeout, print_json
from saddleback.errors import require
from saddleback.reports.text import frontier_json, print_frontier
from saddleback.runs.settings import Method, Settings
from saddleback.runs.targets import load_target
from saddleback.runs.verdict import ExitCode
from saddleback.solving.frontier import frontier as trade_off
from saddleback.solving.prepare import prepare
from saddleback.solving.progress import display


def frontier(
    target: Target,
    settings: Parameters = None,
    constraint: Annotated[
        str | None, typer.Option(help="Name of the constraint whose threshold moves.", show_default="the first")
    ] = None,
    points: Annotated[int, typer.Option(help="Number of thresholds.")] = 20,
    samples: Annotated[int, typer.Option(help="Simulator calls for the curve, over all buffers.")] = 1_000_000,
    certificate_samples: Annotated[
        int, typer.Option(help="Further calls for a confidence band around the true curve; 0 for none.")
    ] = 0,
    delta: Annotated[float, typer.Option(help="One minus the confidence of the band.")] = 0.05,
    seed: Seed = 0,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """The best reward against one constraint's threshold, the others held, from one set of samples."""
    Settings(delta=delta, seed=seed)  # which are checked there
    rule = "must not be negative"
    require(certificate_samples >= 0, "--certificate-samples", rule, certificate_samples, "0 means no band")
    instance = load_target(target, settings or [])
    parts = prepare(instance.problem, instance.simulator, samples, seed, Method())
    with display() as progress:
        progress("frontier", 0, 1)
        curve = trade_off(parts, constraint, points)
        if certificate_samples:
            curve = curve.certified(instance.simulator, samples=certificate_samples, seed=seed, delta=delta)
    if as_json:
        print_json(frontier_json(curve))
    else:
        print_frontier(Console(), curve)
    if curve.band is not None and curve.band.contradictions:
        raise typer.Exit(ExitCode.UNDECIDED)
