"""Power cuts at every moment: what was acknowledged is there, nothing damaged is accepted, and the run ends the same."""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from saddleback.errors import StorageError
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.crash_images import Image, Killed, Record, RecordingDisk, images, on_disk, verdict
from sampling.store.planted_bugs import AT_ONCE, TrustingRecovery
from sampling.store.store_runs import FINGERPRINT, LAYOUTS, add_all, filled, some_blocks

pytestmark = pytest.mark.check

LAYOUT = LAYOUTS["very many states"]
BLOCKS = some_blocks(num_pairs=4, per_pair=2, size=90)  # shards of 1.3 kB, three sectors


def session(disk: RecordingDisk, per_flush: int = 2) -> None:
    """Open or create, and add what is missing; everything that is acknowledged is recorded."""
    store = SampleStore.resume(disk.folder, FINGERPRINT, LAYOUT, disk=disk)
    try:
        disk.record.acknowledge(store.blocks())
        missing = store.missing(BLOCKS)
        for i in range(0, len(missing), per_flush):
            add_all(store, missing[i : i + per_flush])
            store.flush()
            disk.record.acknowledge(missing[i : i + per_flush])
    finally:
        store._writer._stopped = store._writer._stopped or "the process ended"  # as a kill would: without a flush
        store.close()


def unbroken(kind: type[RecordingDisk], folder: Path) -> Record:
    record = Record()
    session(kind(record, folder))
    return record


def broken(kind: type[RecordingDisk], folder: Path, **at: int) -> tuple[Record, int] | None:
    """A run that is killed, or whose disk fails, at an operation, and that another process completes from what it finds.

    With it the number of operations before the second process; None if the first one was done by then.
    """
    shutil.rmtree(folder, ignore_errors=True)
    record = Record()
    try:
        session(kind(record, folder, **at))
        return None
    except (Killed, StorageError):
        first = len(record.operations)
    session(kind(record, folder))
    return record, first


def verdicts(found: Iterable[Image], tmp_path: Path) -> Iterator[str]:
    for image in found:
        yield verdict(image, tmp_path / "image", BLOCKS, LAYOUT)


def bad(found: Counter[str]) -> int:
    return found.total() - found["good"]


def test_no_power_cut_hurts(tmp_path: Path) -> None:
    found = Counter(verdicts(images(unbroken(RecordingDisk, tmp_path / "run")), tmp_path))
    print(found)
    assert found.keys() == {"good"}
    assert found["good"] > 70


@pytest.mark.parametrize("what", ["kill_at", "fail_at"])
def test_no_power_cut_hurts_after_a_kill_or_a_failure(what: str, tmp_path: Path) -> None:
    """The second operation of the first process and every eleventh after it; the study takes each."""
    found, tried = _broken_everywhere(what, tmp_path, step=11)
    print(what, tried, found)
    assert tried >= 3 and found.keys() == {"good"}


@pytest.mark.study
@pytest.mark.parametrize("what", ["kill_at", "fail_at"])
def test_no_power_cut_hurts_after_any_kill_or_failure(what: str, tmp_path: Path) -> None:
    found, tried = _broken_everywhere(what, tmp_path, step=1)
    print(f"{what}: {tried} runs, {found}")
    assert tried >= 30 and found.keys() == {"good"}


def _broken_everywhere(what: str, tmp_path: Path, step: int) -> tuple[Counter[str], int]:
    found: Counter[str] = Counter()
    for tried in itertools.count():
        run = broken(RecordingDisk, tmp_path / "run", **{what: 1 + tried * step})
        if run is None:
            return found, tried
        found.update(verdicts(images(*run), tmp_path))
    raise AssertionError


@pytest.mark.parametrize("bug", AT_ONCE)
def test_power_cuts_find_planted_bugs(bug: type[RecordingDisk], tmp_path: Path) -> None:
    """The first image that shows the bug is enough here; the study counts them."""
    found = verdicts(images(unbroken(bug, tmp_path / "run")), tmp_path)
    assert any(v != "good" for v in found)


def test_power_cuts_find_a_recovery_that_trusts_what_it_reads(tmp_path: Path) -> None:
    """The line of a killed writer can be read and is not on the disk: calling its blocks held would be a lie."""
    seen = {}
    for kind in (RecordingDisk, TrustingRecovery):
        whole = kind(Record(), tmp_path / kind.__name__)
        session(whole)
        run = broken(kind, tmp_path / "run", kill_at=whole.count - 1)  # at the fsync of the last line
        assert run is not None
        seen[kind] = Counter(verdicts(images(*run), tmp_path))
    print(seen)
    assert seen[RecordingDisk].keys() == {"good"}
    assert seen[TrustingRecovery]["acknowledged blocks lost"]


def test_no_power_cut_hurts_while_damage_is_dropped(tmp_path: Path) -> None:
    """Whatever the cut leaves, dropping the damaged shard again gets through, and the sound ones are there."""
    folder = filled(tmp_path / "run", BLOCKS, LAYOUT)
    shard = folder / "000001.npy"
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    record = on_disk(folder)
    record.acknowledge([*BLOCKS[:2], *BLOCKS[4:]])
    first = len(record.operations)
    disk = RecordingDisk(record, folder)
    with SampleStore.open(folder, FINGERPRINT, drop_damaged=True, disk=disk) as store:
        assert store.recovery.blocks_lost == 2
        add_all(store, store.missing(BLOCKS))
        store.flush()
        record.acknowledge(BLOCKS)
    found = Counter(verdict(i, tmp_path / "i", BLOCKS, LAYOUT, drop_damaged=True) for i in images(record, first))
    print(found)
    assert found.keys() == {"good"}


@pytest.mark.study
def test_how_many_images_show_each_planted_bug(tmp_path: Path) -> None:
    for bug in [RecordingDisk, *AT_ONCE]:
        found = Counter(verdicts(images(unbroken(bug, tmp_path / bug.__name__)), tmp_path))
        print(f"{bug.__name__}: {bad(found)} of {found.total()} images are bad: {dict(found)}")
        assert (bad(found) > 0) == (bug is not RecordingDisk)


def test_the_images_are_those_a_cut_allows(tmp_path: Path) -> None:
    """By hand: a file of 700 bytes that is written, synced, renamed and followed by a sync of the folder."""
    data = bytes([1]) * 700
    record = Record([("make folder",), ("sync parent",), ("create", "a", 0), ("write", 0, data)])
    torn = {b"", data[:512], data, bytes(700), bytes(512) + data[512:], data[:512] + bytes(188)}

    def files() -> set[tuple[tuple[str, bytes], ...] | None]:
        last = len(record.operations)
        return {image.files for image in images(record, last)}

    assert files() == {(), *((("a", x),) for x in torn)}
    record.operations.append(("fsync", 0))
    assert files() == {(), (("a", data),)}
    record.operations.append(("rename", "a", "b", 0))
    assert files() == {(), (("a", data),), (("b", data),)}
    record.operations.append(("sync folder",))
    assert files() == {(("b", data),)}
    record.operations += [("write", 0, b"x"), ("failed fsync", 0), ("fsync", 0)]
    assert files() == {(("b", data),), (("b", data + b"x"),), (("b", data + bytes(1)),)}
    record.operations += [("write", 0, b"y"), ("fsync", 0), ("remove", "b", 0)]
    assert files() == {(), (("b", data + b"xy"),), (("b", data + bytes(1) + b"y"),)}


def test_names_that_are_not_synced_are_lost_in_any_combination() -> None:
    record = Record(
        [("make folder",), ("sync parent",), ("create", "a", 0), ("create", "b", 1), ("rename", "b", "a", 1)]
    )
    found = {frozenset(dict(image.files or ())) for image in images(record, 5)}
    assert found == {frozenset(), frozenset("a"), frozenset("b"), frozenset("ab")}
    assert {image.files for image in images(Record([("make folder",)]))} == {None, ()}
