"""The names of everything that is written for a run, in its folder and in its work folder, and of nothing else.

    RUN/                    a finished run (:mod:`saddleback.runs.run_folder`)
    RUN.work/               a run under way (:mod:`saddleback.runs.work_folder`)

A folder is taken up, replaced or removed only if all that it holds has one of these names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal, get_args

from saddleback.files.disk import LOCK, PARTIAL
from saddleback.files.trees import Tree

MANIFEST: Final = "run.json"
SAMPLES, TRACE, REQUEST = "samples", "trace.jsonl", "request.json"
FINISHED, REPLACED = "finished", "replaced"
"""In the work folder: a run that gets its place when all of it is there, and the one that was there before."""

FileName = Literal[
    "solution.json",
    "certificate.json",
    "policy.npz",
    "stationary.npz",
    "problem.json",
    "rollouts.npz",
    "bound.npz",
    "problem.npz",
    "trace.jsonl",
    "frontier.json",
    "dual.json",
    "design.json",
]


def _any_of(*names: str) -> str:
    return "|".join(map(re.escape, names))


_HALF = re.escape(PARTIAL)
_STORE: Tree = {rf"(store\.json|manifest\.jsonl|\d{{6,}}\.npy)({_HALF})?": None, re.escape(LOCK): None}
STORES: Tree = {r"(samples|tapes)-[0-9a-z-]+": _STORE}
"""What the folder of the samples holds."""

RUN: Tree = {_any_of(MANIFEST, *get_args(FileName)): None, SAMPLES: STORES}
_TOKEN = r"(\.[0-9a-f]{8})?"  # in names that earlier versions left behind
_HALVES: Tree = {rf"\.({_any_of(MANIFEST, *get_args(FileName))}){_TOKEN}{_HALF}": None}
FILLED: Tree = {**RUN, **_HALVES}
"""A run that is not finished."""

LITTER: Tree = {
    rf"\.{re.escape(REQUEST)}{_TOKEN}{_HALF}": None,
    re.escape(LOCK): None,
    FINISHED: FILLED,
    REPLACED: RUN,
}
"""What a kill may leave in a work folder before there is a request in it, or after."""

WORK: Tree = {**LITTER, _any_of(REQUEST, TRACE, f".{TRACE}{PARTIAL}"): None, SAMPLES: STORES}


def left_beside(place: Path) -> list[Path]:
    """Folders that an earlier version, killed while it put a run in its place, left beside it."""
    name = re.compile(rf"\.{re.escape(place.name)}\.[0-9a-f]{{8}}(\.old|{_HALF})")
    try:
        return sorted(p for p in place.parent.iterdir() if name.fullmatch(p.name) and p.is_dir() and not p.is_symlink())
    except OSError:  # there is no such folder, or it may not be looked into
        return []
