"""The pipeline of a solve, from validated settings to a solution with its proof.

samples (drawn, reused or stored) → policy (:mod:`.budget`) → certificate (:mod:`.strict`),  or all of it in rounds (:mod:`.to_accuracy`)
"""

from __future__ import annotations

from collections.abc import Sequence

from saddleback.errors import require
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, tell
from saddleback.runs.settings import Settings
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
