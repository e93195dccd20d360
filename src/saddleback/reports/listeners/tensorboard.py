"""Curves for TensorBoard, by the small package tensorboardX: needs neither TensorFlow nor PyTorch.

The numbers of an event have names, ``dual/gap``, ``dual/multipliers/0``, ``round/error``: :func:`scalars` lists them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from saddleback.errors import optional_package
from saddleback.runs.events import Event

_COUNTS = {"attempt", "iteration", "round"}


class TensorBoard:
    """Writes the numbers of every event to the folder ``logdir``, which ``tensorboard --logdir`` shows."""

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        package = optional_package("tensorboardX", "tensorboard", "this callback")
        self._writer: Any = package.SummaryWriter(str(logdir))
        self._steps = Steps()

    def __call__(self, event: Event) -> None:
        """One point a number; the last event closes the file."""
        step = self._steps.next(event)
        for tag, value in scalars(event):
            self._writer.add_scalar(tag, value, step)
        if event["event"] == "finished":
            self._writer.add_text("finished/status", f"{event['status']}: {event['message']}", step)
            self._writer.close()


def scalars(event: Event) -> Iterator[tuple[str, float]]:
    """Name and value of every number in the event; what is missing or text is left out."""
    for name, value in event.items():
        if name in _COUNTS:
            continue
        for i, entry in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(entry, (int, float)) and not isinstance(entry, bool):
                tag = f"{event['event']}/{name}"
                yield (f"{tag}/{i}" if isinstance(value, list) else tag), float(entry)


class Steps:
    """A running number for each kind of event: the horizontal axis of its curves."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def next(self, event: Event) -> int:
        """1, 2, 3 … for each kind."""
        kind = str(event["event"])
        self._seen[kind] = self._seen.get(kind, 0) + 1
        return self._seen[kind]
