"""Which blocks a store holds and where: a sorted array, forty bytes a block, for the many that a long run draws.

A block's key (stream, pair, block) is one number, stream·2⁵⁶ + pair·2²⁴ + block, whose order is the order of the keys. New
blocks wait in a dictionary until they are worth sorting in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError
from saddleback.sampling.blocks import Block
from saddleback.sampling.store.manifest import LIMITS, MOST_SAMPLES, NUMBER, PAIR, ROWS, SIZE, STREAM, Entry

Table = NDArray[np.void]

FIELDS = np.dtype([(name, np.int64) for name in ("key", "size", "rows", "shard", "start")])
"""A block's key, its samples, its rows, and the shard and the row where they begin."""

_WAITING = 1 << 16  # new blocks that are worth sorting in


class BlockIndex:
    """Keys are unique; a key held with another size is an error wherever it comes up."""

    def __init__(self, entries: Iterable[Entry] = ()):
        tables = [np.empty(0, FIELDS)]
        for entry in entries:
            x, table = entry.blocks, np.empty(len(entry.blocks), FIELDS)
            table["key"] = _keys(x[:, STREAM], x[:, PAIR], x[:, NUMBER])
            table["size"], table["rows"] = x[:, SIZE], x[:, ROWS]
            table["shard"], table["start"] = entry.shard, entry.starts[:-1]
            tables.append(table)
        self._sorted = _by_key(np.concatenate(tables))
        self._waiting: dict[int, tuple[int, int, int, int]] = {}

    def insert(self, block: Block, rows: int, shard: int, start: int) -> None:
        """One more block."""
        key = _key(block)
        if self._size(key):
            rule = "must not have been added before"
            raise InputError(block.name, rule, "a block of this key", "draw only what missing() gives")
        self._waiting[key] = (block.size, rows, shard, start)
        if len(self._waiting) >= _WAITING:
            self._settle()

    def table(self, stream: int | None = None) -> Table:
        """All blocks, or those of a stream, in the order of their keys."""
        self._settle()
        if stream is None:
            return self._sorted
        first, last = np.searchsorted(self._sorted["key"], [int(stream) << 56, (int(stream) + 1) << 56])
        return self._sorted[first:last]

    def record(self, block: Block) -> Any:
        """Where a block is that is held."""
        self._settle()
        return self._sorted[int(np.searchsorted(self._sorted["key"], _key(block)))]

    def missing(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of the blocks that are not held, in the order given."""
        self._settle()
        wanted = []
        for block in blocks:
            size = self._size(_key(block))
            if size == 0:
                wanted.append(block)
            elif size != block.size:
                rule = f"must have the {size:,} samples that it had when it was drawn"
                raise InputError(block.name, rule, f"{block.size:,}", "continue the run that the store is of")
        return wanted

    def held(self, stream: int, num_pairs: int) -> NDArray[np.int64]:
        """Samples of each pair, ``(num_pairs,)``."""
        return self._by_pair(stream, num_pairs, self.table(stream)["size"])

    def num_blocks(self, stream: int, num_pairs: int) -> NDArray[np.int64]:
        """Blocks of each pair, ``(num_pairs,)``."""
        return self._by_pair(stream, num_pairs, 1)

    def _by_pair(self, stream: int, num_pairs: int, amounts: Any) -> NDArray[np.int64]:
        pairs, n = _parts(self.table(stream)["key"])[1], np.zeros(num_pairs, dtype=np.int64)
        for pair in pairs[pairs >= num_pairs][:1]:
            rule = f"must cover the pairs of the store, which reach {int(pairs.max())}"
            raise InputError("num_pairs", rule, num_pairs, f"give the coreset that pair {pair} belongs to")
        np.add.at(n, pairs, amounts)
        return n

    def gaps(self, stream: int | None = None) -> list[Block]:
        """Blocks whose predecessor is not held."""
        table = self.table(stream)
        streams, pairs, numbers = _parts(table["key"])
        before = np.full(len(table), -1)
        same = (streams[1:] == streams[:-1]) & (pairs[1:] == pairs[:-1])
        before[1:][same] = numbers[:-1][same]
        return [block_of(table[i]) for i in np.flatnonzero(numbers != before + 1)]

    def require_no_gaps(self, stream: int, folder: Path) -> None:
        """Refuse samples that cannot be put in a row."""
        for block in self.gaps(stream)[:1]:
            rule, found = "must have a pair's blocks without a gap", f"{block.name}, but not the one before it"
            raise InputError(str(folder), rule, found, "draw the missing blocks first")

    def _size(self, key: int) -> int:
        if key in self._waiting:
            return self._waiting[key][0]
        if not len(self._sorted):
            return 0
        i = int(np.searchsorted(self._sorted["key"], key))
        return int(self._sorted["size"][i]) if i < len(self._sorted) and self._sorted["key"][i] == key else 0

    def _settle(self) -> None:
        if self._waiting:
            new = np.array([(key, *rest) for key, rest in self._waiting.items()], FIELDS)
            self._sorted = _by_key(np.concatenate([self._sorted, new]))
            self._waiting = {}


def block_of(record: Any) -> Block:
    """The block of one record of a table."""
    stream, pair, number = (int(part) for part in _parts(record["key"]))
    return Block(stream, pair, number, int(record["size"]))


def _by_key(table: Table) -> Table:
    table = table[np.argsort(table["key"], kind="stable")]
    for i in np.flatnonzero(table["key"][1:] == table["key"][:-1])[:1]:
        shards = f"shards {table['shard'][i]} and {table['shard'][i + 1]}"
        raise InputError(block_of(table[i]).name, "must be stored once", shards, "keep one of the two stores")
    return table


def _key(block: Block) -> int:
    for name, value, limit in zip(("stream", "pair", "block"), block, LIMITS, strict=False):
        if not 0 <= value < limit:
            raise InputError(f"block.{name}", f"must lie in 0 … {limit - 1}", value, "number them from 0")
    if not 1 <= block.size <= MOST_SAMPLES:
        raise InputError("block.size", f"must lie in 1 … {MOST_SAMPLES}", block.size, "make several blocks")
    return int(_keys(block.stream, block.pair, block.block))


def _keys(stream: Any, pair: Any, number: Any) -> Any:
    return (stream << 56) | (pair << 24) | number


def _parts(keys: Any) -> tuple[Any, Any, Any]:
    return keys >> 56, (keys >> 24) & 0xFFFFFFFF, keys & 0xFFFFFF
