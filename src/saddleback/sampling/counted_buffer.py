"""§3, a buffer in memory: every sample, or how often each next state came up (:mod:`saddleback.sampling.batches`).

V may be an array over ``support`` too, ``(n,)`` or ``(n, k)``. Small buffers are read by numpy, large ones by compiled code
with the same result up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import generator
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array, Features, States
from saddleback.sampling.batches import (
    COMPILED_PRODUCTS,
    COMPILED_SAMPLES,
    Batches,
    ConsecutiveBatches,
    CountBatches,
    Parts,
    SampleBatches,
    distinct_states,
    hold,
    repeated_points,
)
from saddleback.sampling.buffer import ROUNDING, Counted, Samples, Value
from saddleback.sampling.value_functions import PolicyValue, Support


@dataclass
class CountedBuffer(Counted):
    """Samples cut into T batches, ready to be averaged."""

    design: Design
    features: Features | None
    batches: Batches
    batch_sizes: NDArray[np.int64]
    support: States
    signal_means: Array | None
    num_unused: int
    compiled: bool = False
    signal_variances: Array | None = None
    num_blocks: NDArray[np.int64] | None = None
    unsampled: NDArray[np.bool_] | None = None
    num_batches: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_batches = self.batches.num_batches
        self._whole = _pays_whole(len(self.support), int(self.batch_sizes.sum()))
        self._values = Support(self.support, self.features, self.compiled)
        self._model: scipy.sparse.csr_array | None = None

    def samples(self) -> Samples:
        """What the buffer was cut from; samples that filled no batch are not held.

        Counts have forgotten the order of the samples: a random one, which independent samples do not mind, takes its
        place, for sorted samples must not be cut into batches again.
        """
        offsets, index, pieces = self.batches.parts.offsets, self.batches.index, []
        for x in range(self.design.size):
            piece = self.support[index[:, offsets[x] : offsets[x + 1]].ravel()]
            if self.unsampled is not None and self.unsampled[x]:
                piece = piece[:0]
            if isinstance(self.batches, CountBatches):
                piece = generator(0, 0, x, 1 << 31).permutation(piece)
            pieces.append(piece)
        return Samples(pieces, self.signal_means, self.signal_variances, self.num_blocks, unsampled=self.unsampled)

    def expect(self, t: int, value: Value) -> Array:
        """P̂_t V on the coreset, ``(c,)`` or ``(c, k)``."""
        if isinstance(value, np.ndarray):
            return self.batches.means(t, self._checked(value))
        if self._whole or isinstance(self.batches, CountBatches):
            return self.batches.means(t, self._values.values(value))
        return self._values.means_at(self.batches.rows(t), self.batches.parts, value)

    def average(self, value: Value) -> Array:
        """P̂ V over all batches, ``(c,)`` or ``(c, k)``: the mean of ``expect`` over t."""
        if isinstance(value, PolicyValue) and value.omega.size >= len(value.omega) ** 2:  # many ω: the mean of φ first
            return np.asarray(self._average_features(value.policy) @ value.omega)
        V = self.at_support(value)
        if isinstance(self.batches, ConsecutiveBatches):
            return self.batches.average(V)
        return np.asarray(self.empirical_model() @ V)

    def moments(self, V: Array) -> tuple[Array, Array]:
        """Mean and variance of V over the support, ``(n,)`` or ``(n, k)``, at the next states of every pair.

        Values are centred first, and a variance that is only the rounding error of its two terms is 0: its root, 10⁻⁸ of
        the span of V, would differ from processor to processor.
        """
        middle = (V.max(axis=0) + V.min(axis=0)) / 2
        mean = self.average(V - middle)
        variance = self.average((V - middle) ** 2) - mean**2
        least = ROUNDING * (np.ptp(V, axis=0) ** 2 + ROUNDING * middle**2)
        return mean + middle, np.where(variance > least, variance, 0.0)

    def at_support(self, value: Value) -> Array:
        """V at every state of ``support``."""
        return self._checked(value) if isinstance(value, np.ndarray) else self._values.values(value, once=True)

    def empirical_model(self) -> scipy.sparse.csr_array:
        """P̂ over all batches as a sparse ``(c, len(support))`` matrix of frequencies, made once: do not write to it."""
        if self._model is None:
            self._model = self.batches.frequencies(len(self.support))
        return self._model

    def _average_features(self, policy: Policy) -> Array:
        """P̂ of Σ_a π(a|·) φ(·,a), ``(c, d)``: a piece of the support at a time where all of it would be large."""
        batches = self.batches
        if self._values.keeps(policy):
            phi = self._values.mean_features(policy)
            if isinstance(batches, ConsecutiveBatches):
                return batches.average(phi)
            return np.asarray(self.empirical_model() @ phi)
        P = None if isinstance(batches, ConsecutiveBatches) else self.empirical_model().tocsc()
        mean = np.zeros((self.design.size, self._values.dim))
        for first, phi in self._values.features_in_pieces(policy):
            end = first + len(phi)
            if P is not None:
                mean += P[:, first:end] @ phi
            elif isinstance(batches, ConsecutiveBatches):
                mean += batches.columns(first, end) @ phi
        return mean

    def _checked(self, value: Array) -> Array:
        """Compiled loops do not look whether a position lies within the array."""
        if len(value) != len(self.support):
            rule = f"must have {len(self.support)} rows, one for each state of the support"
            raise InputError("value", rule, value.shape, "index it with buffer.support")
        return value


def cut(samples: Samples, problem: CMDP, design: Design, num_batches: int) -> CountedBuffer:
    """Cut every pair's sequence into ``num_batches`` batches; what does not fill a batch stays unused.

    A pair without samples stays where it is: a state that is not reached leads nowhere that the start would notice.
    """
    T, drawn = num_batches, samples.total
    if samples.unsampled is not None:
        here = [
            np.full(T, s) if no else n
            for n, s, no in zip(samples.next_states, design.states, samples.unsampled, strict=True)
        ]
        samples = replace(samples, next_states=here)
    sizes = np.array([len(s) // T for s in samples.next_states], dtype=np.int64)
    rule = f"must leave at least one of the {min(map(len, samples.next_states))} samples per pair in every batch"
    enough = T >= 1 and bool(np.all(sizes >= 1))
    require(enough, "num_batches", rule, T, "use fewer batches or more samples")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    first, batch, features = samples.next_states[0], int(sizes.sum()), problem.features
    width = 0 if features is None or features.direct else features.num_actions * features.dim
    batches: Batches
    points = repeated_points(samples.next_states) if first.ndim == 2 else None
    if first.ndim == 2 and points is None:  # continuous states: every sample is its own support point, in batch order
        pieces = [s[: T * m].reshape(T, m, -1) for s, m in zip(samples.next_states, sizes, strict=True)]
        support = np.concatenate(pieces, axis=1).reshape(-1, first.shape[1])
        batches = ConsecutiveBatches(T, Parts(sizes))
        compiled = T * products(width, len(support), batch) >= COMPILED_PRODUCTS
    else:
        support, remap = points or distinct_states(samples.next_states)
        much = T * products(width, len(support), batch) >= COMPILED_PRODUCTS
        many = T * batch >= COMPILED_SAMPLES
        index = np.empty((T, batch), dtype=np.uint32 if much or many else np.intp)
        for x, sequence in enumerate(samples.next_states):
            m = sizes[x]
            index[:, offsets[x] : offsets[x + 1]] = remap(sequence[: T * m]).reshape(T, m)
        batches = hold(index, sizes, len(support))
        compiled = much or (many and isinstance(batches, SampleBatches))
    means, variances, unused = samples.signal_means, samples.signal_variances, drawn - T * batch
    how = compiled, variances, samples.num_blocks, samples.unsampled
    return CountedBuffer(design, features, batches, sizes, support, means, unused, *how)


def _pays_whole(num_states: int, batch: int) -> bool:
    """Whether V is evaluated on the whole support rather than at the samples of each ``batch``.

    It pays when a batch is not much smaller: the support's features are one contiguous product, a batch's must be
    gathered and both θ's evaluated.
    """
    return num_states <= 4 * batch


def products(width: int, num_states: int, batch: int) -> int:
    """Products φ_j·θ_j in one step of LS-MDVI, with ``width`` = A·d numbers a state."""
    return width * (num_states if _pays_whole(num_states, batch) else 2 * batch)
