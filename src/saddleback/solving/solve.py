"""One call: ``solve(problem, simulator, samples=… | epsilon=…, feasibility=…) -> Solution``.

    settings → samples → policy → certificate (:mod:`.pipeline`), in memory or kept in a folder (:mod:`.kept_run`)

samples   a solve from that many simulator calls, half of them for the certificate
epsilon   buffers grow until the certificate shows what was asked (:mod:`.to_accuracy`)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from typing import Any

from saddleback.errors import InputError, nearest, require
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback
from saddleback.runs.settings import Feasibility, Method, Settings
from saddleback.sampling.blocks import Executor
from saddleback.sampling.executors import make
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.function import as_simulator
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.budget import needed
from saddleback.solving.find import Progress
from saddleback.solving.kept_run import solve_into
from saddleback.solving.pipeline import carry_out
from saddleback.solving.solution import Solution

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
    feasibility: Feasibility = "relaxed",
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
    feasibility   "relaxed": constraints hold up to the accuracy of the run; "strict": they are proved to hold
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
    require(
        isinstance(problem, CMDP),
        "problem",
        "must be a CMDP",
        type(problem).__name__,
        "make one with saddleback.CMDP(...)",
    )
    require(delta is None or confidence is None, "confidence", "must not be given with delta", confidence, "give one")
    share = 0.05 if delta is None and confidence is None else delta if confidence is None else _delta_of(confidence)
    settings = Settings(samples, epsilon, max_samples, feasibility, share, seed, method or Method())  # type: ignore[arg-type]
    callbacks = _listeners(callbacks)
    model = None if simulator is None else as_simulator(problem, simulator)
    if out is not None:
        require(reuse is None, "out", "must not be given with reuse", str(out), "keep the run that draws the samples")
        if executor is not None and not isinstance(executor, str):
            rule, remedy = "must be given by name where the run is kept", "use workers=, or one of serial, joblib, ray"
            raise InputError("executor", rule, executor, remedy)
        found = solve_into(
            out, problem, needed(model), settings, workers, executor, progress=progress, callbacks=callbacks
        )
    elif isinstance(executor, str) or (executor is None and workers != 1):
        with closing(make(executor, workers)) as drawing:
            found = carry_out(problem, model, settings, reuse, drawing, progress, callbacks)
    else:
        found = carry_out(problem, model, settings, reuse, executor, progress, callbacks)
    return found if must is None else found.require(must)


def _delta_of(confidence: Any) -> float:
    good = isinstance(confidence, (int, float)) and 0 < confidence < 1
    require(good, "confidence", "must lie in (0, 1)", confidence, "0.95 means that all holds with 95 % probability")
    return 1.0 - float(confidence)


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
