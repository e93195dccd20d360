"""Who draws the samples, and where they are kept: options that no answer depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from saddleback.blocks import Executor
from saddleback.durable import Durable
from saddleback.executors import BY_NAME, make
from saddleback.fingerprint import fingerprint_of
from saddleback.zoo.instance import Instance

Workers = Annotated[int, typer.Option(help="Processes that draw samples; the answer does not depend on it.")]
ExecutorName = Annotated[
    str | None, typer.Option(help=f"One of {', '.join(BY_NAME)}.", show_default="joblib for more than one worker")
]
Timeout = Annotated[float | None, typer.Option(help="Seconds that one call of the simulator may take.")]


class Drawing(NamedTuple):
    """How samples are drawn."""

    workers: int = 1
    name: str | None = None
    timeout: float | None = None

    @contextmanager
    def executor(self, instance: Instance, seed: int, folder: Path | None) -> Iterator[Executor | None]:
        """The executor, which keeps samples in ``folder`` if there is one; None where the plainest will do."""
        inner = None
        if (self.workers, self.name, self.timeout) != (1, None, None):
            inner = make(self.name, self.workers, timeout=self.timeout)
        if folder is None:
            try:
                yield inner
            finally:
                if inner is not None:
                    inner.close()
            return
        with Durable(folder, fingerprint_of(instance.problem, instance.simulator, seed), inner) as durable:
            yield durable
