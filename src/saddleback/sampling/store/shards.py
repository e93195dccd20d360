"""Shards: ``.npy`` files of rows, each written once and checked before it is believed.

A file is looked at in this order and refused at the first fault: it is there → its length → the header (version, dtype,
shape, and shape × itemsize equal to what follows) → the SHA-256 → the contents. Nothing is allocated for it, since it is
mapped and not read, and nothing is unpickled, since the header must name the very dtype of the layout. The one writer:

    flush():   shard under another name → fsync → rename → sync the folder  (:func:`~saddleback.files.disk.write_whole`)
               → its line at the end of the manifest → fsync → acknowledged
    close():   flush → the number of lines and their hash into the header, in the same way

A failure at any point stops the writer for good: what it wrote last may or may not be on the disk, and a failed fsync must
not be tried again. Only opening the store anew, which writes the manifest to a new file, can tell.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import os
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import Disk, Lock, Mapped, disk_faults_named, write_whole
from saddleback.sampling.blocks import Block
from saddleback.sampling.store import manifest
from saddleback.sampling.store.layout import Layout, Rows
from saddleback.sampling.store.manifest import Entry, Header, shard_name

MEND = "free or mend the disk and open the store again: all that was acknowledged is there"
"""What to do when the disk has failed."""

_HEADER = 1 << 14  # more than numpy reads of a header
_PART = 1 << 18  # bytes that are hashed and written at a time
_MAPPED = 4  # shards whose pages may be in memory at a time


class Fault(NamedTuple):
    """Why a shard is refused: the rule it breaks and what was found."""

    rule: str
    value: Any


def write_shard(
    disk: Disk, folder: Path, number: int, layout: Layout, pieces: Sequence[Rows], blocks: Sequence[Sequence[int]]
) -> Entry:
    """Write the rows of some blocks as shard ``number``, there to stay when this returns."""
    digest, length = hashlib.sha256(), 0

    def parts() -> Iterator[bytes]:
        nonlocal length
        for part in itertools.chain([_header(layout, sum(map(len, pieces)))], _joined(pieces)):
            digest.update(part)
            length += len(part)
            yield part

    write_whole(disk, folder / shard_name(number), parts())
    return Entry(number, length, digest.hexdigest(), np.array(blocks, dtype=np.int64))


def _joined(pieces: Sequence[Rows]) -> Iterator[bytes]:
    """The bytes of all rows in parts of some size: a few system calls, and never a second shard in memory."""
    waiting, num_bytes = [], 0
    for piece in pieces:
        waiting.append(piece.tobytes())
        num_bytes += piece.nbytes
        if num_bytes >= _PART:
            yield b"".join(waiting)
            waiting, num_bytes = [], 0
    if waiting:
        yield b"".join(waiting)


def shard_fault(disk: Disk, folder: Path, layout: Layout, entry: Entry, *, contents: bool = True) -> Fault | None:
    """What is wrong with a shard; ``contents`` reads all of it, or else sizes and header must do."""
    try:
        data = disk.map(folder / entry.name)
    except FileNotFoundError:
        return Fault("must be there, since the manifest names it", "no such file")
    if len(data) != entry.num_bytes:
        return Fault(f"must have the {entry.num_bytes:,} bytes that the manifest says", f"{len(data):,}")
    rows = _rows_in(data, layout)
    if isinstance(rows, Fault):
        return rows
    starts = entry.starts
    if len(rows) != starts[-1]:
        return Fault(f"must have the {starts[-1]:,} rows that the manifest says", f"{len(rows):,}")
    if not contents:
        return None
    digest = hashlib.sha256(data).hexdigest()
    if digest != entry.sha256:
        return Fault(f"must be unchanged, with the SHA-256 {entry.sha256[:12]}… of the manifest", f"{digest[:12]}…")
    wrong = layout.fault(rows)
    if wrong:
        return Fault(f"must hold {wrong[0]}", wrong[1])
    if layout.kind == "counts":
        falls = rows["next_state"][1:] <= rows["next_state"][:-1]  # unsigned: differences would wrap around
        falls[starts[1:-1] - 1] = False  # where a block ends
        for i in np.flatnonzero(falls)[:1]:
            return Fault("must hold each next state of a block once, ascending", rows["next_state"][i + 1])
        n = np.minimum(rows["count"], manifest.MOST_SAMPLES + 1)  # so that sums of forged counts cannot wrap around
        counted = np.add.reduceat(n, starts[:-1])
    else:
        counted = entry.blocks[:, manifest.ROWS]
    for i in np.flatnonzero(counted != entry.blocks[:, manifest.SIZE])[:1]:
        return Fault(f"must hold the {entry.blocks[i, manifest.SIZE]:,} samples of its block {i}", f"{counted[i]:,}")
    return None


class ShardReader:
    """Rows of shards that were checked before; the last few stay mapped."""

    def __init__(self, disk: Disk, folder: Path, layout: Layout):
        self._disk, self._folder, self._layout = disk, folder, layout
        self._mapped: OrderedDict[int, Rows] = OrderedDict()

    def rows(self, shard: int, start: int, count: int) -> Rows:
        """``count`` rows from ``start`` on, in place: do not keep them."""
        if shard not in self._mapped:
            path = self._folder / shard_name(shard)
            with disk_faults_named(path, "check the disk, and open the store again"):
                found = _rows_in(self._disk.map(path), self._layout)
            if isinstance(found, Fault):
                raise InputError(str(path), found.rule, found.value, "open the store again")
            self._mapped[shard] = found
            if len(self._mapped) > _MAPPED:
                self._mapped.popitem(last=False)
        self._mapped.move_to_end(shard)
        rows = self._mapped[shard][start : start + count]
        assert len(rows) == count
        return rows

    def forget(self) -> None:
        """Let go of the mapped files."""
        self._mapped.clear()


def _header(layout: Layout, num_rows: int) -> bytes:
    stream = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(layout.dtype)
    np.lib.format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": (num_rows,)})
    return stream.getvalue()


def _rows_in(data: Mapped, layout: Layout) -> Rows | Fault:
    """The rows of a mapped shard, without reading them."""
    stream = io.BytesIO(data[:_HEADER])
    try:
        with warnings.catch_warnings(action="error"):  # numpy warns about headers of Python 2
            version = np.lib.format.read_magic(stream)
            if version != (1, 0):
                return Fault("must be an array file of version 1.0", version)
            shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    except Exception as error:  # a malformed header can raise nearly anything
        return Fault("must begin with the header of an array file", str(error) or repr(error))
    if dtype != layout.dtype or dtype.hasobject:
        return Fault(f"must have rows of type {layout.dtype}", dtype)
    offset = stream.tell()
    if len(shape) != 1 or shape[0] < 1 or offset + shape[0] * dtype.itemsize != len(data):
        return Fault(f"must hold the bytes of its shape {shape}", f"{len(data) - offset:,} bytes")
    return np.frombuffer(data, dtype=layout.dtype, offset=offset)


class _Waiting(NamedTuple):
    """A block that is not yet written: its line in the manifest, its rows, and where the next one begins."""

    block: tuple[int, ...]
    rows: Rows
    end: int


class ShardWriter:
    """Writes shards from ``number`` on; owns the lock."""

    def __init__(self, disk: Disk, folder: Path, header: Header, lock: Lock, number: int, shard_bytes: int):
        self._disk, self._folder, self._header, self._lock = disk, folder, header, lock
        self._layout = header.layout
        self._number, self._shard_bytes, self._pid = number, shard_bytes, os.getpid()
        self._manifest = disk.open_append(folder / manifest.MANIFEST)
        self._stopped: str | None = None
        self._waiting: list[_Waiting] = []

    def check(self) -> None:
        """Raise unless more may be added."""
        if self._stopped is not None:
            raise StorageError(f"`{self._folder}` takes and gives no more samples since {self._stopped}; {MEND}.")
        if self._pid != os.getpid():
            where = f"process {os.getpid()}, a child of it"
            raise InputError("store", "must be used by the process that opened it", where, "send the samples there")

    @property
    def place(self) -> tuple[int, int]:
        """Shard and row where the next block will begin."""
        return self._number, self._waiting[-1].end if self._waiting else 0

    def add(self, block: Block, rows: Rows) -> None:
        """Keep the rows for the next shard, and write it if it is full.

        One list in one step: an interrupt, after which all that waits is written, may come between any two.
        """
        end = self.place[1] + len(rows)
        self._waiting.append(_Waiting((*block, len(rows)), rows, end))
        if end * self._layout.dtype.itemsize >= self._shard_bytes or len(self._waiting) >= manifest.MOST_BLOCKS:
            self.flush()

    def flush(self) -> None:
        """Write what was added; when this returns it is there to stay."""
        self.check()
        if not self._waiting:
            return
        with self._stopping():
            blocks, rows = [one.block for one in self._waiting], [one.rows for one in self._waiting]
            entry = write_shard(self._disk, self._folder, self._number, self._layout, rows, blocks)
            self._disk.write(self._manifest, manifest.to_line(entry))
            self._disk.fsync(self._manifest)
            # In here: one that is interrupted before it knows that the line is there must not write it again.
            self._number, self._waiting = self._number + 1, []

    @contextlib.contextmanager
    def _stopping(self) -> Iterator[None]:
        """What fails in here stops the writer."""
        try:
            yield
        except OSError as error:
            self._stopped = f"a write failed ({error})"
            raise StorageError(f"`{self._folder}` could not be written: {error}; {MEND}.") from error
        except BaseException:
            self._stopped = "it was interrupted while it wrote"
            raise

    def close(self) -> None:
        """Flush and seal, unless stopped, and let the next writer in."""
        if self._pid != os.getpid():
            return
        try:
            if self._stopped is None:
                self.flush()
                with self._stopping():
                    manifest.seal(self._disk, self._folder, self._header)
        finally:
            self._stopped = self._stopped or "it was closed"
            with contextlib.suppress(OSError):  # all that counts was synced
                self._disk.close(self._manifest)
            self._lock.release()
