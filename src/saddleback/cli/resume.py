"""``saddleback resume``: take up a run that was interrupted, to the very same result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from saddleback._version import __version__
from saddleback.cli.common import Json, ProblemFile
from saddleback.cli.drawing import Callbacks, Drawing, ExecutorName, Timeout, Workers
from saddleback.cli.sample import draw_rounds
from saddleback.cli.solve import Output, carry_out
from saddleback.errors import InputError
from saddleback.files.json_file import sha256_of
from saddleback.runs.run_folder import MANIFEST, load_run
from saddleback.runs.targets import named_again
from saddleback.runs.work_folder import REQUEST, finish_work, load_work, nothing_left, work_folder


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
    if (place / MANIFEST).is_file() and _is_finished(place):
        Console(stderr=True).print(f"{run} is finished; there is nothing to resume.", markup=False)
        return
    request = load_work(place)
    source = named_again(request["target"], problem)
    settings = [] if source.endswith(".toml") else request["settings"]
    drawing = Drawing(workers, executor, timeout)
    if request["verb"] == "solve":
        output = Output(place, force=(place / MANIFEST).is_file(), as_json=as_json, callbacks=callback or [])
        carry_out(request["target"], settings, request["options"], drawing, output, source)
    elif request["verb"] == "sample":
        draw_rounds(request["target"], settings, place, request["options"], drawing, as_json, source)
    else:
        raise InputError("RUN", "must hold a solve or a sample", repr(request["verb"]), "start it again")


def _is_finished(place: Path) -> bool:
    """Whether the run is written and nothing is under way; a kill may have left its work folder, which goes now.

    A run that was to replace another has nothing in its work folder either if it was killed early: the request tells.
    """
    folder = work_folder(place)
    if folder.is_dir():
        if not nothing_left(place) or ((folder / REQUEST).exists() and not _answers(place)):
            return False
        finish_work(place)
    return True


def _answers(place: Path) -> bool:
    """Whether the run that is written is the answer to the request in the work folder."""
    request = load_work(place)
    if request["verb"] != "solve":
        return False
    try:
        run = load_run(place)
    except InputError:  # damaged: better solved again
        return False
    target = Path(request["target"])
    table = run.table is None or (target.is_file() and sha256_of(target) == run.files[run.table.name])
    asked = {**request["options"]["budget"], **request["options"]["parts"]}
    same = (Path(run.target).name, run.settings, run.request) == (target.name, request["settings"], asked)
    return same and table and run.versions["saddleback"] == __version__
