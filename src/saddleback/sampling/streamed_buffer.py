"""§3, a buffer larger than memory: the samples stay in their store, and what is asked about them goes to where they lie.

    expect(t, V) = P̂_t V,   average(V) = P̂ V,      V a MaxDifference, SoftDifference or PolicyValue: a few numbers

Every call is one pass over the samples of a batch, or over all, in bounded memory (:mod:`saddleback.sampling.store.windows`):
here, from one folder, or by actors that each read their own (:mod:`saddleback.sampling.executors.ray_cluster`), with the same
bits at one BLAS thread. The pairs are divided into lots, whose bounds follow from the counts; answers are put together in
their order. ``at_support(V)`` is V at the samples, of which means, means of squares and limits can be had. Finite states need
no second reading: their counts are all there is to know (:func:`saddleback.sampling.store.buffers.counted_buffer`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array, States
from saddleback.sampling.batches import COMPILED_PRODUCTS
from saddleback.sampling.blocks import Closing
from saddleback.sampling.buffer import ROUNDING, Buffer, Value
from saddleback.sampling.collect import SignalMoments
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import Place, SampleStore
from saddleback.sampling.store.windows import Answer, Ask, Plan, Reader
from saddleback.sampling.value_functions import Parametric

if TYPE_CHECKING:
    from saddleback.sampling.executors.ray_cluster import Hosts

MEMORY = 256 << 20  # bytes that the windows of a buffer may take, with what evaluating φ on one takes for a moment
NUM_LOTS = 8  # lots of a buffer: the most actors that can share it, and how many windows an answer looks into
Asking = Callable[[Ask], list[Answer]]
"""The answers of all lots, in their order."""


@dataclass(frozen=True, eq=False)
class AtSamples:
    """V at every sample, wherever it is: what takes the place of an array over the support."""

    value: Parametric
    asking: Asking = field(repr=False)

    @cached_property
    def found(self) -> Answer:
        """P̂V and P̂V², ``(c,)`` or ``(c, k)``, and the least and the greatest V of each column: one pass, made once."""
        mean, square, low, high = map(np.concatenate, zip(*self.asking(Ask("moments", self.value)), strict=True))
        return mean, square, low.min(axis=0), high.max(axis=0)

    def min(self, axis: int) -> Array:
        """The least V of each column."""
        return self.found[2]

    def max(self, axis: int) -> Array:
        """The greatest V of each column."""
        return self.found[3]


@dataclass
class StreamedBuffer(Closing, Buffer):
    """For every solver and evaluator that asks for means; made by :func:`streamed_buffer` or :func:`ray_buffer`.

    Sizes and signals are those of a buffer in memory, and its means come from ``asking``.
    """

    design: Design
    num_batches: int
    batch_sizes: NDArray[np.int64]
    num_unused: int
    support: States
    signal_means: Array | None
    signal_variances: Array | None
    asking: Asking
    hosts: Hosts | None = None

    def expect(self, t: int, value: Value) -> Array:
        """P̂_t V on the coreset, ``(c,)`` or ``(c, k)``."""
        require(0 <= t < self.num_batches, "t", f"must lie in 0 … {self.num_batches - 1}", t, "number batches from 0")
        if isinstance(value, np.ndarray) and not len(value):  # over the support, which is empty: V̂⁰ = 0
            return np.zeros((self.design.size, *value.shape[1:]))
        return self._means(Ask("expect", _parametric(value), t))

    def average(self, value: Value | AtSamples) -> Array:
        """P̂ V over all batches, ``(c,)`` or ``(c, k)``."""
        if isinstance(value, AtSamples):
            return value.found[0]
        return self._means(Ask("average", _parametric(value)))

    def moments(self, V: Array | AtSamples) -> tuple[Array, Array]:
        """Mean and variance of V at the next states of every pair; V is what :meth:`at_support` gave."""
        at_samples = V if isinstance(V, AtSamples) else AtSamples(_parametric(V), self.asking)
        mean, square, low, high = at_samples.found
        variance, largest = square - mean**2, np.maximum(np.abs(low), np.abs(high))
        return mean, np.where(variance > ROUNDING * largest**2, variance, 0.0)

    def at_support(self, value: Value) -> Any:
        """V at the samples, as something of which ``average`` takes the mean and the mean of the squares."""
        return AtSamples(_parametric(value), self.asking)

    def close(self) -> None:
        """Let go of the actors, if there are any."""
        if self.hosts is not None:
            self.hosts.close()

    def _means(self, ask: Ask) -> Array:
        return np.concatenate([means for (means,) in self.asking(ask)])


def _parametric(value: Value) -> Parametric:
    """A value function by its parameters, which can be sent to where the samples are."""
    if isinstance(value, Parametric):
        return value
    rule, found = "must be in memory for an array over the support", "one whose samples stay in their store"
    raise InputError("buffer", rule, found, "give a value function by its parameters")


def streamed_buffer(
    store: SampleStore | Place,
    stream: int,
    problem: CMDP,
    design: Design,
    num_batches: int = 1,
    *,
    memory: int = MEMORY,
    num_lots: int = NUM_LOTS,
) -> StreamedBuffer:
    """The samples of one stream of a store, read when they are asked for, in about ``memory`` bytes.

    A store that is given as a folder is opened for reading, and every shard compared with its SHA-256 first.
    """
    hashes = not isinstance(store, SampleStore)
    if isinstance(store, SampleStore):
        next(store.rows(stream), None)  # the first block comes after a flush
        store = store.folder
    reader = Reader(store, problem.features, design.size, stream, hashes)
    held, layout = reader.describe()
    plan = plan_for(problem, design, held[None], num_batches, memory, num_lots)
    reader.begin(plan)
    return _buffer(problem, design, plan, held, layout, partial(reader.answer, range(len(plan.lots))))


def ray_buffer(
    folders: Place | Sequence[Place],
    stream: int,
    problem: CMDP,
    design: Design,
    num_batches: int = 1,
    *,
    actors: int | None = None,
    address: str | None = None,
    options: Sequence[dict[str, Any]] | None = None,
    memory: int = MEMORY,
    num_lots: int = NUM_LOTS,
    hashes: bool = True,
    **limits: float,
) -> StreamedBuffer:
    """The same by actors on a Ray cluster, each of which reads its own lots; the driver holds |C| numbers a column.

    ``folders`` is one that every node sees, read by ``actors`` of them, or one for each actor, on its node's own disk, with
    all samples of some pairs; ``options`` (one for each actor) say where it is to be, such as
    ``{"resources": {"disk-3": 1}}``. An actor that is lost is started again and opens its folder anew; ``limits`` are
    ``patience``, the seconds it has to find a place, and ``timeout``, those it has for one answer, opening its folder
    included (None: any). Close the buffer, or use it in a ``with`` block: actors, and a cluster that was started for them,
    go with it.
    """
    from saddleback.sampling.executors.ray_cluster import Hosts  # Ray is an extra

    places = [folders] * (actors or 2) if isinstance(folders, str | os.PathLike) else list(folders)
    makes = [partial(Reader, os.fspath(p), problem.features, design.size, stream, hashes) for p in places]
    hosts = Hosts(makes, address=address, options=options, **limits)
    try:
        found = hosts.call_all("describe")
        held, layout = np.array([n for n, _ in found]), found[0][1]
        plan = plan_for(problem, design, held, num_batches, memory, num_lots)
        hosts.prepare("begin", plan)
        buffer = _buffer(problem, design, plan, held.max(axis=0), layout, _shared(hosts, plan, held))
    except BaseException:
        hosts.close()
        raise
    buffer.hosts = hosts
    return buffer


def _shared(hosts: Hosts, plan: Plan, held: NDArray[np.int64]) -> Asking:
    """Every lot to the least laden of the actors that hold all of it."""
    n, load, own = held.max(axis=0), np.zeros(len(held)), [list[int]() for _ in held]
    for lot, (first, last) in enumerate(plan.lots):
        able = np.flatnonzero((held == n)[:, first:last].all(axis=1))
        best = int(able[np.argmin(load[able])])
        own[best].append(lot)
        load[best] += plan.sizes[first:last].sum()
    busy = [i for i, lots in enumerate(own) if lots]

    def asking(ask: Ask) -> list[Answer]:
        answers: dict[int, Answer] = {}
        for i, found in zip(busy, hosts.call("answer", {i: (own[i], ask) for i in busy}), strict=True):
            answers.update(zip(own[i], found, strict=True))
        return [answers[lot] for lot in range(len(plan.lots))]

    return asking


def plan_for(
    problem: CMDP, design: Design, held: NDArray[np.int64], num_batches: int, memory: int, num_lots: int
) -> Plan:
    """Lots and windows for samples ``held`` ``(readers, c)``; a pair is read by one who has all there are of it."""
    n, T = held.max(axis=0), num_batches
    for pair in np.flatnonzero(n == 0)[:1]:
        rule = f"must have samples of each of the {design.size} pairs"
        raise InputError("store", rule, f"none of pair {pair}", "draw the missing blocks first")
    rule = f"must leave at least one of the {n.min()} samples per pair in every batch"
    require(1 <= T <= n.min(), "num_batches", rule, T, "use fewer batches or more samples")
    require(num_lots >= 1, "num_lots", "must be at least 1", num_lots, f"use {NUM_LOTS}")
    before = np.cumsum(n) - n
    lot_of = before * num_lots // n.sum()  # which lot each pair begins in
    holders = (held == n).T
    new = (np.diff(lot_of) > 0) | np.any(holders[1:] != holders[:-1], axis=1)
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), design.size]
    features, total = problem.features, int((n // T).sum()) * T
    if features is None:
        raise InputError("features", "must be given for a streamed buffer", None, "give the problem features")
    row = features.dim * (1 if features.direct else features.num_actions)  # numbers that φ takes at one state
    compiled = 2 * total * row >= COMPILED_PRODUCTS and not features.direct
    window = max(1, memory // (2 * num_lots * 8 * row))
    return Plan(n // T, T, tuple(pairwise(edges)), window, compiled)


def _buffer(
    problem: CMDP, design: Design, plan: Plan, held: NDArray[np.int64], layout: Layout, asking: Asking
) -> StreamedBuffer:
    moments = SignalMoments.none(design.size, np.zeros(0))
    if layout.num_signals:  # as a buffer in memory has them, sums in the same order
        sums, squares = map(np.concatenate, zip(*asking(Ask("signals", base=problem.base)), strict=True))
        moments = SignalMoments(problem.base, sums, squares)
    T, M = plan.num_batches, plan.sizes
    unused, empty = int(held.sum() - T * M.sum()), np.empty((0, layout.dim))
    means, variances = moments.means_and_variances(held)
    return StreamedBuffer(design, T, M, unused, empty, means, variances, asking)
