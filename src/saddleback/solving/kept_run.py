"""A solve that is kept: request, samples, trace and answer in a folder, from which a run that was killed is taken up again.

    request written → samples kept as they are drawn → answer, policy and proof written whole → work folder put away

What is kept is a function of the request and the samples, so a run that is taken up ends with the same bytes. Code is never
loaded because a folder says so: a problem made in Python, or named by a problem file, is given again by whoever resumes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saddleback._version import __version__
from saddleback.errors import InputError
from saddleback.files.json_file import sha256_of
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, JSONLines
from saddleback.runs.run_folder import MANIFEST, Origin, Run, check_place, load_run, save_run
from saddleback.runs.settings import Settings
from saddleback.runs.targets import load_target, named_again
from saddleback.runs.work_folder import (
    REQUEST,
    TRACE,
    abandon_work,
    begin_work,
    finish_work,
    load_work,
    nothing_left,
    work_folder,
)
from saddleback.sampling.executors import open_executor
from saddleback.sampling.executors.replayed import Replayed
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.drawings import drawings_of
from saddleback.solving.pipeline import carry_out
from saddleback.solving.solution import Solution

PYTHON = "python:"
"""How a run names a problem that was made in Python."""

Show = Callable[..., None]
"""Called with (what, done, total) and, while samples are drawn, the number of failures."""


@dataclass(frozen=True)
class Place:
    """Where a run is kept, and what its problem came from; ``force`` lets it replace an earlier run."""

    path: Path
    target: str
    origin: Origin
    force: bool = False


@dataclass(frozen=True)
class Workers:
    """Who draws the samples: so many processes, an executor by name, and the seconds that one block may take."""

    number: int | None = 1
    executor: str | None = None
    timeout: float | None = None


def solve_kept(
    problem: CMDP,
    simulator: GenerativeModel,
    record: Mapping[str, Any],
    place: Place | None,
    workers: Workers,
    *,
    show: Show | None = None,
    callbacks: Sequence[Callback] = (),
    store: SampleStore | None = None,
    certificate_seed: int | None = None,
) -> tuple[Solution, Replayed]:
    """Solve as ``record`` says (:meth:`Settings.record`), keeping the samples in the work folder of ``place``.

    Also what was found when samples were drawn again. A request that turns out to be impossible leaves nothing behind.
    """
    settings, samples, listeners = Settings.of_record(record), None, list(callbacks)
    if place is not None:
        samples = begin_work(place.path, "solve", place.target, list(place.origin.settings), record)
        listeners.append(JSONLines(work_folder(place.path) / TRACE))
    try:
        with open_executor(
            workers.number,
            workers.executor,
            workers.timeout,
            problem=problem,
            simulator=simulator,
            folder=samples,
            progress=show,
        ) as executor:
            found = carry_out(problem, simulator, settings, store, executor, show, listeners, certificate_seed)
    except InputError:
        if place is not None:
            abandon_work(place.path)
        raise
    return found, executor


def put_away(place: Place, found: Solution, record: Mapping[str, Any], seed: int) -> None:
    """Write the finished run and remove its work folder."""
    request, trace = {**record["budget"], **record["parts"]}, work_folder(place.path) / TRACE
    drawings = drawings_of(found)
    save_run(place.path, found, place.origin, request, seed, force=place.force, drawings=drawings, trace=trace)
    finish_work(place.path)


def solve_into(
    out: str | os.PathLike[str],
    problem: CMDP,
    simulator: GenerativeModel,
    settings: Settings,
    workers: int | None = 1,
    executor: str | None = None,
    *,
    progress: Show | None = None,
    callbacks: Sequence[Callback] = (),
    force: bool = False,
) -> Solution:
    """Solve a problem made in Python and keep the run at ``out``."""
    name = f"{PYTHON}{problem.name}"
    place = Place(check_place(out, problem, force=force), name, Origin(name), force)
    record, show = settings.record(), None if progress is None else _three(progress)
    drawn_by = Workers(workers, executor)
    found, _ = solve_kept(problem, simulator, record, place, drawn_by, show=show, callbacks=callbacks)
    put_away(place, found, record, settings.seed)
    return found


def resume(
    run: str | os.PathLike[str],
    problem: CMDP | None = None,
    simulator: GenerativeModel | None = None,
    *,
    workers: int | None = 1,
    executor: str | None = None,
    progress: Show | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution | Run:
    """Take up a solve that was killed or interrupted, to the very same result; a finished run is read.

    run                  the folder that was given to ``out``
    problem, simulator   as they were given to ``solve``, for a run that was made in Python
    workers, executor, progress, callbacks   as for :func:`saddleback.solve`
    """
    place = Path(os.path.abspath(run))
    if is_finished(place):
        return load_run(place)
    request = load_work(place)
    if request.verb != "solve":
        raise InputError("run", "must hold a solve", request.verb, "go on with `saddleback resume`")
    target = request.target
    if target.startswith(PYTHON):
        if problem is None or simulator is None:
            rule = "must be given: the run was made in Python"
            raise InputError("problem, simulator", rule, None, "pass the two that were given to solve")
    else:
        instance = load_target(named_again(target, None), request.settings)
        problem, simulator = instance.problem, instance.simulator
    origin = Origin(target, tuple(request.settings))
    kept = Place(place, target, origin, force=(place / MANIFEST).is_file())
    show = None if progress is None else _three(progress)
    record, drawn_by = request.options, Workers(workers, executor)
    found, _ = solve_kept(problem, simulator, record, kept, drawn_by, show=show, callbacks=callbacks)
    put_away(kept, found, record, record["parts"]["seed"])
    return found


def is_finished(place: Path) -> bool:
    """Whether the run is written and nothing is under way; a kill may have left its work folder, which goes now.

    A run that was to replace another has nothing in its work folder either if it was killed early: the request tells.
    """
    if not (place / MANIFEST).is_file():
        return False
    folder = work_folder(place)
    if folder.is_dir():
        if not nothing_left(place) or ((folder / REQUEST).exists() and not _answers(place)):
            return False
        finish_work(place)
    return True


def _answers(place: Path) -> bool:
    """Whether the run that is written is the answer to the request in the work folder."""
    request = load_work(place)
    if request.verb != "solve":
        return False
    try:
        run = load_run(place)
    except InputError:  # damaged: better solved again
        return False
    target = Path(request.target)
    table = run.table is None or (target.is_file() and sha256_of(target) == run.files[run.table.name])
    asked = {**request.options["budget"], **request.options["parts"]}
    same = (Path(run.target).name, run.settings, run.request) == (target.name, request.settings, asked)
    return same and table and run.versions["saddleback"] == __version__


def _three(progress: Show) -> Show:
    """A user's progress is told (what, done, total), whoever says it."""
    return lambda what, done, total, *_: progress(what, done, total)
