"""Worker processes, both ends of one conversation: :class:`Worker` is the parent's, :func:`serve` runs in the process.

A worker first says that it is there, then reads messages: a function, which it keeps and acknowledges, or a lot of tasks. It
answers after every task, or, where they are quick, every 20 ms. It leads a session of its own: an interrupt from the
keyboard reaches the parent only, and what a simulator has started ends with it.

A worker is a new interpreter, not a fork of the parent, and does not import its main script again: so notebooks, scripts
without a main guard and programs with threads are all right. It looks for modules where the parent does.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from saddleback.sampling.executors.shipping import Shipment, dumps, dumps_outcomes, loads, unpack
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

    def __init__(self) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs:
            begin = f"import sys; sys.path[:] = {list(map(str, sys.path))}; from {__name__} import serve; "
            self.process = subprocess.Popen(
                [sys.executable, "-c", begin + f"serve({theirs.fileno()}, {os.getpid()})"],
                env=os.environ | ONE_THREAD,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                stdin=subprocess.DEVNULL,
            )
        self.lot: deque[int] = deque()
        self.ready = False
        self.token: bytes | None = None
        self.heard = time.monotonic()

    @property
    def idle(self) -> bool:
        """Whether it is waiting for a message, so that sending one cannot block."""
        return self.ready and not self.lot

    def load(self, shipment: Shipment) -> None:
        """Send a function, and with the first one the factory; the worker is ready again when it has it."""
        self._send(shipment if self.token is None else shipment._replace(factory=None))
        self.token, self.ready = shipment.token, False

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
        with contextlib.suppress(ProcessLookupError, PermissionError):  # no more: it and all it has started are gone
            os.killpg(self.process.pid, signal.SIGKILL)  # one that is dying already keeps its own exit code
        code = self.process.wait()
        self.connection.close()
        if code < 0:
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


def serve(file: int, parent: int) -> None:
    """Answer the parent, a process with this id, until it closes the connection or dies."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with contextlib.suppress(EOFError, OSError):  # the parent has closed its side
        _converse(Connection(file))


def _converse(connection: Connection) -> None:
    simulator: Any = None
    function: Callable[[Any], Any] | None = None
    connection.send_bytes(dumps(Ready()))
    while True:
        message: Shipment | Lot = loads(connection.recv_bytes())
        if isinstance(message, Shipment):
            problem = None
            try:
                if message.factory is not None:
                    simulator = unpack(message.factory)()
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
    os.killpg(0, signal.SIGKILL)
