"""A run under way: what was asked and what has been drawn, beside the place where the finished run will be.

    RUN.work/request.json     the verb with everything that the result depends on
    RUN.work/samples/         every sample so far (:mod:`saddleback.sampling.executors.durable`)
    RUN.work/trace.jsonl      what has happened since the run was last taken up (:mod:`saddleback.reports.listeners`)

Written before the first simulator call. A run that was killed is taken up again from here; when it is finished its samples
move into the run's folder and the work folder goes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import sync_folder
from saddleback.files.json_file import Int64, Record, Whole, as_record, read_record, write_json

REQUEST, SAMPLES, TRACE = "request.json", "samples", "trace.jsonl"


class SampleOptions(Record, frozen=True):
    """What ``sample`` keeps of its options."""

    rounds: Int64
    seed: Whole


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


class SolveOptions(Record, frozen=True):
    """What ``solve`` keeps of its options."""

    budget: Budget
    parts: Parts


class Request(Record, frozen=True):
    """``request.json``: the verb with everything that the result depends on; it may come from a stranger."""

    format: Literal["saddleback-work/1"]
    verb: Literal["solve", "sample"]
    target: str
    settings: list[str]
    options: dict[str, Any]


_OPTIONS: dict[str, type[Record]] = {"solve": SolveOptions, "sample": SampleOptions}
_MOST_BYTES = 1 << 20


def work_folder(place: Path) -> Path:
    """Where a run that will be at ``place`` is under way."""
    return place.with_name(f"{place.name}.work")


def begin_work(
    place: Path, verb: Literal["solve", "sample"], target: str, settings: list[str], options: Mapping[str, Any]
) -> Path:
    """Make the work folder and write the request; the folder for the samples is returned.

    Work that is already under way with the same request is taken up; with another it is refused.
    """
    folder = work_folder(place)
    as_record(options, _OPTIONS[verb], "options", "give finite numbers of ordinary size")
    request = Request("saddleback-work/1", verb, target, settings, dict(options))
    if os.path.exists(folder) and not _is_empty(folder):  # False for a name too long, where pathlib raises
        found = load_work(place)
        for name in request.__struct_fields__:
            was, value = getattr(found, name), getattr(request, name)
            if was != value:
                rule = f"must be a new folder, or one where the same is under way ({name}: {was})"
                remedy = f"finish that one with `saddleback resume {place}`, or remove {folder}"
                raise InputError("--out", rule, value, remedy)
        return folder / SAMPLES
    try:
        os.makedirs(folder, exist_ok=True)
        write_json(folder / REQUEST, request)
        sync_folder(folder.parent)
    except OSError as error:
        raise StorageError(f"`{folder}` could not be written: {error}; choose another place.") from error
    return folder / SAMPLES


def load_work(place: Path) -> Request:
    """The request of a run under way."""
    folder = work_folder(place)
    if not os.path.isdir(folder):
        raise InputError("RUN", "must be a run under way", f"{place}: there is no {folder.name}", "check the name")
    path, remedy = folder / REQUEST, "start it again in a new folder"
    request = read_record(path, Request, _MOST_BYTES, remedy)
    as_record(request.options, _OPTIONS[request.verb], f"{path}.options", remedy)
    return request


def finish_work(place: Path) -> None:
    """The run at ``place`` is written: its samples move in, and the work folder goes."""
    folder = work_folder(place)
    try:
        if (folder / SAMPLES).is_dir() and not (place / SAMPLES).exists():
            os.rename(folder / SAMPLES, place / SAMPLES)
            sync_folder(place)
        for path in folder.iterdir():
            if path.name != REQUEST:  # the last to go: while it is there it is known which run this was
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        (folder / REQUEST).unlink(missing_ok=True)
        folder.rmdir()
        sync_folder(place.parent)
    except OSError as error:
        raise StorageError(f"`{folder}` could not be put away: {error}; the run itself is written.") from error


def abandon_work(place: Path) -> None:
    """A request that turned out to be impossible leaves nothing behind, unless samples have been drawn for it."""
    folder = work_folder(place)
    if folder.is_dir() and not any((folder / SAMPLES).glob("*/*.npy")):
        shutil.rmtree(folder, ignore_errors=True)


def nothing_left(place: Path) -> bool:
    """Whether the work folder holds no samples while the run's folder does: it has been put away, all but the folder."""
    folder = work_folder(place)
    return _is_empty(folder) or (not (folder / SAMPLES).exists() and (place / SAMPLES).is_dir())


def _is_empty(folder: Path) -> bool:
    return os.path.isdir(folder) and not os.listdir(folder)
