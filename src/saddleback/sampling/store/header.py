"""``store.json``: what the samples of a store are samples of, written once and compared whenever the store is opened.

    {"format": "saddleback-samples/2", "layout": {…}, "fingerprint": {…}, "check": "…"}

``check`` is the SHA-256 of the other fields. The fingerprint is the caller's: all that a sample depends on (simulator, features, discount, seed, state space, coreset,
versions). Samples of another simulator or seed would be continued without complaint otherwise, and be a sample of nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np

from saddleback.errors import InputError
from saddleback.files.disk import LOCK, PARTIAL, Disk, Lock, write_whole
from saddleback.files.json_file import Record, as_record, read_json
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.manifest import MANIFEST

HEADER = "store.json"
FORMAT = "saddleback-samples/2"

Fields = dict[str, Any]

_MOST_BYTES = 1 << 26
_AGAIN = "draw the samples again into a new folder"
_NO_FIELD = "no such field"


class HeaderRecord(Record, frozen=True):
    """The fields of ``store.json``."""

    format: Literal["saddleback-samples/2"]
    layout: Fields
    fingerprint: Fields
    check: str


def plain(fingerprint: Mapping[str, Any]) -> Fields:
    """The fingerprint as it will be read back; NumPy's numbers and arrays are taken too."""

    def of_numpy(x: Any) -> Any:
        if isinstance(x, (np.ndarray, np.generic)):
            return x.tolist()
        raise TypeError(f"a {type(x).__name__} is not JSON")

    try:
        fields = json.loads(json.dumps(fingerprint, allow_nan=False, default=of_numpy))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            "fingerprint", "must be a JSON object", error, "give numbers, text, lists and objects"
        ) from None
    if not isinstance(fields, dict):
        raise InputError("fingerprint", "must be a JSON object", type(fingerprint).__name__, "give named fields")
    return fields


def require_same(folder: Path, stored: Fields, given: Fields, may_differ: Collection[str] = ()) -> None:
    """Raise an :class:`InputError` that names the first field in which two fingerprints differ."""
    for name in sorted(stored.keys() | given.keys()):
        found = (
            None if name in may_differ else _difference(stored.get(name, _NO_FIELD), given.get(name, _NO_FIELD), name)
        )
        if found is not None:
            where, first, second = found
            rule = f"must be what it was when the samples in {folder} were drawn, {_short(first)}"
            raise InputError(f"fingerprint.{where}", rule, _short(second), "set it back, or choose a new folder")


def begin(disk: Disk, folder: Path, layout: Layout, fingerprint: Fields) -> None:
    """An empty store in a folder that is new, empty, or was left so early that it was no store yet."""
    if not folder.is_dir():
        disk.make_folder(folder)
    disk.sync_folder(folder.parent)  # even if it is there: whoever made it may have been cut off before this
    lock = Lock(folder / LOCK)
    try:
        begun, names = {MANIFEST, MANIFEST + PARTIAL, HEADER + PARTIAL}, disk.names(folder)
        if HEADER in names:
            raise InputError(str(folder), "must be a new or empty folder", "one that holds a store", "open that store")
        for name in names:
            if name not in begun and name != LOCK:
                rule, remedy = "must be a new or empty folder", "choose another one"
                raise InputError(str(folder), rule, f"one that holds {name}", remedy)
        for name in begun.intersection(names):
            disk.remove(folder / name)
        write_whole(disk, folder / MANIFEST, ())
        fields = {"format": FORMAT, "layout": layout.to_json(), "fingerprint": fingerprint}
        fields["check"] = _check(fields)
        write_whole(disk, folder / HEADER, [json.dumps(fields, indent=1).encode() + b"\n"])
    finally:
        lock.release()


def read_header(folder: Path) -> tuple[Layout, Fields]:
    """Layout and fingerprint of the store in a folder."""
    path = folder / HEADER
    if not os.path.isfile(path):  # which is False for names that the system does not take, where pathlib raises
        found = f"no {HEADER} in it" if os.path.isdir(folder) else "no such folder"
        raise InputError(str(folder), "must be a folder of samples", found, "check the path, or create the store")
    fields = read_json(path, _MOST_BYTES, _AGAIN)
    as_record(fields, HeaderRecord, str(path), _AGAIN)
    if fields["check"] != _check(fields):
        rule = "must be unchanged, with the check that it holds"
        raise InputError(str(path), rule, "a damaged file", "put it back from a copy, or draw the samples again")
    return Layout.from_json(fields["layout"], f"{path}.layout", _AGAIN), fields["fingerprint"]


def _check(fields: Fields) -> str:
    """SHA-256 of all fields but the check itself."""
    text = json.dumps({name: x for name, x in fields.items() if name != "check"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _difference(a: Any, b: Any, where: str) -> tuple[str, Any, Any] | None:
    """The first field, by name, in which two JSON values differ."""
    if isinstance(a, dict) and isinstance(b, dict):
        for name in sorted(a.keys() | b.keys()):
            found = _difference(a.get(name, _NO_FIELD), b.get(name, _NO_FIELD), f"{where}.{name}")
            if found is not None:
                return found
        return None
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        pairs = (_difference(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b, strict=True)))
        return next((found for found in pairs if found is not None), None)
    same = a == b and isinstance(a, bool) == isinstance(b, bool)
    return None if same else (where, a, b)


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
