"""``saddleback resume``: take up a run that was interrupted, to the very same result."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from saddleback.cli.common import Console, Json, ProblemFile, Timeout, print_json
from saddleback.cli.drawing import AcceptSource, Callbacks, ExecutorName, Workers
from saddleback.cli.sample import draw
from saddleback.cli.solve import Output, answer
from saddleback.errors import plain_text
from saddleback.runs.file_names import MANIFEST, SAMPLES
from saddleback.runs.problem_place import Remembered, named_again
from saddleback.runs.run_folder import stored_answer, verify_run
from saddleback.runs.targets import load_source
from saddleback.runs.verdict import ExitCode, Status
from saddleback.runs.work_folder import Work, load_work, owned
from saddleback.solving.kept_run import Drawing, is_finished, is_untouched
from saddleback.solving.stored_samples import accept_code, open_samples


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder given to `--out`.")],
    workers: Workers = 1,
    executor: ExecutorName = None,
    timeout: Timeout = None,
    problem: ProblemFile = None,
    callback: Callbacks = None,
    accept_source: AcceptSource = False,
    force: Annotated[bool, typer.Option("--force", help="Let --callback replace files of other kinds.")] = False,
    as_json: Json = False,
) -> None:
    """Continue a run that was killed or interrupted: what was drawn is kept, and the result is the same, bit for bit."""
    place = Path(os.path.abspath(run))
    if is_untouched(place):
        _say_finished(place, as_json)
        return
    with owned(place) as work:
        if is_finished(work) or (not work.under_way and (place / SAMPLES).is_dir()):
            _say_finished(place, as_json)
        else:
            _take_up(work, Drawing(workers, executor, timeout), problem, callback or [], force, accept_source, as_json)


def _take_up(
    work: Work,
    drawing: Drawing,
    problem: Path | None,
    callbacks: list[str],
    force: bool,
    accept_source: bool,
    as_json: bool,
) -> None:
    request = load_work(work.place)
    source = named_again(request.target, problem, Remembered.of(request.path, request.settings, finished=False))
    settings = request.settings
    if accept_source:
        instance = load_source(request.target, source, settings)
        accept_code(work.place, instance.problem, instance.simulator)
    if request.verb == "solve":
        replacing = (work.place / MANIFEST).is_file()
        output = Output(work, replacing, as_json=as_json, callbacks=callbacks, force_files=force, out=work.place)
        answer(request.target, settings, request.options, drawing, output, source, request.path)
    else:
        draw(request.target, settings, work, request.options, drawing, as_json, source, request.path)


def _say_finished(place: Path, as_json: bool) -> None:
    """Every file is read and compared before it is said; the answer, and how the command ends, are those of the run."""
    code = 0
    if (place / MANIFEST).is_file():
        run = verify_run(place)
        found = {**stored_answer(run), "check_calls": 0, "reproducible": "not checked"}  # nothing is drawn
        code = {status.value: status.exit_code for status in Status}.get(run.solution.status, ExitCode.UNDECIDED)
    else:
        with open_samples(place) as store:
            found = {"samples": store.num_samples, "sha256": store.content_hash()}
    text = f"{plain_text(str(place), 1000)} is finished; there is nothing to resume."
    Console(stderr=True).print(text, markup=False, soft_wrap=True)
    if as_json:
        print_json(found)
    raise typer.Exit(code)
