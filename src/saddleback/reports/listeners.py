"""Callbacks: who is told what a solve is doing. A callback is any function of one event, a plain dictionary.

    solve(problem, simulator, callbacks=[print])

The events are listed in docs/callbacks.md and made in :mod:`saddleback.solving.progress`. A callback sees; it can change
nothing, and no answer depends on it. The numbers of an event have names, ``dual/gap``, ``dual/multipliers/0``,
``round/error``: :func:`scalars` lists them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from saddleback.errors import InputError, optional_package
from saddleback.runs.events import Callback, Event, JSONLines

_COUNTS = {"attempt", "iteration", "round"}
_LONGEST_TAG = 500


class TensorBoard:
    """Writes the numbers of every event to the folder ``logdir``, which ``tensorboard --logdir`` shows.

    The small package tensorboardX suffices: neither TensorFlow nor PyTorch is needed.
    """

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


class MLflow:
    """A run in MLflow: numbers as metrics, status and message as tags. The small package mlflow-skinny suffices.

    ``place`` is a tracking address: a server's, ``sqlite:///runs.db``, or a folder where MLflow allows one.
    """

    def __init__(self, place: str | os.PathLike[str], experiment: str = "saddleback") -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # a solve tells nobody that it was not told to tell
        exceptions, tracking = (
            optional_package(f"mlflow.{part}", "mlflow", "this callback") for part in ("exceptions", "tracking")
        )
        try:
            self._client: Any = tracking.MlflowClient(tracking_uri=str(place))
            found = self._client.get_experiment_by_name(experiment)
            number = self._client.create_experiment(experiment) if found is None else found.experiment_id
            self.run_id: str = self._client.create_run(number).info.run_id
        except exceptions.MlflowException as error:
            remedy = "give the address of a server or a database"
            raise InputError("mlflow", "must open its tracking store", f"{place}: {error}", remedy) from None
        self._steps = Steps()

    def __call__(self, event: Event) -> None:
        """One value of each metric; the last event ends the run."""
        step = self._steps.next(event)
        for name, value in scalars(event):
            self._client.log_metric(self.run_id, name, value, step=step)
        if event["event"] == "finished":
            for name in ("status", "message"):
                self._client.set_tag(self.run_id, name, str(event[name])[:_LONGEST_TAG])
            self._client.set_terminated(self.run_id)


BY_NAME: dict[str, Callable[[str], Callback]] = {"jsonl": JSONLines, "tensorboard": TensorBoard, "mlflow": MLflow}


def make(text: str, *, force: bool = False) -> Callback:
    """The callback that ``name:place`` stands for, as in ``tensorboard:logs``; ``force`` lets a file be replaced."""
    name, colon, place = text.partition(":")
    if name not in BY_NAME or not colon or not place:
        rule = f"must look like name:place, the name one of {', '.join(BY_NAME)}"
        raise InputError("--callback", rule, repr(text), "for example --callback tensorboard:logs")
    return JSONLines(place, force=force) if name == "jsonl" else BY_NAME[name](place)
