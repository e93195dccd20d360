"""Messages between processes. Outcomes travel light: states that are whole numbers in as few bytes as they need.

A block of 4,096 states of a finite space is 32 KB here and often 4 KB on the way, which is most of what a vectorised
simulator pays for being somewhere else. The arrays that arrive have the type they had, are this process's own and may be
written to.
"""

from __future__ import annotations

from collections.abc import Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np

from saddleback.problem.spaces import Array, States
from saddleback.sampling.executors.task_book import Fault, Outcome
from saddleback.simulators.generative_model import Draw


class _Light(NamedTuple):
    next_states: States
    dtype: Any
    signals: Array | None


def dumps(message: object) -> memoryview:
    """A message as bytes, in the form that copies arrays the least."""
    return ForkingPickler.dumps(message, 5)


def loads(data: bytes) -> Any:
    """A message of :func:`dumps`; outcomes as they were."""
    message = ForkingPickler.loads(data)
    return [_whole(outcome) for outcome in message] if isinstance(message, list) else message


def dumps_outcomes(outcomes: Iterable[Outcome]) -> memoryview:
    """Outcomes as bytes; those that cannot be sent, for what a result or an error holds, as faults that say so."""
    light = [_light(outcome) for outcome in outcomes]
    try:
        return dumps(light)
    except Exception:  # find out which
        return dumps([_sendable(outcome) for outcome in light])


def _light(outcome: Outcome) -> Outcome:
    draw = outcome.result
    if not isinstance(draw, Draw) or draw.next_states.dtype.kind not in "iu" or not draw.next_states.size:
        return outcome
    x = draw.next_states
    small = np.promote_types(np.min_scalar_type(int(x.min())), np.min_scalar_type(int(x.max())))
    if small.itemsize >= x.dtype.itemsize:  # or no whole numbers: numpy has none for −1 and 2⁶³
        return outcome
    return outcome._replace(result=_Light(x.astype(small), x.dtype, draw.signals))


def _whole(outcome: Any) -> Any:
    if isinstance(outcome, Outcome) and isinstance(outcome.result, _Light):
        light = outcome.result
        return outcome._replace(result=Draw(light.next_states.astype(light.dtype), light.signals))
    return outcome


def _sendable(outcome: Outcome) -> Outcome:
    try:
        dumps(outcome)
    except Exception as error:
        text, trace = f"gave what cannot be sent to another process ({type(error).__name__}: {error})", ""
        if outcome.fault is not None:
            text, trace = f"failed: {outcome.fault.args[0] if outcome.fault.args else ''}", outcome.fault.trace
        return outcome._replace(result=None, fault=Fault(None, (text,), {}, trace))
    return outcome
