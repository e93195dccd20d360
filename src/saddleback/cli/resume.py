"""``saddleback resume``: take up a run that was interrupted, to the very same result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from saddleback.cli.common import Json, ProblemFile
from saddleback.cli.drawing import Callbacks, ExecutorName, Timeout, Workers
from saddleback.cli.sample import draw
from saddleback.cli.solve import Output, answer
from saddleback.errors import InputError
from saddleback.runs.run_folder import MANIFEST
from saddleback.runs.targets import named_again
from saddleback.runs.work_folder import load_work
from saddleback.solving.kept_run import Drawing, is_finished


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder given to `--out`.")],
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    problem: ProblemFile = None,
    callback: Callbacks = None,
    as_json: Json = False,
) -> None:
    """Continue a run that was killed or interrupted: what was drawn is kept, and the result is the same, bit for bit."""
    place = run.absolute()
    if is_finished(place):
        Console(stderr=True).print(f"{run} is finished; there is nothing to resume.", markup=False)
        return
    request = load_work(place)
    source = named_again(request.target, problem)
    settings = [] if source.endswith(".toml") else request.settings
    drawing = Drawing(workers, executor, timeout)
    if request.verb == "solve":
        output = Output(place, force=(place / MANIFEST).is_file(), as_json=as_json, callbacks=callback or [])
        answer(request.target, settings, request.options, drawing, output, source)
    elif request.verb == "sample":
        draw(request.target, settings, place, request.options, drawing, as_json, source)
    else:
        raise InputError("RUN", "must hold a solve or a sample", repr(request.verb), "start it again")
