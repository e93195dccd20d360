"""A run's policy for other programs: files that name states and actions, say what the policy is worth, and need nothing of ours.

    csv      a row for each action that a state may get: for spreadsheets and look-up tables
    json     the same, or θ with the features as a list of operations, as one object
    npz      arrays, which :func:`saddleback.load_policy` reads
    onnx     a model of state to action and probabilities, in float64; needs the package onnx to be written
    python   one file that needs numpy only and repeats `saddleback act`, episode by episode

One stationary policy is exported where there is one, otherwise the mixture, of which one member is drawn for an episode.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from saddleback.errors import InputError
from saddleback.files.json_file import short
from saddleback.reports.exports import onnx_file, python_file, tables
from saddleback.reports.exports.policy import ExportedPolicy, Points, exported
from saddleback.runs.outputs import check_output, is_policy, starts_with
from saddleback.runs.run_folder import load_run

Write = Callable[[ExportedPolicy, Path, Points], None]

BY_NAME: dict[str, tuple[str, Write, Callable[[Path], bool]]] = {
    "csv": (".csv", tables.write_csv, tables.is_csv),
    "json": (".json", tables.write_json, starts_with(tables.JSON_START)),
    "npz": (".npz", tables.write_npz, is_policy),
    "onnx": (".onnx", onnx_file.write_onnx, starts_with(onnx_file.START)),
    "python": (".py", python_file.write_python, starts_with(python_file.START)),
}
"""The ending of a file, who writes it, and whether a file is one of ours."""


def export_place(
    run: str | os.PathLike[str], to: str, out: str | os.PathLike[str] | None, *, force: bool = False
) -> Path:
    """Where an export goes, if it may be written there: better known before anything is drawn."""
    if to not in BY_NAME:
        raise InputError("--to", f"must be one of {', '.join(BY_NAME)}", short(to), "choose one of them")
    ending, _, ours = BY_NAME[to]
    return check_output("--out", f"{os.path.abspath(run)}_policy{ending}" if out is None else out, ours, force=force)


def write_export(policy: ExportedPolicy, to: str, place: Path, points: Points | None = None) -> None:
    """Write a policy to a place that :func:`export_place` has given; ``points`` are the states of a csv over a box."""
    BY_NAME[to][1](policy, place, points or Points())


def export(
    run: str | os.PathLike[str],
    to: str = "python",
    out: str | os.PathLike[str] | None = None,
    *,
    which: str | None = None,
    problem: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Path:
    """Write the policy of a stored run for other programs, and return the file's path.

    Parameters
    ----------
    run      a folder that ``solve(..., out=...)`` or ``saddleback solve --out`` wrote
    to       csv, json, npz, onnx or python
    out      the file to write; RUN_policy with the format's ending if None; an export of ours that is there is replaced
    which    "stationary" or "mixture"; by default one stationary policy where there is one, else the mixture
    problem  the problem file of the run, for a policy whose features are code, where it is not where it was
    force    let ``out`` replace a file of another kind
    """
    place = export_place(run, to, out, force=force)
    write_export(exported(load_run(run), which, problem), to, place)
    return place
