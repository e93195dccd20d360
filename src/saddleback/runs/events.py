"""Events of a run: plain dictionaries, ready for JSON; whoever listens to them; and the trace, one line of JSON an event."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from saddleback.errors import SaddlebackError
from saddleback.files.disk import Disk, disk_faults_named, written_whole
from saddleback.problem.user_code import calling
from saddleback.runs.outputs import check_output, is_trace

Event = dict[str, Any]


class Callback(Protocol):
    """Anything that can be called with an event."""

    def __call__(self, event: Event, /) -> None:
        """Take notice of ``event``; an exception ends the solve."""
        ...


def tell(callbacks: Sequence[Callback], event: Event) -> None:
    """Every callback in turn, with an event of its own: what one does to it, no other sees."""
    for callback in callbacks:
        with calling("a callback", 1, lambda said: SaddlebackError(f"a callback {said}; mend it, or leave it out.")):
            callback(copy.deepcopy(event))


class Trace:
    """Begins the file anew and adds a line for every event; the same request writes the same bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with written_whole(path):
            pass

    def __call__(self, event: Event) -> None:
        """One line."""
        line, disk = json.dumps(event, allow_nan=False) + "\n", Disk()
        with disk_faults_named(self.path, "check the folder and the disk"):
            file = self._open(disk)
            try:
                disk.write(file, line.encode())
            finally:
                disk.close(file)

    def _open(self, disk: Disk) -> int:
        return disk.open_append(self.path)


class JSONLines(Trace):
    """A trace in a file that the user names: a new one, or a trace, which is begun anew.

    path    what is no plain file, such as a terminal, is only added to
    force   let it replace a file of another kind
    """

    def __init__(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        self._special = os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)
        if self._special:
            self.path = Path(os.path.abspath(path))
        else:
            super().__init__(check_output("path", path, is_trace, force=force))

    def _open(self, disk: Disk) -> int:
        return os.open(self.path, os.O_WRONLY | getattr(os, "O_CLOEXEC", 0)) if self._special else super()._open(disk)
