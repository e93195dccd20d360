"""Tasks in worker processes of this machine, one conversation with each worker.

joblib packs what is sent and counts the cores. ``joblib.Parallel`` is not used: when a worker dies it gives up all of them
and does not say whose task it was. Here the parent holds one connection to each worker, hence

    it knows what each worker has:  a death or a timeout costs no other worker's work, and names the pair;
    the function goes to each worker once;
    tasks go out in lots of about 0.1 s, so that small ones do not wait for the parent, and the last lots are small.

A worker (:func:`serve`; :class:`Worker` is the parent's end) reads functions, which it keeps, and lots of tasks, which it
answers task by task, or, where they are quick, every 20 ms. It is a new interpreter that neither forks the parent nor imports
its main script again, so notebooks, scripts without a main guard and programs with threads are all right. It leads a session
of its own: an interrupt from the keyboard reaches the parent only, and what a simulator has started ends with it. Workers
serve one run after the other until :meth:`Joblib.close`; a run that is interrupted or abandoned ends them.

On Windows, which has no sessions, the worker calls the parent at an address, with a key that it reads from its standard input,
and ends when that is closed. What a simulator has started is not ended there.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Client, Connection, Listener, wait
from multiprocessing.util import Finalize
from typing import Any, NamedTuple

from saddleback.errors import InputError, SaddlebackError, named
from saddleback.problem.user_code import state
from saddleback.sampling.blocks import Closing, Result, Task
from saddleback.sampling.executors import shipping
from saddleback.sampling.executors.shipping import Factory, Shipment
from saddleback.sampling.executors.task_book import Ledger, Lot, Outcome, Progress, carry_out, check_options

LOT_SECONDS, LARGEST_LOT = 0.1, 64
LOOK = 1.0  # seconds after which silent workers are looked at, lest something they have started holds a connection open
PATIENCE = 2.0  # seconds workers have to end by themselves
ANSWER = 0.02  # seconds of work after which results are sent
WATCH = 1.0  # seconds between two looks at the parent
SESSIONS = hasattr(os, "killpg")  # and descriptors that a child inherits: not on Windows
_THREADED = "OMP_NUM OPENBLAS_NUM MKL_NUM BLIS_NUM NUMBA_NUM NUMEXPR_NUM VECLIB_MAXIMUM"
ONE_THREAD = {f"{name}_THREADS": "1" for name in _THREADED.split()}
"""The environment of a worker: as many processes as cores leave one thread to each."""


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
            shipment = shipping.ship(function, self._factory)
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

    def in_order(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results in the order of the tasks, which one worker carries out one after the other."""
        workers, self._num_workers = self._num_workers, 1
        try:
            found = dict(self.run(function, tasks))
        finally:
            self._num_workers = workers
        return [found[task] for task in tasks]

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
                    raise shipping.cannot_load(message.problem)
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


# ---- the parent's end -------------------------------------------------------------------------------------------------


class Ready(NamedTuple):
    """The worker is there (no token), or has the function of that token; or it could not take it, with the reason."""

    token: bytes | None = None
    problem: str | None = None


class Worker:
    """``lot`` is what the worker has been given and not answered, in order; ``heard`` is when it last had or gave news."""

    def __init__(self) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs:
            if SESSIONS:
                call, quiet = f"serve({theirs.fileno()}, {os.getpid()})", subprocess.DEVNULL
                self.process = self._start(call, pass_fds=[theirs.fileno()], start_new_session=True, stdin=quiet)
            else:
                self._be_called()
        self.lot: deque[int] = deque()
        self.ready = False
        self.token: bytes | None = None
        self.heard = time.monotonic()

    def _start(self, call: str, **options: Any) -> subprocess.Popen[bytes]:
        begin = f"import sys; sys.path[:] = {list(map(str, sys.path))}; from {__name__} import serve, serve_at; "
        return subprocess.Popen([sys.executable, "-c", begin + call], env=os.environ | ONE_THREAD, **options)

    def _be_called(self) -> None:
        """Start the process and wait until it has called, or has ended; then it is found dead at the first reading."""
        key, group = os.urandom(32), getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
        with Listener(authkey=key) as listener:
            call = f"serve_at({listener.address!r})"
            self.process = self._start(call, stdin=subprocess.PIPE, bufsize=0, creationflags=group)
            with suppress(OSError):
                self.process.stdin.write(key)  # type: ignore[union-attr]
            calls: list[Connection] = []
            answering = threading.Thread(target=lambda: calls.append(listener.accept()), daemon=True)
            answering.start()
            while answering.is_alive() and self.process.poll() is None:
                answering.join(ANSWER)
        if calls:
            self.connection.close()
            self.connection = calls[0]

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
        message: Ready | list[Outcome] = shipping.loads(self.connection.recv_bytes())
        self.heard = time.monotonic()
        if isinstance(message, Ready):
            self.ready = True
        else:
            for _ in message:
                self.lot.popleft()
        return message

    def end(self) -> str:
        """End the process, if it still lives, and all it has started; say how it ended."""
        if SESSIONS:
            with suppress(ProcessLookupError, PermissionError):  # no more: it and all it has started are gone
                os.killpg(self.process.pid, signal.SIGKILL)  # one that is dying already keeps its own exit code
        with suppress(ProcessLookupError, PermissionError):  # a group that may not be ended whole
            self.process.kill()
        code = self.process.wait()
        self.connection.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        if code < 0:
            name = signal.Signals(-code).name
            return f"signal {name}" + (" (as when memory runs out)" if name == "SIGKILL" else "")
        return f"exit code {code}"

    def _send(self, message: object) -> None:
        self.heard = time.monotonic()
        with suppress(OSError):  # it has died: the next reading says so
            self.connection.send_bytes(shipping.dumps(message))


def end(staff: list[Worker]) -> None:
    """End all of them."""
    for worker in staff:
        worker.end()
    staff.clear()


# ---- the worker's end -------------------------------------------------------------------------------------------------


def serve(file: int, parent: int) -> None:
    """Answer the parent, a process with this id, until it closes the connection or dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's business
    state.watching = True  # so an interrupt that is raised here is the simulator's
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent has closed its side
        _converse(Connection(file))


def serve_at(address: str) -> None:
    """The same for a parent that is called at this address; the standard input has the key, and is closed when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    state.watching = True
    parent = open(os.dup(0), "rb", buffering=0)  # noqa: SIM115 - until this process ends
    with open(os.devnull, "rb") as nothing:  # for the simulator
        os.dup2(nothing.fileno(), 0)
    key = parent.read(32)
    threading.Thread(target=lambda: (parent.read(1), os._exit(1)), daemon=True).start()
    with suppress(EOFError, OSError), Client(address, authkey=key) as connection:
        _converse(connection)


def _converse(connection: Connection) -> None:
    simulator: Any = None
    function: Callable[[Any], Any] | None = None
    connection.send_bytes(shipping.dumps(Ready()))
    while True:
        message: Shipment | Lot = shipping.loads(connection.recv_bytes())
        if isinstance(message, Shipment):
            problem = None
            try:
                if message.factory is not None:
                    simulator = shipping.unpack(message.factory)()
                function = shipping.unpack(message.packed, simulator)
            except BaseException as error:
                problem = named(error)
            connection.send_bytes(shipping.dumps(Ready(message.token, problem)))
        else:
            assert function is not None
            _answer(connection, function, message)


def _answer(connection: Connection, function: Callable[[Any], Any], lot: Lot) -> None:
    outcomes, answered = list[Outcome](), time.monotonic()
    for outcome in carry_out(function, lot):
        outcomes.append(outcome)
        if time.monotonic() > answered + ANSWER or outcome.number == lot[-1][0]:
            connection.send_bytes(shipping.dumps_outcomes(outcomes))
            outcomes, answered = [], time.monotonic()


def _end_with(parent: int) -> None:
    """End this process and what it has started when the parent is gone, even in the middle of a long call."""
    while os.getppid() == parent:
        time.sleep(WATCH)
    os.killpg(0, signal.SIGKILL)
