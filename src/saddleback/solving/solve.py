"""One call: ``solve(problem, simulator, samples=… | epsilon=…, feasibility=…) -> Solution``.

    settings → parts → samples (drawn, reused or stored) → policy (:mod:`.find`) → certificate (:mod:`.strict`)

samples   a solve from that many simulator calls, half of them for the certificate
epsilon   buffers grow until the certificate shows what was asked (:mod:`.to_accuracy`)
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import Feasibility, Method, Settings
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.budget import budget_of, needed
from saddleback.solving.events import certificate_event, finished_event
from saddleback.solving.find import Progress
from saddleback.solving.solution import Solution
from saddleback.solving.strict import certified
from saddleback.solving.to_accuracy import solve_to_accuracy

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
    simulator: GenerativeModel | None = None,
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
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    must: str | None = None,
    **moved: Any,
) -> Solution:
    """Solve a constrained problem from simulator calls alone, and prove how good the answer is.

    problem       the question: rewards, constraints, states, actions (:class:`saddleback.CMDP`)
    simulator     who answers; may be left out where samples are reused and nothing is to be proved
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
    executor      who draws the samples (:mod:`saddleback.sampling.executors`); no answer depends on it
    progress      called with (what, done, total)
    callbacks     told what happens (docs/callbacks.md); they change nothing
    must          "solved" or "proved": raise :class:`saddleback.UnmetError` where the answer is less
    """
    _refuse_moved(moved)
    require(delta is None or confidence is None, "confidence", "must not be given with delta", confidence, "give one")
    share = 0.05 if delta is None and confidence is None else delta if confidence is None else _delta_of(confidence)
    settings = Settings(samples, epsilon, max_samples, feasibility, share, seed, method or Method())  # type: ignore[arg-type]
    found = carry_out(problem, simulator, settings, reuse, executor, progress, callbacks)
    return found if must is None else found.require(must)


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
    """As :func:`solve`, from validated settings; ``certificate_seed`` is the settings' own unless given."""
    if settings.epsilon is not None:
        require(reuse is None, "reuse", "must not be given with epsilon", reuse, "leave one of the two out")
        found = solve_to_accuracy(problem, needed(simulator), settings, executor, progress, callbacks)
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
        found = certified(found, needed(simulator), samples=proof, seed=seed, delta=settings.delta, executor=executor)
        if found.certificate is not None:
            tell(callbacks, certificate_event(found.certificate))
    tell(callbacks, finished_event(found))
    return found


def _delta_of(confidence: Any) -> float:
    good = isinstance(confidence, (int, float)) and 0 < confidence < 1
    require(good, "confidence", "must lie in (0, 1)", confidence, "0.95 means that all holds with 95 % probability")
    return 1.0 - float(confidence)


def _refuse_moved(moved: dict[str, Any]) -> None:
    """Words of earlier versions, and words that nobody knows."""
    for name, value in moved.items():
        if name in _MOVED:
            raise InputError(name, "is no longer an argument of solve", repr(value), f"use {_MOVED[name]}")
        known = list(solve.__kwdefaults__ or ())
        near = difflib.get_close_matches(name, known, 1)
        remedy = f"did you mean {near[0]}?" if near else f"it takes {', '.join(known)}"
        raise InputError(name, "is no argument of solve", repr(value), remedy)
