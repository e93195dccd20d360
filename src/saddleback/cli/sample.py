"""``saddleback sample``: draw samples into a folder, to be solved from later, here or elsewhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from saddleback.blocks import Block, BlockSource
from saddleback.choices import Choices, parts_of
from saddleback.cli.common import Json, Seed, Settings, Target, print_json, progress_bar
from saddleback.cli.drawing import Drawing, ExecutorName, Timeout, Workers
from saddleback.durable import Durable
from saddleback.errors import InputError, require
from saddleback.fingerprint import CHECK_CALLS
from saddleback.simulator import BLOCK, Stream
from saddleback.storage.sample_store import verify_store
from saddleback.storage.work_folder import SAMPLES, begin_work, finish_work, work_folder
from saddleback.targets import load_target

SHARES = {Stream.SOLVER: 1, Stream.EVALUATION: 3}
"""Blocks of every pair in one round, by who they are for: a quarter for the solver, as in a solve."""


def sample(
    target: Target,
    out: Annotated[Path, typer.Option(help="The folder for the samples; one that exists is continued.")],
    settings: Settings = None,
    rounds: Annotated[
        int, typer.Option(help=f"Rounds in all; each draws {sum(SHARES.values())} x {BLOCK:,} samples of every pair.")
    ] = 1,
    seed: Seed = 0,
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read all samples again and check them; draw none.")] = False,
    as_json: Json = False,
) -> None:
    """Draw samples into a folder that survives kills and power cuts; the same seed gives the same bits."""
    if verify:
        _verify(out.absolute(), as_json)
        return
    require(rounds >= 1, "--rounds", "must be at least 1", rounds, "use 1, 2, 3 …")
    require(seed >= 0, "--seed", "must not be negative", seed, "use 0, 1, 2 …")
    options = {"rounds": rounds, "seed": seed}
    draw_rounds(target, settings or [], out.absolute(), options, Drawing(workers, executor, timeout), as_json)


def draw_rounds(
    target: str, settings: list[str], place: Path, options: dict[str, Any], drawing: Drawing, as_json: bool
) -> None:
    """Draw what is missing of so many rounds, and say what there is."""
    instance, seed, began = load_target(target, settings), options["seed"], time.monotonic()
    problem, names, _, _, designer = parts_of(instance.problem, Choices())
    design = designer.design(problem)
    begin_work(place, "sample", target, settings, options)
    place.mkdir(exist_ok=True)
    source = BlockSource(instance.simulator, problem, design.states, design.actions, seed)
    tasks = [
        Block(int(stream), pair, number, BLOCK)
        for stream, share in SHARES.items()
        for pair in range(design.size)
        for number in range(share * options["rounds"])
    ]
    with progress_bar() as progress, drawing.executor(instance, seed, place / SAMPLES) as executor:
        assert isinstance(executor, Durable)
        for done, _ in enumerate(executor.run(source.draw, tasks), start=1):
            if progress is not None:
                progress("blocks", done, len(tasks))
        digest = executor.content_hashes()[f"samples-{seed}"]
        found = {
            "samples": len(tasks) * BLOCK,
            "drawn_now": len(tasks) * BLOCK - executor.num_read,
            "pairs": design.size,
            "design": names["design"],
            "rounds": options["rounds"],
            "seed": seed,
            "check_calls": CHECK_CALLS,
            "sha256": digest,
            "seconds": time.monotonic() - began,
        }
    finish_work(place)
    if as_json:
        print_json(found)
        return
    Console().print(
        f"{place.name}: {found['samples']:,} samples of {design.size} pairs, {found['drawn_now']:,} of them drawn now in "
        f"{found['seconds']:.1f} s, besides {CHECK_CALLS} calls to check the simulator. SHA-256 {digest}.",
        markup=False,
        highlight=False,
    )


def _verify(place: Path, as_json: bool) -> None:
    homes = [where / SAMPLES for where in (place, work_folder(place)) if (where / SAMPLES).is_dir()]
    folders = [folder for home in homes for folder in sorted(home.iterdir())]
    if not folders:
        raise InputError("--out", "must hold samples", str(place), "check the path")
    damage = {folder.name: verify_store(folder).damage for folder in folders}
    if as_json:
        print_json({"sound": not any(damage.values()), "stores": damage})
    else:
        for name, faults in damage.items():
            Console().print(f"{name}: {'; '.join(faults) or 'sound'}", markup=False, highlight=False)
    if any(damage.values()):
        raise typer.Exit(5)
