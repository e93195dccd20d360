"""The two files that say what is in a store: its header, and its manifest, one line a shard.

    store.json        {"format": "saddleback-samples/3", "layout": {…}, "fingerprint": {…}, "sealed": {…}, "check": "…"}
    manifest.jsonl    {"blocks":[[stream,pair,block,size,rows],…],"bytes":…,"check":"…","sha256":"…","shard":7}

``check`` is the SHA-256 of the other fields. The fingerprint is the caller's, all that a sample depends on (simulator,
features, discount, seed, state space, coreset, versions): samples of another simulator or seed would be continued without
complaint otherwise. Shard 7 is the file ``000007.npy``: its length, its SHA-256, and its blocks in the order of their rows.
A line must be, byte for byte, what :func:`to_line` makes of its contents, so that whatever else it may be is refused by one
comparison. It is written after its shard is on the disk, and nothing is acknowledged before the line is.

**Torn or damaged?** A power cut can leave the last line torn, which was never acknowledged: cut short, or with sectors of 512
bytes that were never written and read as zeros. Anything else is damage: a complete line with a wrong check, one zero byte, a
bad line further up. Where damage looks like a torn line, or takes whole lines away, the seal tells: a writer that closes its
store writes into the header how many lines there are, and their SHA-256. A manifest may go on after the lines that were
sealed, but must begin with them.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require
from saddleback.files.disk import LOCK, PARTIAL, Disk, Lock, Mapped, write_whole
from saddleback.files.json_file import Record, Whole, as_record, read_json, to_plain
from saddleback.problem.digest import same_digest
from saddleback.sampling.store.layout import Layout
from saddleback.simulators.sources import changed_sources

HEADER = "store.json"
FORMAT = "saddleback-samples/3"
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
_BEGINNING = b'{"blocks":[['
_SECTOR = 512  # bytes that a disk writes at once
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MOST_BYTES = 1 << 26
_AGAIN = "draw the samples again into a new folder"
_NO_FIELD = "no such field"
SOURCES, VALUES = "sources", "values"
"""The fields of a fingerprint that say which code drew the samples, and what the signals are in the user's units."""

Fields = dict[str, Any]


class Sealed(Record, frozen=True):
    """How a manifest begins: so many lines, which together have this SHA-256."""

    lines: Whole
    sha256: str


class HeaderRecord(Record, frozen=True):
    """The fields of ``store.json``; the format before this one had no seal."""

    format: Literal["saddleback-samples/2", "saddleback-samples/3"]
    layout: Fields
    fingerprint: Fields
    check: str
    sealed: Sealed | None = None


class Header(NamedTuple):
    """What ``store.json`` says; ``sealed`` is None until a writer has closed the store."""

    layout: Layout
    fingerprint: Fields
    sealed: Sealed | None = None


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
    blocks = entry.blocks.tolist()
    fields = {"blocks": blocks, "bytes": entry.num_bytes, "sha256": entry.sha256, "shard": entry.shard}
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


def read_manifest(data: Mapped, sealed: Sealed | None = None) -> Manifest:
    """All lines of the file, of which those that were sealed cannot be torn."""
    entries, bad, start, number, torn = [], [], 0, 0, False
    while start < len(data):
        number += 1
        found = data.find(b"\n", start)
        end = len(data) if found < 0 else found + 1
        entry = from_line(bytes(data[start:end])) if end - start <= _MOST_LINE else None
        if entry is not None:
            entries.append(entry)
        elif end == len(data) and number > (sealed.lines if sealed else 0) and _torn(bytes(data[start:end]), start):
            torn = True
        else:
            bad.append(number)
        start = end
    return Manifest(entries, bad, torn)


def seal_of(data: Mapped, most: int | None = None) -> Sealed:
    """The seal of a manifest, or of at most so many of its first lines."""
    start = number = 0
    while (most is None or number < most) and (found := data.find(b"\n", start)) >= 0:
        start, number = found + 1, number + 1
    return Sealed(number, hashlib.sha256(data[:start]).hexdigest())


def _torn(line: bytes, start: int) -> bool:
    """Whether a cut may have left this last line, which begins at byte ``start`` of the file."""
    edges = [0, *range(_SECTOR - start % _SECTOR, len(line), _SECTOR), len(line)]
    sectors = [line[i:j] for i, j in pairwise(edges)]
    if any(any(sector) and 0 in sector for sector in sectors):
        return False
    if not all(map(any, sectors)):  # some were never written
        return True
    whole = from_line(line[:-1] + b"\n") is not None  # all there, with something else for its end
    return not line.endswith(b"\n") and not whole and line.startswith(_BEGINNING[: len(line)])


def _plausible(entry: Entry) -> bool:
    """Numbers in their ranges: everything else follows from the shard itself."""
    x = entry.blocks
    keys = bool(np.all((x[:, :3] >= 0) & (x[:, :3] < np.array(LIMITS))))
    sizes = bool(np.all((x[:, ROWS] >= 1) & (x[:, ROWS] <= x[:, SIZE]) & (x[:, SIZE] <= MOST_SAMPLES)))
    number = 0 <= entry.shard < 10**12 and 0 <= entry.num_bytes < 1 << 48
    return number and 1 <= len(x) <= MOST_BLOCKS and keys and sizes and bool(_SHA256.fullmatch(entry.sha256))


def _canonical(fields: dict[str, object]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# ---- the header ----------------------------------------------------------------------------------------------------------


def plain(fingerprint: Mapping[str, Any]) -> Fields:
    """The fingerprint as it will be read back; NumPy's numbers and arrays are taken too."""

    def of_numpy(x: Any) -> Any:
        if isinstance(x, (np.ndarray, np.generic)):
            return x.tolist()
        raise TypeError(f"a {type(x).__name__} is not JSON")

    rule, remedy = "must be a JSON object", "give named fields: numbers, text, lists and objects"
    try:
        fields: Fields = json.loads(json.dumps(fingerprint, allow_nan=False, default=of_numpy))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("fingerprint", rule, error, remedy) from None
    require(isinstance(fields, dict), "fingerprint", rule, type(fingerprint).__name__, remedy)
    return fields


def require_same(folder: Path, stored: Fields, given: Fields, may_differ: Collection[str] = ()) -> None:
    """Raise an :class:`InputError` that names the first field in which two fingerprints differ.

    Code comes last: it may have changed in what no sample depends on. Earlier versions wrote down neither code nor values.
    Signals with the same values are the same whatever range they are scaled by.
    """
    apart = {SOURCES, VALUES, *may_differ}
    if VALUES in stored and stored[VALUES] == given.get(VALUES):
        apart.add("signals")
    for name in sorted((stored.keys() | given.keys()) - apart):
        for where, first, second in _differences(stored.get(name, _NO_FIELD), given.get(name, _NO_FIELD), name):
            rule = f"must be what it was when the samples in {folder} were drawn, {_short(first)}"
            raise InputError(f"fingerprint.{where}", rule, _short(second), "set it back, or choose a new folder")
    changed = changed_sources(stored.get(SOURCES, {}), given.get(SOURCES, {})) if SOURCES in stored else ""
    if changed and SOURCES in given and SOURCES not in may_differ:
        rule = f"must be the code that drew the samples in {folder}, although it answers the probes alike"
        remedy = "restore it, or, if every sample would still be the same, as after a fault was mended, add --accept-source (accept_source=True)"
        raise InputError("simulator", rule, changed, remedy)


def begin(disk: Disk, folder: Path, layout: Layout, fingerprint: Fields) -> None:
    """An empty store in a folder that is new, empty, or was left so early that it was no store yet."""
    if not folder.is_dir():
        disk.make_folder(folder)
    disk.sync_folder(folder.parent)  # even if it is there: whoever made it may have been cut off before this
    lock = Lock(folder / LOCK)
    try:
        begun, names = {MANIFEST, MANIFEST + PARTIAL, HEADER + PARTIAL}, disk.names(folder)
        rule = "must be a new or empty folder"
        require(HEADER not in names, str(folder), rule, "one that holds a store", "open that store")
        for name in names:
            require(name in begun or name == LOCK, str(folder), rule, f"one that holds {name}", "choose another one")
        for name in begun.intersection(names):
            disk.remove(folder / name)
        write_whole(disk, folder / MANIFEST, ())
        write_header(disk, folder, Header(layout, fingerprint))
    finally:
        lock.release()


def write_header(disk: Disk, folder: Path, header: Header) -> None:
    """Write ``store.json``, in place of the one that may be there."""
    fields = {"format": FORMAT, "layout": asdict(header.layout), "fingerprint": header.fingerprint}
    if header.sealed is not None:
        fields["sealed"] = to_plain(header.sealed)
    fields["check"] = _check(fields)
    write_whole(disk, folder / HEADER, [json.dumps(fields, indent=1).encode() + b"\n"])


def seal(disk: Disk, folder: Path, header: Header) -> None:
    """Let the header say what is in the manifest, every line of which is on the disk."""
    sealed = seal_of(disk.map(folder / MANIFEST))
    if sealed.lines and sealed != header.sealed:
        write_header(disk, folder, header._replace(sealed=sealed))


def read_header(folder: Path) -> Header:
    """What the store in a folder is of."""
    path = folder / HEADER
    if not os.path.isfile(path):  # which is False for names that the system does not take, where pathlib raises
        found = f"no {HEADER} in it" if os.path.isdir(folder) else "no such folder"
        raise InputError(str(folder), "must be a folder of samples", found, "check the path, or create the store")
    fields = read_json(path, _MOST_BYTES, _AGAIN)
    sealed = as_record(fields, HeaderRecord, str(path), _AGAIN).sealed
    rule, remedy = "must be unchanged, with the check that it holds", "restore it, or draw the samples again"
    require(fields["check"] == _check(fields), str(path), rule, "a damaged file", remedy)
    return Header(Layout.from_json(fields["layout"], f"{path}.layout", _AGAIN), fields["fingerprint"], sealed)


def _check(fields: Fields) -> str:
    """SHA-256 of all fields but the check itself."""
    text = json.dumps({name: x for name, x in fields.items() if name != "check"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _differences(a: Any, b: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    """The fields, by name, in which two JSON values differ, and both values."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            yield from _differences(a.get(name, _NO_FIELD), b.get(name, _NO_FIELD), f"{where}.{name}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _differences(x, y, f"{where}[{i}]")
    elif not same_digest(a, b) or isinstance(a, bool) != isinstance(b, bool):
        yield where, a, b


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
