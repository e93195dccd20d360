"""JSON files from strangers: sizes first, then the text, then the shape, and one message that names the field.

A *shape* says what a value must look like:

    "text" | "number" | "integer" | "whole" | "flag"    one value; a number is finite, a whole number not negative
    "limits"                                            two numbers [low, high]
    "object" | "anything"                               fields of any kind; anything at all
    [shape]                                             a list of those
    {"name": shape, "other?": shape}                    these fields and no others; "?" may be missing
    Maybe(shape)                                        or null

Numbers that are not finite, names given twice and fields nobody knows are refused: a file that another version wrote, or
that was changed by hand, must not be half understood. Messages may quote a stranger's text, so it is quoted with its control
characters escaped, and shortened.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import written_whole

_PIECE = 1 << 20
_MOST_DEPTH = 100  # our own files have six levels; Python's own limit would be met later, at any step
_MOST_QUOTED = 60


class Maybe(NamedTuple):
    """A shape, or null."""

    shape: Any


def _is_number(x: Any) -> bool:
    if isinstance(x, int):
        return not isinstance(x, bool) and abs(x) <= sys.float_info.max  # a whole number may be too large for float64
    return isinstance(x, float) and math.isfinite(x)


def _is_limits(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 2 and all(map(_is_number, x)) and x[0] <= x[1]


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda x: isinstance(x, str), "text"),
    "number": (_is_number, "a finite number"),
    "integer": (lambda x: isinstance(x, int) and not isinstance(x, bool) and abs(x) < 1 << 63, "an int64"),
    "whole": (lambda x: isinstance(x, int) and not isinstance(x, bool) and x >= 0, "a whole number, 0 or more"),
    "flag": (lambda x: isinstance(x, bool), "true or false"),
    "limits": (_is_limits, "two numbers [low, high]"),
    "object": (lambda x: isinstance(x, dict), "an object with fields"),
    "anything": (lambda x: True, ""),
}


def check_shape(value: Any, shape: Any, where: str, remedy: str) -> None:
    """Raise an :class:`InputError` that names the first field of ``value`` whose shape is wrong."""
    if isinstance(shape, Maybe):
        if value is not None:
            check_shape(value, shape.shape, where, remedy)
    elif isinstance(shape, str):
        right, words = _KINDS[shape]
        if not right(value):
            raise InputError(where, f"must be {words}", short(value), remedy)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            raise InputError(where, "must be a list", short(value), remedy)
        for i, entry in enumerate(value):
            check_shape(entry, shape[0], f"{where}[{i}]", remedy)
    else:
        _check_fields(value, shape, where, remedy)


def _check_fields(value: Any, shape: dict[str, Any], where: str, remedy: str) -> None:
    if not isinstance(value, dict):
        raise InputError(where, "must be an object with fields", short(value), remedy)
    for name, inner in shape.items():
        bare = name.removesuffix("?")
        if bare in value:
            check_shape(value[bare], inner, f"{where}.{bare}", remedy)
        elif bare == name:
            raise InputError(f"{where}.{name}", "must be given", "no such field", remedy)
    for name in value:
        if name not in shape and f"{name}?" not in shape:
            raise InputError(f"{where}.{plain(name)}", "must be a known field", "an unknown one", remedy)


def read_json(path: Path, most_bytes: int, remedy: str) -> Any:
    """The JSON of a file of at most that size."""
    if not os.path.isfile(path):
        raise InputError(str(path), "must be an existing file", "no such file", remedy)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > most_bytes:
                raise InputError(str(path), f"must be at most {most_bytes:,} bytes long", f"{size:,}", remedy)
            data = file.read(most_bytes + 1)
    except OSError as error:
        raise StorageError(f"`{path}` could not be read: {error}; check the disk and the permissions.") from error
    try:
        value = json.loads(data, object_pairs_hook=_once_each, parse_constant=_not_finite)
        _check_depth(value)
    except (ValueError, RecursionError) as error:  # bad JSON, bad UTF-8, a number that is none, endless nesting
        raise InputError(str(path), "must be readable JSON", plain(str(error), 300), remedy) from None
    except MemoryError:
        raise InputError(str(path), "must fit in memory", f"{len(data):,} bytes of JSON", remedy) from None
    return value


def write_json(path: Path, data: Any) -> None:
    """Write ``data``, whole or not at all; numbers keep every digit."""
    text = json.dumps(data, indent=2, allow_nan=False, default=to_plain)
    with written_whole(path) as file:
        file.write(text.encode() + b"\n")


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except OSError as error:
        raise StorageError(f"`{path}` could not be read: {error}; check the disk and the permissions.") from error
    return digest.hexdigest()


def to_plain(x: Any) -> Any:
    """NumPy's numbers and arrays as JSON has them."""
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else str(x)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ValueError(f"the field {short(name)} is given twice")
        out[name] = value
    return out


def _not_finite(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def _check_depth(value: Any) -> None:
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > _MOST_DEPTH:
            raise ValueError(f"it is nested more than {_MOST_DEPTH} levels deep")
        inner = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, (dict, list)))
        level = [x for values in inner for x in values]


def short(value: Any) -> str:
    """A value as a message quotes it: one line of bearable length, without control characters."""
    return plain(repr(value))


def plain(text: str, most: int = _MOST_QUOTED) -> str:
    """A stranger's text, which may be shown in a terminal."""
    if len(text) > most:
        text = text[: most - 3] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
