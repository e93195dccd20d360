"""How a function reaches another process: packed once, with or without its simulator.

Functions and closures of scripts and notebooks travel by value (cloudpickle, by way of joblib). A simulator that cannot
travel, or is slow to make, is left behind: ``factory()`` makes one in every worker, once, and it serves all functions that
worker is given. What is unpacked here comes from this program's own processes, never from a file.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

from saddleback.errors import InputError
from saddleback.sampling.executors.task_book import source_of
from saddleback.simulators.generative_model import GenerativeModel, SampleFunction, only_allowed

Factory = Callable[[], SampleFunction | GenerativeModel]


class Shipment(NamedTuple):
    """A packed function and the name by which a worker knows whether it has it: the same function is not sent again."""

    token: bytes
    packed: bytes


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
    return Shipment(hashlib.sha256(packed).digest(), packed)


def pack(function: Callable[..., Any]) -> bytes:
    """A function as bytes."""
    from joblib.externals.loky.backend import reduction  # type: ignore[import-untyped]

    try:
        return bytes(reduction.dumps(function))
    except Exception as error:  # whatever the user's objects raise
        raise InputError(
            "simulator",
            "must be one that can be sent to another process",
            f"{type(error).__name__}: {error}",
            "give a factory that makes it there, or use the serial executor without a timeout",
        ) from error


def unpack(packed: bytes, simulator: SampleFunction | GenerativeModel | None = None) -> Callable[..., Any]:
    """The function, with the worker's own simulator if it has one. Arrays are fresh copies that may be written to."""
    function: Callable[..., Any] = ForkingPickler.loads(packed)
    source = source_of(function)
    if simulator is None or source is None:
        return function
    if not isinstance(simulator, GenerativeModel):
        simulator = GenerativeModel(simulator, source.model.states, source.model.num_signals)
    return dataclasses.replace(source, model=only_allowed(simulator, source.model.stand_ins)).draw


def cannot_load(problem: str) -> InputError:
    """The error for a function or factory that fails in a worker before the first task."""
    return InputError(
        "simulator",
        "must be one that a worker process can load",
        problem,
        "define it in a module that can be imported there, or give a factory that works there",
    )


def _absent(*_: Any) -> Any:
    raise AssertionError("the factory's simulator takes this place")
