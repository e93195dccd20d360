"""Tasks in worker processes of this machine, one conversation with each worker.

joblib packs what is sent and counts the cores. ``joblib.Parallel`` is not used: when a worker dies it gives up all of them
and does not say whose task it was. Here the parent holds one connection to each worker, hence

    it knows what each worker has:  a death or a timeout costs no other worker's work, and names the pair;
    the function goes to each worker once;
    tasks go out in lots of about 0.1 s, so that small ones do not wait for the parent, and the last lots are small.

Workers live until :meth:`Joblib.close`, the end of a ``with`` block or the end of the program, and serve one run after the
other. A run that is interrupted or abandoned ends them, by process id, with all they have started.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.util import Finalize
from typing import Any

from saddleback.errors import InputError, SaddlebackError
from saddleback.sampling.blocks import Closing, Result, Task
from saddleback.sampling.executors.processes import Ready, Worker, end
from saddleback.sampling.executors.shipping import Factory, Shipment, cannot_load, ship
from saddleback.sampling.executors.task_book import Ledger, Progress, check_options

LOT_SECONDS, LARGEST_LOT = 0.1, 64
LOOK = 1.0  # seconds after which silent workers are looked at, lest something they have started holds a connection open
PATIENCE = 2.0  # seconds workers have to end by themselves


class Joblib(Closing):
    """``workers`` processes (None: one a core). ``timeout`` is for one task, in seconds: a worker that takes longer is ended.

    ``factory()`` makes the simulator in each worker, once; without it the source's own is sent. ``retries`` says how often a
    task is tried again, with the same key, after its worker has died.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        timeout: float | None = None,
        retries: int = 1,
        factory: Factory | None = None,
        progress: Progress | None = None,
    ):
        check_options(workers, timeout, retries)
        self._num_workers, self._timeout, self._retries = workers, timeout, retries
        self._factory, self._progress = factory, progress
        self._staff: list[Worker] = []
        self._running = False
        self._false_starts = 0
        Finalize(self, end, (self._staff,), exitpriority=10)

    @property
    def workers(self) -> int:
        """How many processes there may be."""
        if self._num_workers is None:
            import joblib  # type: ignore[import-untyped]

            self._num_workers = int(joblib.cpu_count())
        return self._num_workers

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Every task with its result, as they are finished."""
        if self._running:
            raise InputError("executor", "must finish one run before the next", "two at a time", "use two executors")
        if not tasks:
            return
        ledger = Ledger(function, tasks, self._progress, self._retries)
        self._running, self._false_starts, finished = True, 0, False
        try:
            shipment = ship(function, self._factory)
            while ledger.num_pending or any(worker.lot for worker in self._staff):
                self._hire(ledger.num_pending)
                self._hand_out(shipment, ledger)
                yield from self._listen(shipment, ledger)
                self._end_late(ledger)
            finished = True
        finally:
            self._running = False
            if not finished:
                end(self._staff)
        ledger.close()

    def close(self) -> None:
        """End the workers; a later run starts new ones."""
        for worker in self._staff:
            worker.connection.close()  # an idle worker reads the end and leaves
        deadline = time.monotonic() + PATIENCE
        for worker in self._staff:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, deadline - time.monotonic()))
        end(self._staff)

    # ---- one turn of the loop ----------------------------------------------------------------------------------------

    def _hire(self, num_pending: int) -> None:
        """Start workers until there are enough for what is to be begun."""
        free = sum(not worker.lot for worker in self._staff)
        for _ in range(min(self.workers - len(self._staff), num_pending - free)):
            self._staff.append(Worker())

    def _hand_out(self, shipment: Shipment, ledger: Ledger[Any, Any]) -> None:
        """Give each idle worker the function if it does not have it, else its next lot."""
        for worker in self._staff:
            if worker.idle and ledger.num_pending:
                if worker.token != shipment.token:
                    worker.load(shipment)
                else:
                    worker.give(ledger.take(self.workers, LOT_SECONDS, LARGEST_LOT))

    def _listen(self, shipment: Shipment, ledger: Ledger[Task, Result]) -> Iterator[tuple[Task, Result]]:
        """Wait for news until the next deadline, and enter it."""
        patience = LOOK
        if self._timeout is not None:
            heard = [worker.heard for worker in self._staff if worker.lot]
            patience = max(0.0, min([LOOK, *(t + self._timeout - time.monotonic() for t in heard)]))
        talking = wait([worker.connection for worker in self._staff], patience)
        for worker in [
            w for w in self._staff if w.connection in talking or (not talking and w.process.poll() is not None)
        ]:
            try:
                message = worker.receive()
            except (EOFError, OSError):
                self._bury(worker, ledger)
                continue
            if isinstance(message, Ready):
                if message.problem is not None and message.token == shipment.token:  # not that of an earlier run
                    raise cannot_load(message.problem)
                continue
            self._false_starts = 0
            for outcome in message:
                yield from ledger.settle(outcome)

    def _end_late(self, ledger: Ledger[Any, Any]) -> None:
        """End workers at their deadline; what has been said by now is not late, however long this process was away."""
        if self._timeout is not None:
            for worker in [w for w in self._staff if w.lot and not w.connection.poll()]:
                if time.monotonic() > worker.heard + self._timeout:
                    self._staff.remove(worker)
                    worker.end()
                    ledger.late(worker.lot, self._timeout)

    def _bury(self, worker: Worker, ledger: Ledger[Any, Any]) -> None:
        self._staff.remove(worker)
        how = worker.end()
        if worker.lot:
            ledger.died(worker.lot, how)
            return
        self._false_starts += 1
        if self._false_starts > self.workers:
            raise SaddlebackError(f"worker processes die before their first task: the last one ended by {how}.")
