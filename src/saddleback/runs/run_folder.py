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
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, TypeVar, cast, get_args

import numpy as np
import scipy
from msgspec import Meta

from saddleback._version import __version__
from saddleback.errors import InputError, StorageError
from saddleback.files.disk import sync_folder, written_whole
from saddleback.files.json_file import Option, Record, Whole, check, read_record, sha256_of, write_json
from saddleback.files.npz import BUDGET, ArraySpec, read_arrays, write_arrays
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.policy_file import load_mixture, save_policy, with_features
from saddleback.problem.spaces import Array, Features
from saddleback.runs.answer import Answer, AnswerRecord
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields
from saddleback.runs.drawings_file import MOST_BYTES, NOTHING_DRAWN, DesignRecord, Drawings, DualRecord, FrontierRecord
from saddleback.runs.work_folder import SAMPLES, TRACE

T = TypeVar("T")
MANIFEST: Final = "run.json"
SOLUTION: Final = "solution.json"
CERTIFICATE: Final = "certificate.json"
POLICY: Final = "policy.npz"
ROLLOUTS: Final = "rollouts.npz"
TABLE: Final = "problem.npz"
_MOST_UTILITY = 1e100  # of a rollout: far beyond any horizon, and its square is a number

_MOST_MANIFEST, _MOST_JSON = 1 << 20, 1 << 26  # bytes
_AGAIN = "run `saddleback solve ... --out` again"

FileName = Literal[
    "solution.json",
    "certificate.json",
    "policy.npz",
    "rollouts.npz",
    "problem.npz",
    "trace.jsonl",
    "frontier.json",
    "dual.json",
    "design.json",
]


class FileRecord(Record, frozen=True):
    """Size and hash of a file of the run."""

    bytes: Whole
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]


Files = dict[FileName, FileRecord]


class TargetRecord(Record, frozen=True):
    """The problem by name, with its settings."""

    name: str
    settings: list[str]


class ManifestRecord(Record, frozen=True):
    """``run.json``."""

    format: Literal["saddleback-run/1"]
    status: str
    target: TargetRecord
    request: dict[str, Option]
    seed: Whole
    versions: dict[str, str]
    files: Files

    def __post_init__(self) -> None:
        check(SOLUTION in self.files, f"files must name {SOLUTION}")


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

    ``drawings`` holds what is there of frontier, dual and design, and ``files`` the SHA-256 of every file of the run.
    """

    path: Path
    target: str
    settings: list[str]
    table: Path | None
    request: dict[str, Option]
    seed: int
    versions: dict[str, str]
    solution: AnswerRecord
    certificate: CertificateRecord | None
    mixture: MixturePolicy | None
    rollouts: RolloutValues | None
    drawings: Drawings = NOTHING_DRAWN
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
    request: Mapping[str, Option],
    seed: int,
    *,
    force: bool = False,
    drawings: Drawings = NOTHING_DRAWN,
    trace: Path | None = None,
) -> None:
    """Write the run to ``path``, which must not exist unless it is empty, or a run and ``force`` is given.

    ``drawings`` are the files that only a report reads.
    """
    path = check_place(path, solution.problem, force=force)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        os.mkdir(partial)
        if trace is not None:
            with written_whole(partial / TRACE) as copy:
                copy.write(trace.read_bytes())
        for name, data in drawings.files().items():
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
    manifest = read_record(path / MANIFEST, ManifestRecord, _MOST_MANIFEST, _AGAIN)
    for name, entry in manifest.files.items():
        _check_file(path / name, entry)

    def there(name: FileName, kind: type[T], most: int = MOST_BYTES) -> T | None:
        return read_record(path / name, kind, most, _AGAIN) if name in manifest.files else None

    certificate = there(CERTIFICATE, CertificateRecord, _MOST_JSON)
    frontier, dual = there("frontier.json", FrontierRecord), there("dual.json", DualRecord)
    return Run(
        path,
        manifest.target.name,
        manifest.target.settings,
        path / TABLE if TABLE in manifest.files else None,
        manifest.request,
        manifest.seed,
        manifest.versions,
        read_record(path / SOLUTION, AnswerRecord, _MOST_JSON, _AGAIN),
        certificate,
        load_mixture(path / POLICY) if POLICY in manifest.files else None,
        _load_rollouts(path / ROLLOUTS, certificate) if ROLLOUTS in manifest.files else None,
        Drawings(frontier, dual, there("design.json", DesignRecord)),
        {name: entry.sha256 for name, entry in manifest.files.items()},
    )


def _fill(folder: Path, solution: Answer, origin: Origin, request: Mapping[str, Option], seed: int) -> None:
    """All files of the run, the manifest last."""
    write_json(folder / SOLUTION, {k: v for k, v in solution.to_json().items() if k != "certificate"})
    if solution.mixture is not None:
        save_policy(solution.mixture, solution.problem, folder / POLICY)
    if (proof := solution.certificate) is not None:
        write_json(folder / CERTIFICATE, certificate_fields(proof, solution.problem))
        if proof.rollout_values is not None and (told := proof.evidence.rollouts) is not None:
            limits = {"low": np.array(told.low), "high": np.array(told.high), "tail": np.array(told.tail)}
            write_arrays(folder / ROLLOUTS, {"values": proof.rollout_values, **limits})
    if origin.table is not None:
        with open(origin.table, "rb") as source, written_whole(folder / TABLE) as copy:
            shutil.copyfileobj(source, copy)
        if sha256_of(folder / TABLE) != origin.sha256:
            raise StorageError(f"`{origin.table}` was changed while the run was going on; run it again.")
    files = {p.name: FileRecord(p.stat().st_size, sha256_of(p)) for p in sorted(folder.iterdir())}
    versions = {"saddleback": __version__, "python": platform.python_version()}
    versions |= {"numpy": np.__version__, "scipy": scipy.__version__}
    target = TargetRecord(origin.target, list(origin.settings))
    status, asked = solution.status.value, dict(request)
    manifest = ManifestRecord("saddleback-run/1", status, target, asked, seed, versions, cast(Files, files))
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
    strange = sorted(found - {MANIFEST, SAMPLES, *get_args(FileName)})
    if MANIFEST not in found or strange:
        held = f"{path}, which holds {strange[0] if strange else 'other files'}"
        raise InputError("--out", "must be a new folder, or a run to replace", held, "choose another name")
    if not force:
        remedy = "choose another name, or add --force"
        raise InputError("--out", "must be a new folder", f"{path}, which holds a run", remedy)


def _check_file(path: Path, entry: FileRecord) -> None:
    if not path.is_file():
        raise InputError(str(path), "must be there, since run.json names it", "no such file", _AGAIN)
    size = path.stat().st_size
    if size != entry.bytes:
        raise InputError(str(path), f"must have the {entry.bytes:,} bytes that run.json says", f"{size:,}", _AGAIN)
    digest = sha256_of(path)
    if digest != entry.sha256:
        rule = f"must be unchanged, with the SHA-256 {entry.sha256[:12]}… that run.json says"
        raise InputError(str(path), rule, f"{digest[:12]}…", _AGAIN)


def _load_rollouts(path: Path, certificate: CertificateRecord | None) -> RolloutValues:
    arrays = read_arrays(path, _ARRAYS)
    columns = arrays["values"].shape[1]
    shapes = [arrays[k].shape for k in ("low", "high", "tail")]
    if shapes != [(columns,), (columns,), (2, columns)]:
        raise InputError(str(path), f"must have limits for its {columns} columns", shapes, _AGAIN)
    if certificate is None or len(certificate.problem.constraints) + 1 != columns:
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
