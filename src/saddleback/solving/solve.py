"""One call: ``solve(problem, simulator, samples=… | epsilon=…, feasibility=…) -> Solution``.

    settings → samples, drawn, reused or stored → policy (:mod:`.find`) → certificate (:mod:`.strict`)

samples   a solve from that many simulator calls, half of them for the certificate
epsilon   buffers grow until the certificate shows what was asked (:mod:`.to_accuracy`)

In memory, or kept in a folder (:mod:`.kept_run`) from which :func:`resume` takes it up.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from saddleback.certificates import Request
from saddleback.errors import InputError, nearest, number, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import problem_digest
from saddleback.problem.phases import phase
from saddleback.runs.events import Callback, tell
from saddleback.runs.file_names import MANIFEST
from saddleback.runs.problem_place import PYTHON, Remembered, named_again
from saddleback.runs.run_folder import Origin, Run, check_place, verify_run
from saddleback.runs.settings import Feasibility, Method, Settings
from saddleback.runs.targets import load_source, origin_of
from saddleback.runs.work_folder import load_work, owned
from saddleback.sampling.blocks import Executor
from saddleback.sampling.executors import make
from saddleback.sampling.memory import check, check_size, predict_run
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import table_behind
from saddleback.solving.find import budget_of, needed
from saddleback.solving.kept_run import Drawing, Place, Show, is_finished, is_untouched, keeping, put_away
from saddleback.solving.progress import Progress, certificate_event, finished_event
from saddleback.solving.solution import Solution, presented
from saddleback.solving.stored_samples import accept_code, seed_of_question
from saddleback.solving.strict import certified
from saddleback.solving.to_accuracy import solve_to_accuracy

_HOW_TO_GO_ON = (
    "interrupted; what was drawn is kept. Go on with: saddleback.resume({place!r}, problem, simulator), or with: "
    "saddleback resume {quoted} --problem FILE.py:NAME, where NAME() returns (problem, simulator)"
)

_MOVED = {name: f"method=Method({name}=...)" for name in Method.__dataclass_fields__} | {
    "certificate": "method=Method(certificate=...): samples now counts the certificate's calls too, and half of them prove "
    "the answer unless it says otherwise",
    "iterations": 'method=Method(dual=Part("projected-descent", {"iterations": ...}))',
    "upper": 'method=Method(dual=Part("projected-descent", {"upper": ...}))',
    "step_size": 'method=Method(dual=Part("projected-descent", {"step_size": ...}))',
    "tolerance": 'method=Method(dual=Part("column-generation", {"tolerance": ...}))',
    "store": "reuse=store",
}


def solve(
    problem: CMDP,
    simulator: GenerativeModel | Callable[..., Any] | None = None,
    *,
    samples: float | None = None,
    epsilon: float | None = None,
    max_samples: float | None = None,
    feasibility: Feasibility = "strict",
    delta: float | None = None,
    confidence: float | None = None,
    seed: int = 0,
    method: Method | None = None,
    reuse: Solution | SampleStore | None = None,
    out: str | os.PathLike[str] | None = None,
    workers: int | None = 1,
    executor: str | Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    must: str | None = None,
    **moved: Any,
) -> Solution:
    """Solve a constrained problem from simulator calls alone, and prove how good the answer is.

    problem       the question: rewards, constraints, states, actions (:class:`saddleback.CMDP`)
    simulator     who answers: a GenerativeModel, or a function ``sample(state, action, rng) -> next state`` of one pair or
                  of arrays; may be left out where samples are reused and nothing is to be proved
    samples       all simulator calls, a million unless given; half of them make the certificate
    epsilon       instead of samples: draw until, with probability 1 − delta, the reward is proved to be within epsilon of
                  the optimum (in the user's units of the discounted reward) and every constraint to be missed by no more
                  than the same share of its range (strict: by nothing)
    max_samples   with epsilon: give up after this many, 10⁸ unless given; the status says so
    feasibility   "strict": the constraints are proved to hold, at some cost in reward; "relaxed": they hold up to the accuracy
                  of the run, so one that binds may be missed by as much
    delta         one minus the confidence of everything that is proved together, 0.05 unless given
    confidence    the same the other way round
    seed          the same seed gives the same samples and the same answer
    method        which parts; ``Method.paper()`` is the paper's algorithm
    reuse         samples that are there already: an earlier solution, whose problem may have other rewards, constraints and
                  thresholds, or a store; then ``samples`` counts the certificate's calls only
    out           a new folder that keeps everything, samples included: a run that is killed there is taken up again by
                  :func:`saddleback.resume`, to the same result
    workers       processes that draw samples; no answer depends on it
    executor      who draws them: "serial", "joblib", "ray", or an object (:mod:`saddleback.sampling.executors`)
    progress      called with (what, done, total)
    callbacks     told what happens (docs/callbacks.md); they change nothing
    must          "solved" or "proved": raise :class:`saddleback.UnmetError` where the answer is less
    """
    _refuse_moved(moved)
    rule, found = "must be a CMDP", type(problem).__name__
    require(isinstance(problem, CMDP), "problem", rule, found, "make one with saddleback.CMDP(...)")
    require(delta is None or confidence is None, "confidence", "must not be given with delta", confidence, "give one")
    share = 0.05 if delta is None else delta
    if confidence is not None:
        remedy = "0.95 means that all holds with 95 % probability"
        share = 1.0 - number("confidence", confidence, 0, 1, open_low=True, open_high=True, remedy=remedy)
    settings = Settings(samples, epsilon, max_samples, feasibility, share, seed, method or Method())  # type: ignore[arg-type]
    callbacks = _listeners(callbacks)
    model = None if simulator is None else as_simulator(problem, simulator).metered()
    if out is not None:
        require(reuse is None, "out", "must not be given with reuse", str(out), "keep the run that draws the samples")
        if executor is not None and not isinstance(executor, str):
            rule, remedy = "must be given by name where the run is kept", "use workers=, or one of serial, joblib, ray"
            raise InputError("executor", rule, executor, remedy)
        name = f"{PYTHON}{problem.name}"
        with owned(out) as work:
            is_finished(work)
            check_place(work.place, problem)
            origin = Origin(name, model=table_behind(problem, needed(model)))
            place, drawing = Place(work, name, origin), Drawing(workers, executor)
            try:
                answer = _solve_at(place, problem, needed(model), settings.record(), drawing, progress, callbacks)
            except KeyboardInterrupt as interrupt:
                place_words = {"place": str(work.place), "quoted": shlex.quote(str(work.place))}
                interrupt.add_note(_HOW_TO_GO_ON.format(**place_words))
                raise
    elif isinstance(executor, str) or (executor is None and workers != 1):
        with closing(make(executor, workers)) as crew:
            answer = carry_out(problem, model, settings, reuse, crew, progress, callbacks)
    else:
        answer = carry_out(problem, model, settings, reuse, executor, progress, callbacks)
    return answer if must is None else answer.require(must)


def carry_out(
    problem: CMDP,
    simulator: GenerativeModel | None,
    settings: Settings,
    reuse: Solution | SampleStore | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    certificate_seed: int | None = None,
) -> Solution:
    """The solution that the settings ask for; ``certificate_seed`` is the settings' own unless given."""
    if reuse is None:
        check_size(problem)
    if settings.epsilon is not None:
        require(reuse is None, "reuse", "must not be given with epsilon", reuse, "leave one of the two out")
        found = presented(solve_to_accuracy(problem, needed(simulator), settings, executor, progress, callbacks))
        tell(callbacks, finished_event(found))
        return found
    calls, proof = settings.split(stored=reuse is not None)
    if reuse is not None and simulator is None and settings.method.certificate is None:
        proof = 0  # nothing can be drawn, and nobody asked for it
    if proof and simulator is not None and reuse is None:
        check(predict_run(problem, calls, certificate=proof, num_signals=simulator.num_signals), calls + proof)
    found = budget_of(problem, simulator, settings, calls, executor, progress, callbacks, reuse=reuse)
    if proof:
        seed = settings.seed if certificate_seed is None else certificate_seed
        if certificate_seed is None and isinstance(reuse, SampleStore):
            seed = seed_of_question(seed, problem, settings.question(), proof, problem_digest(problem))
        request = Request(proof, seed, settings.delta, purpose=settings.purpose, executor=executor)
        with phase("proving what was found"):
            found = certified(found, needed(simulator), request)
        if found.certificate is not None:
            tell(callbacks, certificate_event(found.certificate))
    found = presented(found)
    tell(callbacks, finished_event(found))
    return found


def resume(
    run: str | os.PathLike[str],
    problem: CMDP | None = None,
    simulator: GenerativeModel | Callable[..., Any] | None = None,
    *,
    workers: int | None = 1,
    executor: str | None = None,
    progress: Show | None = None,
    callbacks: Sequence[Callback] = (),
    accept_source: bool = False,
) -> Solution | Run:
    """Take up a solve that was killed or interrupted, to the very same result; a finished run is read.

    run                  the folder that was given to ``out``
    problem, simulator   as they were given to ``solve``, for a run that was made in Python
    workers, executor, progress, callbacks   as for :func:`saddleback.solve`
    accept_source        go on although code that a problem file names has changed: every sample would be the same
    """
    place = Path(os.path.abspath(run))
    if is_untouched(place):
        return verify_run(place)
    with owned(place) as work:
        if is_finished(work):
            return verify_run(place)
        request = load_work(place)
        if request.verb != "solve":
            raise InputError("run", "must hold a solve", request.verb, "go on with `saddleback resume`")
        target, origin = request.target, Origin(request.target)
        if not target.startswith(PYTHON):
            source = named_again(target, None, Remembered.of(request.path, request.settings, finished=False))
            settings = [] if source.endswith(".toml") else request.settings
            instance = load_source(target, source, settings)
            problem, simulator = instance.problem, instance.simulator
            origin = replace(origin_of(source, settings, instance), target=target, path=request.path)
        elif problem is None or simulator is None:
            rule = "must be given: the run was made in Python"
            raise InputError("problem, simulator", rule, None, "pass the two that were given to solve")
        model, drawing = as_simulator(problem, simulator).metered(), Drawing(workers, executor)
        if target.startswith(PYTHON):
            origin = Origin(target, model=table_behind(problem, model))
        kept = Place(work, target, origin, force=(place / MANIFEST).is_file())
        if accept_source:
            accept_code(place, problem, model)
        return _solve_at(kept, problem, model, request.options, drawing, progress, callbacks)


def _solve_at(
    place: Place,
    problem: CMDP,
    simulator: GenerativeModel,
    record: Mapping[str, Any],
    drawing: Drawing,
    progress: Show | None,
    callbacks: Sequence[Callback],
) -> Solution:
    """Solve and keep the run; a user's progress is told (what, done, total), whoever says it."""
    show = None if progress is None else lambda what, done, total, *_: progress(what, done, total)
    settings = Settings.of_record(record)
    with keeping(place, record, problem, simulator, drawing, show) as (executor, listeners):
        found = carry_out(problem, simulator, settings, None, executor, show, [*callbacks, *listeners])
    put_away(place, found, record, record["parts"]["seed"])
    return found


def _refuse_moved(moved: dict[str, Any]) -> None:
    """Words of earlier versions, and words that nobody knows."""
    for name, value in moved.items():
        if name in _MOVED:
            raise InputError(name, "must not be an argument of solve any more", repr(value), f"use {_MOVED[name]}")
        known = list(solve.__kwdefaults__ or ())
        remedy = nearest(name, known, f"it takes {', '.join(known)}")
        raise InputError(name, "must be an argument of solve", repr(value), remedy)


def _listeners(callbacks: Any) -> list[Callback]:
    good = isinstance(callbacks, Iterable) and not isinstance(callbacks, str)
    require(good, "callbacks", "must be a list of functions", repr(callbacks), "give callbacks=[function]")
    found = list(callbacks)
    for one in found:
        require(callable(one), "callbacks", "must be functions of one event", repr(one), "see docs/callbacks.md")
    return found
