"""``saddleback sample``: draw samples into a folder, to be solved from later, here or elsewhere."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from saddleback.cli.common import Console, Json, Parameters, Seed, Target, Timeout, print_json
from saddleback.cli.drawing import AcceptSource, ExecutorName, Workers, resumable
from saddleback.errors import plain_text, require
from saddleback.runs.targets import load_target, origin_of
from saddleback.runs.verdict import ExitCode
from saddleback.runs.work_folder import Work, owned
from saddleback.simulators.generative_model import BLOCK
from saddleback.solving.kept_run import Drawing
from saddleback.solving.progress import display
from saddleback.solving.stored_samples import SHARES, accept_code, draw_rounds, merge_samples, repair, reports_of


def sample(
    target: Target,
    out: Annotated[Path, typer.Option(help="The folder for the samples; one that exists is continued.")],
    settings: Parameters = None,
    rounds: Annotated[
        int | None,
        typer.Option(
            help=f"Rounds in all; each draws {sum(SHARES.values())} x {BLOCK:,} samples of every pair.",
            show_default="1",
        ),
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Instead of --rounds: samples in all, at most, the same number of every pair.")
    ] = None,
    seed: Seed = 0,
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read all samples again and check them; draw none.")] = False,
    repair_them: Annotated[
        bool,
        typer.Option("--repair", help="Take away what --verify finds damaged; without it the same is drawn again."),
    ] = False,
    accept_source: AcceptSource = False,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Draw none: put the samples of these folders together in --out, a new one. May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw samples into a folder that survives kills and power cuts; the same seed gives the same bits."""
    place = out.absolute()
    if verify or repair_them:
        _verify(place, as_json, repair_them)
        return
    if merge:
        instance, parts = load_target(target, settings or []), [m.absolute() for m in merge]
        with owned(place) as work:
            found = merge_samples(instance.problem, instance.simulator, parts, work)
        seeds = ", ".join(map(str, found["seeds"]))
        text = f"{found['samples']:,} samples from {len(parts)} folders, seeds {seeds}. SHA-256 {found['sha256']}."
        print_json(found) if as_json else _say(f"{place.name}: {text}")
        return
    require(rounds is None or rounds >= 1, "--rounds", "must be at least 1", rounds, "use 1, 2, 3 …")
    require(seed >= 0, "--seed", "must not be negative", seed, "use 0, 1, 2 …")
    options: dict[str, Any] = {"rounds": 1 if rounds is None else rounds, "seed": seed}
    if samples is not None:
        require(rounds is None, "--samples", "must not be given with --rounds", samples, "leave one of the two out")
        options |= {"rounds": 0, "samples": samples}
    with owned(place) as work:
        if accept_source:
            instance = load_target(target, settings or [])
            accept_code(place, instance.problem, instance.simulator)
        draw(target, settings or [], work, options, Drawing(workers, executor, timeout), as_json)


def draw(
    target: str,
    settings: list[str],
    work: Work,
    options: dict[str, Any],
    drawing: Drawing,
    as_json: bool,
    source: str | None = None,
    path: str | None = None,
) -> None:
    """Draw what is missing of so many rounds, and say what there is; ``source`` and ``path`` as in :func:`saddleback.cli.solve.answer`."""
    named, began = target if source is None else source, time.monotonic()
    instance, recorded = load_target(named, settings), origin_of(named, settings)
    recorded = replace(recorded, path=path or recorded.path)
    place = work.place
    with resumable(place), display() as show:
        found, executor = draw_rounds(
            instance.problem, instance.simulator, work, target, recorded, options, drawing, show
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


def _verify(place: Path, as_json: bool, mend: bool) -> None:
    mended = {}
    if mend:
        with owned(place):
            mended = repair(place)
    for name, what in mended.items():
        Console(stderr=True).print(plain_text(f"{name}: {what}", 10_000), markup=False, highlight=False)
    found = reports_of(place)
    sound = all(report.sound for report in found.values())
    if as_json:
        print_json({"sound": sound, "stores": {name: report.damage for name, report in found.items()}})
    else:
        for name, report in found.items():
            left = f"{report.num_blocks:,} blocks with {report.num_samples:,} samples are unharmed"
            faults = "; ".join([*report.damage, f"{left}: --repair in the place of --verify keeps these"])
            others = (
                f" (besides files that are none of its own: {', '.join(report.others[:5])})" if report.others else ""
            )
            _say(f"{name}: {'sound' if report.sound else faults}{others}")
    if not sound:
        raise typer.Exit(ExitCode.FAULT)


def _say(text: str) -> None:
    Console().print(plain_text(text, 10_000), markup=False, highlight=False)
