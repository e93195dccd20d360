"""Executors that look at what another one draws: how far it is, and whether it can be drawn again.

:class:`Watched` calls ``progress(what, done, total, failures)`` after every block. :class:`Replayed` draws one in a hundred
of the blocks that are kept again, and compares:

    forward:    b₁ b₂ … b_k    in the run: their digests are kept
    backward:   b_k … b₂ b₁    at the end of the run, with the same keys, eight at a time

A simulator that ignores its random generator, or remembers earlier calls, gives other samples the second time. Samples that
are kept nowhere need not be repeatable, so none is drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from saddleback.problem.digest import digest
from saddleback.sampling.blocks import Block, BlockSource, Executor
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import CAUSE, CHECK_CALLS
from saddleback.simulators.generative_model import Stream

_REPLAYED = 100  # one block in so many is drawn again
_AT_A_TIME = 8
_LABELS = {
    Stream.SOLVER: "samples to solve",
    Stream.EVALUATION: "samples to evaluate",
    Stream.CERTIFICATE: "samples to certify",
    Stream.ROLLOUT: "rollouts to certify",
    Stream.AVERAGE: "rollouts for averages",
}


class ShowProgress(Protocol):
    """Told how far a run is; ``failures`` are those that were survived, such as workers that died and were replaced."""

    def __call__(self, what: str, done: int, total: int, failures: int = 0) -> None:
        """``done`` of ``total``; a smaller number than before begins anew."""
        ...


class Watched:
    """Carries out blocks with ``inner``, which is told :meth:`note_failures`, and counts their samples."""

    inner: Executor

    def __init__(self, progress: ShowProgress) -> None:
        self._progress, self._failures = progress, 0

    def note_failures(self, done_tasks: int, done_samples: int, failures: int) -> None:
        """What executors call after every task: the failures of the run under way are kept."""
        self._failures = failures

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every block with its result."""
        done, total = 0, sum(task.size for task in tasks)
        for task, result in self.inner.run(function, tasks):
            done += task.size
            self._progress(_LABELS.get(task.stream, "samples"), done, total, self._failures)
            yield task, result

    def close(self) -> None:
        """Let go of what ``inner`` has started."""
        self.inner.close()


class Replayed:
    """Carries out tasks with ``inner``; blocks that ``kept`` keeps are drawn again by the executor inside it.

    ``check_calls`` counts what was drawn only to be compared, the probes of the fingerprint among them; ``finding`` says
    where the simulator did not repeat itself.
    """

    def __init__(self, inner: Executor, kept: Durable | None = None, finding: str | None = None) -> None:
        self._inner, self.kept = inner, kept
        self.check_calls, self.finding = CHECK_CALLS, finding
        self._seen = self._replayed = 0

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every task with its result."""
        source = getattr(function, "__self__", None)
        if self.kept is None or not isinstance(source, BlockSource):
            yield from self._inner.run(function, tasks)
            return
        chosen, digests = self._to_replay(tasks), dict[Block, str]()
        for task, result in self._inner.run(function, tasks):
            if task in chosen:
                digests[task] = digest(*result)
            yield task, result
        self._replay(source, digests, self.kept.inner)

    def close(self) -> None:
        """Let go of what ``inner`` has started."""
        self._inner.close()

    def report(self) -> dict[str, Any]:
        """For the JSON of an answer; a run too short for a block to be drawn again has not been checked."""
        checked: bool | str = "not checked" if self.finding is None and not self._replayed else self.finding is None
        return {"check_calls": self.check_calls, "reproducible": checked}

    def _to_replay(self, tasks: Sequence[Block]) -> set[Block]:
        """As many as are due by now, evenly spaced."""
        self._seen += len(tasks)
        due = min(len(tasks), self._seen // _REPLAYED - self._replayed)
        self._replayed += due
        return {tasks[i * len(tasks) // due] for i in range(due)}

    def _replay(self, source: BlockSource, digests: dict[Block, str], carrier: Executor) -> None:
        """Draw blocks again and compare, a few at a time, each few from the last to the first: with another history."""
        blocks, before = sorted(digests), source.model.num_queries
        different: list[Block] = []
        try:
            for first in range(0, len(blocks), _AT_A_TIME):
                few = blocks[first : first + _AT_A_TIME]
                again = carrier.run(source.draw, few[::-1])
                different += sorted(block for block, draw in again if digest(*draw) != digests[block])
        finally:
            calls = source.model.num_queries - before
            source.account(-calls)
            self.check_calls += calls
        for block in different[:1]:
            x = block.pair - source.first_pair
            self.finding = self.finding or (
                f"the simulator is not reproducible: pair {block.pair} (state {source.states[x]}, action "
                f"{source.actions[x]}) gave other samples when drawn again with the seed key (seed, stream, pair, block) = "
                f"{source.key(block)} ({len(blocks)} blocks drawn again, {calls:,} calls, {len(different)} with other "
                f"samples); it {CAUSE}"
            )
