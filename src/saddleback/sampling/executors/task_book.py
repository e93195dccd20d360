"""What became of every task of a run: results handed on, faults kept until the end, deaths counted.

When a task fails, no new one is begun, those under way are finished and handed on, and only then the fault is raised (the
first in the order of the tasks). It is not tried with another seed, since failures may go with outcomes and a second draw
would bias the samples. Only when the *process* that carried it out has died, of a segmentation fault or for want of memory,
the same key is tried again, ``retries`` times. Errors travel between processes as data (:class:`Fault`), because exceptions
with several arguments do not survive pickling; the traceback of the other process is a note below the message.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple

from saddleback import errors
from saddleback.errors import SaddlebackError, SimulatorError, at_least, require, what_happened
from saddleback.problem.alarm import MOST_SECONDS
from saddleback.problem.user_code import is_interrupt
from saddleback.sampling.blocks import Block, Result, Source, Task

Progress = Callable[[int, int, int], object]
"""``progress(done_tasks, done_samples, failures)``, called after every task; failures that were tried again count too."""

Lot = list[tuple[int, Any]]
"""Tasks with their numbers."""

_MOST_WORKERS = 10_000
_LONGEST_TRACE = 20_000  # characters of another process's traceback


class Fault(NamedTuple):
    """An error on its way between processes: a type of ours with its contents, or None with one sentence."""

    kind: type[SaddlebackError] | None
    args: tuple[Any, ...]
    contents: dict[str, Any]
    trace: str

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """Take an error apart."""
        trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
        if isinstance(error, SaddlebackError):
            return cls(type(error), error.args, dict(error.__dict__), trace)
        return cls(None, (what_happened(error),), {}, trace)

    def error(self, function: Callable[..., Any], task: Any) -> SaddlebackError:
        """Put it together again."""
        if self.kind is None:
            error = failure(function, task, self.args[0])
        else:
            error = self.kind.__new__(self.kind, *self.args)
            error.__dict__.update(self.contents)
        error.add_note(f"In the worker process:\n{self.trace}")
        return error


class Outcome(NamedTuple):
    """A task's result or fault, the simulator calls it made and the seconds it took."""

    number: int
    result: Any
    fault: Fault | None
    num_queries: int
    seconds: float


def carry_out(function: Callable[[Any], Any], lot: Lot, call: Callable[[Any], Any] | None = None) -> Iterator[Outcome]:
    """One task after the other; whatever goes wrong is part of the outcome. ``call`` is called in place of ``function``."""
    source = source_of(function)
    for number, task in lot:
        began, before = time.perf_counter(), meter(source)
        result, fault = None, None
        try:
            result = (call or function)(task)
        except BaseException as error:  # simulators that call sys.exit do not end the run
            if is_interrupt(error):
                raise
            fault = Fault.of(error)
        yield Outcome(number, result, fault, meter(source) - before, time.perf_counter() - began)


def failure(function: Callable[..., Any], task: Any, problem: str) -> SaddlebackError:
    """The error for a task that failed: it names the pair and the seed key where blocks are drawn."""
    source = source_of(function)
    if source is not None and isinstance(task, Block):
        return source.fault(task, problem)
    return SaddlebackError(f"the task {task} {problem}.")


def wrapped(function: Callable[..., Any], task: Any, error: BaseException) -> SaddlebackError:
    """The same for an error in this process, which stays its cause."""
    if isinstance(error, SaddlebackError):
        return error
    found = failure(function, task, what_happened(error))
    found.__cause__ = error
    return found


def source_of(function: Callable[..., Any]) -> Source | None:
    """The source whose ``draw`` this is, or None."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, Source) else None


def meter(source: Source | None) -> int:
    """The simulator calls that a source has counted; 0 without one."""
    return 0 if source is None else source.model.num_queries


class Ledger(Generic[Task, Result]):
    """The books of one run; see the module's first lines. Tasks go by their position in the list."""

    def __init__(
        self, function: Callable[[Task], Result], tasks: Sequence[Task], progress: Progress | None, retries: int = 0
    ):
        self._function, self._tasks, self._progress, self._retries = function, tasks, progress, retries
        self._source = source_of(function)
        self._waiting, self._suspects = deque(range(len(tasks))), deque[int]()
        self._errors: dict[int, SaddlebackError] = {}
        self._deaths: dict[int, int] = {}
        self._num_done = self._num_samples = self._num_failures = 0
        self._seconds = 0.0

    @property
    def num_pending(self) -> int:
        """How many tasks are still to be begun: none once one has failed."""
        return 0 if self._errors else len(self._waiting) + len(self._suspects)

    def take(self, workers: int, seconds: float, most: int) -> Lot:
        """The next lot for one worker: about ``seconds`` of work, and at most half its share of what is left.

        The first lots are single tasks, to see how long they take. So are tasks of a lot whose worker has died or was late:
        alone, they show which of them it was.
        """
        if self._suspects:
            number = self._suspects.popleft()
            return [(number, self._tasks[number])]
        each = self._seconds / self._num_done if self._num_done else seconds
        size = min(most, int(seconds / max(each, 1e-9)), len(self._waiting) // (2 * workers))
        return [(i, self._tasks[i]) for i in (self._waiting.popleft() for _ in range(max(1, size)))]

    def settle(self, outcome: Outcome) -> Iterator[tuple[Task, Result]]:
        """Enter an outcome from another process; hand the result on if there is one."""
        task = self._tasks[outcome.number]
        if self._source is not None:
            self._source.account(outcome.num_queries)
        if outcome.fault is None:
            self.enter(outcome.num_queries, outcome.seconds)
            yield task, outcome.result
        else:
            self.fail(outcome.number, outcome.fault.error(self._function, task))

    def enter(self, num_queries: int, seconds: float = 0.0) -> None:
        """A task is done, with so many simulator calls."""
        self._num_done += 1
        self._num_samples += num_queries
        self._seconds += seconds
        self._report()

    def fail(self, number: int, error: SaddlebackError) -> None:
        """A task has failed for good."""
        self._errors[number] = error
        self._num_failures += 1
        self._report()

    def late(self, numbers: Sequence[int], timeout: float) -> None:
        """A worker was ended for taking too long over one of these tasks: if that was the only one, it has failed."""
        if len(numbers) > 1:
            self._suspects.extend(numbers)
        else:
            problem = f"did not return within the timeout of {timeout:g} s; its worker process was ended"
            self._ended(numbers[0], problem)

    def died(self, numbers: Sequence[int], how: str) -> None:
        """A worker has died over one of these tasks; one that was alone and has no tries left has failed."""
        for number in numbers:
            deaths = self._deaths[number] = self._deaths.get(number, 0) + 1
            if deaths > self._retries and len(numbers) == 1:
                times = "once" if deaths == 1 else f"{deaths} times with the same seed key"
                problem = f"ended its worker process {times}, the last time by {how}"
                self._ended(number, problem)
            else:
                self._suspects.append(number)
        if not self._errors:
            self._num_failures += 1
            self._report()

    def _ended(self, number: int, problem: str) -> None:
        error = failure(self._function, self._tasks[number], problem)
        if isinstance(error, SimulatorError):
            error.ended = True
        self.fail(number, error)

    def close(self) -> None:
        """The end of the run: raise the first fault, if there was one."""
        if self._errors:
            raise self._errors[min(self._errors)]

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self._num_done, self._num_samples, self._num_failures)


def check_options(workers: int | None, timeout: float | None, retries: int = 0, patience: float = 1.0) -> None:
    """Refuse options that make no sense."""
    if workers is not None:
        at_least("workers", workers, 1, _MOST_WORKERS, "say how many processes draw samples, 1 for this one alone")
    if timeout is not None:
        errors.number("timeout", timeout, 0, MOST_SECONDS, open_low=True, remedy="give seconds for one task")
    require(retries >= 0, "retries", "must not be negative", retries, "0 stops at the first death of a worker")
    require(patience > 0, "patience", "must be positive", patience, "give seconds to wait for a node")
