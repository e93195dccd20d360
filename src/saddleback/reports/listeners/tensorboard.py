"""Curves for TensorBoard, by the small package tensorboardX: needs neither TensorFlow nor PyTorch."""

from __future__ import annotations

import os
from typing import Any

from saddleback.errors import InputError
from saddleback.reports.listeners.scalars import Steps, scalars
from saddleback.runs.events import Event


class TensorBoard:
    """Writes the numbers of every event to the folder ``logdir``, which ``tensorboard --logdir`` shows."""

    def __init__(self, logdir: str | os.PathLike[str]) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            remedy = 'pip install "saddleback[tensorboard]"'
            raise InputError("tensorboard", "must be installed with its writer", "no tensorboardX", remedy) from None
        self._writer: Any = SummaryWriter(str(logdir))
        self._steps = Steps()

    def __call__(self, event: Event) -> None:
        """One point a number; the last event closes the file."""
        step = self._steps.next(event)
        for tag, value in scalars(event):
            self._writer.add_scalar(tag, value, step)
        if event["event"] == "finished":
            self._writer.add_text("finished/status", f"{event['status']}: {event['message']}", step)
            self._writer.close()
