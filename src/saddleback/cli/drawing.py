"""Who draws the samples, who is told, and what an interrupted run says: options that no answer depends on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import Console
from saddleback.errors import plain_text
from saddleback.problem.user_code import interrupted_code
from saddleback.reports.listeners import BY_NAME as CALLBACKS
from saddleback.runs.file_names import REQUEST
from saddleback.runs.work_folder import work_folder
from saddleback.sampling.executors import BY_NAME

Workers = Annotated[int, typer.Option(help="Processes that draw samples; the answer does not depend on it.")]
ExecutorName = Annotated[
    str | None, typer.Option(help=f"One of {', '.join(BY_NAME)}.", show_default="joblib for more than one worker")
]
AcceptSource = Annotated[
    bool,
    typer.Option("--accept-source", help="Go on although the simulator's code has changed: every sample is the same."),
]
Callbacks = Annotated[
    list[str] | None,
    typer.Option(
        "--callback", help=f"name:place, who else is told what happens; {', '.join(CALLBACKS)}. May be repeated."
    ),
]


@contextmanager
def resumable(place: Path | None) -> Iterator[None]:
    """Ctrl-C during a run that keeps its samples says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if place is None or not (work_folder(place) / REQUEST).is_file():
            raise
        text = f"interrupted; what was drawn is kept. Go on with: saddleback resume {plain_text(str(place), 1000)}"
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
        raise typer.Exit(interrupted_code()) from None
