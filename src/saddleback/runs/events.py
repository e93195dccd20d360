"""Events of a run: plain dictionaries, ready for JSON; whoever listens to them; and the trace, one line of JSON an event."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from saddleback.errors import InputError, StorageError

Event = dict[str, Any]


class Callback(Protocol):
    """Anything that can be called with an event."""

    def __call__(self, event: Event, /) -> None:
        """Take notice of ``event``; an exception ends the solve."""
        ...


def tell(callbacks: Sequence[Callback], event: Event) -> None:
    """Every callback in turn."""
    for callback in callbacks:
        callback(event)


class JSONLines:
    """Begins the file anew and adds a line for every event; the same request writes the same bytes."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.absolute().parent.is_dir():
            raise InputError("path", "must lie in an existing folder", str(path), "make the folder first")
        self._write("", "w")

    def __call__(self, event: Event) -> None:
        """One line."""
        self._write(json.dumps(event, allow_nan=False) + "\n", "a")

    def _write(self, text: str, mode: str) -> None:
        try:
            with open(self.path, mode, encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            raise StorageError(
                f"`{self.path}` could not be written: {error}; check the folder and the disk."
            ) from error
