"""§3, the samples as oracles see them: ``expect`` is all that an oracle need ask of a buffer.

    B = B_0 ∪ … ∪ B_{T−1},       B_t = M samples of every pair,   N = T·M
    expect(t, V) = (P̂_t V)(x,b) = (1/M) Σ_m V(s'_m),  s'_m ∈ B_t

The value function V is one of :class:`MaxDifference`, :class:`SoftDifference` and :class:`PolicyValue`: a few
numbers that are evaluated where the samples are (:mod:`saddleback.sampling.value_functions`). All take several right-hand
sides at once: parameters ``(d, k)`` give means ``(c, k)``. ``average(V)`` is the mean over all batches, P̂V.

V may also be an array over ``support``, the distinct next states that are held. There are two buffers:
:class:`saddleback.sampling.counted_buffer.CountedBuffer` holds its samples or their counts, and has the estimated model;
:class:`saddleback.sampling.streamed_buffer.StreamedBuffer` leaves them where they lie, so its support is empty and the only
array over it is V̂⁰ = 0. Whoever needs the model asks for a :func:`counted` buffer. Pairs may have different numbers of
samples; then M is per pair, and T is common. An oracle that draws its samples itself has a :class:`Tap` in a buffer's place.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.value_functions import MaxDifference, Parametric, PolicyValue, SoftDifference

ROUNDING = 1e-11
"""Of the squared span: a variance below it is not told from none."""

Value = Array | Parametric


@dataclass(frozen=True)
class Samples:
    """What DataCollection drew: per pair its sequence of next states, and mean and variance of the observed signals.

    ``num_blocks`` is how many blocks each pair has used up, so that more can be drawn later. ``num_shared`` samples serve a
    pair that has none of its own, an action that is not allowed: they are those of another pair. ``unsampled`` are pairs of
    states that were not reached, whose sequences are empty; None where there are none.
    """

    next_states: list[States]
    signal_means: Array | None
    signal_variances: Array | None = None
    num_blocks: NDArray[np.int64] | None = None
    num_shared: int = 0
    unsampled: NDArray[np.bool_] | None = None

    @property
    def total(self) -> int:
        """Number of simulator calls."""
        return sum(len(s) for s in self.next_states) - self.num_shared


class Tap(Protocol):
    """What an interactive oracle may draw from: a simulator with a stream of its own, metered and limited."""

    num_queries: int

    @property
    def remaining(self) -> int:
        """How many more samples may be drawn."""
        ...

    def draw(self, states: States, actions: Actions) -> tuple[States, Array | None]:
        """One next state per pair, and the observed signals where there are some."""
        ...

    def generator(self) -> np.random.Generator:
        """Random numbers for choices that are not simulator calls."""
        ...


class Buffer(Protocol):
    """What oracles may ask; the answers that follow from the sizes and signals are given here."""

    design: Design  # the coreset C, |C| = c, and its operator
    num_batches: int  # T
    batch_sizes: NDArray[np.int64]  # M of each pair, (c,)
    num_unused: int  # samples that did not fill a batch, less those that serve a second pair
    support: States  # the distinct next states that are held; empty where none are
    signal_means: Array | None  # of the observed signals, (c, 1+m); None where the simulator returns none
    signal_variances: Array | None  # the same
    unsampled: NDArray[np.bool_] | None = None  # pairs of states that were not reached: nothing is known of them

    def expect(self, t: int, value: Value) -> Array:
        """P̂_t V on the coreset, ``(c,)`` or ``(c, k)``."""
        ...

    def average(self, value: Value) -> Array:
        """P̂ V over all batches, ``(c,)`` or ``(c, k)``: the mean of ``expect`` over t."""
        ...

    def at_support(self, value: Value) -> Array:
        """V wherever there are samples, for :meth:`average` and :meth:`moments`."""
        ...

    def moments(self, V: Array) -> tuple[Array, Array]:
        """Mean and variance of V at the next states of every pair; V is what :meth:`at_support` gave."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """N per pair: the samples in use, T·M."""
        return self.batch_sizes * self.num_batches

    @property
    def num_samples(self) -> int:
        """Simulator calls behind this buffer, those that did not fill a batch included."""
        return int(self.counts.sum()) + self.num_unused

    def utilities(self, problem: CMDP) -> Array:
        """r, c_1..c_m ∈ [0, 1] on the coreset, ``(c, 1+m)``: known functions, or means of what the simulator returned."""
        u = problem.utilities(self.design.states, self.design.actions)
        seen = problem.observed
        if np.any(seen):
            if self.signal_means is None:
                rule = "must return signals for an observed reward"
                raise InputError("simulator", rule, None, "return (next, signals)")
            u[:, seen] = problem.utilities_of(self.signal_means)[:, seen]
        return u

    def signal_deviations(self, problem: CMDP) -> Array:
        """Standard deviation of the observed r, c_1..c_m at each pair as seen, in utilities ``(c, 1+m)``; zero where known."""
        if self.signal_variances is None or not np.any(problem.observed):
            return np.zeros((self.design.size, 1 + problem.num_constraints))
        return np.where(problem.observed, np.sqrt(self.signal_variances) / np.abs(problem.scale), 0.0)

    def signal_noise(self, problem: CMDP) -> Array:
        """The same for standard errors, with half an event more than was seen: what was never seen may still happen."""
        unseen = np.where(problem.observed, 0.5 / self.counts[:, None], 0.0)
        return np.asarray(np.sqrt(self.signal_deviations(problem) ** 2 + unseen))

    def tabular_shape(self, problem: CMDP) -> tuple[int, int]:
        """(S, A), after checking that the buffer holds every pair of a finite problem in the order s·A + a."""
        S, A = problem.num_states, problem.num_actions
        full = S is not None and self.design.operator is None and self.design.size == S * A
        if S is None or not full or not np.array_equal(self.design.states * A + self.design.actions, np.arange(S * A)):
            rule = "must be 'full' (every pair of a finite problem) for a tabular oracle"
            found, remedy = f"{self.design.size} pairs", "choose --design full, or least-squares oracles"
            raise InputError("design", rule, found, remedy)
        return S, A

    def burn_in(self, length: float) -> int:
        """How many batches a burn-in of ``length`` may spend: an eighth of them at the most."""
        return min(math.ceil(length), self.num_batches // 8)


class Counted(Buffer):
    """A buffer whose samples, or their counts, are in memory."""

    @abstractmethod
    def samples(self) -> Samples:
        """What the buffer was cut from."""

    @abstractmethod
    def empirical_model(self) -> scipy.sparse.csr_array:
        """P̂ over all batches, sparse ``(c, len(support))``."""


def counted(buffer: Buffer) -> Counted:
    """The buffer, for whoever needs the estimated model."""
    if isinstance(buffer, Counted):
        return buffer
    rule, remedy = (
        "must be in memory for the estimated model",
        "use oracles that ask for means: plug-in, ls-mdvi, ls-pe, lstd",
    )
    raise InputError("buffer", rule, "one whose samples stay in their store", remedy)


__all__ = ["ROUNDING", "Buffer", "Counted", "MaxDifference", "PolicyValue", "SoftDifference", "Value", "counted"]
