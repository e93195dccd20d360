"""Folders of ours: which names may be in them, so that what somebody else put there is never followed, written to or removed.

A tree says what a folder may hold: regular expressions of names, each with the tree of a folder of that name, or None for a
plain file. Whatever else is there is a *stranger*: another name, a link, a pipe, a folder where a file should be.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from saddleback.errors import InputError
from saddleback.files.disk import Disk

Tree = Mapping[str, Any]  # of trees and None


def refuse_strangers(name: str, folder: Path, tree: Tree) -> None:
    """Refuse a folder that is a link, or that holds anything but what the tree says; ``name`` is what the message begins with.

    A folder that is being emptied by another process is no fault.
    """
    for path, kind in _walk(folder, tree):
        if kind == "stranger":
            what = "a link" if os.path.islink(path) else "something else"
            found = f"{path}, {what}"
            raise InputError(
                name, f"must be free for our own files in {folder}", found, "move it, or choose another name"
            )


def remove_tree(folder: Path, tree: Tree) -> None:
    """Remove a folder of ours, if it is there; one that holds anything else is refused before anything is removed."""
    refuse_strangers(str(folder), folder, tree)
    disk, folders = Disk(), []
    for path, kind in _walk(folder, tree):
        folders.append(path) if kind == "folder" else disk.remove(path)
    for path in reversed(folders):
        disk.remove_folder(path)


def _walk(folder: Path, tree: Tree | None) -> Iterator[tuple[Path, str]]:
    """Everything in the folder and the folder itself, each as a "file", a "folder" before what it holds, or a "stranger"."""
    try:
        mode = os.lstat(folder).st_mode
        if tree is None or not stat.S_ISDIR(mode):
            yield folder, "file" if tree is None and stat.S_ISREG(mode) else "stranger"
            return
        yield folder, "folder"
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    for name in names:
        for pattern, inner in tree.items():
            if re.fullmatch(pattern, name):
                yield from _walk(folder / name, inner)
                break
        else:
            yield folder / name, "stranger"
