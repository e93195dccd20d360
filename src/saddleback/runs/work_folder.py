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
from typing import Any

from saddleback.errors import InputError, StorageError
from saddleback.files.disk import sync_folder
from saddleback.files.json_file import Maybe, check_shape, read_json, short, write_json

FORMAT = "saddleback-work/1"
REQUEST, SAMPLES, TRACE = "request.json", "samples", "trace.jsonl"

_SHAPE = {"format": "text", "verb": "text", "target": "text", "settings": ["text"], "options": "object"}
_NAME = Maybe("text")
_OPTIONS: dict[str, Any] = {
    "sample": {"rounds": "integer", "seed": "whole"},
    "solve": {
        "budget": {
            "samples?": "integer",
            "certificate?": "integer",
            "epsilon?": "number",
            "max_samples?": "integer",
            "from?": "text",
            "from_sha256?": "text",
        },
        "parts": {
            "feasibility": "text",
            "mode": "text",
            "delta": "number",
            "seed": "whole",
            "buffers": "integer",
            "dual": _NAME,
            "solver": _NAME,
            "evaluator": _NAME,
            "design": _NAME,
            "allocation": _NAME,
            "iterations?": "integer",
            "error?": Maybe("number"),
            "batch_size?": Maybe("integer"),
            "resolution?": Maybe("integer"),
        },
    },
}
"""What each verb keeps of its options: a request may come from a stranger."""

_MOST_BYTES = 1 << 20


def work_folder(place: Path) -> Path:
    """Where a run that will be at ``place`` is under way."""
    return place.with_name(f"{place.name}.work")


def begin_work(place: Path, verb: str, target: str, settings: list[str], options: Mapping[str, Any]) -> Path:
    """Make the work folder and write the request; the folder for the samples is returned.

    Work that is already under way with the same request is taken up; with another it is refused.
    """
    folder = work_folder(place)
    check_shape(dict(options), _OPTIONS[verb], "options", "give finite numbers of ordinary size")
    request = {"format": FORMAT, "verb": verb, "target": target, "settings": settings, "options": dict(options)}
    if os.path.exists(folder) and not _is_empty(folder):  # False for a name too long, where pathlib raises
        found = load_work(place)
        for name, value in request.items():
            if found[name] != value:
                raise InputError(
                    "--out",
                    f"must be a new folder, or one where the same is under way ({name}: {found[name]})",
                    value,
                    f"finish that one with `saddleback resume {place}`, or remove {folder}",
                )
        return folder / SAMPLES
    try:
        os.makedirs(folder, exist_ok=True)
        write_json(folder / REQUEST, request)
        sync_folder(folder.parent)
    except OSError as error:
        raise StorageError(f"`{folder}` could not be written: {error}; choose another place.") from error
    return folder / SAMPLES


def load_work(place: Path) -> dict[str, Any]:
    """The request of a run under way."""
    folder = work_folder(place)
    if not os.path.isdir(folder):
        raise InputError("RUN", "must be a run under way", f"{place}: there is no {folder.name}", "check the name")
    remedy = "start it again in a new folder"
    request = read_json(folder / REQUEST, _MOST_BYTES, remedy)
    check_shape(request, _SHAPE, str(folder / REQUEST), remedy)
    if request["format"] != FORMAT:
        raise InputError(str(folder / REQUEST), f"must have the format {FORMAT!r}", short(request["format"]), remedy)
    verb = request["verb"]
    if verb not in _OPTIONS:
        raise InputError(f"{folder / REQUEST}.verb", f"must be {' or '.join(_OPTIONS)}", short(verb), remedy)
    check_shape(request["options"], _OPTIONS[verb], f"{folder / REQUEST}.options", remedy)
    return dict(request)


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
