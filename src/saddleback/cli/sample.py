"""``saddleback sample``: draw samples into a folder, to be solved from later, here or elsewhere."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from saddleback.cli.common import Json, Seed, Settings, Target, print_json
from saddleback.cli.drawing import Drawing, ExecutorName, Timeout, Workers, resumable
from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.files.disk import disk_faults_named, sync_folder
from saddleback.instances.instance import Instance
from saddleback.runs.settings import Method
from saddleback.runs.settings import Settings as Asked
from saddleback.runs.targets import load_target, origin_of
from saddleback.runs.work_folder import SAMPLES, abandon_work, begin_work, finish_work, work_folder
from saddleback.sampling.blocks import Block, BlockSource
from saddleback.sampling.fingerprint import fingerprint_of
from saddleback.sampling.store.manifest import require_same
from saddleback.sampling.store.pooling import PARTS, pool, seeds_of
from saddleback.sampling.store.sample_store import SampleStore, verify_store
from saddleback.simulators.generative_model import BLOCK, Stream
from saddleback.solving.parts import parts_of
from saddleback.solving.progress import display

SHARES = {Stream.SOLVER: 1, Stream.EVALUATION: 3}
"""Blocks of every pair in one round, by who they are for: a quarter for the solver, as in a solve."""

_MOST_BLOCKS = 10_000_000  # 4e10 samples


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
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Draw none: put the samples of these folders together in --out, a new one. May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Draw samples into a folder that survives kills and power cuts; the same seed gives the same bits."""
    if verify:
        _verify(out.absolute(), as_json)
        return
    if merge:
        _merge(target, settings or [], [m.absolute() for m in merge], out.absolute(), as_json)
        return
    require(rounds >= 1, "--rounds", "must be at least 1", rounds, "use 1, 2, 3 …")
    require(seed >= 0, "--seed", "must not be negative", seed, "use 0, 1, 2 …")
    options = {"rounds": rounds, "seed": seed}
    draw_rounds(target, settings or [], out.absolute(), options, Drawing(workers, executor, timeout), as_json)


def draw_rounds(
    target: str,
    settings: list[str],
    place: Path,
    options: dict[str, Any],
    drawing: Drawing,
    as_json: bool,
    source: str | None = None,
) -> None:
    """Draw what is missing of so many rounds, and say what there is; ``source`` as in :func:`saddleback.cli.solve.carry_out`."""
    named = target if source is None else source
    instance, seed, began = load_target(named, settings), options["seed"], time.monotonic()
    problem, names, _, _, designer = parts_of(instance.problem, Method())
    design = designer.design(problem)
    _check_seed(place, seed)
    most = _MOST_BLOCKS // (sum(SHARES.values()) * design.size)
    require(
        options["rounds"] <= most,
        "--rounds",
        f"must be at most {most:,} here",
        options["rounds"],
        "use several folders",
    )
    fresh = not work_folder(place).exists()
    begin_work(place, "sample", target, list(origin_of(named, settings).settings), options)
    _make_place(place)
    blocks = BlockSource(instance.simulator, problem, design.states, design.actions, seed)
    tasks = [
        Block(int(stream), pair, number, BLOCK)
        for stream, share in SHARES.items()
        for pair in range(design.size)
        for number in range(share * options["rounds"])
    ]
    fields = {"coreset": coreset_of(design)}
    try:
        with (
            resumable(place),
            display() as show,
            drawing.executor(instance, place / SAMPLES, show, fields=fields, counts=True) as executor,
        ):
            assert executor.kept is not None
            missing = executor.kept.missing(blocks, tasks)
            for _ in executor.run(blocks.draw, missing):
                pass
            digest = executor.kept.content_hashes()[f"samples-{seed}"]
    except InputError:  # samples of something else, say: a request that was mistyped must not keep the right one out
        if fresh:
            abandon_work(place)
        raise
    finish_work(place)
    found = {
        "samples": len(tasks) * BLOCK,
        "drawn_now": len(missing) * BLOCK,
        "pairs": design.size,
        "design": names["design"],
        "rounds": options["rounds"],
        "seed": seed,
        **executor.report(),
        "sha256": digest,
        "seconds": time.monotonic() - began,
    }
    if as_json:
        print_json(found)
        return
    _say(
        f"{place.name}: {found['samples']:,} samples of {design.size} pairs, {found['drawn_now']:,} of them drawn now in "
        f"{found['seconds']:.1f} s, besides {executor.check_calls:,} calls to check the simulator. SHA-256 {digest}."
    )
    if executor.finding is not None:
        _say(f"This run cannot be repeated: {executor.finding}")


def _check_seed(place: Path, seed: int) -> None:
    """A folder holds the samples of one seed, or a pool, which is not added to."""
    there = sorted(p.name for p in (place / SAMPLES).iterdir()) if (place / SAMPLES).is_dir() else []
    for name in there:
        rule = "must be a new folder, or one with samples of the same seed"
        remedy = "choose another folder; `--merge` puts folders together"
        require(name == f"samples-{seed}", "--out", rule, name, remedy)


def _check_for_pool(place: Path, name: str) -> None:
    """A pool goes into a new folder, or into one that holds the same pool, whole or in part."""
    rule, remedy = "must be a new folder, or one where the same folders were merged", "choose a new folder"
    under_way = work_folder(place)
    require(not under_way.exists(), "--out", rule, f"one that is under way, {under_way.name}", remedy)
    for folder, only in ((place, SAMPLES), (place / SAMPLES, name)):
        for found in sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []:
            require(found == only, "--out", rule, f"one that holds {found}", remedy)


def _make_place(place: Path) -> None:
    """A folder whose name survives a power cut."""
    with disk_faults_named(place, "choose a place that can be written to"):
        place.mkdir(exist_ok=True)
        sync_folder(place.parent)


def coreset_of(design: Design) -> str:
    """Which pairs the samples are of, in short."""
    digest = hashlib.sha256(np.ascontiguousarray(design.states).tobytes())
    digest.update(np.ascontiguousarray(design.actions).tobytes())
    return digest.hexdigest()[:16]


def open_samples(place: Path) -> SampleStore:
    """The samples that ``sample`` has left in a folder, to be read."""
    home = place / SAMPLES
    folders = sorted(home.iterdir()) if home.is_dir() else []
    if len(folders) != 1 or not folders[0].name.startswith("samples-"):
        found = "none" if not folders else ", ".join(f.name for f in folders[:4])
        raise InputError(str(place), "must be a folder that `saddleback sample` has made", found, "check the path")
    return SampleStore.open(folders[0], writable=False)


@contextmanager
def samples_for(instance: Instance, budget: dict[str, Any], parts: dict[str, Any]) -> Iterator[SampleStore | None]:
    """The samples in a folder, once it is sure that they are samples of this problem."""
    if "from" not in budget:
        yield None
        return
    method = Asked.of_record({"budget": {"certificate": 1}, "parts": parts}).method
    with open_samples(Path(budget["from"])) as store:
        problem, _, _, _, designer = parts_of(instance.problem, method)
        fields = {"coreset": coreset_of(designer.design(problem)), "seed": store.fingerprint.get("seed")}
        given = {**fingerprint_of(instance.problem, instance.simulator), **fields}
        require_same(store.folder, store.fingerprint, given, {PARTS})
        yield store


def pinned(store: SampleStore, budget: dict[str, Any]) -> str:
    """The content hash of the samples, which must be what it was when the run was begun."""
    found = store.content_hash()
    begun = budget.get("from_sha256", found)
    rule = f"must hold the samples that it held when the run was begun, SHA-256 {begun[:12]}"
    require(found == begun, str(budget["from"]), rule, found[:12], "solve from the new ones with another --out")
    return found


def _merge(target: str, settings: list[str], parts: list[Path], place: Path, as_json: bool) -> None:
    instance = load_target(target, settings)
    require(place not in parts, "--out", "must not be one of the folders that are merged", place.name, "name a new one")
    wanted = fingerprint_of(instance.problem, instance.simulator)
    with ExitStack() as stack:
        stores = [stack.enter_context(open_samples(part)) for part in parts]
        for store in stores:
            require_same(store.folder, store.fingerprint, wanted, {"seed", "coreset", PARTS})
        seeds = sorted({seed for store in stores for seed in seeds_of(store)})
        name = f"samples-{seeds[0]}" if len(seeds) == 1 else "samples-pooled"
        _check_for_pool(place, name)
        _make_place(place)
        _make_place(place / SAMPLES)
        pooled = stack.enter_context(pool(stores, place / SAMPLES / name))
        found = {
            "samples": pooled.num_samples,
            "seeds": seeds,
            "parts": [{"folder": p.name, "samples": s.num_samples} for p, s in zip(parts, stores, strict=True)],
            "sha256": pooled.content_hash(),
        }
    if as_json:
        print_json(found)
    else:
        _say(
            f"{place.name}: {found['samples']:,} samples from {len(parts)} folders, seeds {', '.join(map(str, seeds))}. "
            f"SHA-256 {found['sha256']}."
        )


def _say(text: str) -> None:
    Console().print(text, markup=False, highlight=False)


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
