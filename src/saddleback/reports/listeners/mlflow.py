"""A run in MLflow: numbers as metrics, status and message as tags. The small package mlflow-skinny suffices."""

from __future__ import annotations

import os
from typing import Any

from saddleback.errors import InputError, optional_package
from saddleback.reports.listeners.tensorboard import Steps, scalars
from saddleback.runs.events import Event

_LONGEST_TAG = 500


class MLflow:
    """``place`` is a tracking address: a server's, ``sqlite:///runs.db``, or a folder where MLflow allows one."""

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
