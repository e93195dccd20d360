"""Worker processes, both ends of one conversation: :class:`Worker` is the parent's, :func:`serve` runs in the process.

A worker first says that it is there, then reads messages: a function, which it keeps and acknowledges, or a lot of tasks. It
answers after every task, or, where they are quick, every 20 ms. It leads a process group of its own: an interrupt from the
keyboard reaches the parent only, and what a simulator has started ends with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from saddleback.sampling.executors.message_format import dumps, dumps_outcomes, loads
from saddleback.sampling.executors.shipping import Shipment, unpack
from saddleback.sampling.executors.task_book import Lot, Outcome, carry_out

ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA", "NUMEXPR")} | {
    "VECLIB_MAXIMUM_THREADS": "1"
}
"""The environment of a worker: as many processes as cores leave one thread to each."""

ANSWER = 0.02  # seconds of work after which results are sent
WATCH = 1.0  # seconds between two looks at the parent


class Ready(NamedTuple):
    """The worker is there (no token), or has the function of that token; or it could not take it, with the reason."""

    token: bytes | None = None
    problem: str | None = None


# ---- the parent's end -------------------------------------------------------------------------------------------------


class Worker:
    """``lot`` is what the worker has been given and not answered, in order; ``heard`` is when it last had or gave news."""

    def __init__(self, packed_factory: bytes | None):
        from joblib.externals.loky.backend.context import get_context  # type: ignore[import-untyped]

        self.connection, theirs = multiprocessing.Pipe()
        arguments = (theirs, packed_factory, os.getpid())
        self.process = get_context("loky").Process(target=serve, args=arguments, env=ONE_THREAD)
        self.process.start()
        theirs.close()
        self.lot: deque[int] = deque()
        self.ready = False
        self.token: bytes | None = None
        self.heard = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it is waiting for a message, so that sending one cannot block."""
        return self.ready and not self.lot

    def load(self, shipment: Shipment) -> None:
        """Send a function; the worker is ready again when it has it."""
        self.token, self.ready = shipment.token, False
        self._send(shipment)

    def give(self, lot: Lot) -> None:
        """Send tasks."""
        self.lot.extend(number for number, _ in lot)
        self._send(lot)

    def receive(self) -> Ready | list[Outcome]:
        """The next message; :class:`EOFError` if the worker has died."""
        if not self.connection.poll():
            raise EOFError  # dead, although something it has started holds its side open
        message: Ready | list[Outcome] = loads(self.connection.recv_bytes())
        self.heard = time.monotonic()
        if isinstance(message, Ready):
            self.ready = True
        else:
            for _ in message:
                self.lot.popleft()
        return message

    def end(self) -> str:
        """End the process, if it still lives, and all it has started; say how it ended."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # one that is dying already keeps its own exit code
        except (
            ProcessLookupError,
            PermissionError,
            AttributeError,
        ):  # not a group yet, or no more, or never on this system
            if self.process.exitcode is None:
                self.process.terminate()
        self.process.join()
        self.connection.close()
        code = self.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            return f"signal {name}" + (" (as when memory runs out)" if name == "SIGKILL" else "")
        return f"exit code {code}"

    def _send(self, message: object) -> None:
        self.heard = time.monotonic()
        with contextlib.suppress(OSError):  # it has died: the next reading says so
            self.connection.send_bytes(dumps(message))


def end(staff: list[Worker]) -> None:
    """End all of them."""
    for worker in staff:
        worker.end()
    staff.clear()


# ---- the worker's end -------------------------------------------------------------------------------------------------


def serve(connection: Connection, packed_factory: bytes | None, parent: int) -> None:
    """Answer the parent until it closes the connection or dies."""
    if hasattr(os, "setsid"):
        os.setsid()
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the parent has closed its side
        _converse(connection, packed_factory)


def _converse(connection: Connection, packed_factory: bytes | None) -> None:
    simulator: Any = None
    function: Callable[[Any], Any] | None = None
    connection.send_bytes(dumps(Ready()))
    while True:
        message: Shipment | Lot = loads(connection.recv_bytes())
        if isinstance(message, Shipment):
            problem = None
            try:
                if simulator is None and packed_factory is not None:
                    simulator = unpack(packed_factory)()
                function = unpack(message.packed, simulator)
            except (Exception, SystemExit) as error:
                problem = f"{type(error).__name__}: {error}"
            connection.send_bytes(dumps(Ready(message.token, problem)))
        else:
            assert function is not None
            _answer(connection, function, message)


def _answer(connection: Connection, function: Callable[[Any], Any], lot: Lot) -> None:
    outcomes, answered = list[Outcome](), time.monotonic()
    for outcome in carry_out(function, lot):
        outcomes.append(outcome)
        if time.monotonic() > answered + ANSWER or outcome.number == lot[-1][0]:
            connection.send_bytes(dumps_outcomes(outcomes))
            outcomes, answered = [], time.monotonic()


def _end_with(parent: int) -> None:
    """End this process and what it has started when the parent is gone, even in the middle of a long call."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
