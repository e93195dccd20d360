"""What travels between processes: functions, packed once with or without their simulator, and the outcomes of tasks.

Functions and closures of scripts and notebooks travel by value (cloudpickle, by way of joblib). A simulator that cannot
travel, or is slow to make, is left behind: ``factory()`` makes one in every worker, once. What is unpacked here comes from
this program's own processes, never from a file. States that are whole numbers travel in as few bytes as they need: a block
of 4,096 is 32 KB here and often 4 KB on the way, which is most of what a vectorised simulator pays for being somewhere else.
Arrays that arrive have the type they had and may be written to.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Callable, Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import InputError, what_happened
from saddleback.problem.spaces import Array, States
from saddleback.problem.user_code import calling, fail_as_value
from saddleback.sampling.executors.task_book import Fault, Outcome, source_of
from saddleback.simulators.generative_model import Draw, GenerativeModel, SampleFunction, only_allowed

Factory = Callable[[], SampleFunction | GenerativeModel]


class Shipment(NamedTuple):
    """A packed function, the name by which a worker knows whether it has it, so that it is not sent again, and a factory."""

    token: bytes
    packed: bytes
    factory: bytes | None


def ship(function: Callable[..., Any], factory: Factory | None) -> Shipment:
    """A function in one piece, its meter at zero; with a factory, without its simulator."""
    source = source_of(function)
    if source is not None:
        model = copy.copy(source.model)
        model.num_queries = 0
        if factory is not None:
            model = GenerativeModel(_absent, model.states, model.num_signals)
        function = dataclasses.replace(source, model=model).draw
    elif factory is not None:
        raise InputError("factory", "must go with blocks to draw", function, "leave it out for other tasks")
    packed = pack(function)
    return Shipment(hashlib.sha256(packed).digest(), packed, None if factory is None else pack(factory))


def pack(function: Callable[..., Any]) -> bytes:
    """A function as bytes."""
    import joblib  # type: ignore[import-untyped]

    rule = "must be one that can be sent to another process"
    remedy = "give a factory that makes it there, or use the serial executor without a timeout"
    try:
        with calling("what packs the simulator"):
            # In a tuple, since a class, which a factory may be, would be wrapped as something else.
            return dumps(joblib.wrap_non_picklable_objects((function,), keep_wrapper=False))
    except BaseException as error:  # what an object does to be packed is its own code
        fail_as_value(error, "one", lambda found: InputError("simulator", rule, found, remedy))


def unpack(packed: bytes, simulator: SampleFunction | GenerativeModel | None = None) -> Callable[..., Any]:
    """The function, with the worker's own simulator if it has one. Arrays are fresh copies that may be written to."""
    (function,) = ForkingPickler.loads(packed)
    source = source_of(function)
    if simulator is None or source is None:
        return function
    if not isinstance(simulator, GenerativeModel):
        simulator = GenerativeModel(simulator, source.model.states, source.model.num_signals)
    return dataclasses.replace(source, model=only_allowed(simulator, source.model.stand_ins)).draw


def cannot_load(problem: str) -> InputError:
    """The error for a function or factory that fails in a worker before the first task."""
    remedy = "define it in a module that can be imported there, or give a factory that works there"
    return InputError("simulator", "must be one that a worker process can load", problem, remedy)


def _absent(*_: Any) -> Any:
    raise AssertionError("the factory's simulator takes this place")


class _Light(NamedTuple):
    next_states: States
    dtype: Any
    signals: Array | None


def dumps(message: object) -> bytes:
    """A message as bytes, in the form that copies arrays the least."""
    return bytes(ForkingPickler.dumps(message, 5))


def loads(data: bytes) -> Any:
    """A message of :func:`dumps`; outcomes as they were."""
    message = ForkingPickler.loads(data)
    return [_whole(outcome) for outcome in message] if isinstance(message, list) else message


def dumps_outcomes(outcomes: Iterable[Outcome]) -> bytes:
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
        text, trace = f"gave what cannot be sent to another process ({what_happened(error)})", ""
        if outcome.fault is not None:
            text, trace = f"failed: {outcome.fault.args[0] if outcome.fault.args else ''}", outcome.fault.trace
        return outcome._replace(result=None, fault=Fault(None, (text,), {}, trace))
    return outcome
