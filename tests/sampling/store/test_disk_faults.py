"""A full or failing disk, at every single operation: the old state stays, the error says what to do, the run can go on."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import Disk
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.manifest import HEADER
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.crash_images import Record, RecordingDisk
from sampling.store.store_runs import FINGERPRINT, LAYOUTS, QuickDisk, add_all, expected_hash, some_blocks, unlike

BLOCKS = some_blocks(num_pairs=2, per_pair=2, size=60)


class Run:
    """One process of the run, and what it was told is on the disk."""

    def __init__(self, disk: Disk, folder: Path, layout: str):
        self.disk, self.folder, self.layout = disk, folder, LAYOUTS[layout]
        self.acknowledged: list[Block] = []
        self.store: SampleStore | None = None

    def go(self) -> None:
        self.store = SampleStore.resume(self.folder, FINGERPRINT, self.layout, disk=self.disk)
        with self.store as store:
            self.acknowledged = store.blocks()
            for block in store.missing(BLOCKS):
                add_all(store, [block])
                store.flush()
                self.acknowledged.append(block)


def killed_run(folder: Path, layout: str) -> Path:
    """Two blocks that are held, and what a kill can leave: a shard without a line, a begun one, a torn line."""
    with SampleStore.create(folder, FINGERPRINT, LAYOUTS[layout], disk=QuickDisk()) as store:
        add_all(store, BLOCKS[:2])
    (folder / "000001.npy").write_bytes(b"a shard that has no line yet")
    (folder / "000002.npy.partial").write_bytes(b"begun")
    with open(folder / "manifest.jsonl", "ab") as manifest:
        manifest.write(b'{"blocks":[[0,1,')
    return folder


def failed(run: Run) -> OSError | None:
    """The fault that ended a run, after checking what the user is told; None if it came to its end."""
    try:
        run.go()
    except StorageError as error:
        message, cause = str(error), error.__cause__
    else:
        return None
    assert "injected" in message and str(run.folder) in message
    assert "open the store again" in message or "choose a place" in message
    assert isinstance(cause, OSError)
    return cause


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["samples", "counts with signals"])
@pytest.mark.parametrize("began", [False, True], ids=["from nothing", "from a killed run"])
def test_every_operation_fails_once(layout: str, began: bool, tmp_path: Path) -> None:
    end, before, folder = expected_hash(BLOCKS, LAYOUTS[layout]), tmp_path / "before", tmp_path / "run"
    killed_run(before, layout)
    faults: list[int | None] = []
    while True:
        shutil.rmtree(folder, ignore_errors=True)
        record = Record()
        if began:
            shutil.copytree(before, folder)
            record.names = {path.name: -1 for path in folder.iterdir()}
        run = Run(RecordingDisk(record, folder, fail_at=len(faults)), folder, layout)
        fault = failed(run)
        if fault is None:
            break
        faults.append(fault.errno)
        if (folder / HEADER).exists():
            with SampleStore.open(folder, FINGERPRINT, writable=False) as store:
                assert store.missing(run.acknowledged + (BLOCKS[:2] if began else [])) == []
                assert unlike(store) == []
        Run(QuickDisk(), folder, layout).go()
        with SampleStore.open(folder, FINGERPRINT, disk=QuickDisk()) as store:
            assert store.content_hash() == end and store.verify().sound
    print(f"{layout}: each of {len(faults)} operations failed once")
    assert len(faults) > 20 and set(faults) == {errno.ENOSPC, errno.EIO}


def test_a_store_that_failed_takes_and_gives_nothing_more(tmp_path: Path) -> None:
    folder, record = tmp_path / "store", Record()
    disk = RecordingDisk(record, folder)
    store = SampleStore.create(folder, FINGERPRINT, LAYOUTS["samples"], disk=disk)
    add_all(store, BLOCKS[:1])
    store.flush()
    add_all(store, BLOCKS[1:2])
    disk.fail_at = disk.count + 3  # create, header, rows, and now the fsync
    with pytest.raises(StorageError, match=r"could not be written: .*injected; free or mend the disk and open"):
        store.flush()
    done = len(record.operations)
    assert record.operations[-1][0] == "failed fsync"
    for use in (
        store.flush,
        store.content_hash,
        store.blocks,
        store.verify,
        lambda: store.held(0, 2),
        lambda: store.missing(BLOCKS),
        lambda: store.samples(0, 2),
        lambda: add_all(store, BLOCKS[2:3]),
    ):
        with pytest.raises(StorageError, match=r"no more samples since a write failed \(.*injected\); free or mend"):
            use()
    store.close()
    assert len(record.operations) == done  # above all no second fsync
    with SampleStore.open(folder) as store:
        assert store.blocks() == BLOCKS[:1] and store.recovery.removed == ["000001.npy.partial"]


class InterruptedDisk(QuickDisk):
    """Control-C in the middle of a line of the manifest."""

    armed = False

    def write(self, file: int, data: bytes) -> None:
        if self.armed and data.startswith(b'{"blocks"'):
            super().write(file, data[:20])
            raise KeyboardInterrupt
        super().write(file, data)


def test_an_interrupt_stops_the_store_too(tmp_path: Path) -> None:
    disk = InterruptedDisk()
    store = SampleStore.create(tmp_path / "store", FINGERPRINT, LAYOUTS["samples"], disk=disk)
    add_all(store, BLOCKS[:1])
    disk.armed = True
    with pytest.raises(KeyboardInterrupt):
        store.flush()
    disk.armed = False
    with pytest.raises(StorageError, match="since it was interrupted while it wrote"):
        store.flush()
    store.close()
    with SampleStore.open(tmp_path / "store") as store:
        assert store.recovery.torn and store.blocks() == []


def test_a_store_that_cannot_be_locked_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    SampleStore.create(folder, FINGERPRINT, LAYOUTS["samples"]).close()
    (folder / "lock").unlink()
    (folder / "lock").mkdir()
    with pytest.raises(StorageError, match="or read it with writable=False"):
        SampleStore.open(folder)
    with SampleStore.open(folder, writable=False) as store:
        assert store.blocks() == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="choose a place"):
        SampleStore.create(tmp_path / "file" / "store", FINGERPRINT, LAYOUTS["samples"])
    with pytest.raises(StorageError, match="choose a place"):
        SampleStore.create(tmp_path / "no" / "such" / "store", FINGERPRINT, LAYOUTS["samples"])
    with pytest.raises(InputError, match="must be a folder of samples, got no such folder"):
        SampleStore.open(tmp_path / "nowhere")
