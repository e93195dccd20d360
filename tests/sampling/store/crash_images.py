"""The disks that a power cut could leave: all that the rules of :mod:`saddleback.files.disk` allow, at every moment.

A :class:`RecordingDisk` writes down what a store does. :func:`images` goes through the record and gives, for every prefix of
it, the contents that the folder may have after a cut:

- names: creations, renames and removals since the last sync of the folder are each applied or lost, in any combination;
- bytes: what was written to a file since its last fsync is cut at any multiple of 512 bytes, or has holes of 512 zero bytes;
  after an fsync that failed it stays so for ever, whatever later ones say;

and with each the blocks that had been acknowledged by then. :func:`verdict` lets a store recover from one of them.
"""

from __future__ import annotations

import errno
import itertools
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from saddleback.errors import SaddlebackError
from saddleback.files.disk import Disk
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.store_runs import FINGERPRINT, QuickDisk, add_all, expected_hash, unlike

SECTOR = 512
MOST_COMBINATIONS = 400


class Killed(BaseException):
    """The process is gone; what it wrote is still in the page cache."""


@dataclass
class Record:
    """What was done, in order, and the names as a process sees them."""

    operations: list[tuple[Any, ...]] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)
    num_files: int = 0

    def acknowledge(self, blocks: list[Block]) -> None:
        self.operations.append(("acknowledged", tuple(blocks)))


class RecordingDisk(Disk):
    """Does everything but the syncs, and writes it down; ``kill_at`` ends the process instead of its n-th operation.

    ``fail_at`` makes an operation fail: a write with ENOSPC after half of its bytes, anything else with EIO. Operations are
    counted from 0; creations, writes, fsyncs, renames, removals and syncs of folders count.
    """

    def __init__(self, record: Record, folder: Path, kill_at: int = -1, fail_at: int = -1):
        self.record, self.folder, self.kill_at, self.fail_at = record, folder, kill_at, fail_at
        self.files: dict[int, tuple[str, int]] = {}
        self.count = 0

    def step(self) -> bool:
        """Count an operation; whether it must fail."""
        if self.count == self.kill_at:
            raise Killed
        self.count += 1
        return self.count - 1 == self.fail_at

    def log(self, *operation: Any) -> None:
        self.record.operations.append(operation)

    def make_folder(self, path: Path) -> None:
        if self.step():
            raise OSError(errno.EIO, "injected")
        super().make_folder(path)
        self.log("make folder")

    def create(self, path: Path) -> int:
        if self.step():
            raise OSError(errno.ENOSPC, "injected")
        file = super().create(path)
        self.record.names[path.name] = inode = self.record.num_files
        self.record.num_files += 1
        self.files[file] = (path.name, inode)
        self.log("create", path.name, inode)
        return file

    def open_append(self, path: Path) -> int:
        file = super().open_append(path)
        self.files[file] = (path.name, self.record.names[path.name])
        return file

    def write(self, file: int, data: bytes) -> None:
        failing = self.step()
        data = data[: len(data) // 2] if failing else data
        super().write(file, data)
        self.log("write", self.files[file][1], data)
        if failing:
            raise OSError(errno.ENOSPC, "injected")

    def fsync(self, file: int) -> None:
        if self.step():
            self.log("failed fsync", self.files[file][1])
            raise OSError(errno.EIO, "injected")
        self.log("fsync", self.files[file][1])

    def rename(self, path: Path, new: Path) -> None:
        if self.step():
            raise OSError(errno.EIO, "injected")
        super().rename(path, new)
        inode = self.record.names.pop(path.name)
        self.record.names[new.name] = inode
        self.log("rename", path.name, new.name, inode)

    def remove(self, path: Path) -> None:
        if self.step():
            raise OSError(errno.EIO, "injected")
        super().remove(path)
        self.log("remove", path.name, self.record.names.pop(path.name))

    def sync_folder(self, path: Path) -> None:
        if self.step():
            raise OSError(errno.EIO, "injected")
        self.log("sync folder" if path == self.folder else "sync parent")


class Image(NamedTuple):
    """A folder after a cut (None: it is not there), what had been acknowledged, and the operations before the cut."""

    files: tuple[tuple[str, bytes], ...] | None
    acknowledged: tuple[Block, ...]
    prefix: int


@dataclass
class _File:
    """Bytes of a file, and which ranges of them may be missing after a cut."""

    data: bytes = b""
    unsynced: list[tuple[int, int]] = field(default_factory=list)
    unknown: list[tuple[int, int]] = field(default_factory=list)  # after a failed fsync

    def variants(self) -> list[bytes]:
        loose = sorted(self.unsynced + self.unknown)
        found = [self.data]
        for start, end in loose:
            inner = range(start - start % SECTOR + SECTOR, end, SECTOR)
            edges = [start, *inner, end]
            if end == len(self.data):
                found += [self.data[:cut] for cut in edges[:-1]]
            for low, high in [(start, end), *itertools.pairwise(edges)]:
                found.append(self.data[:low] + bytes(high - low) + self.data[high:])
        first = loose[0][0] if loose else len(self.data)
        if len(loose) > 1 and sum(end - start for start, end in loose) == len(self.data) - first:
            found.append(self.data[:first])
        return list(dict.fromkeys(found))


def images(record: Record, first: int = 0) -> Iterator[Image]:
    """All images of all prefixes of at least ``first`` operations, each once."""
    files: dict[int, _File] = {}
    synced: dict[str, int] = {}
    pending: list[tuple[Any, ...]] = []
    folder = "absent"
    acknowledged: tuple[Block, ...] = ()
    seen: set[tuple[Any, ...]] = set()
    for prefix, operation in enumerate([("start",), *record.operations]):
        match operation:
            case ("make folder",):
                folder = "unsynced"
            case ("sync parent",):
                folder = "there" if folder == "unsynced" else folder
            case ("create", _, inode):
                files[inode] = _File()
                pending.append(operation)
            case ("rename", *_) | ("remove", *_):
                pending.append(operation)
            case ("sync folder",):
                synced, pending = _applied(synced, pending), []
            case ("write", inode, data):
                file = files[inode]
                file.unsynced.append((len(file.data), len(file.data) + len(data)))
                file.data += data
            case ("fsync", inode):
                files[inode].unsynced = []
            case ("failed fsync", inode):
                files[inode].unknown += files[inode].unsynced
                files[inode].unsynced = []
            case ("acknowledged", blocks):
                acknowledged = tuple(sorted({*acknowledged, *blocks}))
        if prefix < first:
            continue
        contents: Iterator[Any] = _contents(files, synced, pending) if folder != "absent" else iter(())
        for content in itertools.chain([None] if folder != "there" else [], contents):
            if (content, acknowledged) not in seen:
                seen.add((content, acknowledged))
                yield Image(content, acknowledged, prefix)


def _contents(
    files: dict[int, _File], synced: dict[str, int], pending: list[tuple[Any, ...]]
) -> Iterator[tuple[tuple[str, bytes], ...]]:
    for chosen in _choices(pending):
        names = sorted(_applied(synced, chosen).items())
        variants = [files[inode].variants() for _, inode in names]
        combinations = 1
        for v in variants:
            combinations *= len(v)
        if combinations <= MOST_COMBINATIONS:
            picks: Iterator[Any] = itertools.product(*variants)
        else:  # one file at a time, the others all written or not at all
            picks = iter(
                [
                    tuple(x if i == j else v[rest] for j, v in enumerate(variants))
                    for i, mine in enumerate(variants)
                    for x in mine
                    for rest in (0, -1)
                ]
            )
        for pick in picks:
            yield tuple((name, data) for (name, _), data in zip(names, pick, strict=True))


def _choices(pending: list[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Which changes of names survived: any of them; of very many, a beginning, or all but one, or one alone."""
    n = len(pending)
    if n <= 6:
        masks = [[bool(bits >> i & 1) for i in range(n)] for bits in range(1 << n)]
    else:
        masks = [[i < k for i in range(n)] for k in range(n + 1)]
        masks += [[(i == k) == alone for i in range(n)] for k in range(n) for alone in (False, True)]
    for mask in masks:
        yield [operation for operation, kept in zip(pending, mask, strict=True) if kept]


def _applied(names: dict[str, int], operations: list[tuple[Any, ...]]) -> dict[str, int]:
    names = dict(names)
    for operation in operations:
        match operation:
            case ("create", name, inode):
                names[name] = inode
            case ("rename", old, new, inode):
                if names.get(old) == inode:
                    del names[old]
                names[new] = inode
            case ("remove", name, inode):
                if names.get(name) == inode:
                    del names[name]
    return names


def on_disk(folder: Path) -> Record:
    """A record that leaves what a folder holds, all of it synced."""
    record = Record([("make folder",), ("sync parent",)])
    for path in sorted(folder.iterdir()):
        inode = record.names[path.name] = record.num_files
        record.operations += [("create", path.name, inode), ("write", inode, path.read_bytes()), ("fsync", inode)]
        record.num_files += 1
    record.operations.append(("sync folder",))
    return record


def verdict(image: Image, folder: Path, blocks: list[Block], layout: Layout, **more: bool) -> str:
    """Recover from an image and go on to the end of the run: "good", or what went wrong; ``more`` is for opening."""
    shutil.rmtree(folder, ignore_errors=True)
    if image.files is not None:
        folder.mkdir()
        for name, data in image.files:
            (folder / name).write_bytes(data)
    try:
        with SampleStore.resume(folder, FINGERPRINT, layout, disk=QuickDisk(), **more) as store:
            if store.missing(list(image.acknowledged)):
                return "acknowledged blocks lost"
            if unlike(store):
                return "a damaged block accepted"
            add_all(store, store.missing(blocks))
            if store.content_hash() != expected_hash(blocks, layout):
                return "another end than the unbroken run"
    except SaddlebackError as error:
        return f"refused: {type(error).__name__}"
    return "good"
