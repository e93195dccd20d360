"""Tasks on a Ray cluster (an extra): plain Ray tasks for light simulators, actors that stay warm for heavy ones.

With ``factory`` every worker is an actor that makes its simulator once and keeps it; without, workers are whatever processes
Ray lends, and each keeps the last function it was given at its :class:`Desk`. A function is put into the object store once;
results leave it at once, since it is no place for a buffer. Lots of about 0.5 s hide Ray's own cost.

Ray's retries are off: when a worker or its node dies, what it had is submitted again here, task by task, with the same keys,
so that the books say how often and the error whose task it was. When ``options`` ask for what no living node has, the run
waits ``patience`` seconds for one and then says so. With ``timeout`` each task runs in a child process of the Ray worker (a
:class:`~saddleback.sampling.executors.joblib.Joblib` with one worker), where it can be ended. Ray gives one thread to tasks
that ask for one core, as these do, unless the nodes' environment says otherwise.
"""

from __future__ import annotations

import functools
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from saddleback.errors import SaddlebackError
from saddleback.sampling.blocks import Closing, Result, Task
from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.executors.ray_cluster import PATIENCE, Connection, remote
from saddleback.sampling.executors.shipping import Factory, cannot_load, dumps_outcomes, loads, pack, ship, unpack
from saddleback.sampling.executors.task_book import Ledger, Lot, Outcome, Progress, carry_out, check_options

LOT_SECONDS, LARGEST_LOT = 0.5, 256
LOOK = 2.0  # seconds of silence after which the cluster is looked at

Order = tuple[bytes, list[Any]]
"""Which function a lot is for: its token, and in a list, since Ray would fetch it for every lot otherwise, a reference to it."""

Away = dict[Any, tuple[Lot, Any]]
"""By Ray's reference to what is to come: the lot, and the actor that has it, if any; an actor that starts has no lot."""


class Ray(Closing):
    """At most ``workers`` tasks at a time (None: as many as the cluster has cores).

    ``address`` names a cluster ("auto": the one on this machine). Without it the one this program is connected to is used,
    or that of the environment's ``RAY_ADDRESS``, or a local one is started and shut down again by :meth:`close`, the end of a ``with`` block or the end of the program.
    ``options`` go to Ray with every task or actor, such as ``{"num_gpus": 1}``. The rest is as for ``Joblib``.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        address: str | None = None,
        timeout: float | None = None,
        retries: int = 1,
        factory: Factory | None = None,
        progress: Progress | None = None,
        options: dict[str, Any] | None = None,
        patience: float = PATIENCE,
    ):
        check_options(workers, timeout, retries, patience)
        self._num_workers, self._address, self._timeout, self._retries = workers, address, timeout, retries
        self._factory, self._progress = factory, progress
        self._options = {"num_cpus": 1, **(options or {})}
        self._idle: list[Any] = []
        self._false_starts = 0
        self._patience = patience
        self._connection: Connection | None = None

    @property
    def workers(self) -> int:
        """How many tasks may run at a time."""
        return self._num_workers or max(1, int(self._connect().cluster_resources().get("CPU", 1)))

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Every task with its result, as the lots are finished."""
        if not tasks:
            return
        ledger = Ledger(function, tasks, self._progress, self._retries)
        ray, workers = self._connect(), self.workers
        shipment = ship(function, self._factory)
        order = shipment.token, [ray.put((shipment.packed, sys.path))]
        self._false_starts, away = 0, Away()
        try:
            self._call_roll(away)
            while ledger.num_pending or any(lot for lot, _ in away.values()):
                if self._factory is None:
                    self._send_tasks(order, ledger, away, workers)
                else:
                    self._send_actors(order, ledger, away, workers)
                for reference in self._news(ray, away):
                    for outcome in self._receive(ray, reference, ledger, away):
                        yield from ledger.settle(outcome)
        finally:
            # What an interrupt or an error left, and actors that came too late.
            for reference, (_, actor) in away.items():
                ray.cancel(reference, force=True) if actor is None else ray.kill(actor)
        ledger.close()

    def in_order(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results in the order of the tasks, of which one at a time is away."""
        self._connect()  # to a cluster for all workers
        workers, self._num_workers = self._num_workers, 1
        try:
            found = dict(self.run(function, tasks))
        finally:
            self._num_workers = workers
        return [found[task] for task in tasks]

    def close(self) -> None:
        """Let the actors go, and shut down the cluster if it was started here."""
        for actor in self._idle:
            self._connect().kill(actor)
        self._idle.clear()
        if self._connection is not None:
            self._connection.release()
            self._connection = None

    # ---- one turn of the loop ----------------------------------------------------------------------------------------

    def _send_tasks(self, order: Order, ledger: Ledger[Any, Any], away: Away, workers: int) -> None:
        task = remote(at_a_desk).options(max_retries=0, **self._options)
        while ledger.num_pending and len(away) < workers:
            lot = ledger.take(workers, LOT_SECONDS, LARGEST_LOT)
            away[task.remote(order, lot, self._timeout)] = lot, None

    def _send_actors(self, order: Order, ledger: Ledger[Any, Any], away: Away, workers: int) -> None:
        """Start actors until there are enough, and give lots to those that are there: one may never find a place."""
        free = len(self._idle) + sum(not lot for lot, _ in away.values())
        for _ in range(min(workers - len(self._idle) - len(away), ledger.num_pending - free)):
            desk = remote(Desk).options(max_restarts=0, max_task_retries=0, **self._options)
            assert self._factory is not None
            actor = desk.remote(pack(self._factory), self._timeout)
            away[actor.hello.remote()] = [], actor
        while ledger.num_pending and self._idle:
            actor, lot = self._idle.pop(), ledger.take(workers, LOT_SECONDS, LARGEST_LOT)
            away[actor.work.remote(order, lot)] = lot, actor

    def _receive(self, ray: Any, reference: Any, ledger: Ledger[Any, Any], away: Away) -> list[Outcome]:
        """A lot's outcomes; none if its worker has died, which is entered."""
        lot, actor = away.pop(reference)
        try:
            outcomes: list[Outcome] = loads(ray.get(reference))
        except ray.exceptions.RayTaskError as error:  # our own code failed there: it could not load something
            raise cannot_load(f"{type(error.cause).__name__}: {error.cause}") from error
        except ray.exceptions.RayError as error:
            how = f"{type(error).__name__} ({str(error).splitlines()[0]})"
            self._false_starts += not lot
            if self._false_starts > 3 * self.workers:
                raise SaddlebackError(f"Ray's workers die before their first task: the last one by {how}.") from error
            if lot:
                ledger.died([number for number, _ in lot], how)
            self._call_roll(away)
            return []
        if actor is not None:
            self._idle.append(actor)
        return outcomes

    def _call_roll(self, away: Away) -> None:
        """Idle actors have to answer before they get work: they may have died with their node."""
        for actor in self._idle:
            away[actor.hello.remote()] = [], actor
        self._idle.clear()

    def _news(self, ray: Any, away: Away) -> list[Any]:
        """References that are ready: one at least. Nobody is waited for who cannot come."""
        lost = None
        while True:
            ready: list[Any] = ray.wait(list(away), timeout=LOOK)[0]
            if ready:
                return ready
            assert self._connection is not None
            problem = self._connection.homeless(self._options)
            lost = None if problem is None else lost or time.monotonic()
            if lost is not None and time.monotonic() > lost + self._patience:
                raise SaddlebackError(f"no node of the cluster can draw samples: {problem}.")

    def _connect(self) -> Any:
        if self._connection is None or not self._connection.ray.is_initialized():
            self._connection = Connection("executor", self._address, self._num_workers)
        return self._connection.ray


# ---- the other side ----------------------------------------------------------------------------------------------------


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
        return dumps_outcomes([])

    def work(self, order: Order, lot: Lot) -> bytes:
        """The outcomes of a lot, packed: Ray's own arrays would be read-only and fill its store."""
        token, (reference,) = order
        if token != self._token:
            packed, paths = importlib.import_module("ray").get(reference)
            sys.path.extend(path for path in paths if path not in sys.path)
            self._load(packed)
            self._token = token
        function, call = self._function, None if self._child is None else self._guarded
        assert function is not None
        return dumps_outcomes(carry_out(function, lot, call))

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


_desk = functools.cache(Desk)


def at_a_desk(order: Order, lot: Lot, timeout: float | None) -> bytes:
    """The same without an actor."""
    return _desk(None, timeout).work(order, lot)
