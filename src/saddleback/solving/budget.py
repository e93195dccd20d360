"""A policy from a given number of samples: those that are drawn now, those of an earlier solution, or those in a store.

samples → design, buffers and oracles (:mod:`.prepare`) → policy (:mod:`.find`)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from saddleback.errors import BudgetError, InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import Settings
from saddleback.runs.verdict import Reason, Status, Verdict
from saddleback.sampling.blocks import Executor
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.find import Progress, find_policy
from saddleback.solving.prepare import prepare
from saddleback.solving.prepare_from_store import prepare_from
from saddleback.solving.prepared import Prepared
from saddleback.solving.solution import Solution
from saddleback.solving.verdict import out_of_reach


def budget_of(
    problem: CMDP,
    simulator: GenerativeModel | None,
    settings: Settings,
    samples: int,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    held: Prepared | None = None,
    reuse: Solution | SampleStore | None = None,
) -> Solution:
    """A policy from ``samples`` simulator calls, without a certificate; ``held`` are samples of a smaller run to add to."""
    beyond = out_of_reach(problem)
    if beyond is not None:
        return Solution(beyond[0], problem, 0, max_slack=beyond[1])
    before = 0 if simulator is None else simulator.num_queries
    seeds: tuple[int, ...] = ()
    try:
        if isinstance(reuse, Solution):
            parts, settings, seeds = _reused(reuse, problem, settings)
        elif reuse is not None:
            parts = prepare_from(problem, reuse, settings.method)
        else:
            parts = prepare(problem, needed(simulator), samples, settings.seed, settings.method, held, executor)
    except BudgetError as exhausted:
        drawn = 0 if simulator is None else simulator.num_queries - before
        verdict = Verdict(Status.BUDGET_EXHAUSTED, Reason.CALLS_SPENT, detail=str(exhausted).rstrip("."))
        return Solution(verdict, problem, drawn)
    tell(callbacks, {"event": "samples", "drawn": parts.samples})
    found = find_policy(problem, parts, settings, progress, callbacks)
    return dataclasses.replace(found, certificate_seeds=seeds)


def _reused(reuse: Solution, problem: CMDP, settings: Settings) -> tuple[Prepared, Settings, tuple[int, ...]]:
    if reuse.prepared is None:
        raise InputError("reuse", "must be a solution that holds its samples", "one without", "solve it first")
    m = settings.method
    for name in ("solver", "evaluator", "design", "batch_size", "allocation"):
        value = getattr(m, name)
        require(value is None, name, "must not be given with reuse", value, "it was chosen when the samples were drawn")
    if reuse.asked is not None:
        m = dataclasses.replace(m, mode=reuse.asked.method.mode)
        settings = dataclasses.replace(settings, method=m, seed=reuse.asked.seed)
    return reuse.prepared.on(problem), settings, reuse.certificate_seeds


def needed(simulator: GenerativeModel | None) -> GenerativeModel:
    """The simulator, which somebody has to have given."""
    if simulator is None:
        raise InputError(
            "simulator", "must be given", None, "pass a GenerativeModel, or reuse=solution without a certificate"
        )
    return simulator
