"""Where the code of a stored run's problem is: where the user says, or where it was, if it is unchanged.

A run remembers the file of its problem by name, path and SHA-256, and the code beside it by hashes. Code is loaded from the path
only if all of these are as they were; otherwise the user names the file (``--problem``), and the message says why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from saddleback.errors import InputError, require
from saddleback.files.json_file import plain, sha256_of
from saddleback.simulators.sources import changed_files

PYTHON = "python:"
"""How a run names a problem that was made in Python."""

PYTHON_FILE = re.compile(r"(.+\.py):([^\W\d]\w*(?:\.[^\W\d]\w*)*)")
"""How the user names one: ``FILE.py:NAME``."""

_HASH = "sha256="


class Remembered(NamedTuple):
    """What a run knows of the file of its problem: where it was, its SHA-256, and the hashes of the code beside it.

    ``finished`` is False for a run under way, whose file may be mended.
    """

    path: str | None = None
    sha256: str | None = None
    sources: Mapping[str, str] = {}
    finished: bool = True

    @classmethod
    def of(
        cls,
        path: str | None,
        settings: Sequence[str],
        sources: Mapping[str, str] | None = None,
        finished: bool = True,
    ) -> Remembered:
        """From what is recorded."""
        known = [setting.removeprefix(_HASH) for setting in settings if setting.startswith(_HASH)]
        return cls(path, known[0] if known else None, sources or {}, finished)

    def unchanged(self, target: str) -> str:
        """Where the file is, if code may be loaded from there; otherwise an :class:`InputError` that says what to do."""
        rule = f"must be given: the run was made from the problem file {plain(target)}"
        remedy = f"name the file as it is now, as in --problem {plain(Path(target).name)}"
        if self.path is None or self.sha256 is None:
            raise InputError("--problem", f"{rule}, and where that is was not recorded", "nothing", remedy)
        if not os.path.isfile(self.path):
            gone = f"{rule}, which is no longer at {plain(self.path, 300)}"
            raise InputError("--problem", gone, "nothing", remedy)
        changed = changed_files(Path(self.path).parent, self.sources)
        if (found := sha256_of(Path(self.path))) != self.sha256:
            changed = f"another file (SHA-256 {found[:12]})"
        if changed and not self.finished:
            raise InputError("--problem", f"{rule}, which has changed since then", "nothing", remedy)
        rule = f"must be unchanged since the run was made, it and its code (SHA-256 {plain(self.sha256, 12)})"
        require(not changed, self.path, rule, changed, "restore it, or solve the new problem")
        return self.path


def named_again(target: str, problem: str | os.PathLike[str] | None, known: Remembered | None = None) -> str:
    """The target of a stored run to load: its file as the user names it, or where it was if all is as ``known``."""
    if target.startswith(PYTHON):
        remedy = (
            "write --problem FILE.py:NAME, where NAME is a function without arguments that returns (problem, simulator)"
        )
        rule = "must be given: the problem was made in Python, and its simulator is needed"
        require(problem is not None, "--problem", rule, "nothing", remedy)
        named = bool(PYTHON_FILE.fullmatch(str(problem)))
        require(named, "--problem", "must name a function in a Python file", problem, remedy)
        return str(problem)
    if not target.endswith(".toml"):
        moved = problem is not None and target.endswith((".npz", ".drn")) and Path(problem).name == Path(target).name
        if problem is not None and not moved:
            raise InputError(
                "--problem", "must be left out: the run was not made from a problem file", problem, "remove it"
            )
        there = known is not None and known.path is not None and os.path.isfile(known.path)
        return str(problem) if moved else str(known.path) if there and known is not None else target
    if problem is None:
        return (known or Remembered()).unchanged(target)
    if Path(problem).name != Path(target).name or not os.path.isfile(problem):
        rule = f"must be the problem file that the run was made from, {plain(target)}"
        raise InputError("--problem", rule, problem, "name that file, wherever it is now")
    return str(problem)
