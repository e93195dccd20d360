"""Who draws the samples, and where they are kept: options that no answer depends on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console

from saddleback.instances.instance import Instance
from saddleback.reports.listeners import BY_NAME as CALLBACKS
from saddleback.sampling.blocks import Block, BlockSource, Executor, InOrder
from saddleback.sampling.executors import BY_NAME, make
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import CHECK_CALLS, UnrepeatableError, fingerprint_of
from saddleback.simulators.generative_model import Draw, Stream
from saddleback.solving.progress import Display

Workers = Annotated[int, typer.Option(help="Processes that draw samples; the answer does not depend on it.")]
ExecutorName = Annotated[
    str | None, typer.Option(help=f"One of {', '.join(BY_NAME)}.", show_default="joblib for more than one worker")
]
Timeout = Annotated[float | None, typer.Option(help="Seconds that one block, up to 4,096 samples, may take.")]
Callbacks = Annotated[
    list[str] | None,
    typer.Option(
        "--callback", help=f"name:place, who else is told what happens; {', '.join(CALLBACKS)}. May be repeated."
    ),
]

_LABELS = {
    Stream.SOLVER: "samples to solve",
    Stream.EVALUATION: "samples to evaluate",
    Stream.CERTIFICATE: "samples to certify",
    Stream.ROLLOUT: "rollouts to certify",
}
_REPLAYED = 100  # one block in so many is drawn again
_AT_A_TIME = 8


class Drawing(NamedTuple):
    """How samples are drawn."""

    workers: int = 1
    name: str | None = None
    timeout: float | None = None

    @contextmanager
    def executor(
        self,
        instance: Instance,
        folder: Path | None,
        display: Display,
        *,
        fields: dict[str, Any] | None = None,
        counts: bool = False,
    ) -> Iterator[Watched]:
        """The executor, which keeps samples in ``folder`` if there is one.

        ``fields`` is what the samples depend on besides the problem; ``counts`` keeps them as counts where states are finite.
        """
        failures = _Failures()
        inner: Executor = InOrder()
        if (self.workers, self.name, self.timeout) != (1, None, None):
            inner = make(self.name, self.workers, timeout=self.timeout, progress=failures)
        if folder is None:
            try:
                yield Watched(inner, display, failures, finding=_unrepeatable(instance))
            finally:
                if hasattr(inner, "close"):
                    inner.close()
            return
        fingerprint = {**fingerprint_of(instance.problem, instance.simulator), **(fields or {})}
        with Durable(folder, fingerprint, inner, counts=counts) as durable:
            yield Watched(durable, display, failures, replay_with=inner)


def _unrepeatable(instance: Instance) -> str | None:
    """What shows that a run cannot be repeated; samples that are not kept need not be."""
    try:
        fingerprint_of(instance.problem, instance.simulator)
    except UnrepeatableError as error:
        return str(error)
    return None


class _Failures:
    """Failures that an executor reports: those of the run under way."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, done_tasks: int, done_samples: int, failures: int) -> None:
        self.number = failures


class Watched:
    """An executor that shows how far it is; of blocks that are kept, one in a hundred is drawn again to be compared.

    ``check_calls`` counts what was drawn only to be compared, the probes of the fingerprint among them; ``finding`` says
    where the simulator did not repeat itself.
    """

    def __init__(
        self,
        inner: Executor,
        display: Display,
        failures: _Failures,
        replay_with: Executor | None = None,
        finding: str | None = None,
    ) -> None:
        self.inner, self._display, self._failures, self._replay_with = inner, display, failures, replay_with
        self.check_calls, self.finding = CHECK_CALLS, finding
        self._seen = self._replayed = 0

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every task with its result."""
        source = getattr(function, "__self__", None)
        chosen = self._to_replay(tasks) if isinstance(source, BlockSource) else set[Block]()
        kept: dict[Block, bytes] = {}
        done, total = 0, sum(task.size for task in tasks)
        for task, result in self.inner.run(function, tasks):
            done += task.size
            label = _LABELS.get(task.stream, "samples")
            self._display(label, done, total, self._failures.number)
            if task in chosen:
                kept[task] = _digest(result)
            yield task, result
        if isinstance(source, BlockSource):
            self._replay(source, kept)

    def _replay(self, source: BlockSource, kept: dict[Block, bytes]) -> None:
        """Draw blocks again and compare, a few at a time, each few from the last to the first: with another history."""
        blocks, carrier, before = sorted(kept), self._replay_with or InOrder(), source.model.num_queries
        different: list[Block] = []
        try:
            for first in range(0, len(blocks), _AT_A_TIME):
                few = blocks[first : first + _AT_A_TIME]
                again = carrier.run(source.draw, few[::-1])
                different += sorted(block for block, draw in again if _digest(draw) != kept[block])
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
                "samples); it ignores its random generator or remembers earlier calls"
            )

    def report(self) -> dict[str, Any]:
        """For the JSON of an answer."""
        return {"check_calls": self.check_calls, "reproducible": self.finding is None}

    def _to_replay(self, tasks: Sequence[Block]) -> set[Block]:
        """As many as are due by now, evenly spaced."""
        if self._replay_with is None:
            return set()
        self._seen += len(tasks)
        due = min(len(tasks), self._seen // _REPLAYED - self._replayed)
        self._replayed += due
        return {tasks[i * len(tasks) // due] for i in range(due)}


def _digest(draw: Draw) -> bytes:
    """A block's samples in short: what is compared at the end must not take the memory of the samples themselves."""
    digest = hashlib.sha256()
    for array in draw:
        if array is not None:
            digest.update(f"{array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.digest()


@contextmanager
def resumable(place: Path | None) -> Iterator[None]:
    """Ctrl-C during a run that keeps its samples says how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        if place is None:
            raise
        text = f"interrupted; what was drawn is kept. Go on with: saddleback resume {place}"
        Console(stderr=True, highlight=False).print(text, markup=False, soft_wrap=True)
        raise SystemExit(130) from None
