"""An executor that keeps what is drawn: what is on disk is read, what is missing is drawn and written, nothing is paid twice.

    samples-SEED/            blocks of every stream drawn with that seed         (:mod:`saddleback.sampling.store.sample_store`)
    tapes-SEED-POLICY/       rollouts of one mixture                            (:mod:`saddleback.sampling.trajectories`)

A run is a function of its request and its samples. So a run that was killed is simply run again with the same folder, to the
same result, bit for bit. Blocks are acknowledged at least every second, at the end of every list of tasks, and before a fault
of the simulator is raised. A task that wants fewer samples than the stored block holds gets the first of them; one that wants
more, because an earlier version planned otherwise, gets them and the rest from a stream of its own. Samples that are solved
from later (:mod:`saddleback.sampling.store.buffers`) may be kept as ``counts`` where the states are finitely many.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from saddleback.errors import InputError, StorageError, require
from saddleback.files.disk import Disk, disk_faults_named
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.blocks import Block, BlockSource, Closing, Executor, InOrder, Source, joined, part_of
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.manifest import HEADER
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.trajectories import RolloutSource
from saddleback.simulators.generative_model import Draw

_SYNC_SECONDS = 1.0
_RESTS = 1 << 23  # a pair never has so many blocks: what a block lacks is one of its own, numbered from here on


class Durable(Closing):
    """Keeps the samples of one run in ``folder``; ``inner`` draws what is missing (None: here, one by one).

    ``fingerprint`` says what the samples are samples of; a folder that holds others is refused.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        fingerprint: Mapping[str, Any],
        inner: Executor | None = None,
        *,
        counts: bool = False,
    ):
        self._counts = counts
        self.folder, self._fingerprint, self.inner = Path(folder), dict(fingerprint), inner or InOrder()
        self._stores: dict[str, SampleStore] = {}
        self.num_read = 0
        with disk_faults_named(self.folder, "choose a place that can be written to"):
            if not self.folder.is_dir():
                Disk().make_folder(self.folder)
            Disk().sync_folder(self.folder.parent)

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Every task with its samples, those on disk first."""
        source = getattr(function, "__self__", None)
        if not isinstance(source, Source):
            raise InputError("executor", "must be given blocks to draw", function, "use the executor inside it")
        store = self._store(source)
        stored = {block[:3]: block for block in store.blocks()}
        wanted: dict[tuple[int, int, int], Block] = {task[:3]: task for task in tasks if task[:3] in stored}
        missing = [task for task in tasks if task[:3] not in stored]
        short = {}  # blocks of another plan, with fewer samples than are wanted now: what is there is kept
        rollouts = isinstance(source, RolloutSource)
        for stream in sorted({key[0] for key in wanted}):
            for block, draw in store.read(stream):
                task = wanted.get(block[:3])
                if task is None:
                    continue
                source.account(len(draw.next_states) if rollouts else min(task.size, block.size))
                if not rollouts and block.size < task.size:
                    rest = task._replace(block=task.block + _RESTS, size=task.size - block.size)
                    short[rest] = (task, draw)
                else:
                    self.num_read += len(draw.next_states)
                    yield task, draw if rollouts else part_of(draw, slice(task.size))
        for rest, more in self.run(function, list(short)) if short else ():
            task, draw = short[rest]
            yield task, joined([draw, more])
        yield from self._draw(function, missing, store)

    def missing(self, source: BlockSource, tasks: Sequence[Block]) -> list[Block]:
        """Those of the tasks that are not yet on disk."""
        return self._store(source).missing(tasks)

    def content_hashes(self) -> dict[str, str]:
        """SHA-256 of every store's samples, whatever drew them; those of a finished run included."""
        names = sorted(p.name for p in self.folder.iterdir() if (p / HEADER).is_file())
        stores = (self._stores.get(name) or SampleStore.open(self.folder / name, writable=False) for name in names)
        return {name: store.content_hash() for name, store in zip(names, stores, strict=True)}

    def close(self) -> None:
        """Let go of the folder and of what the inner executor has started."""
        for store in self._stores.values():
            store.close()
        self._stores.clear()
        self.inner.close()

    def _draw(
        self, function: Callable[[Any], Any], missing: list[Block], store: SampleStore
    ) -> Iterator[tuple[Block, Draw]]:
        synced = time.monotonic()
        try:
            for task, draw in self.inner.run(function, missing):
                n = len(draw.next_states)
                store.add(task if n == task.size else task._replace(size=n), draw)
                if time.monotonic() - synced > _SYNC_SECONDS:
                    store.flush()
                    synced = time.monotonic()
                yield task, draw
        except BaseException:  # a fault of the simulator, or Ctrl-C, must not cost what was drawn before it
            with suppress(StorageError):  # a store that was cut off while it wrote has stopped; the cause is the news
                store.flush()
            raise
        store.flush()

    def _store(self, source: Source) -> SampleStore:
        name = f"samples-{source.seed}"
        if isinstance(source, RolloutSource):
            digest = hashlib.sha256(source.mixture.weights.tobytes())
            for member in source.mixture.members:
                digest.update(member.key())
            name = f"tapes-{source.seed}-{digest.hexdigest()[:16]}"
        if name not in self._stores:
            finite = isinstance(source.model.states, FiniteStates) and isinstance(source, BlockSource)
            layout = Layout.of(source.model.states, source.model.num_signals, counts=self._counts and finite)
            fingerprint = {**self._fingerprint, "seed": source.seed}
            refuse_link(self.folder / name)
            self._stores[name] = SampleStore.resume(self.folder / name, fingerprint, layout)
        return self._stores[name]


def refuse_link(folder: Path) -> None:
    """Samples are kept where they seem to be, not where a link in somebody's archive leads to."""
    rule = "must be a folder of its own, so that nothing is changed elsewhere"
    for path in (folder, folder.parent):
        require(not path.is_symlink(), str(path), rule, "a link", "remove the link, or name the folder it leads to")
