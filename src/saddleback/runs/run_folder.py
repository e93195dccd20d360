"""A run as a folder: everything to use its policy, to check its proof, and to draw a new one.

    run.json           what was asked, of which problem, with which versions, and size and SHA-256 of every other file; sealed
    solution.json      the answer, as ``solve --json`` prints it, without the certificate
    certificate.json   the proof, if there is one (docs/certificate.md)
    policy.npz         the mixture, if there is one (:mod:`~saddleback.problem.policy_file`)
    stationary.npz     one stationary policy in its place, where there is one: a mixture of one
    problem.json       the question as data (:mod:`~saddleback.runs.problem_record`)
    rollouts.npz       what the intervals are made of: values (n, 1+m), low and high (1+m,), tail (2, 1+m) … in utilities
    bound.npz          what a bound over all policies of a table is made of
    problem.npz        the problem's table, if it came from a file or from a table in memory
    frontier.json, dual.json, design.json    what a report draws besides (:mod:`~saddleback.runs.drawings_file`)
    trace.jsonl        what happened, one event a line (docs/callbacks.md)
    samples/           every sample that was drawn, with manifests of its own (:mod:`saddleback.sampling.executors.durable`)

The folder is filled in the work folder (:mod:`~saddleback.runs.work_folder`), each file synced and renamed, and gets its place
when all of it is on the disk: it is there whole or not at all. Loading trusts nothing: sizes, then hashes, then the contents.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, cast

import numpy as np
import scipy
from msgspec import Meta

from saddleback._version import __version__
from saddleback.errors import InputError, StorageError, require
from saddleback.files.disk import disk_faults_named, written_whole
from saddleback.files.json_file import Option, Record, Seal, Whole, check, read_json, read_record, sha256_of, write_json
from saddleback.files.npz import BUDGET, write_arrays
from saddleback.instances.table_file import save_table
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import problem_digest
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.policy_file import load_mixture, save_policy
from saddleback.runs.answer import Answer, AnswerRecord
from saddleback.runs.certificate_file import AboutRecord, CertificateRecord, certificate_fields
from saddleback.runs.drawings_file import MOST_BYTES, NOTHING_DRAWN, DesignRecord, Drawings, DualRecord, FrontierRecord
from saddleback.runs.evidence_file import BoundArrays, RolloutValues, load_bound, load_rollouts
from saddleback.runs.file_names import MANIFEST, SAMPLES, TRACE, FileName
from saddleback.runs.outputs import check_replaceable_run
from saddleback.runs.problem_record import MOST_BYTES as MOST_QUESTION
from saddleback.runs.problem_record import QuestionRecord
from saddleback.runs.unfinished import absent_run
from saddleback.runs.work_folder import Work, owned
from saddleback.simulators.table import Table

T = TypeVar("T")
SOLUTION: Final = "solution.json"
CERTIFICATE: Final = "certificate.json"
POLICY: Final = "policy.npz"
STATIONARY: Final = "stationary.npz"
QUESTION: Final = "problem.json"
ROLLOUTS: Final = "rollouts.npz"
BOUND: Final = "bound.npz"
TABLE: Final = "problem.npz"

_MOST_MANIFEST, _MOST_JSON = 1 << 20, 1 << 26  # bytes
_AGAIN = "run `saddleback solve ... --out` again"


class FileRecord(Record, frozen=True):
    """Size and hash of a file of the run."""

    bytes: Whole
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]


Files = dict[FileName, FileRecord]


class TargetRecord(Record, frozen=True):
    """The problem by name, with its settings; ``path`` is where its file was."""

    name: str
    settings: list[str]
    path: str | None = None


class KnownBy(Record, frozen=True):
    """How the problem is known again: by what it asks, by the law of a simulator of the zoo, by the code that a file names."""

    asks: str
    law: str | None = None
    sources: dict[str, str] | None = None


class ManifestRecord(Record, frozen=True):
    """``run.json``."""

    format: Literal["saddleback-run/1", "saddleback-run/2"]
    status: str
    target: TargetRecord
    request: dict[str, Option]
    seed: Whole
    versions: dict[str, str]
    files: Files
    problem: KnownBy | None = None
    seal: Seal | None = None

    def __post_init__(self) -> None:
        check(SOLUTION in self.files, f"files must name {SOLUTION}")
        known = self.format == "saddleback-run/1" or self.problem is not None
        check(known, "problem must say what the problem is known by")
        for name in ("delta", "epsilon"):  # on which a proof depends: true would be 1 to some, and no number to others
            numeric = self.request.get(name) is None or type(self.request[name]) in (int, float)
            check(numeric, f"request.{name} must be a number")


@dataclass(frozen=True)
class Origin:
    """Where the problem came from: a target with its settings, and for a table file its path and SHA-256 when it was read.

    ``path`` is where the target's file is, and ``model`` a table that is in no file of ours, to be kept. ``law`` and ``sources`` are those of :class:`KnownBy`, and ``question`` is that of a run under way
    (:class:`~saddleback.runs.work_folder.Request`).
    """

    target: str
    settings: Sequence[str] = ()
    table: Path | None = None
    sha256: str | None = None
    law: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    question: str | None = None
    path: str | None = None
    model: Table | None = None


@dataclass(frozen=True)
class Run:
    """A loaded run; ``table`` is the copy of the problem's table, None where the problem is built by name.

    ``question`` is what is known of the problem without its code, ``stationary`` one policy in the mixture's place, ``file``
    where a problem file was when the run was made.
    ``bound`` holds the arrays of ``bound.npz``, ``drawings`` what is there of frontier, dual and design, ``files`` the SHA-256 of every file of the run, and
    ``known_by`` what its problem is known by, unless an earlier version wrote it.
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
    known_by: KnownBy | None = None
    bound: BoundArrays | None = None
    status: str | None = None
    question: QuestionRecord | None = None
    stationary: TabularPolicy | None = None
    file: str | None = None


def check_place(path: str | os.PathLike[str], problem: CMDP, *, force: bool = False) -> Path:
    """The absolute path, if a run of the problem could be written there now: better known before a long solve."""
    path = Path(os.path.abspath(path))
    if not path.parent.is_dir():
        raise InputError("--out", "must lie in an existing folder", str(path), "make the folder first")
    if os.path.lexists(path):
        check_replaceable_run(path, force)
        here = os.path.samefile(path, os.curdir)
        require(not here, "--out", "must not be the folder that you are in", str(path), "name a folder in it")
    size = 8 * (problem.num_states or 0) * problem.num_actions
    if (problem.num_states is None or size > BUDGET) and problem.features is None:  # linear policies are small
        rule = f"must be left out where a policy is no table of at most {BUDGET / 1e9:g} GB"
        raise InputError("--out", rule, f"{problem.states}, {problem.num_actions} actions", "use the Python interface")
    return path


def save_run(
    path: str | os.PathLike[str],
    solution: Answer,
    origin: Origin,
    request: Mapping[str, Option],
    seed: int,
    *,
    force: bool = False,
    drawings: Drawings = NOTHING_DRAWN,
) -> None:
    """Write a run to ``path``, which must not exist unless it is empty, or a run and ``force`` is given."""
    with owned(path) as work:
        write_run(work, solution, origin, request, seed, force=force, drawings=drawings)


def write_run(
    work: Work,
    solution: Answer,
    origin: Origin,
    request: Mapping[str, Option],
    seed: int,
    *,
    force: bool = False,
    drawings: Drawings = NOTHING_DRAWN,
) -> None:
    """Write the run whose place is owned, with the trace and the samples of the work folder, which goes.

    ``drawings`` are the files that only a report reads.
    """
    path = check_place(work.place, solution.problem, force=force)
    trace = work.folder / TRACE
    with disk_faults_named(path, "check the folder and the disk"), work.filled() as folder:
        if os.path.lexists(trace):
            with written_whole(folder / TRACE) as copy:
                copy.write(trace.read_bytes())
        for name, data in drawings.files().items():
            write_json(folder / name, data)
        _fill(folder, solution, origin, request, seed)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read and check a run; every fault is an :class:`InputError` that names the file."""
    path = Path(path)
    if not os.path.isdir(path):  # which is False for names that the system does not take, where pathlib raises
        raise absent_run(path)
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
        load_rollouts(path / ROLLOUTS, certificate) if ROLLOUTS in manifest.files else None,
        Drawings(frontier, dual, there("design.json", DesignRecord)),
        {name: entry.sha256 for name, entry in manifest.files.items()},
        manifest.problem,
        load_bound(path / BOUND) if BOUND in manifest.files else None,
        manifest.status,
        there(QUESTION, QuestionRecord, MOST_QUESTION),
        _load_stationary(path / STATIONARY) if STATIONARY in manifest.files else None,
        manifest.target.path,
    )


def without_policy(run: Run) -> InputError:
    """What to say to whoever wants the policy of a run that has none."""
    remedy = "solve it with more samples"
    if run.solution.status == "infeasible":
        remedy = "no policy meets the constraints, which is proved: relax a threshold"
    return InputError("RUN", "must hold a policy", f"{run.path}, which has none", remedy)


def _load_stationary(path: Path) -> TabularPolicy:
    (policy, *others) = load_mixture(path).members
    if others or not isinstance(policy, TabularPolicy):
        raise InputError(str(path), "must hold one table", f"{1 + len(others)} policies", _AGAIN)
    return policy


def verify_run(place: str | os.PathLike[str], *, contents: bool = True) -> Run:
    """Read a finished run from beginning to end, its samples too; the first damaged file is named by an :class:`InputError`.

    Without ``contents`` the shards of the samples are not read, only what is said of them.
    """
    from saddleback.sampling.store.sample_store import verify_store  # nobody else here needs the samples

    run = load_run(place)
    home = run.path / SAMPLES
    for folder in sorted(home.iterdir()) if home.is_dir() else ():
        for fault in verify_store(folder, contents=contents).damage[:1]:
            remedy = (
                "the answer and its proof are sound; run `saddleback solve ... --out` again to have its samples too"
            )
            raise InputError(str(folder), "must hold the samples of the run, unchanged", fault, remedy)
    return run


def stored_answer(run: Run) -> dict[str, Any]:
    """What ``solve --json`` printed of the answer and its proof, as it is kept in the folder."""
    answer: dict[str, Any] = read_json(run.path / SOLUTION, _MOST_JSON, _AGAIN)
    proof = read_json(run.path / CERTIFICATE, _MOST_JSON, _AGAIN) if run.certificate is not None else {}
    return {**answer, "certificate": {name: proof[name] for name in proof if name not in ("problem", "about")} or None}


def _fill(folder: Path, solution: Answer, origin: Origin, request: Mapping[str, Option], seed: int) -> None:
    """All files of the run, the manifest last."""
    write_json(folder / SOLUTION, {k: v for k, v in solution.to_json().items() if k != "certificate"})
    if solution.mixture is not None:
        save_policy(solution.mixture, solution.problem, folder / POLICY)
    if solution.stationary is not None:
        alone = MixturePolicy((solution.stationary.policy,), np.ones(1))
        save_policy(alone, solution.problem, folder / STATIONARY)
    linear = solution.mixture is not None and solution.problem.num_states is None
    if (question := QuestionRecord.of(solution.problem, linear)) is not None:
        write_json(folder / QUESTION, question)
    if (proof := solution.certificate) is not None:
        for name, arrays in proof.arrays.items():
            write_arrays(folder / f"{name}.npz", arrays)
        names = {"policy": POLICY, "rollouts": ROLLOUTS, "bound": BOUND}
        named = {word: sha256_of(folder / name) for word, name in names.items() if (folder / name).is_file()}
        about = AboutRecord(problem_digest(solution.problem), **named)
        write_json(folder / CERTIFICATE, certificate_fields(proof, solution.problem, about))
    if origin.table is not None:
        with open(origin.table, "rb") as source, written_whole(folder / TABLE) as copy:
            shutil.copyfileobj(source, copy)
        if sha256_of(folder / TABLE) != origin.sha256:
            raise StorageError(f"`{origin.table}` was changed while the run was going on; run it again.")
    elif origin.model is not None:
        save_table(origin.model, folder / TABLE)
    files = {p.name: FileRecord(p.stat().st_size, sha256_of(p)) for p in sorted(folder.iterdir())}
    versions = {"saddleback": __version__, "python": platform.python_version()}
    versions |= {"numpy": np.__version__, "scipy": scipy.__version__}
    target = TargetRecord(origin.target, list(origin.settings), origin.path)
    status, asked = solution.status.value, dict(request)
    known = KnownBy(problem_digest(solution.problem), origin.law, dict(origin.sources) or None)
    manifest = ManifestRecord("saddleback-run/2", status, target, asked, seed, versions, cast(Files, files), known)
    write_json(folder / MANIFEST, manifest)


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
