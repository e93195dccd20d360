"""One call: ``solve(problem, simulator, samples=… | epsilon=…, feasibility=…) -> Solution``.

samples   a solve from that many simulator calls (:mod:`saddleback.solving.budgeted`), and a certificate from ``certificate`` more
epsilon   buffers grow until the certificate shows what was asked (:mod:`saddleback.solving.to_accuracy`)
"""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from saddleback.designs.design import Designer
from saddleback.errors import InputError, require
from saddleback.method.oracles import Evaluator, InteractiveSolver, Solver
from saddleback.problem.cmdp import CMDP
from saddleback.runs.events import Callback, tell
from saddleback.runs.solution import Solution
from saddleback.sampling.blocks import Executor
from saddleback.sampling.memory import check, predict_run
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.budgeted import Progress, solve_budget
from saddleback.solving.choices import Allocation, Mode
from saddleback.solving.events import certificate_event, finished_event
from saddleback.solving.steering import Feasibility
from saddleback.solving.strict import certified
from saddleback.solving.to_accuracy import solve_to_accuracy

_USUAL_SAMPLES = 1_000_000


def solve(
    problem: CMDP,
    simulator: GenerativeModel | None = None,
    *,
    feasibility: Feasibility = "relaxed",
    samples: int | None = None,
    certificate: int = 0,
    epsilon: float | None = None,
    max_samples: int = 100_000_000,
    delta: float = 0.05,
    seed: int = 0,
    mode: Mode = "default",
    reuse: Solution | None = None,
    store: SampleStore | None = None,
    solver: str | Solver | InteractiveSolver | None = None,
    evaluator: str | Evaluator | None = None,
    design: str | Designer | None = None,
    dual: str | None = None,
    iterations: int = 1000,
    error: float | None = None,
    buffers: int = 2,
    batch_size: int | None = None,
    resolution: int | None = -1,
    allocation: Allocation | None = None,
    upper: float | None = None,
    step_size: float | None = None,
    target: ArrayLike | None = None,
    tolerance: float | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
) -> Solution:
    """Solve a constrained problem from simulator calls alone.

    *Either* ``samples`` (a million unless said otherwise) simulator calls to find the policy, or those of an earlier
    solution (``reuse``), or those in a ``store`` (:mod:`saddleback.solving.prepare_from_store`), and then ``certificate`` fresh ones to prove how good it is (0: no certificate). *Or*
    ``epsilon``: samples are drawn until, with probability 1 − ``delta``, the reward is proved to be within ``epsilon`` of
    the optimum and every constraint to be missed by no more than the same share of its range (strict: by nothing), or
    until ``max_samples`` are spent; the status says which. ``epsilon`` is in the user's units of the discounted reward.

    Parts are chosen by name or handed over as objects; None means the usual one for the mode and the problem.
    ``batch_size`` is M, ``iterations`` is K (projected descent only), ``resolution`` the grid of the solver's rewards
    (None: no grid; by default 1000 in literal mode, else none), ``allocation`` "equal" or "design" (samples in proportion
    to the design's weights). ``error`` is the oracles' f; it, ``upper`` (U), ``step_size`` (η), ``target`` (b', one a
    constraint) and ``tolerance`` (the dual's τ) are in the paper's units, where rewards and constraints are utilities in
    [0, 1]. ``executor`` draws the samples (:mod:`saddleback.sampling.executors`; None: here). ``callbacks`` are told
    what happens (:mod:`saddleback.reports.listeners`) and change nothing. With ``reuse`` the
    problem may have other rewards, constraints and thresholds, and no new sample is drawn to find the policy.
    """
    require(certificate >= 0, "certificate", "must not be negative", certificate, "0 means no certificate")
    if epsilon is not None:
        given = {
            "samples": samples,
            "reuse": reuse,
            "store": store,
            "target": target,
            "error": error,
            "certificate": certificate or None,
        }
        for name, value in given.items():
            require(value is None, name, "must not be given with epsilon", value, "leave one of the two out")
        if simulator is None:
            raise InputError("simulator", "must be given", None, "pass a GenerativeModel")
        require(
            mode == "default" and dual in (None, "column-generation") and buffers == 2,
            "mode, dual, buffers",
            "must be the usual ones with epsilon",
            (mode, dual, buffers),
            "give a number of samples instead",
        )
        found = solve_to_accuracy(
            problem,
            simulator,
            epsilon=epsilon,
            delta=delta,
            feasibility=feasibility,
            max_samples=max_samples,
            seed=seed,
            executor=executor,
            progress=progress,
            callbacks=callbacks,
            solver=solver,
            evaluator=evaluator,
            design=design,
            allocation=allocation,
            tolerance=tolerance,
        )
        tell(callbacks, finished_event(found))
        return found
    if certificate and simulator is not None and reuse is None and store is None:
        total, signals = _USUAL_SAMPLES if samples is None else samples, simulator.num_signals
        check(predict_run(problem, total, certificate=certificate, num_signals=signals), total + certificate)
    solution = solve_budget(
        problem,
        simulator,
        feasibility=feasibility,
        samples=_USUAL_SAMPLES if samples is None else samples,
        delta=delta,
        seed=seed,
        mode=mode,
        reuse=reuse,
        store=store,
        solver=solver,
        evaluator=evaluator,
        design=design,
        dual=dual,
        iterations=iterations,
        error=error,
        buffers=buffers,
        batch_size=batch_size,
        resolution=resolution,
        allocation=allocation,
        upper=upper,
        step_size=step_size,
        target=target,
        tolerance=tolerance,
        executor=executor,
        progress=progress,
        callbacks=callbacks,
    )
    if certificate:
        if simulator is None:
            raise InputError("simulator", "must be given for a certificate", None, "pass a GenerativeModel")
        solution = certified(solution, simulator, samples=certificate, seed=seed, delta=delta, executor=executor)
        if solution.certificate is not None:
            tell(callbacks, certificate_event(solution.certificate))
    tell(callbacks, finished_event(solution))
    return solution
