"""A folder of samples that survives kill -9 and power cuts: write-once shards, and a manifest that names them.

    store.json        what the samples are samples of (:mod:`~saddleback.sampling.store.manifest`)
    manifest.jsonl    one line a shard
    000000.npy …      rows of blocks (:mod:`~saddleback.sampling.store.layout`), about 4 MB a file
    lock              held by the one writer (:class:`~saddleback.files.disk.Lock`)

*Acknowledged* means that :meth:`SampleStore.flush` returned, or that opening the store found the block. By then shard, name
and manifest line are on the disk, each synced before the next is begun; an acknowledged block is never lost and never
changes. Blocks that were added since the last flush may be lost; they are drawn again from their keys, the same. A run that
is resumed lists the blocks that it listed before and draws what ``missing`` gives, never by what is ``held``: blocks arrive
in any order, and a cut may leave gaps. When a write or an fsync fails the store stops: nothing more is added or acknowledged
until the disk is mended and the store opened again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.files.disk import LOCK, PARTIAL, Disk, Lock, disk_faults_named
from saddleback.problem.digest import bits
from saddleback.problem.spaces import Array, States
from saddleback.sampling.blocks import Block, Closing
from saddleback.sampling.collect import Samples, SignalMoments
from saddleback.sampling.store import recovery
from saddleback.sampling.store.block_index import BlockIndex, Table, block_of
from saddleback.sampling.store.layout import Layout, Rows
from saddleback.sampling.store.manifest import (
    HEADER,
    SOURCES,
    Header,
    begin,
    plain,
    read_header,
    require_same,
    write_header,
)
from saddleback.sampling.store.recovery import Inspection, Recovery, Report
from saddleback.sampling.store.shards import MEND, ShardReader, ShardWriter
from saddleback.simulators.generative_model import Draw

SHARD_BYTES = 4 << 20  # of rows that are collected in memory before they are written
Place = str | os.PathLike[str]
_NOTHING = Inspection([], False, [], [])


class SampleStore(Closing):
    """Made by :meth:`create`, :meth:`open` or :meth:`resume`; as a context manager it is closed at the end.

    Attributes: ``folder``; ``layout``; ``fingerprint``; ``recovery``, what opening swept up; ``index`` and ``shards``, which
    blocks there are and their rows; ``used_seeds``, with which something was proved about what these samples suggest, as long
    as the store is open.
    """

    def __init__(self, folder: Path, header: Header, index: BlockIndex, disk: Disk):
        self.folder, self.layout, self.fingerprint = folder, header.layout, header.fingerprint
        self.recovery = Recovery(False, [], 0)
        self.index, self._disk, self.shards = index, disk, ShardReader(disk, folder, header.layout)
        self._writer: ShardWriter | None = None
        self._closed = False
        self.used_seeds = dict[int, str]()

    # ---- a store from a folder -------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: Place, fingerprint: Mapping[str, Any], layout: Layout, **more: Any) -> SampleStore:
        """A new store in a new or empty folder; ``fingerprint`` is a JSON object, and ``more`` is for :meth:`open`."""
        path = Path(os.path.abspath(folder))
        with disk_faults_named(path, "choose a place that can be written to"):
            begin(more.get("disk") or Disk(), path, layout, plain(fingerprint))
        return cls.open(path, fingerprint, **more)

    @classmethod
    def open(
        cls,
        folder: Place,
        fingerprint: Mapping[str, Any] | None = None,
        *,
        writable: bool = True,
        drop_damaged: bool = False,
        hashes: bool = True,
        shard_bytes: int = SHARD_BYTES,
        disk: Disk | None = None,
    ) -> SampleStore:
        """The store in a folder, after sweeping up what a cut left; ``fingerprint`` (None: any) must be the store's.

        Damage is refused, or with ``drop_damaged`` removed, so that it is drawn again. Every shard is read and compared
        with its SHA-256, but for ``hashes=False``, which is for further readers of a store that was checked. Any number of
        readers (``writable=False``) may look at a store while one writes; they see what was there when they came.
        """
        path, disk = Path(os.path.abspath(folder)), disk or Disk()
        header = read_header(path)
        if fingerprint is not None:
            require_same(path, header.fingerprint, plain(fingerprint))
        with disk_faults_named(path, f"{MEND}; or read it with writable=False"):
            lock = Lock(path / LOCK) if writable else None
            try:
                found = recovery.inspect(disk, path, header, contents=hashes)
                if not (writable and drop_damaged):
                    recovery.refuse(path, found)
                store = cls(path, header, BlockIndex(found.sound), disk)
                if lock is not None:
                    if found == _NOTHING:  # an empty manifest is empty on the disk too, but is its name there?
                        disk.sync_folder(path)
                    else:
                        store.recovery = recovery.recover(disk, path, header, found)
                    number = recovery.next_number(found.sound)
                    kept = header if not found.damage else header._replace(sealed=None)
                    store._writer = ShardWriter(disk, path, kept, lock, number, shard_bytes)
            except BaseException:
                if lock is not None:
                    lock.release()
                raise
        return store

    @classmethod
    def resume(cls, folder: Place, fingerprint: Mapping[str, Any], layout: Layout, **more: Any) -> SampleStore:
        """Open the store if there is one, create it if not."""
        if not os.path.isfile(Path(folder) / HEADER):  # which is False for a name too long, where pathlib raises
            return cls.create(folder, fingerprint, layout, **more)
        found = read_header(Path(folder)).layout
        rule = f"must be the store's, {found}"
        require(found == layout, "layout", rule, layout, "set it back, or choose a new folder")
        return cls.open(folder, fingerprint, **more)

    def close(self) -> None:
        """Flush, unless the store has stopped, and let the next writer in."""
        self._closed = True
        self.shards.forget()
        if self._writer is not None:
            self._writer.close()

    # ---- what it holds ---------------------------------------------------------------------------------------------

    @property
    def num_samples(self) -> int:
        """Samples of all streams, those not yet flushed included."""
        return int(self._blocks()["size"].sum())

    def held(self, stream: int, num_pairs: int) -> NDArray[np.int64]:
        """Samples of each pair, those not yet flushed included, ``(num_pairs,)``."""
        self._check()
        return self.index.held(stream, num_pairs)

    def blocks(self, stream: int | None = None) -> list[Block]:
        """The blocks of a stream or of all, those not yet flushed included, in the order of their keys."""
        return [block_of(record) for record in self._blocks(stream)]

    def missing(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of the blocks that have yet to be drawn, in the order given."""
        self._check()
        return self.index.missing(blocks)

    # ---- writing ---------------------------------------------------------------------------------------------------

    def add(self, block: Block, draw: Draw) -> None:
        """Take a block in; it is on the disk after the next :meth:`flush`, which comes by itself when a shard is full."""
        self.take(block, self.layout.encode(block, draw))

    def take(self, block: Block, rows: Rows) -> None:
        """The same for rows that a store of the same layout holds already."""
        writer = self._writing()
        self.index.insert(block, len(rows), *writer.place)
        writer.add(block, rows)

    def flush(self) -> None:
        """Acknowledge: when this returns, every block that was added is on the disk to stay."""
        self._writing().flush()

    def require_like(self, other: SampleStore, may_differ: Collection[str] = ()) -> None:
        """Refuse a store with another layout, or another fingerprint but for the fields ``may_differ``."""
        rule = f"must have the layout of {self.folder}, {self.layout}"
        require(other.layout == self.layout, str(other.folder), rule, other.layout, "draw it again with that layout")
        require_same(self.folder, self.fingerprint, other.fingerprint, may_differ)

    def require_same_rows(self, other: SampleStore, blocks: Collection[Block]) -> None:
        """Refuse the first of these blocks, which both stores hold, that is not the same in both."""
        rule, remedy = f"must be the same in {self.folder} and {other.folder}", "find out which simulator drew them"
        for block, rows in other.rows() if blocks else ():
            if block in blocks and not np.array_equal(self._rows_of(self.index.record(block)), rows):
                raise InputError(block.name, rule, "other samples", remedy)

    # ---- reading ---------------------------------------------------------------------------------------------------

    def rows(self, stream: int | None = None) -> Iterator[tuple[Block, Rows]]:
        """Block after block of a stream or of all, in the order of their keys, after a flush: mapped rows, not to be kept."""
        if self._writer is not None:
            self.flush()
        for record in self._blocks(stream):
            yield block_of(record), self._rows_of(record)

    def read(self, stream: int) -> Iterator[tuple[Block, Draw]]:
        """Block after block of a stream, in the order of their keys, in the memory of one block."""
        for block, rows in self.rows(stream):
            yield block, self.layout.decode(block, rows)

    def samples(self, stream: int, num_pairs: int, base: Array | None = None) -> Samples:
        """All samples of a stream in memory, as :func:`~saddleback.sampling.collect.collect` gives them.

        ``base`` ``(num_signals,)``, the problem's, is what signals are summed around, so that no digits are lost.
        """
        n = self.held(stream, num_pairs)
        for pair in np.flatnonzero(n == 0)[:1]:
            rule = f"must have samples of each of the {num_pairs} pairs"
            raise InputError(str(self.folder), rule, f"none of pair {pair}", "draw the missing blocks first")
        self.index.require_no_gaps(stream, self.folder)
        finite, m = self.layout.num_states is not None, self.layout.num_signals
        sequences: list[States] = [
            np.empty(k if finite else (k, self.layout.dim), np.int64 if finite else float) for k in n
        ]
        filled = np.zeros(num_pairs, dtype=np.int64)
        moments = SignalMoments.none(num_pairs, np.zeros(m) if base is None or not m else base)
        for block, rows in self.rows(stream):
            x, first = block.pair, filled[block.pair]
            sequences[x][first : first + block.size] = self.layout.decode(block, rows).next_states
            filled[x] += block.size
            if m:
                try:
                    with np.errstate(over="raise", invalid="raise"):
                        moments.add(x, *self.layout.signal_sums(rows, moments.base))
                except FloatingPointError:
                    rule = "must hold signals whose squares can be added up"
                    found, remedy = f"an overflow in {block.name}", "draw them in units of ordinary size"
                    raise InputError(str(self.folder), rule, found, remedy) from None
        means, variances = moments.means_and_variances(n)
        return Samples(sequences, means, variances, self.index.num_blocks(stream, num_pairs))

    def content_hash(self) -> str:
        """SHA-256 of all blocks in the order of their keys: of key, and name, type, shape and bytes of each field.

        It does not depend on shards, on the order in which blocks arrived, nor on who drew them.
        """
        digest = hashlib.sha256()
        for block, rows in self.rows():
            digest.update(repr(tuple(map(int, block))).encode())
            for name in rows.dtype.names or ():
                x = np.ascontiguousarray(rows[name])
                digest.update(f"{name} {x.dtype.str} {x.shape}".encode())
                digest.update(bits(x))
        return digest.hexdigest()

    def verify(self) -> Report:
        """Read all of the store again and say what is damaged or missing; nothing is raised for it."""
        if self._writer is not None:
            self.flush()
        return recovery.verify(self._disk, self.folder, read_header(self.folder))

    # ---- inside ----------------------------------------------------------------------------------------------------

    def _blocks(self, stream: int | None = None) -> Table:
        self._check()
        return self.index.table(stream)

    def _rows_of(self, record: Any) -> Rows:
        return self.shards.rows(int(record["shard"]), int(record["start"]), int(record["rows"]))

    def _check(self) -> None:
        require(not self._closed, "store", "must be open", f"the closed one of {self.folder}", "open it again")
        if self._writer is not None:
            self._writer.check()

    def _writing(self) -> ShardWriter:
        self._check()
        if self._writer is None:
            rule = "must be open for writing"
            raise InputError("store", rule, "one that is open for reading", "leave out writable=False")
        return self._writer


def verify_store(folder: Place, *, contents: bool = True) -> Report:
    """What is damaged or missing in a store that may be too damaged to be opened; without ``contents`` no shard is read."""
    path = Path(os.path.abspath(folder))
    return recovery.verify(Disk(), path, read_header(path), contents=contents)


def accept_sources(folder: Place, sources: Mapping[str, str]) -> None:
    """Let the samples in a folder count as drawn by other code: whoever calls this knows that they would be the same."""
    path, disk = Path(os.path.abspath(folder)), Disk()
    with disk_faults_named(path, MEND):
        lock = Lock(path / LOCK)
        try:
            header = read_header(path)
            if os.path.lexists(path / f"{HEADER}{PARTIAL}"):  # of somebody who was killed here
                disk.remove(path / f"{HEADER}{PARTIAL}")
            write_header(disk, path, header._replace(fingerprint={**header.fingerprint, SOURCES: dict(sources)}))
        finally:
            lock.release()
