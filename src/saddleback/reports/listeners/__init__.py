"""Callbacks: who is told what a solve is doing. A callback is any function of one event, a plain dictionary.

    solve(problem, simulator, callbacks=[print])

The events are listed in docs/callbacks.md and made in :mod:`saddleback.solving.events`. A callback sees; it can change
nothing, and no answer depends on it.
"""

from __future__ import annotations

from collections.abc import Callable

from saddleback.errors import InputError
from saddleback.reports.listeners.mlflow import MLflow
from saddleback.reports.listeners.tensorboard import TensorBoard
from saddleback.runs.events import Callback, Event, JSONLines

BY_NAME: dict[str, Callable[[str], Callback]] = {"jsonl": JSONLines, "tensorboard": TensorBoard, "mlflow": MLflow}


def make(text: str) -> Callback:
    """The callback that ``name:place`` stands for, as in ``tensorboard:logs``."""
    name, colon, place = text.partition(":")
    if name not in BY_NAME or not colon or not place:
        rule = f"must look like name:place, the name one of {', '.join(BY_NAME)}"
        raise InputError("--callback", rule, repr(text), "for example --callback tensorboard:logs")
    return BY_NAME[name](place)


__all__ = ["BY_NAME", "Callback", "Event", "JSONLines", "MLflow", "TensorBoard", "make"]
