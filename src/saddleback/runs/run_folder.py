"""A run as a folder: everything to use its policy, to check its proof, and to draw a new one.

    run.json           what was asked, with which versions, and size and SHA-256 of every other file
    solution.json      the answer, as ``solve --json`` prints it, without the certificate
    certificate.json   the proof, if there is one (docs/certificate.md)
    policy.npz         the mixture, if there is one (:mod:`~saddleback.problem.policy_file`)
    rollouts.npz       what the intervals are made of: values (n, 1+m), low and high (1+m,), tail (2, 1+m), in utilities
    problem.npz        a copy of the problem table, if the problem came from a file
    frontier.json, dual.json, design.json    what a report draws besides (:mod:`~saddleback.runs.drawings_file`)
    trace.jsonl        what happened, one event a line (docs/callbacks.md)
    samples/           every sample that was drawn, with manifests of its own (:mod:`saddleback.sampling.executors.durable`)

The folder is filled under another name, each file synced and renamed, and gets its own name when all of it is on the disk:
it is there whole or not at all. Loading trusts nothing: sizes, then hashes, then the contents.
"""

from __future__ import annotations

import os
import platform
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from saddleback._version import __version__
from saddleback.errors import InputError, StorageError
from saddleback.files.disk import sync_folder, written_whole
from saddleback.files.json_file import Maybe, check_shape, read_json, sha256_of, short, write_json
from saddleback.files.npz import BUDGET, ArraySpec, read_arrays, write_arrays
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.policy_file import load_mixture, save_policy, with_features
from saddleback.problem.spaces import Array, Features
from saddleback.runs.answer import Answer
from saddleback.runs.certificate_file import check_certificate, problem_fields
from saddleback.runs.drawings_file import MOST_BYTES, REPORT_FILES, check_report_file
from saddleback.runs.work_folder import SAMPLES, TRACE

FORMAT = "saddleback-run/1"
MANIFEST, SOLUTION, CERTIFICATE = "run.json", "solution.json", "certificate.json"
_MOST_UTILITY = 1e100  # of a rollout: far beyond any horizon, and its square is a number
POLICY, ROLLOUTS, TABLE = "policy.npz", "rollouts.npz", "problem.npz"

_OPTIONAL = (CERTIFICATE, POLICY, ROLLOUTS, TABLE, TRACE, *REPORT_FILES)
_MOST_MANIFEST, _MOST_JSON = 1 << 20, 1 << 26  # bytes
_AGAIN = "run `saddleback solve ... --out` again"
_SHAPE = {
    "format": "text",
    "status": "text",
    "target": {"name": "text", "settings": ["text"]},
    "request": "object",
    "seed": "whole",
    "versions": "object",
    "files": "object",
}
_SHA256 = re.compile(r"[0-9a-f]{64}")
_FILE = {"bytes": "whole", "sha256": "text"}
_ANSWER = {"status": "text", "multipliers": ["number"], "settings": "object", "value": Maybe("number")}
_ARRAYS = {
    "values": ArraySpec("real", (2,)),
    "low": ArraySpec("real", (1,)),
    "high": ArraySpec("real", (1,)),
    "tail": ArraySpec("real", (2,)),
}


class RolloutValues(NamedTuple):
    """Single rollouts ``(n, 1+m)`` in utilities, the limits they cannot leave ``(1+m,)``, and what the cap hides ``(2, 1+m)``."""

    values: Array
    low: Array
    high: Array
    tail: Array


@dataclass(frozen=True)
class Origin:
    """Where the problem came from: a target with its settings, and for a table file its path and SHA-256 when it was read."""

    target: str
    settings: Sequence[str] = ()
    table: Path | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Run:
    """A loaded run; ``table`` is the copy of the problem's table, None where the problem is built by name.

    ``drawings`` holds what is there of frontier, dual and design, by the name of the file, and ``files`` the SHA-256 of every
    file of the run.
    """

    path: Path
    target: str
    settings: list[str]
    table: Path | None
    request: dict[str, Any]
    seed: int
    versions: dict[str, Any]
    solution: dict[str, Any]
    certificate: dict[str, Any] | None
    mixture: MixturePolicy | None
    rollouts: RolloutValues | None
    drawings: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def check_place(path: str | os.PathLike[str], problem: CMDP, *, force: bool = False) -> Path:
    """The absolute path, if a run of the problem could be written there now: better known before a long solve."""
    path = Path(os.path.abspath(path))
    if not path.parent.is_dir():
        raise InputError("--out", "must lie in an existing folder", str(path), "make the folder first")
    if os.path.lexists(path):
        _check_replaceable(path, force)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise StorageError(f"`{path}` could not be written: {path.parent} is read-only; choose another place.")
    size = 8 * (problem.num_states or 0) * problem.num_actions
    if (problem.num_states is None or size > BUDGET) and problem.features is None:  # linear policies are small
        rule = f"must be left out where a policy is no table of at most {BUDGET / 1e9:g} GB"
        raise InputError("--out", rule, f"{problem.states}, {problem.num_actions} actions", "use the Python interface")
    return path


def save_run(
    path: Path,
    solution: Answer,
    origin: Origin,
    request: Mapping[str, Any],
    seed: int,
    *,
    force: bool = False,
    drawings: Mapping[str, Any] | None = None,
    trace: Path | None = None,
) -> None:
    """Write the run to ``path``, which must not exist unless it is empty, or a run and ``force`` is given.

    ``drawings`` are the contents of the files that only a report reads, by name.
    """
    path = check_place(path, solution.problem, force=force)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        os.mkdir(partial)
        if trace is not None:
            with written_whole(partial / TRACE) as copy:
                copy.write(trace.read_bytes())
        for name, data in (drawings or {}).items():
            write_json(partial / name, data)
        _fill(partial, solution, origin, request, seed)
        _put_in_place(partial, path)
    except OSError as error:
        raise StorageError(f"`{path}` could not be written: {error}; check the folder and the disk.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read and check a run; every fault is an :class:`InputError` that names the file."""
    path = Path(path)
    if not os.path.isdir(path):  # which is False for names that the system does not take, where pathlib raises
        found = "a file" if os.path.isfile(path) else "no such folder"
        raise InputError("RUN", "must be a folder that `solve --out` wrote", f"{path} ({found})", "check the path")
    manifest = read_json(path / MANIFEST, _MOST_MANIFEST, _AGAIN)
    _check_manifest(manifest, path)
    listed = manifest["files"]
    for name, entry in listed.items():
        _check_file(path / name, entry)
    solution = read_json(path / SOLUTION, _MOST_JSON, _AGAIN)
    # Only these fields are used again; the rest of the answer is for people.
    used = {k: solution.get(k) for k in _ANSWER} if isinstance(solution, dict) else solution
    check_shape(used, _ANSWER, str(path / SOLUTION), _AGAIN)
    certificate = read_json(path / CERTIFICATE, _MOST_JSON, _AGAIN) if CERTIFICATE in listed else None
    if certificate is not None:
        check_certificate(certificate, str(path / CERTIFICATE), _AGAIN)
    return Run(
        path,
        manifest["target"]["name"],
        manifest["target"]["settings"],
        path / TABLE if TABLE in listed else None,
        manifest["request"],
        manifest["seed"],
        manifest["versions"],
        solution,
        certificate,
        load_mixture(path / POLICY) if POLICY in listed else None,
        _load_rollouts(path / ROLLOUTS, certificate) if ROLLOUTS in listed else None,
        {name: _load_drawing(path / name) for name in REPORT_FILES if name in listed},
        {name: entry["sha256"] for name, entry in listed.items()},
    )


def _load_drawing(path: Path) -> Any:
    data = read_json(path, MOST_BYTES, _AGAIN)
    check_report_file(path.name, data, str(path), _AGAIN)
    return data


def _fill(folder: Path, solution: Answer, origin: Origin, request: Mapping[str, Any], seed: int) -> None:
    """All files of the run, the manifest last."""
    answer = {k: v for k, v in solution.to_json().items() if k != "certificate"}
    write_json(folder / SOLUTION, answer)
    if solution.mixture is not None:
        save_policy(solution.mixture, solution.problem, folder / POLICY)
    if solution.certificate is not None:
        proof = {**solution.certificate.to_json(), "problem": problem_fields(solution.problem)}
        write_json(folder / CERTIFICATE, proof)
        values = solution.certificate.rollout_values
        if values is not None:
            limits = {k: np.array(proof["evidence"]["rollouts"][k]) for k in ("low", "high", "tail")}
            write_arrays(folder / ROLLOUTS, {"values": values, **limits})
    if origin.table is not None:
        with open(origin.table, "rb") as source, written_whole(folder / TABLE) as copy:
            shutil.copyfileobj(source, copy)
        if sha256_of(folder / TABLE) != origin.sha256:
            raise StorageError(f"`{origin.table}` was changed while the run was going on; run it again.")
    files = {p.name: {"bytes": p.stat().st_size, "sha256": sha256_of(p)} for p in sorted(folder.iterdir())}
    manifest = {
        "format": FORMAT,
        "status": solution.status.value,
        "target": {"name": origin.target, "settings": list(origin.settings)},
        "request": dict(request),
        "seed": seed,
        "versions": {
            "saddleback": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
        },
        "files": files,
    }
    write_json(folder / MANIFEST, manifest)


def _put_in_place(partial: Path, path: Path) -> None:
    """Give the finished folder its name; a run that it replaces keeps another one until then."""
    old = path.with_name(f".{path.name}.{secrets.token_hex(4)}.old")
    replaced = (path / MANIFEST).exists()
    if replaced:
        os.rename(path, old)
    try:
        os.rename(partial, path)
    except BaseException:
        if replaced:
            os.rename(old, path)
        raise
    sync_folder(path.parent)
    if replaced:
        shutil.rmtree(old, ignore_errors=True)


def _check_replaceable(path: Path, force: bool) -> None:
    """Only an empty folder, or with ``force`` one that holds a run and nothing else, may be replaced."""
    if path.is_symlink() or not path.is_dir():
        raise InputError("--out", "must be a new folder", f"{path}, which is a file", "choose another name")
    try:
        found = {p.name for p in path.iterdir()}
    except OSError as error:
        raise StorageError(f"`{path}` could not be looked into: {error}; choose another place.") from error
    if not found:
        return
    strange = sorted(found - {MANIFEST, SOLUTION, SAMPLES, *_OPTIONAL})
    if MANIFEST not in found or strange:
        held = f"{path}, which holds {strange[0] if strange else 'other files'}"
        raise InputError("--out", "must be a new folder, or a run to replace", held, "choose another name")
    if not force:
        remedy = "choose another name, or add --force"
        raise InputError("--out", "must be a new folder", f"{path}, which holds a run", remedy)


def _check_manifest(manifest: Any, path: Path) -> None:
    where = str(path / MANIFEST)
    if isinstance(manifest, dict) and manifest.get("format") != FORMAT:
        raise InputError(f"{where}.format", f"must be {FORMAT!r}", short(manifest.get("format")), _AGAIN)
    check_shape(manifest, _SHAPE, where, _AGAIN)
    for name, entry in manifest["files"].items():
        if name not in (SOLUTION, *_OPTIONAL):
            raise InputError(f"{where}.files", "must name files of a run", short(name), _AGAIN)
        check_shape(entry, _FILE, f"{where}.files[{name}]", _AGAIN)
        if not _SHA256.fullmatch(entry["sha256"]):
            raise InputError(f"{where}.files[{name}].sha256", "must be a SHA-256", short(entry["sha256"]), _AGAIN)
    if SOLUTION not in manifest["files"]:
        raise InputError(f"{where}.files", f"must name {SOLUTION}", "no such entry", _AGAIN)


def _check_file(path: Path, entry: Mapping[str, Any]) -> None:
    if not path.is_file():
        raise InputError(str(path), "must be there, since run.json names it", "no such file", _AGAIN)
    size = path.stat().st_size
    if size != entry["bytes"]:
        raise InputError(str(path), f"must have the {entry['bytes']:,} bytes that run.json says", f"{size:,}", _AGAIN)
    digest = sha256_of(path)
    if digest != entry["sha256"]:
        rule = f"must be unchanged, with the SHA-256 {entry['sha256'][:12]}… that run.json says"
        raise InputError(str(path), rule, f"{digest[:12]}…", _AGAIN)


def _load_rollouts(path: Path, certificate: Mapping[str, Any] | None) -> RolloutValues:
    arrays = read_arrays(path, _ARRAYS)
    columns = arrays["values"].shape[1]
    shapes = [arrays[k].shape for k in ("low", "high", "tail")]
    if shapes != [(columns,), (columns,), (2, columns)]:
        raise InputError(str(path), f"must have limits for its {columns} columns", shapes, _AGAIN)
    if certificate is None or len(certificate["problem"]["constraints"]) + 1 != columns:
        raise InputError(str(path), "must belong to the certificate", f"{columns} columns", _AGAIN)
    largest = max(float(np.abs(x).max(initial=0.0)) for x in arrays.values())
    if not len(arrays["values"]) or largest > _MOST_UTILITY:
        found = f"{len(arrays['values'])} rows, the largest number {largest:.3g}"
        raise InputError(str(path), f"must hold rollouts, with values up to {_MOST_UTILITY:g}", found, _AGAIN)
    return RolloutValues(*(arrays[k] for k in _ARRAYS))


def load_policy(path: str | os.PathLike[str], features: Features | None = None) -> MixturePolicy:
    """The mixture of a policy file, or of a run folder; nothing is unpickled.

    path       what ``save_policy`` or `solve --policy` wrote, or a folder that `solve --out` wrote
    features   the feature map of the problem, for a linear policy over continuous states, which is θ alone: it is checked
               against values recorded in the file. A policy on a finite problem is complete
    """
    if not os.path.isdir(path):
        return load_mixture(path, features=features)
    mixture = load_run(path).mixture
    if mixture is None:
        raise InputError("RUN", "must hold a policy", f"{path}, which has none", "solve it with more samples")
    return mixture if features is None else with_features(mixture, features)
