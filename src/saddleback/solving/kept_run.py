"""A solve that is kept: request, samples, trace and answer in a folder, from which a run that was killed is taken up again.

    request written → samples kept as they are drawn → answer, policy and proof written whole → work folder put away

What is kept is a function of the request and the samples, so a run that is taken up ends with the same bytes. Code is never
loaded because a folder says so: a problem made in Python, or named by a problem file, is given again by whoever resumes.

**Drawings.** A finished run leaves behind what its report is drawn from: the frontier of every constraint, the dual's path, the
design. No simulator call is made for it: the frontier comes from the samples and the policies that the solve has left in
memory. For one constraint the stored columns *are* the frontier (its upper hull), so that the page can answer at any threshold;
for several the page moves between the stored points.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from saddleback._version import __version__
from saddleback.errors import InputError, NumericalError
from saddleback.files.json_file import sha256_of
from saddleback.problem.cmdp import CMDP
from saddleback.problem.phases import phase
from saddleback.runs.drawings_file import (
    MOST_COLUMNS,
    CurveRecord,
    DesignRecord,
    Drawings,
    DualRecord,
    FrontierRecord,
    PointRecord,
)
from saddleback.runs.events import Callback, Trace
from saddleback.runs.file_names import MANIFEST, SAMPLES, TRACE, left_beside
from saddleback.runs.run_folder import Origin, load_run, write_run
from saddleback.runs.work_folder import Work, load_work, work_folder
from saddleback.sampling.executors import open_executor
from saddleback.sampling.executors.watched import Replayed
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.frontier import Frontier, FrontierPoint, frontier
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution

Show = Callable[..., None]
"""Called with (what, done, total) and, while samples are drawn, the number of failures."""

_POINTS_OF_ONE, _POINTS_OF_SEVERAL = 81, 21  # several constraints take a linear program a point
_MOST_CURVES = 4
_MOST_PAIRS = 50_000  # of a table: beyond, a curve costs more than it is worth at the end of every solve
_MOST_ROUNDS = 4
_MOST_ENTRIES = (
    50_000_000  # of φ at the samples: beyond, every further policy takes seconds, and a curve dozens of them
)


@dataclass(frozen=True)
class Place:
    """Where a run is kept, and what its problem came from; ``force`` lets it replace an earlier run."""

    work: Work
    target: str
    origin: Origin
    force: bool = False


class Drawing(NamedTuple):
    """How samples are drawn: by so many processes, an executor by name, and the seconds that one block may take."""

    workers: int | None = 1
    executor: str | None = None
    timeout: float | None = None


@contextmanager
def keeping(
    place: Place | None,
    record: Mapping[str, Any],
    problem: CMDP,
    simulator: GenerativeModel,
    drawing: Drawing,
    show: Show | None = None,
) -> Iterator[tuple[Replayed, Sequence[Callback]]]:
    """The executor that keeps what it draws in the work folder of ``place``, and who writes down what happens.

    ``record`` is what was asked (:meth:`saddleback.runs.settings.Settings.record`). A request that turns out to be impossible
    leaves nothing behind.
    """
    samples, listeners = None, list[Callback]()
    if place is not None:
        origin = place.origin
        samples = place.work.begin("solve", place.target, list(origin.settings), record, origin.question, origin.path)
        listeners.append(Trace(place.work.folder / TRACE))
    try:
        with open_executor(*drawing, problem=problem, simulator=simulator, folder=samples, progress=show) as executor:
            yield executor, listeners
    except InputError:
        if place is not None:
            place.work.abandon()
        raise


def put_away(place: Place, found: Solution, record: Mapping[str, Any], seed: int) -> None:
    """Write the finished run and remove its work folder."""
    request = {**record["budget"], **record["parts"]}
    with phase("drawing the trade-off for the report"):
        drawings = drawings_of(found)
    with phase("writing the run folder"):
        write_run(place.work, found, place.origin, request, seed, force=place.force, drawings=drawings)


def is_untouched(place: Path) -> bool:
    """Whether a run is written and nobody works on it, nor was killed while doing so: there is nothing to own or to put right."""
    beside = os.path.lexists(work_folder(place)) or left_beside(place)
    return (place / MANIFEST).is_file() and not beside


def is_finished(work: Work) -> bool:
    """Whether the run is written and nothing is under way; a kill may have left its request, which goes now.

    A run that was to replace another has nothing in its work folder either if it was killed early: the request tells.
    """
    if not (work.place / MANIFEST).is_file():
        return False
    if work.under_way:
        if os.path.lexists(work.folder / SAMPLES) or not _answers(work.place):
            return False
        work.finish()
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


# ---- drawings ----------------------------------------------------------------------------------------------------------


def drawings_of(solution: Solution) -> Drawings:
    """The files for a report: those that there is something to say in."""
    trace, parts = solution.trace, solution.prepared
    dual = None if trace is None or not len(trace.multipliers) else DualRecord.of(trace.multipliers, trace.values)
    if not isinstance(parts, Prepared):
        return Drawings(dual=dual)
    try:
        curves = _frontier(parts, 1 - solution.settings.get("delta", 0.05))
    except (InputError, NumericalError):  # a picture less, never a run less
        curves = None
    return Drawings(curves, dual, DesignRecord.of(parts.design))


def _frontier(parts: Prepared, confidence: float) -> FrontierRecord | None:
    problem = parts.problem
    if parts.hints is not None or (problem.num_states or 0) * problem.num_actions > _MOST_PAIRS:
        return None  # the samples are elsewhere, or many
    curves = []
    if problem.num_constraints > 1 and _entries(parts) > _MOST_ENTRIES:
        return None  # the ends of a curve alone would take many policies
    for i in range(min(problem.num_constraints, _MOST_CURVES)):
        try:
            curves.append(_curve(parts, i))
        except (InputError, NumericalError):  # the other constraints leave no room: there is no curve to draw
            continue
    curves = [(curve, points) for curve, points in curves if len(points) >= 2]
    known = parts.oracle.columns
    if not curves or len(known) > MOST_COLUMNS:
        return None
    index = {policy.key(): i for i, (policy, _) in enumerate(known)}

    def row(p: FrontierPoint) -> PointRecord:
        members, weights = [index[member.key()] for member in p.mixture.members], p.mixture.weights.tolist()
        return PointRecord(p.threshold, p.value, list(p.constraints), p.multiplier, p.gap, members, weights)

    names = [problem.constraints[curve.constraint].name for curve, _ in curves]
    rows = [CurveRecord(name, [*map(row, points)]) for name, (_, points) in zip(names, curves, strict=True)]
    used = {k for curve in rows for point in curve.points for k in point.members}
    limits: list[tuple[list[float], list[float]] | None] = []
    for k, (policy, _) in enumerate(known):
        within = parts.interval(policy, confidence) if k in used else None
        limits.append(None if within is None else (within.low.tolist(), within.high.tolist()))
    columns = [values.tolist() for _, values in known]
    return FrontierRecord("saddleback-frontier/1", confidence, columns, limits, rows)


def _entries(parts: Prepared) -> int:
    """Numbers of φ at the next states of the evaluator's samples; none for a table."""
    return 0 if parts.design.operator is None else parts.evaluation_buffer.num_samples * len(parts.design.operator)


def _curve(parts: Prepared, constraint: int) -> tuple[Frontier, list[FrontierPoint]]:
    """The frontier at evenly spread thresholds and at the one that was asked for, each with the policies of all others."""
    single = parts.problem.num_constraints == 1
    large = _entries(parts) > _MOST_ENTRIES
    curve = frontier(parts, constraint, _POINTS_OF_ONE if single else _POINTS_OF_SEVERAL, ask=not large)
    thresholds = {point.threshold for point in curve.points}
    asked = float(parts.problem.user_thresholds()[constraint])
    try:
        curve.at(asked)
        thresholds.add(asked)
    except InputError:  # out of reach
        pass
    found, points = 0, curve.points
    for _ in range(_MOST_ROUNDS):
        points = curve.at_all(np.array(sorted(thresholds)))
        if len(parts.oracle.columns) == found:
            break
        found = len(parts.oracle.columns)
    return curve, points
