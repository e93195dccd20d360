"""§3, the samples: DataCollection fills a buffer, and ``expect`` is all an oracle may ask of it.

    DataCollection(Gen, C, N):   for each (x,b) ∈ C:  s'_1..s'_N ~ P(·|x,b)
    B = B_0 ∪ … ∪ B_{T−1},       B_t = M samples of every pair,   N = T·M
    expect(t, V) = (P̂_t V)(x,b) = (1/M) Σ_m V(s'_m),  s'_m ∈ B_t

The value function V is one of
- an array over ``buffer.support``, the distinct next states in the buffer (``(n,)`` or ``(n, k)``),
- :class:`MaxDifference` (θ_sum, θ_previous):  V = max_a⟨φ,θ_sum⟩ − max_a⟨φ,θ_previous⟩  (LS-MDVI),
- :class:`SoftDifference`, the same with log-sum-exp for the maximum (entropic mirror descent),
- :class:`PolicyValue` (π, ω):  V = π⟨φ,ω⟩  (LS-PE).
The last three are a few numbers that whoever holds the samples can evaluate for himself. All take several right-hand
sides at once: parameters ``(d, k)`` give means ``(c, k)``.

Pairs may have different numbers of samples; then M is per pair, and T is common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.design import Design
from saddleback.errors import InputError, require
from saddleback.policy import Policy, maximum_over_actions, soft_maximum
from saddleback.problem import CMDP
from saddleback.simulator import BLOCK, GenerativeModel, generator
from saddleback.spaces import Array, Features, States

_FEATURE_BYTES = 1 << 30  # features of the support are kept when they fit in this much, else evaluated batch by batch


class MaxDifference(NamedTuple):
    """V(s) = max_a⟨φ(s,a), θ_sum⟩ − max_a⟨φ(s,a), θ_previous⟩."""

    theta_sum: Array
    theta_previous: Array


class SoftDifference(NamedTuple):
    """V(s) = (1/β) lse_a(β⟨φ,θ_sum⟩) − (α/β) lse_a(β⟨φ,θ_previous⟩)."""

    theta_sum: Array
    theta_previous: Array
    alpha: float
    beta: float


class PolicyValue(NamedTuple):
    """V(s) = Σ_a π(a|s) ⟨φ(s,a), ω⟩."""

    policy: Policy
    omega: Array


Value = Array | MaxDifference | SoftDifference | PolicyValue


@dataclass(frozen=True)
class Samples:
    """What DataCollection drew: per pair of the design its sequence of next states and the mean observed signals."""

    next_states: list[States]
    signal_means: Array | None

    @property
    def total(self) -> int:
        """Number of simulator calls."""
        return sum(len(s) for s in self.next_states)


def collect(
    model: GenerativeModel, problem: CMDP, design: Design, counts: int | NDArray[np.int64], *, seed: int, stream: int
) -> Samples:
    """DataCollection: ``counts`` samples of every pair (one number, or one per pair), block by block."""
    per_pair = np.broadcast_to(np.asarray(counts, dtype=np.int64), (design.size,))
    require(
        bool(np.all(per_pair >= 1)),
        "samples",
        f"must give each of the {design.size} pairs of the coreset at least one sample",
        f"{int(per_pair.min())} for one of them",
        "raise the number of samples",
    )
    sequences: list[States] = []
    means = np.zeros((design.size, model.num_signals))
    for pair in range(design.size):
        state, action, n = design.states[pair : pair + 1], design.actions[pair : pair + 1], int(per_pair[pair])
        blocks = []
        for block, first in enumerate(range(0, n, BLOCK)):
            size = min(BLOCK, n - first)
            key = (seed, int(stream), pair, block)
            states, actions = np.repeat(state, size, axis=0), np.repeat(action, size)
            draw = model.sample(states, actions, generator(*key), key)
            blocks.append(draw.next_states)
            if draw.signals is not None:
                for column in np.flatnonzero(problem.observed):
                    problem.signals[column].check(draw.signals[:, column], states, actions)
                means[pair] += draw.signals.sum(axis=0) / n
        sequences.append(blocks[0] if len(blocks) == 1 else np.concatenate(blocks))
    return Samples(sequences, means if model.num_signals else None)


@dataclass
class Buffer:
    """Samples cut into T batches, ready to be averaged: see the module's first lines."""

    design: Design
    features: Features | None
    index: NDArray[Any]
    batch_sizes: NDArray[np.int64]
    support: States
    signal_means: Array | None
    num_unused: int
    _whole: bool = field(init=False)
    _uniform: int = field(init=False)
    _offsets: NDArray[np.int64] = field(init=False)
    _matrix: Array | None = field(init=False, default=None)
    _remembered: dict[str, tuple[Any, Array]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._offsets = np.concatenate([[0], np.cumsum(self.batch_sizes)])
        self._uniform = int(self.batch_sizes[0]) if np.all(self.batch_sizes == self.batch_sizes[0]) else 0
        # Evaluating V on the whole support pays when a batch is not much smaller than it: the support's features are
        # one contiguous product, a batch's must be gathered and both θ's evaluated.
        self._whole = len(self.support) <= 4 * self.index.shape[1]

    # ---- sizes -----------------------------------------------------------------------------------------------------

    @property
    def num_batches(self) -> int:
        """T."""
        return int(self.index.shape[0])

    @property
    def num_samples(self) -> int:
        """Simulator calls behind this buffer, those that did not fill a batch included."""
        return self.index.size + self.num_unused

    @property
    def counts(self) -> NDArray[np.int64]:
        """N per pair: the samples in use, T·M."""
        return self.batch_sizes * self.num_batches

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

    # ---- the seam --------------------------------------------------------------------------------------------------

    def expect(self, t: int, value: Value) -> Array:
        """P̂_t V on the coreset, ``(c,)`` or ``(c, k)``."""
        return self._means(self._at_batch(t, value))

    def at_support(self, value: Value) -> Array:
        """V at every state of ``support``."""
        return value if isinstance(value, np.ndarray) else self._evaluate(value, self.support, self._support_matrix())

    def _at_batch(self, t: int, value: Value) -> Array:
        index = self.index[t]
        if isinstance(value, np.ndarray):
            return value.take(index, axis=0)
        if self._whole:
            return self._on_support(value).take(index, axis=0)
        matrix = self._support_matrix()
        rows = None if matrix is None else matrix[index]
        return self._evaluate(value, self.support[index], rows)

    def _means(self, at_samples: Array) -> Array:
        if self._uniform:
            shape = (self.design.size, self._uniform, *at_samples.shape[1:])
            return np.add.reduce(at_samples.reshape(shape), axis=1) / self._uniform
        sums = np.add.reduceat(at_samples, self._offsets[:-1], axis=0)
        return sums / self.batch_sizes.reshape(-1, *([1] * (at_samples.ndim - 1)))

    def empirical_model(self) -> scipy.sparse.csr_array:
        """P̂ over all batches as a sparse ``(c, len(support))`` matrix of frequencies."""
        rows = np.repeat(np.arange(self.design.size), self.batch_sizes)
        rows = np.broadcast_to(rows, self.index.shape)
        shape = (self.design.size, len(self.support))
        flat = np.bincount((rows * shape[1] + self.index).ravel(), minlength=0) if np.prod(shape) < 5e7 else None
        if flat is not None:
            keys = np.flatnonzero(flat)
            n = flat[keys]
        else:
            keys, n = np.unique(rows.astype(np.int64) * shape[1] + self.index, return_counts=True)
        r, c = np.divmod(keys, shape[1])
        return scipy.sparse.csr_array((n / self.counts[r], (r, c)), shape=shape)

    # ---- evaluating parametric value functions ---------------------------------------------------------------------

    def _on_support(self, value: MaxDifference | SoftDifference | PolicyValue) -> Array:
        """As ``at_support``, remembering the last maximum: in a run θ_previous was θ_sum one step ago."""
        matrix = self._support_matrix()
        if isinstance(value, PolicyValue):
            return np.asarray(self._mean_features(value.policy) @ value.omega)
        beta = value.beta if isinstance(value, SoftDifference) else None
        previous = self._remembered.get("maximum")
        if previous is not None and previous[0][0] is value.theta_previous and previous[0][1] == beta:
            low = previous[1]
        else:
            low = self._maximum(value.theta_previous, beta, self.support, matrix)
        high = self._maximum(value.theta_sum, beta, self.support, matrix)
        self._remembered["maximum"] = ((value.theta_sum, beta), high)
        return high - low if beta is None else high - value.alpha * low  # type: ignore[union-attr]

    def _evaluate(
        self, value: MaxDifference | SoftDifference | PolicyValue, states: States, matrix: Array | None
    ) -> Array:
        if isinstance(value, PolicyValue):
            return value.policy.mean_features(self._required_features(), states) @ value.omega
        beta, alpha = (value.beta, value.alpha) if isinstance(value, SoftDifference) else (None, 1.0)
        high = self._maximum(value.theta_sum, beta, states, matrix)
        low = self._maximum(value.theta_previous, beta, states, matrix)
        return high - alpha * low

    def _maximum(self, theta: Array, beta: float | None, states: States, matrix: Array | None) -> Array:
        features = self._required_features()
        if matrix is None:
            return (
                features.maximum(states, theta) if beta is None else soft_maximum(features.values(states, theta), beta)
            )
        n, A, d = matrix.shape
        Q = (matrix.reshape(n * A, d) @ theta).reshape(n, A, *theta.shape[1:])
        return maximum_over_actions(Q) if beta is None else soft_maximum(Q, beta)

    def _mean_features(self, policy: Policy) -> Array:
        remembered = self._remembered.get("policy")
        if remembered is None or remembered[0] is not policy:
            remembered = (policy, policy.mean_features(self._required_features(), self.support))
            self._remembered["policy"] = remembered
        return remembered[1]

    def _support_matrix(self) -> Array | None:
        """φ on the support, ``(n, A, d)``, or None where an argmax oracle is the way or it would not fit."""
        features = self._required_features()
        if features.direct or len(self.support) * features.num_actions * features.dim * 8 > _FEATURE_BYTES:
            return None
        if self._matrix is None:
            self._matrix = np.ascontiguousarray(features.all(self.support))
        return self._matrix

    def _required_features(self) -> Features:
        if self.features is None:
            raise InputError(
                "features", "must be given for a least-squares oracle", None, "use a tabular oracle instead"
            )
        return self.features


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
    if first.ndim == 2:  # continuous states: every sample is its own support point, in batch order
        parts = [s[: T * m].reshape(T, m, -1) for s, m in zip(samples.next_states, sizes, strict=True)]
        support = np.concatenate(parts, axis=1).reshape(-1, first.shape[1])
        index = np.arange(len(support), dtype=np.intp).reshape(T, -1)
    else:
        support, remap = _distinct(samples.next_states)
        index = np.empty((T, int(offsets[-1])), dtype=np.intp)
        for x, sequence in enumerate(samples.next_states):
            m = sizes[x]
            index[:, offsets[x] : offsets[x + 1]] = remap(sequence[: T * m]).reshape(T, m)
    unused = samples.total - index.size
    return Buffer(design, problem.features, index, sizes, support, samples.signal_means, unused)


def _distinct(sequences: list[States]) -> tuple[States, Any]:
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
