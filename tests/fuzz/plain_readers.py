"""What a file says, read with the standard library and nothing of ours: for checks of what was accepted."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import struct
import zipfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

MOST_OFF = 1e-9 * (1 + 1e-6)
"""How far probabilities may sum from one; the loader may have added them in another order."""


def agree(condition: Any, what: str) -> None:
    """Unlike ``assert``, it says what, and cannot be switched off."""
    if not condition:
        raise AssertionError(what)


def arrays_in(path: Path) -> dict[str, np.ndarray]:
    """Every array of an archive, after its checksum."""
    out: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            data = archive.read(info)
            agree(
                info.filename.endswith(".npy") and zlib.crc32(data) == info.CRC, f"{info.filename} has a wrong checksum"
            )
            name = info.filename[:-4]
            agree(name not in out, f"{name} is there twice")
            out[name] = array_in(data)
    return out


@lru_cache(1000)
def _header(text: bytes) -> dict[str, Any]:
    return ast.literal_eval(text.decode("latin1").strip())


def array_in(data: bytes) -> np.ndarray:
    """An array file of numbers or text."""
    agree(data[:6] == b"\x93NUMPY", "no array file")
    size, start = (
        (struct.unpack_from("<H", data, 8)[0], 10) if data[6] == 1 else (struct.unpack_from("<I", data, 8)[0], 12)
    )
    fields = _header(data[start : start + size])
    dtype = np.dtype([tuple(x) for x in fields["descr"]] if isinstance(fields["descr"], list) else fields["descr"])
    agree(not dtype.hasobject, "objects")
    body = data[start + size :]
    agree(len(body) == math.prod(fields["shape"]) * dtype.itemsize, "length and shape disagree")
    shape = tuple(int(n) for n in fields["shape"])
    return np.frombuffer(body, dtype).reshape(shape, order="F" if fields["fortran_order"] else "C")


def numbers(x: np.ndarray) -> np.ndarray:
    agree(x.dtype.kind in "iub" or (x.dtype.kind, x.dtype.itemsize) == ("f", 8), f"numbers of type {x.dtype}")
    out = x.astype(np.float64)
    agree(np.isfinite(out).all(), "numbers that are not finite")
    return out


def distributions(x: np.ndarray, what: str) -> None:
    agree(x.size > 0 and x.min() >= 0, f"{what} has negative entries, or none")
    for row in x.reshape(-1, x.shape[-1]):
        agree(abs(math.fsum(row.tolist()) - 1) <= MOST_OFF, f"{what} does not sum to one")


def identical(one: Any, other: Any, what: str) -> None:
    one, other = np.asarray(one), np.asarray(other)
    agree(one.shape == other.shape and one.dtype.kind == other.dtype.kind, f"{what}: other shapes or types")
    agree(one.tobytes() == other.astype(one.dtype).tobytes(), f"{what}: other values")


def json_in(data: bytes) -> Any:
    """JSON in which no name is given twice and every number is one."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        agree(len({name for name, _ in items}) == len(items), "a field is given twice")
        return dict(items)

    def constant(word: str) -> Any:
        raise AssertionError(f"{word} in JSON")

    return json.loads(data, object_pairs_hook=pairs, parse_constant=constant)


def good_lines(data: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The lines of a sample store's manifest whose checks are right, and whether only the last one may be wrong."""
    lines, good = data.split(b"\n"), []
    if lines[-1] == b"":
        lines.pop()
        ended = True
    else:
        ended = False
    wrong = []
    for i, line in enumerate(lines):
        try:
            fields = json.loads(line)
            rest = {name: x for name, x in fields.items() if name != "check"}
            text = json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
            fits = hashlib.sha256(text).hexdigest() == fields["check"] and (ended or i < len(lines) - 1)
            fits = fits and json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() == line
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            fits = False
        (good if fits else wrong).append(fields if fits else i)
    return good, wrong in ([], [len(lines) - 1])
