"""A run under way: what was asked and what has been drawn, beside the place where the finished run will be.

    RUN.work/lock             held by the one process that works on the run (:class:`saddleback.files.disk.Lock`)
    RUN.work/request.json     the verb with everything that the result depends on
    RUN.work/samples/         every sample so far (:mod:`saddleback.sampling.executors.durable`)
    RUN.work/trace.jsonl      what has happened since the run was last taken up
    RUN.work/finished/, replaced/    the run while its files are written; the one that it replaces until then

The request is written before the first simulator call. A run that was killed is taken up again from here; when all of it is
written, samples and files get their place by one rename, and the work folder goes.

Whoever works on a run holds the lock from before the first look at the work folder until the folder has gone; whoever does
not hold it touches nothing. The folder is removed by its owner: lock first, then the folder if it is empty, so that one who
comes in between either finds the folder gone and makes it anew, or has made a new lock in it, and keeps it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from saddleback.errors import InputError, StorageError, require
from saddleback.files.disk import LOCK, PARTIAL, Disk, Lock, disk_faults_named, partial_of
from saddleback.files.json_file import Int64, Record, Seal, Whole, as_record, read_record, write_json
from saddleback.files.trees import Tree, refuse_strangers, remove_tree
from saddleback.runs.file_names import (
    FILLED,
    FINISHED,
    LITTER,
    REPLACED,
    REQUEST,
    RUN,
    SAMPLES,
    STORES,
    TRACE,
    WORK,
    left_beside,
)
from saddleback.runs.outputs import refuse_inside, refuse_parts_of_ours
from saddleback.runs.request_words import Asked, differences


class SampleOptions(Record, frozen=True):
    """What ``sample`` keeps of its options."""

    rounds: Int64
    seed: Whole
    samples: Int64 | None = None


class Budget(Record, frozen=True, rename={"stored": "from"}):
    """A number of samples, an accuracy, or samples that are there already."""

    samples: Int64 | None = None
    certificate: Int64 | None = None
    epsilon: float | None = None
    max_samples: Int64 | None = None
    stored: str | None = None
    from_sha256: str | None = None


class Parts(Record, frozen=True):
    """All else that a solve's result depends on; the last four do not go with an accuracy."""

    feasibility: str
    mode: str
    delta: float
    seed: int  # its range is checked with the settings
    dual: str | None
    solver: str | None
    evaluator: str | None
    design: str | None
    buffers: Int64
    allocation: str | None
    iterations: Int64 = 1000
    error: float | None = None
    batch_size: Int64 | None = None
    resolution: Int64 | None = -1
    purpose: str | None = None


class SolveOptions(Record, frozen=True):
    """What ``solve`` keeps of its options."""

    budget: Budget
    parts: Parts


class Request(Record, frozen=True):
    """``request.json``: the verb with everything that the result depends on, and where its file is; it may come from a stranger.

    ``question`` is the SHA-256 of what a problem file says but for its ranges, which may be mended while a run is under way.
    """

    format: Literal["saddleback-work/1", "saddleback-work/2"]
    verb: Literal["solve", "sample"]
    target: str
    settings: list[str]
    options: dict[str, Any]
    question: str | None = None
    path: str | None = None
    seal: Seal | None = None


_OPTIONS: dict[str, type[Record]] = {"solve": SolveOptions, "sample": SampleOptions}
_MOST_BYTES = 1 << 20
_LONGEST = f"/{FINISHED}/{SAMPLES}/tapes-{1 << 64}-{1 << 64}/000000000.npy.partial"  # of the paths in a work folder


def work_folder(place: Path) -> Path:
    """Where a run that will be at ``place`` is under way."""
    return place.parent / f"{place.name}.work"


def load_work(place: Path) -> Request:
    """The request of a run under way."""
    folder = work_folder(place)
    path, remedy = folder / REQUEST, "start it again in a new folder"
    found, rule = f"{place}: there is no {folder.name}/{REQUEST}", "must be a run under way"
    require(os.path.lexists(path), "RUN", rule, found, "solve it anew")
    request = read_record(path, Request, _MOST_BYTES, remedy)
    as_record(request.options, _OPTIONS[request.verb], f"{path}.options", remedy)
    return request


def _asked(request: Request, settings: list[str]) -> Asked:
    options = as_record(request.options, _OPTIONS[request.verb], REQUEST, "start it again in a new folder")
    return Asked(request.verb, request.target, settings, options)


@contextmanager
def owned(place: str | os.PathLike[str]) -> Iterator[Work]:
    """The work folder of the run at ``place``, owned by this process until the end of the ``with`` block.

    What a kill left is put right first. A folder that holds anything that we did not write is refused and left as it is. At
    the end a folder without a request goes.
    """
    path = Path(os.path.abspath(place))
    _check_place(path)
    with disk_faults_named(work_folder(path), "choose another place"):
        work = Work(path, _lock(work_folder(path)))
        try:
            work._take_up()
        except BaseException:
            work._leave()
            raise
    try:
        yield work
    finally:
        work._leave()


class Work:
    """The place of a run and its work ``folder``, as long as this process owns them; made by :func:`owned`."""

    def __init__(self, place: Path, lock: Lock):
        self.place, self.folder = place, work_folder(place)
        self._lock, self._disk, self._pid = lock, Disk(), os.getpid()
        self._made: dict[Path, Tree] | None = None  # of a request written here: folders that were not there

    @property
    def _owns(self) -> bool:
        """Whether the folder is still ours to change: this is no child, and nobody has put another in its place."""
        return self._pid == os.getpid() and not self._lock.is_replaced(self.folder / LOCK)

    @property
    def under_way(self) -> bool:
        """Whether there is a request."""
        return os.path.lexists(self.folder / REQUEST)

    def begin(
        self,
        verb: Literal["solve", "sample"],
        target: str,
        settings: list[str],
        options: Mapping[str, Any],
        question: str | None = None,
        path: str | None = None,
    ) -> Path:
        """Write the request, with where its file is (``path``); the folder for the samples is returned.

        Work that is already under way with the same request is taken up; with another it is refused. A problem file that
        asks the same ``question`` may declare other ranges: samples do not depend on them.
        """
        as_record(options, _OPTIONS[verb], "options", "give finite numbers of ordinary size")
        request = Request("saddleback-work/2", verb, target, settings, dict(options), question, path)
        samples, free = self.folder / SAMPLES, os.path.isdir(self.place) or not os.path.lexists(self.place)
        require(free, "--out", "must be a folder, or a new one", f"{self.place}, a file", "choose another name")
        if self.under_way:
            found = load_work(self.place)
            mended = question is not None and question == found.question
            was, now = (_asked(r, settings if mended else r.settings) for r in (found, request))
            before, after = differences(was, now)
            rule = f"must be a new folder, or one where the same is under way: this was started with {before}"
            remedy = f"finish that one with `saddleback resume {self.place}`, or remove {self.folder}"
            require(was == now, "--out", rule, after, remedy)
            if found.settings != settings:
                self._write(request)
            return samples
        made = {samples: STORES} if verb == "solve" else {self.place: RUN}
        self._made = {folder: tree for folder, tree in made.items() if not os.path.lexists(folder)}
        self._write(request)
        return samples

    def _write(self, request: Request) -> None:
        with disk_faults_named(self.folder, "choose another place"):
            write_json(self.folder / REQUEST, request)
            self._disk.sync_folder(self.folder.parent)

    def abandon(self) -> None:
        """A request of this process that turned out to be impossible leaves nothing behind, unless samples were drawn for it."""
        if self._made is None or not self._owns or any(any(p.glob("**/*.npy")) for p in self._made):
            return
        with suppress(OSError, InputError):
            for path, tree in self._made.items():
                remove_tree(path, tree)
            self._empty()

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A folder for the files of the run; at the end of the block it gets its place, with its samples, and the work is done.

        A failure leaves things as they were.
        """
        finished, samples, disk = self.folder / FINISHED, self.folder / SAMPLES, self._disk
        if not self._owns:
            raise StorageError(f"`{self.folder}` was moved away, and is another's now; resume the run where it is.")
        try:
            disk.make_folder(finished)
            self._sync(self.folder)  # or a power cut could take it away, and the samples that move into it
            yield finished
            if os.path.lexists(samples):
                disk.rename(samples, finished / SAMPLES)
                self._sync(finished, self.folder)
            if os.path.lexists(self.place):
                disk.rename(self.place, self.folder / REPLACED)
                self._sync(self.folder, self.place.parent)
            disk.rename(finished, self.place)
            self._sync(self.folder, self.place.parent)
        except BaseException:
            with suppress(OSError):
                self._undo()
            raise
        self.finish()

    def _sync(self, *folders: Path) -> None:
        for folder in folders:
            self._disk.sync_folder(folder)

    def finish(self) -> None:
        """What was asked for is in its place: what is left of the work goes, the request last."""
        try:
            self._empty()
        except OSError as error:
            raise StorageError(f"`{self.folder}` could not be put away: {error}; the run itself is written.") from error

    def _take_up(self) -> None:
        """See that all is ours, and put right what a kill left."""
        refuse_strangers("--out", self.folder, WORK if self.under_way else LITTER)
        if self.under_way:
            load_work(self.place)
        self._undo()

    def _undo(self) -> None:
        """Samples and the run that was to be replaced go back where they were; what else a kill left goes."""
        finished, replaced, disk = self.folder / FINISHED, self.folder / REPLACED, self._disk
        if not self._owns:
            return
        if os.path.lexists(finished / SAMPLES) and not os.path.lexists(self.folder / SAMPLES):
            disk.rename(finished / SAMPLES, self.folder / SAMPLES)
            disk.sync_folder(self.folder)
        beside = left_beside(self.place)
        for old in (replaced, *(p for p in beside if p.suffix == ".old")):
            if os.path.lexists(old) and not os.path.lexists(self.place):
                disk.rename(old, self.place)
                disk.sync_folder(self.place.parent)
        self._sweep()
        for path in beside:
            with suppress(InputError):  # somebody has put something there
                remove_tree(path, FILLED)

    def _sweep(self) -> None:
        """Remove all but lock, request, trace and samples."""
        remove_tree(self.folder / FINISHED, {name: inner for name, inner in FILLED.items() if name != SAMPLES})
        remove_tree(self.folder / REPLACED, RUN)
        for path in self.folder.iterdir():
            if path.name.endswith(PARTIAL):
                self._disk.remove(path)

    def _empty(self) -> None:
        """Remove all but the lock, the request last: while it is there it is known which run this was."""
        self._sweep()
        for name in (TRACE, REQUEST):
            if os.path.lexists(self.folder / name):
                self._disk.remove(self.folder / name)
                self._disk.sync_folder(self.folder)
        self._made = None

    def _leave(self) -> None:
        """Let the next one in; a folder without a request goes."""
        mine, done = self._owns, not self.under_way
        self._lock.release(remove=self.folder / LOCK if mine else None)
        with suppress(OSError):
            if mine and done:
                self._disk.remove_folder(self.folder)


def _lock(folder: Path) -> Lock:
    """The lock of a work folder, which is made if it is not there."""
    while True:
        made = not os.path.lexists(folder)
        with suppress(FileExistsError):
            Disk().make_folder(folder)
        try:
            refuse_strangers("--out", folder, WORK)
            return Lock(folder / LOCK, "wait until it is done, or choose another place")
        except FileNotFoundError:  # its owner has just put it away
            continue
        except BaseException:
            if made:
                with suppress(OSError):  # by now it may be another's
                    Disk().remove_folder(folder)
            raise


def _check_place(place: Path) -> None:
    """Refuse a place within another run, and one whose files would have names that the system does not take."""
    if not place.name or not place.parent.is_dir():
        raise InputError("--out", "must lie in an existing folder", str(place), "make the folder first")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise StorageError(f"`{place}` could not be written: {place.parent} is read-only; choose another place.")
    refuse_inside("--out", place)
    refuse_parts_of_ours("--out", place)
    longest = {
        "PC_NAME_MAX": partial_of(Path(f"{place.name}.html")).name,
        "PC_PATH_MAX": f"{work_folder(place)}{_LONGEST}",
    }
    for limit, name in longest.items():
        try:
            most = os.pathconf(place.parent, limit)
        except (AttributeError, OSError, ValueError):  # a system or a file system that does not say
            continue
        given, extra = place.name if limit == "PC_NAME_MAX" else str(place), len(os.fsencode(name))
        most -= extra - len(os.fsencode(given))
        rule = f"must be at most {most:,} bytes long, since files that are made with it have longer names"
        require(len(os.fsencode(given)) <= most, "--out", rule, f"{len(os.fsencode(given)):,}", "choose a shorter name")
