"""An executor that says how far it is: ``progress(what, done, total, failures)`` after every block."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from saddleback.sampling.blocks import Executor
from saddleback.simulators.generative_model import Stream

_LABELS = {
    Stream.SOLVER: "samples to solve",
    Stream.EVALUATION: "samples to evaluate",
    Stream.CERTIFICATE: "samples to certify",
    Stream.ROLLOUT: "rollouts to certify",
}


class ShowProgress(Protocol):
    """Told how far a run is; ``failures`` are those that were survived, such as workers that died and were replaced."""

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        """``done`` of ``total``; a smaller number than before begins anew."""
        ...


class Failures:
    """The ``progress`` of an executor, of which the number of failures of the run under way is kept."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, done_tasks: int, done_samples: int, failures: int) -> None:
        """What executors call after every task."""
        self.number = failures


class Watched:
    """Carries out blocks with ``inner`` and counts their samples; ``failures`` is what ``inner`` reports to."""

    def __init__(self, inner: Executor, progress: ShowProgress, failures: Failures) -> None:
        self._inner, self._progress, self._failures = inner, progress, failures

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every block with its result."""
        done, total = 0, sum(task.size for task in tasks)
        for task, result in self._inner.run(function, tasks):
            done += task.size
            self._progress(_LABELS.get(task.stream, "samples"), done, total, self._failures.number)
            yield task, result

    def close(self) -> None:
        """Let go of what ``inner`` has started."""
        self._inner.close()
