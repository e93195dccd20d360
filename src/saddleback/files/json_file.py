"""JSON files from strangers: sizes first, then the text, then the form, and one message that names the fault.

What a file may hold is a :class:`Record`: a frozen structure whose fields have types, from which the JSON schema is made too
(docs/files.schema.json). Numbers that are not finite, names given twice and fields nobody knows are refused: a file that
another version wrote, or that was changed by hand, must not be half understood. Messages may quote a stranger's text, so it
is quoted with its control characters escaped, and shortened.

A record with a field ``seal`` is written with a short hash of every other field, and refused where one no longer fits: a bit
that was flipped, or a number that somebody edited. It is no signature; whoever wants to deceive writes a new seal.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin

import msgspec
import numpy as np

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import written_whole

T = TypeVar("T")
Whole = Annotated[int, msgspec.Meta(ge=0)]
Int64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]
Limits = tuple[float, float]
State = int | float | str | list[float] | None
Option = bool | int | float | str | None
Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"
"""What JSON can hold."""

Seal = dict[str, str]
"""A short hash of every field by its name, ``options.budget.samples``; None in a record that is not on the disk."""

_PIECE = 1 << 20
_MOST_DEPTH = 100  # our own files have six levels; Python's own limit would be met later, at any step
_MOST_QUOTED = 60


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a file holds: these fields and no others. One with a default may be missing, and is not written where it has it.

    What relates several fields is checked in ``__post_init__``, by :func:`check`.
    """


def check(right: bool, rule: str) -> None:
    """Refuse a record that breaks ``rule``; :func:`as_record` adds where it stands."""
    if not right:
        raise ValueError(rule)


def in_order(*limits: Limits | None) -> None:
    """Refuse limits that are not [low, high]."""
    check(all(pair is None or pair[0] <= pair[1] for pair in limits), "limits must be two numbers [low, high]")


def as_record(value: object, kind: type[T], where: str, remedy: str) -> T:
    """``value``, as JSON has it, in the form of ``kind``; or an :class:`InputError` that says what is wrong with it.

    The first field of a record may name its version. It is looked at first: other versions may have other fields.
    """
    if isinstance(value, dict) and issubclass(kind, Record):
        first, *_ = msgspec.structs.fields(kind)
        known, found = get_args(first.type), value.get(first.encode_name)
        if get_origin(first.type) is Literal and found not in known:
            raise InputError(f"{where}.{first.name}", f"must be {' or '.join(map(repr, known))}", short(found), remedy)
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeError) as error:  # the latter: a name that is no Unicode
        rule, fault = "must have the form that this version writes", f"another: {plain(str(error), 300)}"
        raise InputError(where, rule, fault, remedy) from None


def read_record(path: Path, kind: type[T], most_bytes: int, remedy: str) -> T:
    """The record in a file of at most that size; one with a seal comes without it, once it fits."""
    value = read_json(path, most_bytes, remedy)
    record = as_record(value, kind, str(path), remedy)
    if issubclass(kind, Record) and "seal" in kind.__struct_fields__:
        _check_seal(value, kind, path, remedy)
        record = msgspec.structs.replace(record, seal=None)  # type: ignore[type-var]
    return record


def _check_seal(value: dict[str, Any], kind: type[Record], path: Path, remedy: str) -> None:
    """Refuse fields that no longer fit the seal of the file; files of the first format had none."""
    first = msgspec.structs.fields(kind)[0]
    if "seal" not in value and value[first.encode_name] == get_args(first.type)[0]:
        return
    told, found, now = value.get("seal") or {}, sealed(value)["seal"], dict(_named_leaves(value))
    for name in sorted(told.keys() | found.keys()):
        if told.get(name) != found.get(name):
            rule = "must be what it was when the file was written, as the seal at its end says"
            what = short(now[name]) if name in found else "no such field"
            raise InputError(f"{path}: {plain(name, 200)}", rule, what, f"set it back, or {remedy}")


def sealed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record as JSON has them, with the seal that fits them."""
    rest = {name: value for name, value in fields.items() if name != "seal"}
    marks = {name: hashlib.sha256(json.dumps(x).encode()).hexdigest()[:12] for name, x in _named_leaves(rest)}
    return {**rest, "seal": marks}


def _named_leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, x in value.items():
        if isinstance(x, dict) and x:
            yield from _named_leaves(x, f"{above}{name}.")
        else:
            yield f"{above}{name}", x


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
        for x in leaves(value):
            if (isinstance(x, float) and not math.isfinite(x)) or (isinstance(x, int) and abs(x) > sys.float_info.max):
                raise ValueError(f"{short(x)} is too large for a number")
    except (ValueError, RecursionError) as error:  # bad JSON, bad UTF-8, a number that is none, endless nesting
        raise InputError(str(path), "must be readable JSON", plain(str(error), 300), remedy) from None
    except MemoryError:
        raise InputError(str(path), "must fit in memory", f"{len(data):,} bytes of JSON", remedy) from None
    return value


def write_json(path: Path, data: Any) -> None:
    """Write ``data``, whole or not at all; numbers keep every digit, and a record that has room for a seal gets it."""
    if isinstance(data, Record) and "seal" in data.__struct_fields__:
        data = sealed(to_plain(data))
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
    """Records, tuples, and NumPy's numbers and arrays, as JSON has them."""
    if isinstance(x, msgspec.Struct):
        x = msgspec.to_builtins(x, enc_hook=to_plain)
    if isinstance(x, dict):
        return {name: to_plain(value) for name, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [to_plain(value) for value in x]
    if isinstance(x, (np.ndarray, np.generic)):
        return x.tolist()
    return x if x is None or isinstance(x, (bool, int, float, str)) else str(x)


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in pairs:
        if name in out:
            raise ValueError(f"the field {short(name)} is given twice")
        out[name] = value
    return out


def _not_finite(word: str) -> Any:
    raise ValueError(f"{word} is not a number")


def leaves(value: Any) -> Iterator[Any]:
    """Numbers, texts and the like in nested lists and objects, which may be so many levels deep."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        yield from (x for x in level if not isinstance(x, (dict, list)))
        inner = (x.values() if isinstance(x, dict) else x for x in level if isinstance(x, (dict, list)))
        level = [x for values in inner for x in values]
    if level:
        raise ValueError(f"it is nested more than {_MOST_DEPTH} levels deep")


def short(value: Any) -> str:
    """A value as a message quotes it: one line of bearable length, without control characters."""
    return plain(repr(value))


def plain(text: str, most: int = _MOST_QUOTED) -> str:
    """A stranger's text, which may be shown in a terminal."""
    if len(text) > most:
        text = text[: most - 3] + "..."
    return text if text.isprintable() else repr(text)[1:-1]
