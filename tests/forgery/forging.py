"""Forging a run: one leaf of one file is changed, and everything that can be made to agree with it by hashing is.

The forger knows the format: sizes, SHA-256, the seal of ``run.json`` and the hashes by which the certificate names the other
files are all made anew. What he does not do is to invent rollouts or counts as a whole.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from places import ROOT
from saddleback.errors import SaddlebackError
from saddleback.files.json_file import sealed
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import load_run
from saddleback.runs.targets import load_run_target, with_features_of

SCHEMA = json.loads((ROOT / "docs" / "files.schema.json").read_text())
JSON = "run.json", "solution.json", "certificate.json", "problem.json"
ARRAYS = "rollouts.npz", "bound.npz"
REMOVED = object()
_NAMED = {"policy.npz": "policy", "rollouts.npz": "rollouts", "bound.npz": "bound"}


def schema_leaves(file: str) -> set[str]:
    """Every leaf that the generated schema knows of a file, lists marked ``[]`` and open objects ``{}``."""
    return set(_leaves(SCHEMA["properties"][file], ""))


def _leaves(schema: dict[str, Any], name: str) -> Iterator[str]:
    if "$ref" in schema:
        yield from _leaves(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], name)
    elif "anyOf" in schema:
        kinds = [s for s in schema["anyOf"] if s.get("type") != "null"]
        structured = [s for s in kinds if "$ref" in s]
        for kind in structured or kinds[:1]:
            yield from _leaves(kind, name)
    elif "properties" in schema:
        for field, inner in schema["properties"].items():
            yield from _leaves(inner, f"{name}.{field}".lstrip("."))
    elif schema.get("type") == "array":
        items = schema.get("items") or schema["prefixItems"][0]
        yield from _leaves(items, f"{name}[]")
    elif isinstance(schema.get("additionalProperties"), dict):
        yield from _leaves(schema["additionalProperties"], f"{name}{{}}")
    else:
        yield name


class Place(NamedTuple):
    """A leaf of a file as it is: its name in the schema, and the way there."""

    leaf: str
    path: tuple[str | int, ...]


def places(
    value: Any, leaf: str = "", path: tuple[str | int, ...] = (), opened: frozenset[str] = frozenset()
) -> Iterator[Place]:
    """All leaves of a JSON value; ``opened`` are the objects whose names are free."""
    if isinstance(value, dict):
        for name, inner in value.items():
            below = f"{leaf}{{}}" if leaf in opened else f"{leaf}.{name}".lstrip(".")
            yield from places(inner, below, (*path, name), opened)
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from places(inner, f"{leaf}[]", (*path, i), opened)
    else:
        yield Place(leaf, path)


def opened(file: str) -> frozenset[str]:
    """The objects of a file whose names are free."""
    return frozenset(m[1] for leaf in schema_leaves(file) if (m := re.match(r"([^{]*)\{\}", leaf)))


Change = Callable[[Any], Any]
NUMBERS: dict[str, Change] = {
    "a tenth more": lambda x: _like(x, 1.1 * x + (0.1 if x == 0 else 0)),
    "a tenth less": lambda x: _like(x, 0.9 * x - (0.1 if x == 0 else 0)),
    "negated": lambda x: _like(x, -x if x else -1),
    "doubled": lambda x: _like(x, 2 * x + (1 if x == 0 else 0)),
    "nothing": lambda x: _like(x, 0 if x else 7),
}
OTHERS: dict[str, Change] = {"removed": lambda x: REMOVED, "null": lambda x: None}


def _like(old: Any, new: float) -> Any:
    if not isinstance(old, int):
        return float(new)
    whole = round(new)
    return whole if whole != old else old + (1 if new >= old else -1)


def changes_of(value: Any) -> dict[str, Change]:
    """What is done to a leaf of this kind."""
    if isinstance(value, bool):
        return {"negated": lambda x: not x, **OTHERS}
    if isinstance(value, (int, float)):
        return {**NUMBERS, **OTHERS}
    if isinstance(value, str):
        words = {
            "certified": "refuted", "undecided": "certified", "refuted": "certified", "solved": "infeasible",
            ">=": "<=", "<=": ">=", "proved": "not proved", "not proved": "proved", "strict": "relaxed", "relaxed": "strict",
        }  # fmt: skip
        return {"other word": lambda x: words.get(x, f"{x[:-1]}{'a' if x[-1:] != 'a' else 'b'}"), **OTHERS}
    return {"a number": lambda x: 0.5, "a word": lambda x: "word"}


def changed(data: Any, path: tuple[str | int, ...], change: Change) -> Any:
    """A copy with one leaf changed, or taken away."""
    data = copy.deepcopy(data)
    place = data
    for name in path[:-1]:
        place = place[name]
    new = change(place[path[-1]])
    if new is REMOVED:
        del place[path[-1]]
    else:
        place[path[-1]] = new
    return data


def write(run: Path, file: str, data: Any) -> None:
    """Put it into the run, with every hash made to agree."""
    if file != "run.json":
        content = data if isinstance(data, bytes) else json.dumps(data).encode()
        (run / file).write_bytes(content)
        _entry(run, file)
    if file in _NAMED:
        told = json.loads((run / "certificate.json").read_text())
        if told.get("about"):
            told["about"][_NAMED[file]] = hashlib.sha256((run / file).read_bytes()).hexdigest()
            write(run, "certificate.json", told)
    if file == "run.json":
        rest = {name: x for name, x in data.items() if name != "seal"}
        (run / file).write_text(json.dumps(sealed(rest) if isinstance(data.get("seal"), dict) else data))


def _entry(run: Path, file: str) -> None:
    manifest = json.loads((run / "run.json").read_text())
    content = (run / file).read_bytes()
    manifest["files"][file] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    write(run, "run.json", manifest)


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as saved:
        return {name: saved[name] for name in saved}


def packed(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def refused(run: Path) -> str | None:
    """Who refuses the run, by name; None where every statement is said to follow."""
    try:
        stored = load_run(run)
        instance = load_run_target(stored)
        if stored.certificate is None:
            return "no certificate"
        checks = recheck_run(with_features_of(instance.problem, stored), instance)
    except SaddlebackError as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    failed = [check.name for check in checks if not check.passed]
    return ", ".join(failed) or None
