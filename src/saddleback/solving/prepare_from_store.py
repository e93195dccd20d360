"""From a store of samples to oracles, without a simulator: the part of a solve that follows sampling.

    streams SOLVER and EVALUATION of a store → two buffers: in memory, streamed, or on Ray → O(σ) = (π_σ, V̂(π_σ))

A run that draws into a folder (:mod:`saddleback.sampling.executors.durable`), or several whose stores were merged, leave such a store; its
pairs are those of the design, which the problem and the method fix. What is larger than memory is streamed: finite states
are counted in one pass and held as counts, points of R^k are read anew whenever they are asked about
(:mod:`saddleback.sampling.streamed_buffer`), and the first of them are held too: baselines, prices and allocation of a certificate need a
buffer to look at, and nothing but the width of its limits depends on how large it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.method.oracles import Allocating, InteractiveEvaluator, InteractiveSolver, Remarking, needs_of
from saddleback.problem.cmdp import CMDP
from saddleback.problem.remarks import Remark
from saddleback.problem.spaces import States
from saddleback.runs.settings import Method
from saddleback.sampling.batches import CountBatches, Parts
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import Samples, SignalMoments, batches_and_counts
from saddleback.sampling.counted_buffer import CountedBuffer, cut
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import StreamedBuffer, ray_buffer, streamed_buffer
from saddleback.simulators.generative_model import Stream
from saddleback.solving.parts import parts_of, usual_allocation
from saddleback.solving.prepared import Prepared, oracle_of

_MOST_COUNTS = 1 << 27  # distinct (batch, pair, next state) that may be counted: 2 GB
_EXCERPT = 1 << 16  # points of a streamed buffer that are held to guide a certificate
_TALLY = 1 << 21  # samples that wait to be counted


class OnRay(NamedTuple):
    """Where the actors are: the arguments of :func:`~saddleback.sampling.streamed_buffer.ray_buffer`, None for the store's own folder."""

    folders: Any = None
    actors: int | None = None
    address: str | None = None
    options: Any = None


def prepare_from(
    problem: CMDP,
    store: SampleStore,
    method: Method | None = None,
    *,
    buffer: Literal["memory", "streamed"] | OnRay = "streamed",
    num_batches: tuple[int, int] | None = None,
) -> Prepared:
    """Oracles on the samples of a store, as :func:`saddleback.solving.prepare.prepare` makes them on those it draws.

    ``num_batches`` is T of the solver's and of the evaluator's buffer (None: what the mode makes of that many samples).
    Close both buffers of a Prepared on Ray when it is done with.
    """
    method = method or Method()
    problem, names, solver, evaluator, designer = parts_of(problem, method)
    if isinstance(solver, (InteractiveSolver, Allocating)):
        rule = "must be one that asks for means over the design's pairs"
        raise InputError("solver", rule, names["solver"], "use plug-in or ls-mdvi")
    if isinstance(evaluator, InteractiveEvaluator):
        raise InputError("evaluator", "must not play where samples are stored", names["evaluator"], "use lstd")
    design = designer.design(problem)
    make = _maker(problem, store, design, buffer)
    streams = (Stream.SOLVER, Stream.EVALUATION)[: method.buffers]
    T = num_batches or tuple(_usual_batches(problem, design, store, stream, method) for stream in streams)
    own = make(Stream.SOLVER, T[0])
    evaluation = own
    if method.buffers == 2:
        evaluation = make(Stream.EVALUATION, T[-1] if needs_of(evaluator, problem).batches else 1)

    oracle = oracle_of(problem, solver, own, evaluator, evaluation, method.grid)
    hints = None
    if isinstance(own, StreamedBuffer) or isinstance(evaluation, StreamedBuffer):
        hints = tuple(cut(excerpt(store, stream, problem, design), problem, design, 1) for stream in streams)
    drawn = own.num_samples + (evaluation.num_samples if method.buffers == 2 else 0)
    remarks = tuple(Remark("solver", r) for r in solver.remarks(problem)) if isinstance(solver, Remarking) else ()
    return Prepared(
        problem, design, own, evaluation, solver, evaluator, oracle, drawn, names, remarks, method.grid, 0, hints
    )


def _maker(problem: CMDP, store: SampleStore, design: Design, buffer: str | OnRay) -> Callable[[int, int], Buffer]:
    """(stream, T) → buffer."""
    if isinstance(buffer, OnRay) and problem.num_states is None:
        more = {"actors": buffer.actors, "address": buffer.address, "options": buffer.options}
        folders = store.folder if buffer.folders is None else buffer.folders
        return lambda stream, T: ray_buffer(folders, stream, problem, design, T, **more)
    if buffer == "memory":
        base = problem.base
        return lambda stream, T: cut(store.samples(stream, design.size, base), problem, design, T)
    known = buffer == "streamed" or isinstance(buffer, OnRay)
    require(known, "buffer", "must be 'memory', 'streamed' or OnRay(...)", buffer, "choose one of them")
    if problem.num_states is not None:
        return lambda stream, T: counted_buffer(store, stream, problem, design, T)
    return lambda stream, T: streamed_buffer(store, stream, problem, design, T)


def _usual_batches(problem: CMDP, design: Design, store: SampleStore, stream: int, method: Method) -> int:
    """T as for a run that draws as many samples."""
    held = store.held(stream, design.size)
    allocation = method.allocation or usual_allocation(method.mode, design.operator is None)
    literal = method.mode == "literal"
    T, _ = batches_and_counts(
        problem, design, int(held.sum()), literal=literal, batch_size=method.batch_size, allocation=allocation
    )
    return max(1, min(T, int(held.min())))


def counted_buffer(store: SampleStore, stream: int, problem: CMDP, design: Design, num_batches: int = 1) -> Buffer:
    """The ordinary buffer of a finite problem, made in one pass over the store: n_t(x, s') is all it holds.

    With T = 1, all that plug-in and LSTD need, it takes at most |C|·S counts, whatever the number of samples.
    """
    S, T, c = store.layout.num_states, num_batches, design.size
    if S is None:
        raise InputError("store", "must be of finitely many states to be counted", store.folder, "use streamed_buffer")
    n = store.held(stream, c)
    sizes = n // T if T >= 1 else n * 0
    rule = f"must leave at least one of the {n.min()} samples per pair in every batch"
    require(bool(np.all(sizes >= 1)), "num_batches", rule, T, "use fewer batches or more samples")
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
    means, variances = moments.means_and_variances(n)
    support = np.flatnonzero(seen)
    matrices = _matrices(tally, (T, c, S), support, sizes)
    return CountedBuffer(
        design,
        problem.features,
        CountBatches(matrices, Parts(sizes)),
        sizes,
        support,
        means,
        int((n - T * sizes).sum()),
        False,
        variances,
        num_blocks,
    )


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
