"""``manifest.jsonl``: one line a shard, and a shard that has no line does not exist.

    {"blocks":[[stream,pair,block,size,rows],…],"bytes":…,"check":"…","sha256":"…","shard":7}

Shard 7 is the file ``000007.npy``: its length, its SHA-256, and its blocks in the order of their rows. ``check`` is the
SHA-256 of the line without that field. A line must be, byte for byte, what :func:`to_line` makes of its contents, so that
whatever else it may be is refused by one comparison.

A line is written after its shard is on the disk, and nothing is acknowledged before the line is. Hence a power cut can only
leave the last line torn, and such a line was never acknowledged; a bad line further up is damage.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.files.disk import Mapped

MANIFEST = "manifest.jsonl"
STREAM, PAIR, NUMBER, SIZE, ROWS = range(5)
"""The columns of ``Entry.blocks``."""

MOST_BLOCKS = 8192
"""Blocks in a shard, which bounds the length of a line."""

MOST_SAMPLES = 1 << 26
"""Samples of a block: 4,096 where a pair is drawn, more in the tape of a chunk of rollouts."""

LIMITS = (1 << 6, 1 << 32, 1 << 24)
"""Streams, pairs, and blocks of a pair that there may be."""

_MOST_LINE = 1 << 20
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """One shard: its number, length, SHA-256 and blocks ``(b, 5)``: stream, pair, block, size, rows."""

    shard: int
    num_bytes: int
    sha256: str
    blocks: NDArray[np.int64]

    @property
    def name(self) -> str:
        """The shard's file."""
        return shard_name(self.shard)

    @property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each block, and the number of rows, ``(b+1,)``."""
        return np.concatenate([[0], np.cumsum(self.blocks[:, ROWS])])


class Manifest(NamedTuple):
    """The good lines, the numbers (from 1) of the damaged ones, and whether the last one was torn."""

    entries: list[Entry]
    damaged: list[int]
    torn: bool


def shard_name(number: int) -> str:
    """The file of a shard."""
    return f"{number:06d}.npy"


def to_line(entry: Entry) -> bytes:
    """The line of a shard, its end included."""
    fields = {
        "blocks": entry.blocks.tolist(),
        "bytes": entry.num_bytes,
        "sha256": entry.sha256,
        "shard": entry.shard,
    }
    fields["check"] = hashlib.sha256(_canonical(fields)).hexdigest()
    return _canonical(fields) + b"\n"


def from_line(line: bytes) -> Entry | None:
    """The shard of a line, None if it is not a line that :func:`to_line` could have made."""
    try:
        fields = json.loads(line)
        blocks = np.array(fields["blocks"], dtype=np.int64).reshape(-1, 5)
        entry = Entry(fields["shard"], fields["bytes"], fields["sha256"], blocks)
        whole = type(entry.shard) is int and type(entry.num_bytes) is int and type(entry.sha256) is str
        if not (whole and _plausible(entry) and to_line(entry) == line):
            return None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return entry


def read_manifest(data: Mapped) -> Manifest:
    """All lines of the file."""
    entries, bad, start, number = [], [], 0, 0
    while start < len(data):
        number += 1
        found = data.find(b"\n", start)
        end = len(data) if found < 0 else found + 1
        entry = from_line(bytes(data[start:end])) if end - start <= _MOST_LINE else None
        if entry is None:
            bad.append(number)
        else:
            entries.append(entry)
        start = end
    torn = bool(bad) and bad[-1] == number
    return Manifest(entries, bad[:-1] if torn else bad, torn)


def _plausible(entry: Entry) -> bool:
    """Numbers in their ranges: everything else follows from the shard itself."""
    x = entry.blocks
    keys = bool(np.all((x[:, :3] >= 0) & (x[:, :3] < np.array(LIMITS))))
    sizes = bool(np.all((x[:, ROWS] >= 1) & (x[:, ROWS] <= x[:, SIZE]) & (x[:, SIZE] <= MOST_SAMPLES)))
    number = 0 <= entry.shard < 10**12 and 0 <= entry.num_bytes < 1 << 48
    return number and 1 <= len(x) <= MOST_BLOCKS and keys and sizes and bool(_SHA256.fullmatch(entry.sha256))


def _canonical(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
