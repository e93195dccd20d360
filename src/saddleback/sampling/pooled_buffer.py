"""Two buffers over one coreset as one: every sample has the same weight.

    P̂ = (N₁P̂₁ + N₂P̂₂)/(N₁ + N₂)  at every pair,       Var = Σ_i N_i (Var_i + (mean_i − mean)²)/(N₁ + N₂)

On a table in memory the two estimated models are added up, and the sum is a buffer like any other. Elsewhere nothing is copied:
what is asked is asked of both, wherever their samples lie. Batches, which plug-in and LSTD do without, are those of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import Stream, generator
from saddleback.problem.spaces import Array, States
from saddleback.sampling.batches import CountBatches, Parts
from saddleback.sampling.buffer import Buffer, Counted, Value
from saddleback.sampling.counted_buffer import CountedBuffer


def pooled(problem: CMDP, first: Buffer, second: Buffer) -> Buffer:
    """All samples of both; they must be over the same design."""
    assert first.design is second.design
    if first.design.operator is None and isinstance(first, Counted) and isinstance(second, Counted):
        return _added(problem, first, second)
    return PooledBuffer(first, second)


class _Everywhere:
    """V at the samples of both, of which the limits can be had (:class:`saddleback.sampling.streamed_buffer.AtSamples`)."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def min(self, axis: int) -> Array:
        """The least V of each column."""
        return np.minimum(self.first.min(axis=axis), self.second.min(axis=axis))

    def max(self, axis: int) -> Array:
        """The greatest V of each column."""
        return np.maximum(self.first.max(axis=axis), self.second.max(axis=axis))


@dataclass
class PooledBuffer(Buffer):
    """Asks both parts and weighs their answers; see the module's first lines."""

    first: Buffer
    second: Buffer

    def __post_init__(self) -> None:
        self.design, self.num_batches = self.first.design, self.first.num_batches
        self.batch_sizes = self.first.batch_sizes
        n = self.counts[:, None]
        self.num_unused = self.first.num_samples + self.second.num_samples - int(n.sum())
        self._share = self.first.counts / self.counts
        self.certain = self.first.certain
        signals: tuple[Array | None, Array | None] = _signals(self.first, self.second)
        self.signal_means, self.signal_variances = signals

    @property
    def support(self) -> States:  # type: ignore[override]
        """The next states of both, put together when they are asked for: they are held once."""
        return np.concatenate([self.first.support, self.second.support])

    @property
    def counts(self) -> NDArray[np.int64]:
        """N per pair, of both."""
        return self.first.counts + self.second.counts

    @property
    def num_samples(self) -> int:
        """Simulator calls behind both."""
        return self.first.num_samples + self.second.num_samples

    def expect(self, t: int, value: Value) -> Array:
        """P̂_t V of the first: one of its batches."""
        return self.first.expect(t, self._split(value)[0])

    def average(self, value: Value) -> Array:
        """P̂ V over all samples, ``(c,)`` or ``(c, k)``."""
        a, b = self._split(value)
        return self._weighed(self.first.average(a), self.second.average(b))

    def at_support(self, value: Value) -> Any:
        """V wherever there are samples: an array over the support where that is held."""
        a, b = self._split(value)
        found = self.first.at_support(a), self.second.at_support(b)
        held = all(isinstance(x, np.ndarray) for x in found)
        return np.concatenate(found) if held else _Everywhere(*found)

    def moments(self, V: Any) -> tuple[Array, Array]:
        """Mean and variance of V at the next states of every pair."""
        a, b = self._split(V)
        (m1, v1), (m2, v2) = self.first.moments(a), self.second.moments(b)
        mean = self._weighed(m1, m2)
        return mean, self._weighed(v1 + (m1 - mean) ** 2, v2 + (m2 - mean) ** 2)

    def _split(self, value: Any) -> tuple[Any, Any]:
        """What each part is asked about: an array over the support is cut, parameters are the same for both."""
        if isinstance(value, _Everywhere):
            return value.first, value.second
        if isinstance(value, np.ndarray):
            here = len(self.first.support)
            return value[:here], value[here:]
        return value, value

    def _weighed(self, a: Array, b: Array) -> Array:
        share = self._share if a.ndim == 1 else self._share[:, None]
        return np.asarray(share * a + (1 - share) * b)


def halves(buffer: Buffer, division: int = 0) -> tuple[Buffer, Buffer]:
    """The samples divided in two by chance, with the same allocation; where they are not counted, as they were drawn.

    ``division`` numbers the divisions that there may be.

    A pair that leaves one half nothing is in both. Of signals only means and variances are kept: the halves' means are drawn as
    those of a random half would be, normal around the mean of all.
    """
    if isinstance(buffer, PooledBuffer):
        return buffer.first, buffer.second
    assert isinstance(buffer, CountedBuffer)
    P, n, rng = buffer.empirical_model(), buffer.counts, generator(0, Stream.EVALUATION, division, 1 << 31)
    k = np.rint(P.data * np.repeat(n, np.diff(P.indptr))).astype(np.int64)
    one = rng.binomial(k, 0.5)
    found = [_half(buffer, P, k, part) for part in (one, k - one)]
    if buffer.signal_means is None or buffer.signal_variances is None:
        return found[0], found[1]
    normal = rng.standard_normal(buffer.signal_means.shape) * np.sqrt(buffer.signal_variances)
    for half, sign in zip(found, (1.0, -1.0), strict=True):
        spread = np.sqrt(np.maximum(1 / half.counts - 1 / n, 0.0))[:, None]
        half.signal_means = buffer.signal_means + sign * spread * normal
    return found[0], found[1]


def _half(
    buffer: CountedBuffer, P: scipy.sparse.csr_array, k: NDArray[np.int64], own: NDArray[np.int64]
) -> CountedBuffer:
    """A buffer over the same support with ``own`` of the counts ``k`` in P."""
    sizes = np.add.reduceat(own, P.indptr[:-1])  # every row has an entry
    own = np.where(np.repeat(sizes == 0, np.diff(P.indptr)), k, own)
    sizes = np.add.reduceat(own, P.indptr[:-1])
    matrix = scipy.sparse.csr_array((own / np.repeat(sizes, np.diff(P.indptr)), P.indices, P.indptr), shape=P.shape)
    signals = buffer.signal_means, 0, False, buffer.signal_variances, None, buffer.unsampled, buffer.certain
    batches = CountBatches([matrix], Parts(sizes))
    return CountedBuffer(buffer.design, buffer.features, batches, sizes, buffer.support, *signals)


def _signals(first: Buffer, second: Buffer) -> tuple[Array, Array] | tuple[None, None]:
    """Mean and variance of the observed signals, ``(c, 1+m)`` each."""
    if first.signal_means is None or second.signal_means is None:
        return None, None
    assert first.signal_variances is not None and second.signal_variances is not None
    share = (_own(first) / np.maximum(_own(first) + _own(second), 1))[:, None]
    mean = share * first.signal_means + (1 - share) * second.signal_means
    spread = [b.signal_variances + (b.signal_means - mean) ** 2 for b in (first, second)]
    return mean, np.asarray(share * spread[0] + (1 - share) * spread[1])


def _own(buffer: Buffer) -> NDArray[np.int64]:
    """N per pair, 0 where nothing was sampled: such a pair only stays where it is."""
    nothing = [mask for mask in (buffer.unsampled, buffer.certain) if mask is not None]
    return np.where(np.any(nothing, axis=0), 0, buffer.counts) if nothing else buffer.counts


def pooling_bytes(entries: float) -> tuple[float, float]:
    """What the table of counts of both keeps, and takes while it is made or divided in two."""
    return 12.0 * entries, 100.0 * entries


def _added(problem: CMDP, first: Counted, second: Counted) -> CountedBuffer:
    """One table of counts."""
    support, where = np.unique(np.concatenate([first.support, second.support]), return_inverse=True)
    shape, drawn = (first.design.size, len(support)), _own(first) + _own(second)
    missing = drawn == 0
    total = scipy.sparse.csr_array(shape, dtype=np.float64)
    for buffer, columns in zip((first, second), np.split(where, [len(first.support)]), strict=True):
        P = scipy.sparse.coo_array(buffer.empirical_model())
        here = (np.rint(P.data * _own(buffer)[P.row]), (P.row, columns[P.col]))
        total = total + scipy.sparse.csr_array(here, shape=shape)
    nowhere = np.flatnonzero(missing)  # stays where it is, as in `cut`
    at = np.searchsorted(support, first.design.states[nowhere])
    total = total + scipy.sparse.csr_array((np.ones(len(nowhere)), (nowhere, at)), shape=shape)
    total.eliminate_zeros()
    n = np.maximum(drawn, 1)
    total.data /= np.repeat(n, np.diff(total.indptr))
    total.indices, total.indptr = total.indices.astype(np.int32), total.indptr.astype(np.int32)
    unused = first.num_samples + second.num_samples - int(n.sum())
    means, variances = _signals(first, second)
    certain = first.certain
    unsampled = missing if certain is None else missing & ~certain
    held = support, means, unused, False, variances, None, unsampled if unsampled.any() else None, certain
    return CountedBuffer(first.design, problem.features, CountBatches([total], Parts(n)), n, *held)
