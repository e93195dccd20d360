"""Buffers on the samples of a store: in memory, streamed, or on Ray.

What is larger than memory is streamed: finite states are counted in one pass and held as counts, points of R^k are read anew
whenever they are asked about (:mod:`saddleback.sampling.streamed_buffer`), and the first of them are held too: baselines,
prices and allocation of a certificate need a buffer to look at, and nothing but the width of its limits depends on how large
it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import States
from saddleback.sampling.batches import CountBatches, Parts
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import Samples, SignalMoments
from saddleback.sampling.counted_buffer import CountedBuffer, cut
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import ray_buffer, streamed_buffer

_MOST_COUNTS = 1 << 27  # distinct (batch, pair, next state) that may be counted: 2 GB
_EXCERPT = 1 << 16  # points of a streamed buffer that are held to guide a certificate
_TALLY = 1 << 21  # samples that wait to be counted


class OnRay(NamedTuple):
    """Where the actors are: the arguments of :func:`~saddleback.sampling.streamed_buffer.ray_buffer`, None for the store's own folder."""

    folders: Any = None
    actors: int | None = None
    address: str | None = None
    options: Any = None


def buffer_maker(
    problem: CMDP, store: SampleStore, design: Design, buffer: str | OnRay
) -> Callable[[int, int], Buffer]:
    """(stream, T) → buffer: "memory" holds every sample, "streamed" what fits, :class:`OnRay` leaves it to actors."""
    if isinstance(buffer, OnRay) and problem.num_states is None:
        more = {"actors": buffer.actors, "address": buffer.address, "options": buffer.options}
        folders = store.folder if buffer.folders is None else buffer.folders
        return lambda stream, T: ray_buffer(folders, stream, problem, design, T, **more)
    if buffer == "memory" and problem.stand_ins is None:
        base, held = problem.base, store.held

        def in_memory(stream: int, T: int) -> Buffer:
            if problem.num_states is not None and np.any(held(stream, design.size) == 0):
                return counted_buffer(store, stream, problem, design, T)
            return cut(store.samples(stream, design.size, base), problem, design, T)

        return in_memory
    known = buffer in ("memory", "streamed") or isinstance(buffer, OnRay)
    require(known, "buffer", "must be 'memory', 'streamed' or OnRay(...)", buffer, "choose one of them")
    if problem.num_states is not None:
        return lambda stream, T: counted_buffer(store, stream, problem, design, T)
    return lambda stream, T: streamed_buffer(store, stream, problem, design, T)


def counted_buffer(store: SampleStore, stream: int, problem: CMDP, design: Design, num_batches: int = 1) -> Buffer:
    """The ordinary buffer of a finite problem, made in one pass over the store: n_t(x, s') is all it holds.

    With T = 1, all that plug-in and LSTD need, it takes at most |C|·S counts, whatever the number of samples.
    """
    S, T, c = store.layout.num_states, num_batches, design.size
    if S is None:
        raise InputError("store", "must be of finitely many states to be counted", store.folder, "use streamed_buffer")
    n = store.held(stream, c)
    serving = serving_pairs(problem.stand_ins, design.states, design.actions)
    serving = np.arange(c) if serving is None else np.where(n > 0, np.arange(c), serving)
    unsampled = n[serving] == 0
    sizes = n // T if T >= 1 else n * 0
    sizes[unsampled & (serving == np.arange(c))] = 1  # they stay where they are, as in `cut`
    rule = (
        f"must leave at least one of the {n[serving][~unsampled].min(initial=n.max())} samples per pair in every batch"
    )
    require(bool(np.all(sizes[serving] >= 1)), "num_batches", rule, T, "use fewer batches or more samples")
    m = store.layout.num_signals
    tally, seen, filled = _Tally(T * c * S), np.zeros(S, dtype=bool), np.zeros(c, dtype=np.int64)
    moments = SignalMoments.none(c, problem.base if m else np.zeros(0))
    num_blocks = np.zeros(c, dtype=np.int64)
    for block, rows in store.rows(stream):
        x, s = block.pair, store.layout.decode(block, rows).next_states
        seen[s] = True
        t = (filled[x] + np.arange(len(s))) // sizes[x]
        tally.add(((t * c + x) * S + s)[t < T])
        filled[x] += len(s)
        num_blocks[x] += 1
        if m:
            moments.add(x, *store.layout.signal_sums(rows, moments.base))
    means, variances = moments.means_and_variances(np.maximum(n, 1))
    _require_unseen(store, problem, design, unsampled, seen)
    for x in np.flatnonzero(unsampled & (serving == np.arange(c))).tolist():
        seen[design.states[x]] = True
        tally.add((np.arange(T) * c + x) * S + design.states[x])
    support = np.flatnonzero(seen)
    matrices = _matrices(tally, (T, c, S), support, sizes)
    if np.any(n == 0):  # pairs that are not allowed have the samples of another
        matrices, sizes = [scipy.sparse.csr_array(P[serving]) for P in matrices], sizes[serving]
        if means is not None and variances is not None:
            means, variances = means[serving], variances[serving]
    return CountedBuffer(
        design,
        problem.features,
        CountBatches(matrices, Parts(sizes)),
        sizes,
        support,
        means,
        int(n.sum() - T * sizes.sum()),
        False,
        variances,
        num_blocks,
        unsampled if np.any(unsampled) else None,
    )


def _require_unseen(
    store: SampleStore, problem: CMDP, design: Design, unsampled: NDArray[np.bool_], seen: NDArray[np.bool_]
) -> None:
    """Refuse a store that lacks samples of a state that the others lead to, or that the problem begins in."""
    begins = np.zeros_like(seen)
    begins[problem.start.states] = True
    for x in np.flatnonzero(unsampled & (seen | begins)[design.states])[:1]:
        rule = "must have samples of every pair whose state is reached"
        remedy = "draw the missing blocks first"
        raise InputError(str(store.folder), rule, f"none of pair {x}", remedy)


def excerpt(store: SampleStore, stream: int, problem: CMDP, design: Design, most: int = _EXCERPT) -> Samples:
    """The first samples of every pair, about ``most`` in all."""
    c, m = design.size, store.layout.num_signals
    share = np.minimum(store.held(stream, c), max(2, most // c))
    points: list[list[States]] = [[] for _ in range(c)]
    filled, moments = np.zeros(c, dtype=np.int64), SignalMoments.none(c, problem.base if m else np.zeros(0))
    for block, rows in store.rows(stream):
        x = block.pair
        wanted = int(share[x] - filled[x])
        if wanted <= 0:
            continue
        first = block._replace(size=min(wanted, block.size))
        points[x].append(store.layout.decode(first, rows[: first.size]).next_states)
        filled[x] += first.size
        if m:
            moments.add(x, *store.layout.signal_sums(rows[: first.size], moments.base))
    means, variances = moments.means_and_variances(filled)
    return Samples([np.concatenate(parts) for parts in points], means, variances)


class _Tally:
    """How often each key below ``limit`` came up; the keys that wait are counted together."""

    def __init__(self, limit: int):
        self._dense = np.zeros(limit, dtype=np.int64) if limit <= _MOST_COUNTS // 8 else None
        self._keys, self._counts = np.empty((2, 0), dtype=np.int64)
        self._waiting: list[NDArray[np.int64]] = []
        self._num_waiting = 0

    def add(self, keys: NDArray[np.int64]) -> None:
        """Some more."""
        self._waiting.append(keys)
        self._num_waiting += len(keys)
        if self._num_waiting >= _TALLY:
            self._settle()

    def items(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct keys, ascending, and their counts."""
        self._settle()
        if self._dense is not None:
            keys = np.flatnonzero(self._dense)
            return keys, self._dense[keys]
        return self._keys, self._counts

    def _settle(self) -> None:
        new, n = np.unique(np.concatenate([np.empty(0, np.int64), *self._waiting]), return_counts=True)
        self._waiting, self._num_waiting = [], 0
        if self._dense is not None:
            self._dense[new] += n
            return
        keys, where = np.unique(np.concatenate([self._keys, new]), return_inverse=True)
        self._counts = np.bincount(where, np.concatenate([self._counts, n]), len(keys)).astype(np.int64)
        self._keys = keys
        require(
            len(keys) <= _MOST_COUNTS,
            "num_batches",
            f"must leave at most {_MOST_COUNTS:,} distinct (batch, pair, next state)",
            f"{len(keys):,}",
            "use fewer batches, such as 1 for plug-in and lstd",
        )


def _matrices(
    tally: _Tally, shape: tuple[int, int, int], support: NDArray[Any], sizes: NDArray[np.int64]
) -> list[scipy.sparse.csr_array]:
    """P̂_t over the support, t = 0 … T−1."""
    T, c, S = shape
    keys, counts = tally.items()
    row, state = np.divmod(keys, S)
    column = np.searchsorted(support, state)
    starts = np.searchsorted(row, np.arange(T * c + 1))
    found = []
    for t in range(T):
        low, high = starts[t * c], starts[(t + 1) * c]
        data = counts[low:high] / sizes[row[low:high] - t * c]
        rows = (starts[t * c : (t + 1) * c + 1] - low).astype(np.int32)
        found.append(scipy.sparse.csr_array((data, column[low:high].astype(np.int32), rows), shape=(c, len(support))))
    return found
