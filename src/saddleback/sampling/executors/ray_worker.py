"""The other side of :mod:`saddleback.sampling.executors.ray`: what a Ray worker keeps between two lots.

An actor has one desk. Plain tasks find one in whatever process Ray lends them, if that process has served before.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.executors.message_format import dumps_outcomes
from saddleback.sampling.executors.shipping import unpack
from saddleback.sampling.executors.task_book import Lot, carry_out


class Order(NamedTuple):
    """Which function a lot is for: its token, and a reference to it and to where its process finds modules.

    The reference is in a list because Ray would fetch it for every lot otherwise.
    """

    token: bytes
    reference: list[Any]


class Desk:
    """The simulator, the last function, and, where there is a timeout, a child process that can be ended."""

    def __init__(self, packed_factory: bytes | None, timeout: float | None):
        self._packed_factory, self._timeout = packed_factory, timeout
        self._simulator: Any = None
        self._child: Joblib | None = None
        self._token: bytes | None = None
        self._function: Callable[[Any], Any] | None = None

    def hello(self) -> bytes:
        """The worker is there: no outcomes."""
        return bytes(dumps_outcomes([]))

    def work(self, order: Order, lot: Lot) -> bytes:
        """The outcomes of a lot, packed: Ray's own arrays would be read-only and fill its store."""
        if order.token != self._token:
            packed, paths = importlib.import_module("ray").get(order.reference[0])
            sys.path.extend(path for path in paths if path not in sys.path)
            self._load(packed)
            self._token = order.token
        function, call = self._function, None if self._child is None else self._guarded
        assert function is not None
        return bytes(dumps_outcomes(carry_out(function, lot, call)))

    def _load(self, packed: bytes) -> None:
        factory = None if self._packed_factory is None else unpack(self._packed_factory)
        if self._timeout is not None:
            self._child = self._child or Joblib(1, timeout=self._timeout, factory=factory)
        elif factory is not None and self._simulator is None:
            self._simulator = factory()
        self._function = unpack(packed, self._simulator)

    def _guarded(self, task: Any) -> Any:
        assert self._child is not None and self._function is not None
        ((_, result),) = self._child.run(self._function, [task])
        return result


_desks: dict[float | None, Desk] = {}


def at_a_desk(order: Order, lot: Lot, timeout: float | None) -> bytes:
    """The same without an actor."""
    if timeout not in _desks:
        _desks[timeout] = Desk(None, timeout)
    return _desks[timeout].work(order, lot)
