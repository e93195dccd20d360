"""Places that the user names for us to write to: a policy, a page, a trace; a run or a folder of samples.

Nothing that somebody else wrote is overwritten: a file that is there must be one of ours, known by what it begins with, or
the user says so (``force``). Nothing goes into the folder of a run or of samples: what is there belongs to its manifest. Two
places are the same if they are so once the links on the way there are followed.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from saddleback.errors import InputError, StorageError, require
from saddleback.files.disk import PARTIAL, partial_of
from saddleback.files.trees import refuse_strangers
from saddleback.runs.file_names import MANIFEST, REQUEST, RUN, SAMPLES

_STORE = "store.json"
_OF_A_FOLDER = (MANIFEST, REQUEST, _STORE)  # each is the mark of a folder of ours
_MOST_READ = 1 << 13
Ours = Callable[[Path], bool]


def check_output(
    name: str,
    path: str | os.PathLike[str],
    ours: Ours,
    *,
    force: bool = False,
    besides: Sequence[Path] = (),
) -> Path:
    """The absolute path, if a file may be written there; better known before a long solve.

    name      of the option, for the message
    ours      whether a file that is there is one of ours
    force     let it be replaced whatever it is
    besides   other places that the same command writes to
    """
    place = Path(os.path.abspath(path))
    rule = "must lie in an existing folder"
    require(bool(place.name) and place.parent.is_dir(), name, rule, str(path), "make the folder first")
    rule = f"must not end with {PARTIAL}, as files do that are not yet whole"
    require(not place.name.endswith(PARTIAL), name, rule, str(path), "choose another name")
    refuse_inside(name, place)
    refuse_taken(name, place, besides)
    length = len(os.fsencode(partial_of(place).name))
    most = os.pathconf(place.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255  # characters, on Windows
    rule = f"must have a name of at most {most - length + len(os.fsencode(place.name))} bytes"
    require(length <= most, name, rule, f"{len(os.fsencode(place.name))}", "choose a shorter name")
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise StorageError(f"`{place}` could not be written: {place.parent} is read-only; choose another place.")
    _check_replaceable(name, place, ours, force)
    return place


def refuse_inside(name: str, place: Path) -> None:
    """Refuse a place within a run, a work folder or samples; ``name`` is that of the option."""
    home = _real(place).parent
    for folder in (home, *home.parents):
        if mark := _mark_of(folder):
            rule, found = (
                "must lie outside the folders of runs and samples",
                f"{place}, in {folder}, which holds {mark}",
            )
            raise InputError(name, rule, found, "choose another folder")


def refuse_taken(name: str, place: Path, besides: Sequence[Path]) -> None:
    """Refuse a place that is one of the others or lies in it."""
    mine = _real(place)
    for other in besides:
        rule = f"must not be another place that the same command writes to, {other}"
        apart = _real(other) not in (mine, *mine.parents)
        require(apart, name, rule, str(place), "choose another name")


def refuse_parts_of_ours(name: str, place: Path) -> None:
    """Refuse a folder that is the work folder of a run, or holds its samples: its owner is another."""
    mark = _mark_of(_real(place))
    if mark and mark != MANIFEST:
        rule, found = "must be a folder of its own", f"{place}, which belongs to a run or to samples: it holds {mark}"
        raise InputError(name, rule, found, "choose another folder")


def _real(place: Path) -> Path:
    """The place, with the links on the way there followed, but not itself."""
    return Path(os.path.realpath(place.parent), place.name)


def _mark_of(folder: Path) -> str:
    """What tells a folder of ours; nothing if it is none."""
    for mark in _OF_A_FOLDER:
        if os.path.isfile(folder / mark):  # which is False for names that the system does not take
            return mark
    stores = folder.glob(f"*/{_STORE}") if folder.name == SAMPLES else iter(())
    return next((str(store.relative_to(folder)) for store in stores), "")


def _check_replaceable(name: str, place: Path, ours: Ours, force: bool) -> None:
    try:
        mode = os.lstat(place).st_mode
    except FileNotFoundError:
        return
    regular = stat.S_ISREG(mode)
    require(regular, name, "must be a plain file, or a new one", f"{place}, something else", "choose another name")
    try:
        mine = force or ours(place)
    except OSError as error:
        raise StorageError(f"`{place}` could not be read: {error}; choose another name.") from error
    rule, found = "must be a new file, or one of the kind that is written here", f"{place}, which holds something else"
    require(mine, name, rule, found, "choose another name, or add --force")


def check_replaceable_run(path: Path, force: bool) -> None:
    """Only an empty folder, or with ``force`` one that holds a run and nothing else, may be replaced."""
    if path.is_symlink() or not path.is_dir():
        raise InputError("--out", "must be a new folder", f"{path}, which is a file", "choose another name")
    try:
        found = {p.name for p in path.iterdir()}
    except OSError as error:
        raise StorageError(f"`{path}` could not be looked into: {error}; choose another place.") from error
    if not found:
        return
    refuse_strangers("--out", path, RUN)
    if MANIFEST not in found:
        held = f"{path}, which holds {min(found)}"
        raise InputError("--out", "must be a new folder, or a run to replace", held, "choose another name")
    if not force:
        remedy = "choose another name, or add --force"
        raise InputError("--out", "must be a new folder", f"{path}, which holds a run", remedy)


def is_policy(path: Path) -> bool:
    """Whether a file is a stored policy, or empty."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return path.stat().st_size == 0
    return "weights.npy" in names and bool(names & {"probabilities.npy", "theta.npy"})


def starts_with(mark: bytes) -> Ours:
    """Whether a file begins like one of ours, or is empty."""

    def ours(path: Path) -> bool:
        start = _start_of(path)
        return not start or start.startswith(mark)

    return ours


def is_page(path: Path) -> bool:
    """Whether a file is a page that we made, or empty."""
    start = _start_of(path)
    return not start or (
        start.startswith(b"<!doctype html>") and b'<meta name="generator" content="saddleback ' in start
    )


def is_trace(path: Path) -> bool:
    """Whether a file is a trace, one event a line, or empty."""
    start = _start_of(path)
    return not start or start.startswith(b'{"event": "')


def _start_of(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(_MOST_READ)
