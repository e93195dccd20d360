"""``saddleback sample``: draw samples into a folder, to be solved from later, here or elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from saddleback.cli.common import Json, Parameters, Seed, Target, print_json
from saddleback.cli.drawing import ExecutorName, Timeout, Workers, resumable
from saddleback.errors import require
from saddleback.runs.targets import load_target, origin_of
from saddleback.runs.verdict import ExitCode
from saddleback.simulators.generative_model import BLOCK
from saddleback.solving.kept_run import Drawing
from saddleback.solving.progress import display
from saddleback.solving.stored_samples import SHARES, damage_in, draw_rounds, merge_samples


def sample(
    target: Target,
    out: Annotated[Path, typer.Option(help="The folder for the samples; one that exists is continued.")],
    settings: Parameters = None,
    rounds: Annotated[
        int, typer.Option(help=f"Rounds in all; each draws {sum(SHARES.values())} x {BLOCK:,} samples of every pair.")
    ] = 1,
    seed: Seed = 0,
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read all samples again and check them; draw none.")] = False,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Draw none: put the samples of these folders together in --out, a new one. May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw samples into a folder that survives kills and power cuts; the same seed gives the same bits."""
    place = out.absolute()
    if verify:
        _verify(place, as_json)
        return
    if merge:
        instance, parts = load_target(target, settings or []), [m.absolute() for m in merge]
        found = merge_samples(instance.problem, instance.simulator, parts, place)
        seeds = ", ".join(map(str, found["seeds"]))
        text = f"{found['samples']:,} samples from {len(parts)} folders, seeds {seeds}. SHA-256 {found['sha256']}."
        print_json(found) if as_json else _say(f"{place.name}: {text}")
        return
    require(rounds >= 1, "--rounds", "must be at least 1", rounds, "use 1, 2, 3 …")
    require(seed >= 0, "--seed", "must not be negative", seed, "use 0, 1, 2 …")
    options = {"rounds": rounds, "seed": seed}
    draw(target, settings or [], place, options, Drawing(workers, executor, timeout), as_json)


def draw(
    target: str,
    settings: list[str],
    place: Path,
    options: dict[str, Any],
    drawing: Drawing,
    as_json: bool,
    source: str | None = None,
) -> None:
    """Draw what is missing of so many rounds, and say what there is; ``source`` as in :func:`saddleback.cli.solve.answer`."""
    named, began = target if source is None else source, time.monotonic()
    instance, recorded = load_target(named, settings), origin_of(named, settings).settings
    with resumable(place), display() as show:
        found, executor = draw_rounds(
            instance.problem, instance.simulator, place, target, recorded, options, drawing, show
        )
    found["seconds"] = time.monotonic() - began
    if as_json:
        print_json(found)
        return
    _say(
        f"{place.name}: {found['samples']:,} samples of {found['pairs']} pairs, {found['drawn_now']:,} of them drawn now in "
        f"{found['seconds']:.1f} s, besides {executor.check_calls:,} calls to check the simulator. SHA-256 {found['sha256']}."
    )
    if executor.finding is not None:
        _say(f"This run cannot be repeated: {executor.finding}")


def _verify(place: Path, as_json: bool) -> None:
    damage = damage_in(place)
    if as_json:
        print_json({"sound": not any(damage.values()), "stores": damage})
    else:
        for name, faults in damage.items():
            _say(f"{name}: {'; '.join(faults) or 'sound'}")
    if any(damage.values()):
        raise typer.Exit(ExitCode.FAULT)


def _say(text: str) -> None:
    Console().print(text, markup=False, highlight=False)
