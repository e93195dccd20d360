"""The parent's side of one worker process: start it, talk to it, end it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections import deque

from saddleback.sampling.executors.message_format import dumps, loads
from saddleback.sampling.executors.shipping import Shipment
from saddleback.sampling.executors.task_book import Lot, Outcome
from saddleback.sampling.executors.worker import ONE_THREAD, Ready, serve


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
