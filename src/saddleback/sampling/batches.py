"""§3, how a buffer holds its batches B = B_0 ∪ … ∪ B_{T−1}: as samples or as counts, whichever is smaller.

    (P̂_t V)(x) = (1/M_x) Σ_{s'_m ∈ B_t} V(s'_m) = Σ_s' (n_t(x,s') / M_x) V(s'),    n_t(x,s') = how often s' came up

- :class:`SampleBatches`: the position of each sample in the support; a mean is gather and reduce. 8 bytes a sample, or 4
  with compiled loops (:mod:`saddleback.sampling.kernels`).
- :class:`CountBatches`: P̂_t itself, a matrix of frequencies, dense or sparse; a mean is a product. Its size does not
  grow with M once every likely next state has been seen.
- :class:`ConsecutiveBatches`: continuous states, where each sample is a support point of its own: nothing is stored.
  (Where the same points come up again and again, as in a deterministic world, they are counted like finite states.)

All three give the same means up to rounding. What is chosen depends on the samples alone: a run repeats bit for bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.problem.spaces import Array, States

COMPILED_SAMPLES, COMPILED_PRODUCTS = 10_000_000, 200_000_000
"""Samples, or products φ_j·θ_j, in one pass over all batches from which compiled loops are used.

Loading numba and the kept machine code takes 0.65 s. A pass over 10⁷ samples gains 5 to 10 ms with one column and 0.15 s
and more with sixteen; a pass of 2·10⁸ products 0.07 s and 0.5 s. The tens of passes of a solve pay for the loading.
"""

_LOOKED_AT = 64  # pairs, and samples of each, that tell whether points of a continuum repeat
_TALLY = 1 << 22  # samples counted at a time: bounds the temporary memory (32 MB an array)


@dataclass(frozen=True)
class Parts:
    """How one batch is divided among the pairs: M_x samples each, pair after pair."""

    sizes: NDArray[np.int64]

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where each pair begins, and the end, ``(c+1,)``."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def uniform(self) -> int:
        """M where it is the same for all pairs, else 0."""
        return int(self.sizes[0]) if np.all(self.sizes == self.sizes[0]) else 0

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """The pair of each sample."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def means(self, values: Array) -> Array:
        """(1/M_x) Σ_m values of pair x, for values at the samples of one batch, ``(B,)`` or ``(B, k)``."""
        if values.ndim == 1 and self.uniform:  # numpy's own reductions are several times slower over short axes
            return np.einsum("xm->x", values.reshape(-1, self.uniform)) / self.uniform
        sums = np.add.reduceat(values, self.offsets[:-1], axis=0)
        return np.asarray(sums / (self.sizes if values.ndim == 1 else self.sizes[:, None]))


@dataclass(frozen=True)
class SampleBatches:
    """``index`` is ``(T, B)``: intp for numpy, which converts all else at each call, or uint32 for compiled loops."""

    index: NDArray[Any]
    parts: Parts

    @property
    def compiled(self) -> bool:
        """Whether means are taken by compiled code."""
        return self.index.dtype == np.uint32

    @property
    def num_batches(self) -> int:
        """T."""
        return int(self.index.shape[0])

    def rows(self, t: int) -> NDArray[Any]:
        """One row of ``index``."""
        return self.index[t]

    def means(self, t: int, V: Array) -> Array:
        """Gather and reduce."""
        if self.compiled:
            from saddleback.sampling.kernels import gather_means

            return gather_means(self.index[t], self.parts.offsets, V)
        if V.ndim == 2 and V.shape[1] == 1:
            return self.parts.means(V[:, 0].take(self.index[t]))[:, None]
        return self.parts.means(V.take(self.index[t], axis=0))

    def frequencies(self, num_states: int) -> scipy.sparse.csr_array:
        """Count each pair's samples, a few pairs at a time."""
        offsets, blocks = self.parts.offsets, []
        step = max(1, _TALLY * len(self.parts.sizes) // self.index.size)
        for x in range(0, len(self.parts.sizes), step):
            y = min(x + step, len(self.parts.sizes))
            samples = self.index[:, offsets[x] : offsets[y]]
            sizes = self.parts.sizes[x:y] * self.num_batches
            blocks.append(_frequencies(self.parts.pairs[offsets[x] : offsets[y]] - x, samples, sizes, num_states))
        return blocks[0] if len(blocks) == 1 else scipy.sparse.vstack(blocks, format="csr")


@dataclass(frozen=True)
class CountBatches:
    """``matrices[t]`` is P̂_t, ``(c, n)``: rows of a dense array ``(T, c, n)``, or sparse matrices."""

    matrices: Array | Sequence[scipy.sparse.csr_array]
    parts: Parts

    @property
    def num_batches(self) -> int:
        """T."""
        return len(self.matrices)

    @property
    def index(self) -> NDArray[Any]:
        """Made anew at each call; within a batch a pair's samples come in the order of the support."""
        rows = []
        for matrix in self.matrices:
            P = scipy.sparse.coo_array(matrix)
            rows.append(np.repeat(P.col, np.rint(P.data * self.parts.sizes[P.row]).astype(np.int64)))
        return np.array(rows)

    def means(self, t: int, V: Array) -> Array:
        """One product."""
        return self.matrices[t] @ V

    def frequencies(self, num_states: int) -> scipy.sparse.csr_array:
        """The mean of the matrices: M_x is the same in all batches."""
        if isinstance(self.matrices, np.ndarray):
            return scipy.sparse.csr_array(self.matrices.mean(axis=0))
        parts = [P.tocoo() for P in self.matrices]
        row, col, data = (np.concatenate([getattr(P, name) for P in parts]) for name in ("row", "col", "data"))
        return scipy.sparse.csr_array((data / len(parts), (row, col)), shape=(len(self.parts.sizes), num_states))


@dataclass(frozen=True)
class ConsecutiveBatches:
    """Batch t is the support's rows t·B … (t+1)·B − 1."""

    num_batches: int
    parts: Parts

    @property
    def index(self) -> NDArray[Any]:
        """0 … T·B − 1, made anew at each call."""
        return np.arange(self.num_batches * self.parts.offsets[-1]).reshape(self.num_batches, -1)

    def rows(self, t: int) -> slice:
        """The rows of batch t."""
        B = int(self.parts.offsets[-1])
        return slice(t * B, (t + 1) * B)

    def means(self, t: int, V: Array) -> Array:
        """Reduce."""
        return self.parts.means(V[self.rows(t)])

    def average(self, V: Array) -> Array:
        """The mean of :meth:`means` over all batches, without a matrix."""
        T = self.num_batches
        return self.parts.means(V if T == 1 else V.reshape(T, -1, *V.shape[1:]).mean(axis=0))

    def columns(self, first: int, end: int) -> scipy.sparse.csr_array:
        """Some columns of :meth:`frequencies`."""
        rows = np.arange(first, end)
        pairs = self.parts.pairs[rows % int(self.parts.offsets[-1])]
        weights = 1.0 / (self.parts.sizes[pairs] * self.num_batches)
        return scipy.sparse.csr_array((weights, (pairs, rows - first)), (len(self.parts.sizes), end - first))

    def frequencies(self, num_states: int) -> scipy.sparse.csr_array:
        """1/N_x at each sample."""
        return self.columns(0, num_states)


Batches = SampleBatches | CountBatches | ConsecutiveBatches


def hold(index: NDArray[Any], sizes: NDArray[np.int64], num_states: int) -> SampleBatches | CountBatches:
    """The samples ``index`` ``(T, Σ_x M_x)`` in the form that takes the fewest bytes, judged by the first batch.

    Fewest bytes is also fastest: both forms are read at the speed of memory.
    """
    parts, shape = Parts(sizes), (len(sizes), num_states)
    as_samples, as_table = index.itemsize * index.shape[1], 8 * shape[0] * shape[1]
    # A pair has at least one sparse entry of 12 bytes, so that few samples a pair need not be counted to be kept.
    if min(as_table, 12 * shape[0]) >= as_samples:
        return SampleBatches(index, parts)
    first = _frequencies(parts.pairs, index[0], sizes, num_states)
    as_sparse = _num_bytes(first)
    if as_samples <= min(as_sparse, as_table):
        return SampleBatches(index, parts)
    rest = (_frequencies(parts.pairs, batch, sizes, num_states) for batch in index[1:])
    if as_sparse < as_table:
        return CountBatches([first, *rest], parts)
    tables = np.empty((len(index), *shape))
    for table, P in zip(tables, itertools.chain([first], rest), strict=True):
        table[:] = P.toarray()
    return CountBatches(tables, parts)


def held_bytes(samples: int, T: int, pairs: int, states: int) -> float:
    """What :func:`hold` keeps at the most, with the pair of each sample of a batch."""
    B, table = samples // T, pairs * states
    return min(8.0 * samples, 12.0 * T * (min(B, table) + pairs), 8.0 * T * table) + 8 * B + 1000 * T


def holding_bytes(samples: int, T: int, pairs: int, states: int) -> float:
    """What :func:`hold` takes: positions, the keys and counts of one batch, and what it keeps."""
    B, table = samples // T, pairs * states
    tally = 8.0 * table + 16 * min(B, table) if table <= 8 * B else 9.0 * B + 24 * min(B, table)
    return 8 * samples + 16 * B + tally + held_bytes(samples, T, pairs, states)


def model_bytes(samples: int, T: int, pairs: int, states: int) -> tuple[float, float]:
    """What ``frequencies`` keeps, and takes while it is made."""
    return 12.0 * (min(samples, pairs * states) + pairs), 56.0 * min(samples, T * pairs * states)


def _num_bytes(P: scipy.sparse.csr_array) -> int:
    return P.data.nbytes + P.indices.nbytes + P.indptr.nbytes


def _frequencies(
    pairs: NDArray[np.int64], samples: NDArray[Any], sizes: NDArray[np.int64], num_states: int
) -> scipy.sparse.csr_array:
    """n(x, s')/sizes[x] of samples whose last axis runs over ``pairs``, ``(len(sizes), num_states)``."""
    shape = (len(sizes), num_states)
    keys = (pairs * num_states + samples).ravel()
    if shape[0] * shape[1] <= 8 * keys.size:
        n = np.bincount(keys, minlength=shape[0] * shape[1])
        distinct = np.flatnonzero(n)
        n = n[distinct]
    else:
        distinct, n = np.unique(keys, return_counts=True)
    row, col = np.divmod(distinct, num_states)
    starts = np.searchsorted(row, np.arange(len(sizes) + 1))
    return scipy.sparse.csr_array((n / sizes[row], col.astype(np.int32), starts.astype(np.int32)), shape=shape)


def repeated_points(sequences: list[States]) -> tuple[States, Any] | None:
    """As :func:`distinct_states` for points that come up at least four times each on average; None where they do not.

    A simulator without noise gives each pair a single next state. A few samples tell that nothing repeats.
    """
    few = [s[:_LOOKED_AT] for s in sequences[:_LOOKED_AT]]
    if 4 * len({x.tobytes() for s in few for x in s}) > sum(map(len, few)):
        return None
    rows = [np.ascontiguousarray(s).view(np.dtype((np.void, s.itemsize * s.shape[1]))).ravel() for s in sequences]
    keys = np.unique(np.concatenate([np.unique(x) for x in rows]))
    if 4 * len(keys) > sum(map(len, sequences)):
        return None
    dtype, width = sequences[0].dtype, sequences[0].shape[1]

    def position(states: States) -> NDArray[np.int64]:
        found = np.searchsorted(keys, np.ascontiguousarray(states).view(keys.dtype).ravel())
        return np.asarray(found, dtype=np.int64)

    return keys.view(dtype).reshape(-1, width), position


def distinct_states(sequences: list[States]) -> tuple[States, Any]:
    """The distinct states and a function from states to their position among them."""
    highest = max(int(s.max()) for s in sequences)
    if highest < 16 * sum(map(len, sequences)) + 1024:
        seen = np.zeros(highest + 1, dtype=bool)
        for s in sequences:
            seen[s] = True
        support = np.flatnonzero(seen)
        position = np.cumsum(seen) - 1
        return support, lambda states: position[states]
    support = np.unique(np.concatenate(sequences))
    return support, lambda states: np.searchsorted(support, states)
