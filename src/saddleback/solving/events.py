"""What a callback is told: plain dictionaries, ready for JSON, in the user's units, without times, so that the same request
leaves the same trace.

    samples       drawn: simulator calls that the solve rests on
    dual          attempt, iteration, multipliers λ_k (None: the constraints alone), value and constraints of π_k as estimated,
                  violation: by how much π_k misses each constraint, gap: what the dual still leaves open (None: not known)
    round         of a solve to an accuracy: round, samples so far, error proved or expected (None: none), proved, wanted
    certificate   confidence, value, constraints, upper_bound, gap, feasible, samples
    finished      status, message, value, constraints, samples
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from saddleback.certificates import Certificate
from saddleback.method.oracles import Dual, Step
from saddleback.problem.cmdp import CMDP
from saddleback.runs.answer import Answer
from saddleback.runs.events import Callback, Event, tell

Progress = Callable[[str, int, int], None]
"""Called with (what, done, total) while a solve runs."""


def dual_watcher(
    callbacks: Sequence[Callback], progress: Progress | None, problem: CMDP, dual: Dual, attempt: int
) -> Callable[[int, Step], None] | None:
    """A watcher of Alg. 1 that makes an event of every iteration; None where nobody listens."""
    if not callbacks and progress is None:
        return None
    steps: list[Step] = []

    def watch(iteration: int, step: Step) -> None:
        steps.append(step)
        if callbacks:
            event = {"event": "dual", "attempt": attempt, "iteration": iteration}
            tell(callbacks, {**event, **_iterate(problem, dual, steps)})
        if progress is not None:
            progress("dual iterations", iteration, max(dual.num_steps, iteration))

    return watch


def _iterate(problem: CMDP, dual: Dual, steps: list[Step]) -> Event:
    multipliers, values = np.array(steps[-1].multipliers), problem.values_of(steps[-1].values)
    missed = [
        max(0.0, b - v if c.sense == ">=" else v - b)
        for c, b, v in zip(problem.constraints, problem.user_thresholds(), values[1:], strict=True)
    ]
    finite = bool(np.all(np.isfinite(multipliers)))
    known = dual.gap(steps) * problem.reward_span  # infinite where the dual has no bound
    return {
        "multipliers": problem.multipliers_of(multipliers).tolist() if finite else None,
        "value": float(values[0]),
        "constraints": [float(v) for v in values[1:]],
        "violation": [float(x) for x in missed],
        "gap": known if math.isfinite(known) else None,
    }


def round_event(number: int, samples: int, error: float, proved: bool, wanted: float) -> Event:
    """One round of a solve to an accuracy."""
    shown = error if math.isfinite(error) else None
    return {"event": "round", "round": number, "samples": samples, "error": shown, "proved": proved, "wanted": wanted}


def certificate_event(certificate: Certificate) -> Event:
    """What is proved, in short."""
    whole = certificate.to_json()
    names = "confidence", "value", "constraints", "upper_bound", "gap", "feasible", "samples"
    return {"event": "certificate", **{name: whole.get(name) for name in names}}


def finished_event(solution: Answer) -> Event:
    """The answer, in short."""
    return {
        "event": "finished",
        "status": solution.status.value,
        "message": solution.message,
        "value": solution.value,
        "constraints": [c.value for c in solution.constraints],
        "samples": solution.samples,
    }
