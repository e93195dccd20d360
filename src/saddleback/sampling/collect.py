"""§3, DataCollection: how many samples of every pair of a coreset, their drawing, and the means of observed rewards.

    DataCollection(Gen, C, N):   for each (x,b) ∈ C:  s'_1..s'_N ~ P(·|x,b)

*Equal* allocation is the paper's N for every pair; by *design* samples go in proportion to ρ̃, which is what makes a refined
design pay. Where the simulator returns rewards too, mean and variance are taken on the way, pair by pair, from sums:

    mean = base + Σ(x − base)/n,     variance = Σ(x − base)²/n − (Σ(x − base)/n)²

The sums are taken around the base of each signal, lest a large offset cost the digits of the variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import rounded
from saddleback.problem.spaces import Array, States
from saddleback.sampling.blocks import Block, BlockSource, Executor, InOrder, blocks_for
from saddleback.sampling.buffer import Samples as Samples
from saddleback.sampling.drawn_rows import examine_blocks
from saddleback.sampling.reach import Spare, drawn_in_reach
from saddleback.simulators.generative_model import Draw, GenerativeModel


class TooFewSamples(InputError):
    """Not one sample for each of so many pairs; the samples of a solve are in quarters, and half of all is for its proof."""

    def __init__(self, rule: str, found: str, otherwise: str, pairs: int, times: int = 8):
        self.otherwise, self.pairs = otherwise, pairs
        remedy = f"raise the number of samples to {times * pairs:,} or more, or {otherwise}"
        super().__init__("samples", rule, found, remedy)


def batches_and_counts(
    problem: CMDP, design: Design, total: int, *, literal: bool, batch_size: int | None, allocation: str
) -> tuple[int, NDArray[np.int64]]:
    """T and the samples of each pair, ``total`` at the most.

    T = N/4 in literal mode. Otherwise T grows with the horizon only (the averaging lag falls with T, the noise does not
    care), samples follow the design's weights, and every pair has a whole multiple of T, so that none is left over.
    """
    serving, weights, every = serving_pairs(problem.stand_ins, design.states, design.actions), design.weights, 1
    c, H = design.size, problem.horizon
    if serving is not None:  # a pair that is not allowed has the samples of another, and needs none
        every = (serving == np.arange(c)).astype(np.int64)
        c, weights = int(every.sum()), weights * every / (weights @ every)
    N = total // c
    rule, found = f"must give each of the {c} pairs of every buffer at least one", f"{total} for {c} pairs"
    table = design.operator is None
    fewer = (
        "describe states by features, which share samples (docs/how_to/features.md)" if table else "use fewer features"
    )
    if N < 1:
        raise TooFewSamples(rule, found, fewer, c)
    T = N // min(batch_size or 4, N) if batch_size is not None or literal else usual_batches(N, H)
    if allocation == "equal" or N < 2:
        return T, np.full(design.size, N if literal else T * (N // T)) * every
    T = min(T, max(1, total // (4 * c)))
    return T, T * every * np.maximum(1, np.floor((total - c * T) * rounded(weights) / T).astype(np.int64))


def usual_batches(N: int, H: float) -> int:
    """T for N samples of a pair and the horizon H.

    Fewer than four samples in a mean make the maximum over actions noisy; measured, they cost more than the lag.
    """
    return max(1, N // max(4, math.ceil(N / min(max(20 * H, 200), 2000))))


def signal_sums(signals: Array, base: Array) -> tuple[Array, Array]:
    """Σ (x − base) and Σ (x − base)² of the rows of ``signals`` ``(n, k)``, ``(k,)`` each."""
    x = signals - base
    return x.sum(axis=0), (x**2).sum(axis=0)


@dataclass(frozen=True)
class SignalMoments:
    """Sums so far: ``base`` is ``(k,)``, empty where nothing is observed; ``sums`` and ``squares`` are ``(c, k)``."""

    base: Array
    sums: Array
    squares: Array

    @classmethod
    def none(cls, num_pairs: int, base: Array) -> SignalMoments:
        """Before the first block."""
        return cls(base, *np.zeros((2, num_pairs, len(base))))

    def add(self, pair: int, sums: Array, squares: Array) -> None:
        """The sums of one more block of a pair."""
        self.sums[pair] += sums
        self.squares[pair] += squares

    def add_held(self, counts: NDArray[np.int64], means: Array, variances: Array) -> None:
        """What was known of ``counts`` samples of every pair before."""
        n, x = counts[:, None], means - self.base
        self.sums[...] += n * x
        self.squares[...] += n * (variances + x**2)

    def means_and_variances(self, counts: NDArray[np.int64]) -> tuple[Array, Array] | tuple[None, None]:
        """Of ``counts`` samples of every pair, ``(c, k)`` each; None where nothing is observed."""
        if not len(self.base):
            return None, None
        n = counts[:, None]
        means = self.sums / n
        return means + self.base, np.maximum(self.squares / n - means**2, 0.0)


def _examine(source: BlockSource, drawn: dict[Block, Draw]) -> None:
    """Refuse samples of a pair that are not independent."""
    by_pair: dict[int, list[Block]] = {}
    for block in sorted(drawn):
        by_pair.setdefault(block.pair, []).append(block)
    pairs = [
        (source.states[x], source.actions[x], source.key(of[0]), [drawn[b] for b in of]) for x, of in by_pair.items()
    ]
    examine_blocks(source.model, pairs)


BLOCK_BYTES = 1024  # of Python's objects around a block


def collecting_bytes(samples: int, blocks: int, joined: bool, dim: int, num_signals: int) -> float:
    """What :func:`collect` takes: blocks as drawn, and, where pairs have several, the sequences they are ``joined`` to."""
    return 8.0 * (num_signals + dim * (1 + joined)) * samples + BLOCK_BYTES * blocks


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
    reach: Spare | None = None,
    unsampled: NDArray[np.bool_] | None = None,
) -> Samples:
    """DataCollection: ``counts`` samples of every pair (one number, or one per pair), block by block.

    What a pair that is not allowed was to get goes to the one that it stands for, whose samples serve both.
    With ``held``, samples drawn before with the same seed and stream, only what a pair lacks is drawn, from the blocks
    that follow its own; a pair that has more keeps them. ``executor`` draws the blocks (None: here, one by one).
    With ``reach`` only states that the start reaches are sampled (:mod:`.reach`); ``unsampled`` pairs are left out in any case.
    """
    per_pair = np.broadcast_to(np.asarray(counts, dtype=np.int64), (design.size,))
    serving, own = serving_pairs(problem.stand_ins, design.states, design.actions), np.arange(design.size)
    if serving is not None:
        per_pair, own = np.bincount(serving, per_pair, design.size).astype(np.int64), np.unique(serving)
    rule = f"must give each of the {design.size} pairs of the coreset at least one sample"
    if unsampled is not None:
        per_pair, own = np.where(unsampled, 0, per_pair), own[~unsampled[own]]
    least = 1 if reach is not None else int(per_pair[own].min())
    require(least >= 1, "samples", rule, f"{least} for one of them", "raise the number of samples")
    had, used = np.zeros((2, design.size), dtype=np.int64)
    if held is not None:
        had = np.array([len(s) for s in held.next_states], dtype=np.int64)
        assert held.num_blocks is not None
        used = held.num_blocks
    source = BlockSource(model, problem, design.states, design.actions, seed)
    tasks = blocks_for(stream, per_pair, had, used)
    num_blocks = used + np.bincount([task.pair for task in tasks], minlength=design.size)
    if reach is None:
        drawn = dict((executor or InOrder()).run(source.draw, tasks))
    else:
        before = [] if held is None else held.next_states
        drawn, sampled = drawn_in_reach(problem, source, tasks, own, before, executor, reach)
        unsampled, own = None if sampled.all() else ~sampled, own[sampled[own]]
        num_blocks = used + np.bincount([task.pair for task in drawn], minlength=design.size)
    _examine(source, drawn)
    parts: list[list[States]] = [[] if held is None else [held.next_states[x]] for x in range(design.size)]
    moments = SignalMoments.none(design.size, problem.base if model.num_signals else np.zeros(0))
    for block in sorted(drawn):  # in the order of their keys, whatever order they came in
        draw = drawn.pop(block)
        parts[block.pair].append(draw.next_states)
        if draw.signals is not None:
            moments.add(block.pair, *signal_sums(draw.signals, moments.base))
    if held is not None and model.num_signals:
        assert held.signal_means is not None and held.signal_variances is not None
        moments.add_held(had, held.signal_means, held.signal_variances)
    sequences = {x: parts[x][0] if len(parts[x]) == 1 else np.concatenate(parts[x]) for x in own.tolist()}
    n = np.array([len(sequences[x]) if x in sequences else 1 for x in range(design.size)])
    means, variances = moments.means_and_variances(n)
    if serving is None and unsampled is None:
        return Samples(list(sequences.values()), means, variances, num_blocks)
    serving = np.arange(design.size) if serving is None else serving
    if means is not None and variances is not None:
        means, variances = means[serving], variances[serving]
    nothing = np.empty(0, dtype=np.int64)
    found = [sequences.get(x, nothing) for x in serving.tolist()]
    shared = sum(map(len, found)) - int(n[own].sum())
    return Samples(found, means, variances, num_blocks, shared, unsampled)
