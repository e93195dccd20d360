"""Who draws the samples, and where they are kept: options that no answer depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

from saddleback.instances.instance import Instance
from saddleback.reports.listeners import BY_NAME as CALLBACKS
from saddleback.sampling.executors import BY_NAME, open_executor
from saddleback.sampling.executors.watched import Replayed
from saddleback.solving.progress import Display

Workers = Annotated[int, typer.Option(help="Processes that draw samples; the answer does not depend on it.")]
ExecutorName = Annotated[
    str | None, typer.Option(help=f"One of {', '.join(BY_NAME)}.", show_default="joblib for more than one worker")
]
Timeout = Annotated[float | None, typer.Option(help="Seconds that one block, up to 4,096 samples, may take.")]
Callbacks = Annotated[
    list[str] | None,
    typer.Option(
        "--callback", help=f"name:place, who else is told what happens; {', '.join(CALLBACKS)}. May be repeated."
    ),
]


class Drawing(NamedTuple):
    """How samples are drawn."""

    workers: int = 1
    name: str | None = None
    timeout: float | None = None

    def executor(
        self,
        instance: Instance,
        folder: Path | None,
        display: Display,
        *,
        fields: dict[str, Any] | None = None,
        counts: bool = False,
    ) -> AbstractContextManager[Replayed]:
        """The executor of :func:`saddleback.sampling.executors.open_executor` for an instance."""
        return open_executor(
            *self,
            problem=instance.problem,
            simulator=instance.simulator,
            folder=folder,
            progress=display,
            fields=fields,
            counts=counts,
        )


@contextmanager
def resumable(place: Path | None) -> Iterator[None]:
    """Ctrl-C during a run that keeps its samples says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if place is None:
            raise
        text = f"interrupted; what was drawn is kept. Go on with: saddleback resume {place}"
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
        raise SystemExit(130) from None
