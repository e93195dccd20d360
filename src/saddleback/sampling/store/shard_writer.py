"""The one writer of a store: collects rows in memory, and writes a shard and its line when there are enough.

    flush():   shard under another name → fsync → rename → sync the folder  (:func:`~saddleback.files.disk.write_whole`)
               → its line at the end of the manifest → fsync → acknowledged

A failure at any point stops the writer for good. What it wrote last may or may not be on the disk, and a failed fsync must
not be tried again; only opening the store anew, which looks at what is there and writes the manifest to a new file, can tell.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import Disk
from saddleback.files.lock import Lock
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.layout import Layout, Rows
from saddleback.sampling.store.manifest import MANIFEST, MOST_BLOCKS, to_line
from saddleback.sampling.store.shards import write_shard

MEND = "free or mend the disk and open the store again: all that was acknowledged is there"
"""What to do when the disk has failed."""


class ShardWriter:
    """Writes shards from ``number`` on; owns the lock."""

    def __init__(self, disk: Disk, folder: Path, layout: Layout, lock: Lock, number: int, shard_bytes: int):
        self._disk, self._folder, self._layout, self._lock = disk, folder, layout, lock
        self._number, self._shard_bytes, self._pid = number, shard_bytes, os.getpid()
        self._manifest = disk.open_append(folder / MANIFEST)
        self._stopped: str | None = None
        self._rows: list[Rows] = []
        self._blocks: list[tuple[int, ...]] = []
        self._num_rows = 0

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
        return self._number, self._num_rows

    def add(self, block: Block, rows: Rows) -> None:
        """Keep the rows for the next shard, and write it if it is full."""
        self._rows.append(rows)
        self._blocks.append((*block, len(rows)))
        self._num_rows += len(rows)
        if self._num_rows * self._layout.dtype.itemsize >= self._shard_bytes or len(self._rows) >= MOST_BLOCKS:
            self.flush()

    def flush(self) -> None:
        """Write what was added; when this returns it is there to stay."""
        self.check()
        if not self._rows:
            return
        try:
            entry = write_shard(self._disk, self._folder, self._number, self._layout, self._rows, self._blocks)
            self._disk.write(self._manifest, to_line(entry))
            self._disk.fsync(self._manifest)
        except OSError as error:
            self._stopped = f"a write failed ({error})"
            raise StorageError(f"`{self._folder}` could not be written: {error}; {MEND}.") from error
        except BaseException:
            self._stopped = "it was interrupted while it wrote"
            raise
        self._number, self._num_rows, self._rows, self._blocks = self._number + 1, 0, [], []

    def close(self) -> None:
        """Flush, unless stopped, and let the next writer in."""
        if self._pid != os.getpid():
            return
        try:
            if self._stopped is None:
                self.flush()
        finally:
            self._stopped = self._stopped or "it was closed"
            with contextlib.suppress(OSError):  # all that counts was synced
                self._disk.close(self._manifest)
            self._lock.release()
