"""One task after the other: in this process, or, with a timeout, in one child process that can be ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from saddleback.problem.user_code import is_interrupt
from saddleback.sampling.blocks import Closing, Result, Task
from saddleback.sampling.executors.joblib import Joblib
from saddleback.sampling.executors.task_book import Ledger, Progress, check_options, meter, source_of, wrapped


class Serial(Closing):
    """``timeout`` (seconds for one task) needs a child process; it also outlives simulators that end their process."""

    workers = 1

    def __init__(self, *, timeout: float | None = None, retries: int = 1, progress: Progress | None = None):
        check_options(1, timeout, retries)
        self._progress = progress
        self._child = None if timeout is None else Joblib(1, timeout=timeout, retries=retries, progress=progress)

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Every task with its result, in the order given."""
        if self._child is not None:
            yield from self._child.run(function, tasks)
            return
        ledger = Ledger(function, tasks, self._progress)
        source = source_of(function)
        for index, task in enumerate(tasks):
            before = meter(source)
            try:
                result = function(task)
            except BaseException as error:
                if is_interrupt(error):
                    raise
                ledger.fail(index, wrapped(function, task, error))
                break
            ledger.enter(meter(source) - before)
            yield task, result
        ledger.close()

    def in_order(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
        """The results in the order of the tasks."""
        return [result for _, result in self.run(function, tasks)]

    def close(self) -> None:
        """End the child, if there is one."""
        if self._child is not None:
            self._child.close()
