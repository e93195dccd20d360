"""Samples that are drawn into a folder, to be solved from later, here or elsewhere; put together, checked and opened again."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from saddleback.designs.candidates import Full
from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.files.disk import Disk, disk_faults_named
from saddleback.files.json_file import to_plain
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import digest
from saddleback.problem.numerics import on_grid
from saddleback.runs.certificate_file import ProblemRecord
from saddleback.runs.file_names import MANIFEST, SAMPLES
from saddleback.runs.run_folder import Origin
from saddleback.runs.settings import Method, Settings
from saddleback.runs.work_folder import Work, work_folder
from saddleback.sampling.blocks import Block, BlockSource
from saddleback.sampling.examination import examine
from saddleback.sampling.executors import open_executor
from saddleback.sampling.executors.durable import Durable, refuse_link
from saddleback.sampling.executors.watched import Replayed
from saddleback.sampling.fingerprint import fingerprint_of
from saddleback.sampling.store.manifest import require_same
from saddleback.sampling.store.pooling import PARTS, pool, seeds_of
from saddleback.sampling.store.recovery import Report
from saddleback.sampling.store.sample_store import SampleStore, accept_sources, verify_store
from saddleback.simulators.generative_model import BLOCK, GenerativeModel, Stream, derived_seed, generator
from saddleback.simulators.seed_rounds import question_number
from saddleback.simulators.sources import sources_of
from saddleback.solving.kept_run import Drawing, Show
from saddleback.solving.prepared import parts_of

SHARES = {Stream.SOLVER: 1, Stream.EVALUATION: 3}
"""Blocks of every pair in one round, by who they are for: a quarter for the solver, as in a solve."""

_MOST_BLOCKS = 10_000_000  # 4e10 samples
_SOME_PAIRS = 512  # whose signals tell one question from another


def draw_rounds(
    problem: CMDP,
    simulator: GenerativeModel,
    work: Work,
    target: str,
    origin: Origin,
    options: Mapping[str, Any],
    drawing: Drawing,
    show: Show,
) -> tuple[dict[str, Any], Replayed]:
    """Draw what is missing of so many rounds; what there is now, and who drew it.

    ``target`` and ``origin`` are the problem's name for whoever resumes, ``options`` the seed and the rounds, or in their place
    the ``samples`` in all.
    """
    rounds, seed, place, total = options["rounds"], options["seed"], work.place, options.get("samples")
    chosen = parts_of(problem, Method())
    if isinstance(chosen.designer, Full) and total is None:
        _check_rounds(rounds, (problem.num_states or 1) * problem.num_actions)  # before that many are listed
    design = chosen.designer.design(chosen.problem)
    _check_seed(place, seed)
    if total is None:
        _check_rounds(rounds, design.size)
    work.begin("sample", target, list(origin.settings), options, origin.question, origin.path)
    _make_place(place)
    blocks = BlockSource(simulator, chosen.problem, design.states, design.actions, seed)
    serving = serving_pairs(problem.stand_ins, design.states, design.actions)
    own = list(range(design.size)) if serving is None else np.unique(serving).tolist()
    tasks = _tasks(own, rounds, total)
    kept: dict[str, Any] = {"folder": place / SAMPLES, "fields": {"coreset": _coreset(design)}, "counts": True}
    try:
        with open_executor(*drawing, problem=problem, simulator=simulator, progress=show, **kept) as executor:
            assert executor.kept is not None
            examine(problem, simulator, seed, (design.states, design.actions), executor)
            missing = _missing(executor.kept, blocks, tasks)
            for _ in executor.run(blocks.draw, missing):
                pass
            digest = executor.kept.content_hashes()[f"samples-{seed}"]
    except InputError:  # samples of something else, say: a request that was mistyped must not keep the right one out
        work.abandon()
        raise
    work.finish()
    found = {
        "samples": sum(task.size for task in tasks),
        "drawn_now": sum(task.size for task in missing),
        "pairs": len(own),
        "design": chosen.names["design"],
        "rounds": rounds,
        "seed": seed,
        **executor.report(),
        "sha256": digest,
    }
    return found, executor


def merge_samples(problem: CMDP, simulator: GenerativeModel, parts: Sequence[Path], work: Work) -> dict[str, Any]:
    """Put the samples of several folders together in a new one; what it holds."""
    place = work.place
    require(place not in parts, "--out", "must not be one of the folders that are merged", place.name, "name a new one")
    wanted = fingerprint_of(problem, simulator)
    with ExitStack() as stack:
        stores = [stack.enter_context(open_samples(part)) for part in parts]
        for store in stores:
            require_same(store.folder, store.fingerprint, wanted, {"seed", "coreset", PARTS})
        seeds = sorted({seed for store in stores for seed in seeds_of(store)})
        name = f"samples-{seeds[0]}" if len(seeds) == 1 else "samples-pooled"
        _check_for_pool(work, name)
        _make_place(place)
        _make_place(place / SAMPLES)
        refuse_link(place / SAMPLES / name)
        pooled = stack.enter_context(pool(stores, place / SAMPLES / name))
        return {
            "samples": pooled.num_samples,
            "seeds": seeds,
            "parts": [{"folder": p.name, "samples": s.num_samples} for p, s in zip(parts, stores, strict=True)],
            "sha256": pooled.content_hash(),
        }


def stores_in(place: Path) -> list[Path]:
    """The stores of a finished run or folder of samples, and of one that is under way."""
    homes = [where / SAMPLES for where in (place, work_folder(place)) if (where / SAMPLES).is_dir()]
    return [folder for home in homes for folder in sorted(home.iterdir())]


def reports_of(place: Path) -> dict[str, Report]:
    """What each store of a folder holds and what is wrong with it, read from beginning to end."""
    folders, found = stores_in(place), dict[str, Report]()
    require(bool(folders), "--out", "must hold samples", str(place), "check the path")
    for folder in folders:  # of two stores with one name the second is that of the work folder
        name = folder.name if folder.name not in found else f"{folder.parents[1].name}/{folder.name}"
        found[name] = verify_store(folder)
    return found


def repair(place: Path) -> dict[str, str]:
    """Take away what is damaged in each store of a folder, so that it is drawn again; what is left of those that were."""
    left = {}
    for folder in stores_in(place):
        refuse_link(folder)
        if verify_store(folder).damage:
            with SampleStore.open(folder, drop_damaged=True) as store:
                lost, there = (
                    store.recovery,
                    f"{len(store.blocks()):,} blocks with {store.num_samples:,} samples are left",
                )
                left[folder.name] = f"{', '.join(lost.removed) or 'damaged lines'} taken away; {there}"
    return left


def accept_code(place: Path, problem: CMDP, simulator: GenerativeModel) -> None:
    """Let the samples of a folder count as drawn by the code as it is now."""
    sources = sources_of(problem, simulator)
    for folder in stores_in(place):
        refuse_link(folder)
        accept_sources(folder, sources)


def open_samples(place: Path) -> SampleStore:
    """The samples that ``sample`` has left in a folder, to be read."""
    home = place / SAMPLES
    folders = sorted(home.iterdir()) if home.is_dir() else []
    if len(folders) != 1 or not folders[0].name.startswith("samples-"):
        found = "none" if not folders else ", ".join(f.name for f in folders[:4])
        raise InputError(str(place), "must be a folder that `saddleback sample` has made", found, "check the path")
    return SampleStore.open(folders[0], writable=False)


@contextmanager
def samples_for(
    problem: CMDP, simulator: GenerativeModel, record: Mapping[str, Any]
) -> Iterator[tuple[SampleStore | None, dict[str, Any], int]]:
    """The samples that a request names, once it is sure that they are samples of this problem, and still the same.

    Also the request with their content hash, and the seed of its certificate: one of its own, for whoever asks stored samples
    again may ask because of the first certificate. With the streams of the first certificate the second question would depend
    on the samples that are to answer it.
    """
    budget, parts = record["budget"], record["parts"]
    if "from" not in budget:
        yield None, dict(record), parts["seed"]
        return
    method = Settings.of_record({"budget": {"certificate": 1}, "parts": parts}).method
    with open_samples(Path(budget["from"])) as store:
        chosen = parts_of(problem, method)
        fields = {"coreset": _coreset(chosen.designer.design(chosen.problem)), "seed": store.fingerprint.get("seed")}
        require_same(store.folder, store.fingerprint, {**fingerprint_of(problem, simulator), **fields}, {PARTS})
        found = store.content_hash()
        begun = budget.get("from_sha256", found)
        rule = f"must hold the samples that it held when the run was begun, SHA-256 {begun[:12]}"
        require(found == begun, str(budget["from"]), rule, found[:12], "solve from the new ones with another --out")
        budget = {**budget, "from_sha256": found}
        asked = {name: value for name, value in budget.items() if name != "from"}  # the folder may be moved
        yield store, {"budget": budget, "parts": parts}, seed_of_question(parts["seed"], problem, asked, parts)


def seed_of_question(seed: int, problem: CMDP, *asked: Any) -> int:
    """The seed of the certificate for what is asked of stored samples: the same for the same question, in any process.

    Whatever the policy depends on must be among it: another policy may be asked for because of the first one's certificate.
    """
    pairs = problem.some_pairs(_SOME_PAIRS, generator(0, Stream.DESIGN, 0, 0))
    signals = digest(on_grid(np.nan_to_num(problem.utilities(*pairs)), 6))
    record = msgspec.structs.replace(ProblemRecord.of(problem), observed=None)  # which the signals tell
    told = [*asked, to_plain(record), signals]
    told += [] if problem.preferred is None else [{"preferred": list(map(int, problem.preferred))}]
    told += [] if problem.allowed is None else [{"allowed": digest(problem.allowed)}]
    text = json.dumps(told, sort_keys=True)
    return derived_seed(seed, question_number(hashlib.sha256(text.encode()).digest()))


def _tasks(pairs: list[int], rounds: int, total: int | None) -> list[Block]:
    """The blocks of so many rounds, or of as many samples of every pair as ``total`` allows."""
    parts = sum(SHARES.values())
    if total is None:
        wanted = {stream: share * rounds * BLOCK for stream, share in SHARES.items()}
    else:
        rule = f"must be at least {parts * len(pairs):,}, {parts} of each of {len(pairs):,} pairs"
        require(total >= parts * len(pairs), "--samples", rule, total, "draw more, or use features")
        rule = f"must be at most {_MOST_BLOCKS * BLOCK:,}"
        require(total <= _MOST_BLOCKS * BLOCK, "--samples", rule, total, "use several folders")
        each = total // len(pairs)
        wanted = {Stream.SOLVER: each // parts, Stream.EVALUATION: each - each // parts}
    return [
        Block(int(stream), pair, first // BLOCK, min(BLOCK, number - first))
        for stream, number in wanted.items()
        for pair in pairs
        for first in range(0, number, BLOCK)
    ]


def _missing(kept: Durable, blocks: BlockSource, tasks: list[Block]) -> list[Block]:
    try:
        return kept.missing(blocks, tasks)
    except InputError as fault:
        if not fault.name.startswith("block "):
            raise
        # A last block that is shorter or longer than before.
        rule = "must be what they were when the folder was begun"
        raise InputError("--samples, --rounds", rule, fault.value, "give the same, or choose another folder") from None


def _check_rounds(rounds: int, pairs: int) -> None:
    most = _MOST_BLOCKS // (sum(SHARES.values()) * pairs)
    rule, remedy = f"must be at most {most:,} for {pairs:.3g} pairs", "use several folders, or features"
    require(rounds <= most, "--rounds", rule, rounds, remedy)


def _check_seed(place: Path, seed: int) -> None:
    """A folder holds the samples of one seed, or a pool, which is not added to; those of a run are its own."""
    of_a_run = os.path.lexists(place / MANIFEST)
    require(
        not of_a_run, "--out", "must be a new folder, or one of samples", f"{place}, a run", "choose another folder"
    )
    there = sorted(p.name for p in (place / SAMPLES).iterdir()) if (place / SAMPLES).is_dir() else []
    for name in there:
        rule = "must be a new folder, or one with samples of the same seed"
        remedy = "choose another folder; `--merge` puts folders together"
        require(name == f"samples-{seed}", "--out", rule, name, remedy)


def _check_for_pool(work: Work, name: str) -> None:
    """A pool goes into a new folder, or into one that holds the same pool, whole or in part."""
    rule, remedy = "must be a new folder, or one where the same folders were merged", "choose a new folder"
    require(not work.under_way, "--out", rule, f"one that is under way, {work.folder.name}", remedy)
    for folder, only in ((work.place, SAMPLES), (work.place / SAMPLES, name)):
        for found in sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []:
            require(found == only, "--out", rule, f"one that holds {found}", remedy)


def _make_place(place: Path) -> None:
    """A folder whose name survives a power cut."""
    with disk_faults_named(place, "choose a place that can be written to"):
        if not place.is_dir():
            Disk().make_folder(place)
        Disk().sync_folder(place.parent)


def _coreset(design: Design) -> str:
    """Which pairs the samples are of, in short."""
    return digest(design.states, design.actions)
