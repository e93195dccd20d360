"""§3, the samples: DataCollection fills a buffer, and ``expect`` is all an oracle may ask of it.

    DataCollection(Gen, C, N):   for each (x,b) ∈ C:  s'_1..s'_N ~ P(·|x,b)
    B = B_0 ∪ … ∪ B_{T−1},       B_t = M samples of every pair,   N = T·M
    expect(t, V) = (P̂_t V)(x,b) = (1/M) Σ_m V(s'_m),  s'_m ∈ B_t

The value function V is an array over ``buffer.support``, the distinct next states in the buffer (``(n,)`` or ``(n, k)``),
or one of :class:`MaxDifference`, :class:`SoftDifference` and :class:`PolicyValue`, a few numbers that are evaluated where
the samples are (:mod:`saddleback.sampling.value_functions`). All take several right-hand sides at once: parameters ``(d, k)`` give means
``(c, k)``. ``average(V)`` is the mean over all batches, P̂V.

How the batches are held is :mod:`saddleback.sampling.batches`. Small buffers are read by numpy, large ones by compiled code with
the same result up to rounding. Pairs may have different numbers of samples; then M is per pair, and T is common.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array, Features, States
from saddleback.sampling.batches import (
    Batches,
    ConsecutiveBatches,
    CountBatches,
    Parts,
    SampleBatches,
    distinct_states,
    hold,
    repeated_points,
)
from saddleback.sampling.blocks import BlockSource, Executor, InOrder, blocks_for
from saddleback.sampling.value_functions import MaxDifference, PolicyValue, SoftDifference, Support
from saddleback.simulators.generative_model import GenerativeModel, generator

COMPILED_SAMPLES, COMPILED_PRODUCTS = 10_000_000, 200_000_000
"""Samples, or products φ_j·θ_j, in one pass over all batches from which compiled loops are used.

Loading numba and the kept machine code takes 0.65 s. A pass over 10⁷ samples gains 5 to 10 ms with one column and 0.15 s
and more with sixteen; a pass of 2·10⁸ products 0.07 s and 0.5 s. The tens of passes of a solve pay for the loading.
"""

ROUNDING = 1e-11
"""Of the squared span: a variance below it is not told from none."""

Value = Array | MaxDifference | SoftDifference | PolicyValue


@dataclass(frozen=True)
class Samples:
    """What DataCollection drew: per pair its sequence of next states, and mean and variance of the observed signals.

    ``num_blocks`` is how many blocks each pair has used up, so that more can be drawn later.
    """

    next_states: list[States]
    signal_means: Array | None
    signal_variances: Array | None = None
    num_blocks: NDArray[np.int64] | None = None

    @property
    def total(self) -> int:
        """Number of simulator calls."""
        return sum(len(s) for s in self.next_states)


def collect(
    model: GenerativeModel,
    problem: CMDP,
    design: Design,
    counts: int | NDArray[np.int64],
    *,
    seed: int,
    stream: int,
    held: Samples | None = None,
    executor: Executor | None = None,
) -> Samples:
    """DataCollection: ``counts`` samples of every pair (one number, or one per pair), block by block.

    With ``held``, samples drawn before with the same seed and stream, only what a pair lacks is drawn, from the blocks
    that follow its own; a pair that has more keeps them. ``executor`` draws the blocks (None: here, one by one).
    """
    per_pair = np.broadcast_to(np.asarray(counts, dtype=np.int64), (design.size,))
    require(
        bool(np.all(per_pair >= 1)),
        "samples",
        f"must give each of the {design.size} pairs of the coreset at least one sample",
        f"{int(per_pair.min())} for one of them",
        "raise the number of samples",
    )
    had, used = np.zeros((2, design.size), dtype=np.int64)
    if held is not None:
        had = np.array([len(s) for s in held.next_states], dtype=np.int64)
        assert held.num_blocks is not None
        used = held.num_blocks
    source = BlockSource(model, problem, design.states, design.actions, seed)
    tasks = blocks_for(stream, per_pair, had, used)
    num_blocks = used + np.bincount([task.pair for task in tasks], minlength=design.size)
    drawn = dict((executor or InOrder()).run(source.draw, tasks))
    parts: list[list[States]] = [[] if held is None else [held.next_states[x]] for x in range(design.size)]
    # Around the base of each signal, lest a large offset cost the digits of the variance.
    base = problem.base if model.num_signals else np.zeros(0)
    sums, squares = np.zeros((2, design.size, model.num_signals))
    for block in sorted(drawn):  # in the order of their keys, whatever order they came in
        draw = drawn.pop(block)
        parts[block.pair].append(draw.next_states)
        if draw.signals is not None:
            sums[block.pair] += (draw.signals - base).sum(axis=0)
            squares[block.pair] += ((draw.signals - base) ** 2).sum(axis=0)
    sequences = [part[0] if len(part) == 1 else np.concatenate(part) for part in parts]
    if not model.num_signals:
        return Samples(sequences, None, None, num_blocks)
    if held is not None:
        assert held.signal_means is not None and held.signal_variances is not None
        sums += had[:, None] * (held.signal_means - base)
        squares += had[:, None] * (held.signal_variances + (held.signal_means - base) ** 2)
    n = np.array([len(s) for s in sequences])[:, None]
    means = sums / n
    return Samples(sequences, means + base, np.maximum(squares / n - means**2, 0.0), num_blocks)


@dataclass
class Buffer:
    """Samples cut into T batches, ready to be averaged: see the module's first lines."""

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
    _whole: bool = field(init=False)
    _values: Support = field(init=False)
    _model: scipy.sparse.csr_array | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._whole = _pays_whole(len(self.support), self.batch_sizes)
        self._values = Support(self.support, self.features, self.compiled)

    # ---- sizes -----------------------------------------------------------------------------------------------------

    @property
    def num_batches(self) -> int:
        """T."""
        return self.batches.num_batches

    @property
    def num_samples(self) -> int:
        """Simulator calls behind this buffer, those that did not fill a batch included."""
        return self.batches.num_samples + self.num_unused

    @property
    def index(self) -> NDArray[Any]:
        """Positions of the samples in ``support``, ``(T, Σ_x M_x)``, pair after pair."""
        return self.batches.index

    @property
    def counts(self) -> NDArray[np.int64]:
        """N per pair: the samples in use, T·M."""
        return self.batch_sizes * self.num_batches

    def samples(self) -> Samples:
        """What the buffer was cut from; samples that filled no batch are not held.

        Counts have forgotten the order of the samples: a random one, which independent samples do not mind, takes its
        place, for sorted samples must not be cut into batches again.
        """
        offsets, index, pieces = np.concatenate([[0], np.cumsum(self.batch_sizes)]), self.batches.index, []
        for x in range(self.design.size):
            piece = self.support[index[:, offsets[x] : offsets[x + 1]].ravel()]
            if isinstance(self.batches, CountBatches):
                piece = generator(0, 0, x, 1 << 31).permutation(piece)
            pieces.append(piece)
        return Samples(pieces, self.signal_means, self.signal_variances, self.num_blocks)

    # ---- what is known or was observed of the rewards --------------------------------------------------------------

    def utilities(self, problem: CMDP) -> Array:
        """r, c_1..c_m ∈ [0, 1] on the coreset, ``(c, 1+m)``: known functions, or means of what the simulator returned."""
        u = problem.utilities(self.design.states, self.design.actions)
        seen = problem.observed
        if np.any(seen):
            if self.signal_means is None:
                raise InputError(
                    "simulator", "must return signals for an observed reward", None, "return (next, signals)"
                )
            u[:, seen] = problem.utilities_of(self.signal_means)[:, seen]
        return u

    def signal_noise(self, problem: CMDP) -> Array:
        """Standard deviation of one observed r, c_1..c_m at each pair, in utilities ``(c, 1+m)``; zero where known."""
        if self.signal_variances is None or not np.any(problem.observed):
            return np.zeros((self.design.size, 1 + problem.num_constraints))
        return np.where(problem.observed, np.sqrt(self.signal_variances) / np.abs(problem.scale), 0.0)

    def tabular_shape(self, problem: CMDP) -> tuple[int, int]:
        """(S, A), after checking that the buffer holds every pair of a finite problem in the order s·A + a."""
        S, A = problem.num_states, problem.num_actions
        full = S is not None and self.design.operator is None and self.design.size == S * A
        if S is None or not full or not np.array_equal(self.design.states * A + self.design.actions, np.arange(S * A)):
            raise InputError(
                "design",
                "must be 'full' (every pair of a finite problem) for a tabular oracle",
                f"{self.design.size} pairs",
                "choose --design full, or least-squares oracles",
            )
        return S, A

    def burn_in(self, length: float) -> int:
        """How many batches a burn-in of ``length`` may spend: an eighth of them at the most."""
        return min(math.ceil(length), self.num_batches // 8)

    # ---- the seam --------------------------------------------------------------------------------------------------

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
        columns = batches.columns if isinstance(batches, ConsecutiveBatches) else _columns_of(self.empirical_model())
        mean = np.zeros((self.design.size, self._values.dim))
        for first, phi in self._values.features_in_pieces(policy):
            mean += columns(first, first + len(phi)) @ phi
        return mean

    def _checked(self, value: Array) -> Array:
        """Compiled loops do not look whether a position lies within the array."""
        if len(value) != len(self.support):
            rule = f"must have {len(self.support)} rows, one for each state of the support"
            raise InputError("value", rule, value.shape, "index it with buffer.support")
        return value


def cut(samples: Samples, problem: CMDP, design: Design, num_batches: int) -> Buffer:
    """Cut every pair's sequence into ``num_batches`` batches; what does not fill a batch stays unused."""
    T = num_batches
    sizes = np.array([len(s) // T for s in samples.next_states], dtype=np.int64)
    require(
        T >= 1 and bool(np.all(sizes >= 1)),
        "num_batches",
        f"must leave at least one of the {min(map(len, samples.next_states))} samples per pair in every batch",
        T,
        "use fewer batches or more samples",
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    first = samples.next_states[0]
    batches: Batches
    points = repeated_points(samples.next_states) if first.ndim == 2 else None
    if first.ndim == 2 and points is None:  # continuous states: every sample is its own support point, in batch order
        pieces = [s[: T * m].reshape(T, m, -1) for s, m in zip(samples.next_states, sizes, strict=True)]
        support = np.concatenate(pieces, axis=1).reshape(-1, first.shape[1])
        batches = ConsecutiveBatches(T, Parts(sizes))
        compiled = _products(problem.features, len(support), T, sizes) >= COMPILED_PRODUCTS
    else:
        support, remap = points or distinct_states(samples.next_states)
        much = _products(problem.features, len(support), T, sizes) >= COMPILED_PRODUCTS
        many = T * int(offsets[-1]) >= COMPILED_SAMPLES
        index = np.empty((T, int(offsets[-1])), dtype=np.uint32 if much or many else np.intp)
        for x, sequence in enumerate(samples.next_states):
            m = sizes[x]
            index[:, offsets[x] : offsets[x + 1]] = remap(sequence[: T * m]).reshape(T, m)
        batches = hold(index, sizes, len(support))
        compiled = much or (many and isinstance(batches, SampleBatches))
    unused = samples.total - batches.num_samples
    return Buffer(
        design,
        problem.features,
        batches,
        sizes,
        support,
        samples.signal_means,
        unused,
        compiled,
        samples.signal_variances,
        samples.num_blocks,
    )


def _columns_of(P: scipy.sparse.csr_array) -> Callable[[int, int], scipy.sparse.csc_array]:
    """Some columns of P."""
    by_column = P.tocsc()
    return lambda first, end: by_column[:, first:end]


def _pays_whole(num_states: int, sizes: NDArray[np.int64]) -> bool:
    """Whether V is evaluated on the whole support rather than at each batch's samples.

    It pays when a batch is not much smaller: the support's features are one contiguous product, a batch's must be
    gathered and both θ's evaluated.
    """
    return num_states <= 4 * int(sizes.sum())


def _products(features: Features | None, num_states: int, T: int, sizes: NDArray[np.int64]) -> int:
    """Products φ_j·θ_j in one pass of LS-MDVI over the batches."""
    if features is None or features.direct:
        return 0
    states = num_states if _pays_whole(num_states, sizes) else 2 * int(sizes.sum())
    return T * states * features.num_actions * features.dim
