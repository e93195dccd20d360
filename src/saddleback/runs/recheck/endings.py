"""What follows from declared ends and totals, computed again: how far rollouts and values can go.

Of a signal with a declared total [a, b] in the user's units, values lie in [a, b] as totals, and the running total of a rollout in [a, b]
where the simulator shows the signal, else in four times that and one step more, beyond which the rollout was stopped. Successors, which
may narrow both by the longest path, are known to the problem alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import paths_of
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import ConstraintRecord, ProblemRecord, SignalRecord

_SLACK = 4.0


class Ends(NamedTuple):
    """Limits ``(2, 1+m)`` of running totals as utilities less those of nothing, and of values as utilities; ``zero`` is u₀."""

    window: Array
    values: Array
    zero: Array


def declared_ends(record: ProblemRecord, observed: Array) -> Ends:
    """From what the certificate says of its problem; successors are not looked at."""
    signals: list[SignalRecord | ConstraintRecord] = [record.reward, *record.constraints]
    H = record.horizon
    totals = (record.declared.totals if record.declared else None) or [None] * len(signals)
    scale, base = np.array([s.scale for s in signals]), np.array([s.base for s in signals])
    least = np.array([-np.inf if t is None else t.low for t in totals]) / scale
    most = np.array([np.inf if t is None else t.high for t in totals]) / scale
    low, high, zero = np.minimum(least, most), np.maximum(least, most), -base / scale
    window = np.array(
        [np.where(observed, low, _SLACK * low - zero), np.where(observed, high, _SLACK * high + 1 - zero)]
    )
    return Ends(np.clip(window, -2 * H, 2 * H), np.clip(np.array([low, high]) + zero * H, 0.0, H), zero)


def most_reward(record: ProblemRecord, problem: CMDP | None) -> float | None:
    """What no policy's reward exceeds from the start, in utilities; None where it takes ends or successors that are not here."""
    ends, declared = declared_ends(record, np.zeros(1 + len(record.constraints))), record.declared
    most, nothing = float(ends.values[1, 0]), float(ends.zero[0]) * record.horizon
    if declared is None or not (declared.terminal or declared.successors):
        return most
    if problem is None:
        return None
    paths, sampled = paths_of(problem), problem.start.sampler is not None
    if sampled:  # whatever it is
        return most if paths is None else min(most, max(0.0, float(paths[1][:, 0].max()) + nothing))
    total = 0.0
    for i, weight in enumerate(problem.start.weights.tolist()):
        state = problem.start.states[i : i + 1]
        longest = np.inf if paths is None else float(paths[1][int(state[0]), 0]) + nothing
        total += weight * (nothing if problem.ended(state)[0] else min(most, max(0.0, longest)))
    return total


def ends_of(record: ProblemRecord, problem: CMDP | None, observed: Array) -> Ends | None:
    """All that is known; None where it takes successors that are not here."""
    ends = declared_ends(record, observed)
    if record.declared is None or not record.declared.successors:
        return ends
    paths = None if problem is None else paths_of(problem)
    if problem is None or paths is None:
        return None
    least, most = paths
    begun = slice(None) if problem.start.sampler is not None else problem.start.states
    window = [np.maximum(ends.window[0], least[begun].min(axis=0)), np.minimum(ends.window[1], most[begun].max(axis=0))]
    nothing = ends.zero * record.horizon
    values = [
        np.maximum(ends.values[0], least.min(axis=0) + nothing),
        np.minimum(ends.values[1], most.max(axis=0) + nothing),
    ]
    return Ends(np.array(window), np.array(values), ends.zero)
