"""Who draws the samples, who is told, and what an interrupted run says: options that no answer depends on."""

from __future__ import annotations

import shlex
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
Budget = Annotated[
    int | None, typer.Option("--budget", help="Simulator calls in all, at most.", show_default="as the problem needs")
]
TimeLimit = Annotated[
    float | None,
    typer.Option(help="Seconds that the simulator may take in all; fewer calls are made where they would take longer."),
]
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
        "--callback",
        help=f"Send every event of the solve to name:place as well; the names are {', '.join(CALLBACKS)}. May be repeated.",
    ),
]


def announce(text: str) -> None:
    """A line on stderr, before something that may take long."""
    Console(stderr=True, highlight=False).print(plain_text(text, 1000), markup=False, soft_wrap=True)


@contextmanager
def resumable(place: Path | None) -> Iterator[None]:
    """Ctrl-C during a run that keeps its samples says how to go on, and of one that keeps none that this is so."""
    try:
        yield
    except KeyboardInterrupt:
        if place is not None and not (work_folder(place) / REQUEST).is_file():
            raise
        text = "interrupted; without --out nothing is kept"
        if place is not None:
            command = f"saddleback resume {shlex.quote(plain_text(str(place), 1000))}"
            text = f"interrupted; what was drawn is kept. Go on with: {command}"
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
        raise typer.Exit(interrupted_code()) from None
