"""Means over the samples of a store, taken where they lie: a few windows of them in memory at a time.

    (P̂_t V)(x) = (1/M_x) Σ_j Σ_{s' ∈ window j of (x,t)} V(s'),      V given by a few numbers (:mod:`saddleback.sampling.value_functions`)

The pairs are divided into *lots* of neighbours, and the samples of a lot into *windows*: as many whole batches as fit a
bound, or, where one batch does not fit, pieces of it. A window is read block by block from mapped shards, φ is evaluated on
it once, and its sums are taken as in memory; sums are added in the order of the keys. Lots and windows follow from the plan
alone, never from who reads, so that any number of readers give the same bits at one BLAS thread. A lot keeps its last
window: batches asked for one after the other are read together, and a store that is small after all is read once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import require
from saddleback.problem.spaces import Array, Features, States
from saddleback.sampling.batches import Parts
from saddleback.sampling.collect import SignalMoments
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import Place, SampleStore
from saddleback.sampling.value_functions import Parametric, PolicyValue, Support


class Plan(NamedTuple):
    """What all readers of one buffer agree on: M ``(c,)``, T, the pairs of each lot, and the rows of a window."""

    sizes: NDArray[np.int64]
    num_batches: int
    lots: tuple[tuple[int, int], ...]
    window: int
    compiled: bool


class Ask(NamedTuple):
    """A question about one batch or all samples; ``base`` is what signals are summed around."""

    kind: Literal["expect", "average", "moments", "signals"]
    value: Parametric | None = None
    t: int = 0
    base: Array | None = None


Answer = tuple[Array, ...]
"""Arrays whose rows are the pairs of a lot, or, for limits, a single row."""


class _Window(NamedTuple):
    """Some samples of a lot: whole batches or a piece of one, batch after batch, ``parts.sizes`` samples a pair."""

    key: tuple[str | int, ...]
    support: Support
    parts: Parts


class Reader:
    """Opens a store for reading and answers questions about whole lots; ``hashes`` checks every shard first."""

    _plan: Plan

    def __init__(self, folder: Place, features: Features | None, num_pairs: int, stream: int, hashes: bool = False):
        store = SampleStore.open(folder, writable=False, hashes=hashes)
        rule, remedy = "must hold points of R^k to be streamed", "use counted_buffer, which reads it once"
        require(store.layout.num_states is None, str(store.folder), rule, store.layout, remedy)
        index, self.layout = store.index, store.layout
        index.require_no_gaps(stream, store.folder)
        self._held = index.held(stream, num_pairs)
        self._features, self._shards = features, store.shards
        self._table = index.table(stream).copy()
        num_blocks = index.num_blocks(stream, num_pairs)
        self._first = np.concatenate([[0], np.cumsum(num_blocks)])  # each pair's first block in the table
        self._ends = np.concatenate([[0], np.cumsum(self._table["size"])])  # samples before each block
        self._windows: dict[int, _Window] = {}
        self._policy: Any = None

    def describe(self) -> tuple[NDArray[np.int64], Layout]:
        """What there is to ask about: the samples of each pair, ``(c,)``, and what a row is."""
        return self._held, self.layout

    def begin(self, plan: Plan) -> None:
        """What :meth:`answer` goes by."""
        self._plan = plan
        self._windows.clear()

    def answer(self, lots: Sequence[int], ask: Ask) -> list[Answer]:
        """What is asked, lot by lot."""
        if isinstance(ask.value, PolicyValue):  # the same policy sent again is the same: what is known of it is kept
            if self._policy is None or self._policy.key() != ask.value.policy.key():
                self._policy = ask.value.policy
            ask = ask._replace(value=ask.value._replace(policy=self._policy))
        return [self._signals(lot, ask) if ask.kind == "signals" else self._means(lot, ask) for lot in lots]

    def _means(self, lot: int, ask: Ask) -> Answer:
        first, last = self._plan.lots[lot]
        M, T = self._plan.sizes[first:last], self._plan.num_batches
        if ask.kind != "expect":  # all batches as one
            M, T = M * T, 1
        if M.sum() <= self._plan.window:  # the window of whole batches that holds batch t, and its place there
            each = max(1, min(T, self._plan.window // int(M.sum())))
            t = ask.t % each
            start = ask.t - t
            window = self._window(lot, ("batches" + ask.kind[:1], start), M * start, M, min(each, T - start))
            return _of_window(window, t, ask)
        num = math.ceil(M.sum() / self._plan.window)
        totals: list[Array] = []
        for j in range(num):  # piece j of batch t, and the pairs that have samples in it
            low, high = M * j // num, M * (j + 1) // num
            window = self._window(lot, ("piece" + ask.kind[:1], ask.t, j), M * ask.t + low, high - low, 1)
            totals = _added(totals, _of_window(window, 0, ask), high > low, window.parts.sizes)
        return tuple(x / _column(M, x) for x in totals[:2]) + tuple(totals[2:])

    def _window(
        self, lot: int, key: tuple[str | int, ...], starts: NDArray[np.int64], sizes: NDArray[np.int64], num: int
    ) -> _Window:
        if lot in self._windows and self._windows[lot].key == key:
            return self._windows[lot]
        self._windows.pop(lot, None)  # before the next one is made: one at a time in memory
        pairs = np.flatnonzero(sizes)
        parts = Parts(sizes[pairs])
        states = np.empty((num, int(parts.offsets[-1]), self.layout.dim))
        for i, x in enumerate(pairs.tolist()):
            sequence = np.empty((num * int(sizes[x]), self.layout.dim))
            self._read(self._plan.lots[lot][0] + x, int(starts[x]), sequence)
            states[:, parts.offsets[i] : parts.offsets[i + 1]] = sequence.reshape(num, int(sizes[x]), -1)
        support = Support(states.reshape(-1, self.layout.dim), self._features, self._plan.compiled)
        self._windows[lot] = _Window(key, support, parts)
        return self._windows[lot]

    def _read(self, pair: int, start: int, out: States) -> None:
        """A pair's samples from ``start`` on, as many as ``out`` has rows."""
        position, done = int(self._ends[self._first[pair]]) + start, 0
        block = int(np.searchsorted(self._ends, position, side="right")) - 1
        while done < len(out):
            skipped = position + done - int(self._ends[block])
            record = self._table[block]
            num = min(len(out) - done, int(record["size"]) - skipped)
            rows = self._shards.rows(int(record["shard"]), int(record["start"]) + skipped, num)
            out[done : done + num] = rows["next_state"]
            done, block = done + num, block + 1

    def _signals(self, lot: int, ask: Ask) -> Answer:
        """Σ and Σ² of the observed signals around ``base``, block after block."""
        assert ask.base is not None
        first, last = self._plan.lots[lot]
        moments = SignalMoments.none(last - first, ask.base)
        for x in range(first, last):
            for record in self._table[self._first[x] : self._first[x + 1]]:
                rows = self._shards.rows(int(record["shard"]), int(record["start"]), int(record["rows"]))
                moments.add(x - first, *self.layout.signal_sums(rows, ask.base))
        return moments.sums, moments.squares


def _of_window(window: _Window, t: int, ask: Ask) -> Answer:
    """Means over batch t of the window; for moments also of V², and the limits of V."""
    assert ask.value is not None
    if ask.kind == "expect":
        B = int(window.parts.offsets[-1])
        return (window.support.means_at(slice(t * B, (t + 1) * B), window.parts, ask.value),)
    V = window.support.values(ask.value)
    if ask.kind == "average":
        return (window.parts.means(V),)
    return window.parts.means(V), window.parts.means(V**2), V.min(axis=0)[None], V.max(axis=0)[None]


def _added(totals: list[Array], found: Answer, some: NDArray[np.bool_], sizes: NDArray[np.int64]) -> list[Array]:
    """Sums so far, with those of one more piece, which has samples of ``some`` pairs."""
    if not totals:
        totals = [np.zeros((len(some), *x.shape[1:])) for x in found[:2]] + list(found[2:])
    for total, means in zip(totals, found[:2], strict=False):
        total[some] += means * _column(sizes, means)
    if len(found) > 2:
        totals[2:] = [np.minimum(totals[2], found[2]), np.maximum(totals[3], found[3])]
    return totals


def _column(n: NDArray[np.int64], like: Array) -> NDArray[np.int64]:
    return n if like.ndim == 1 else n[:, None]
