"""§3, DataCollection: draw samples of every pair of a coreset.

    DataCollection(Gen, C, N):   for each (x,b) ∈ C:  s'_1..s'_N ~ P(·|x,b)

Where the simulator returns rewards too, their means and variances are taken on the way (:mod:`saddleback.sampling.signals`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import States
from saddleback.sampling.blocks import BlockSource, Executor, InOrder, blocks_for
from saddleback.sampling.buffer import Samples as Samples
from saddleback.sampling.signals import SignalMoments, signal_sums
from saddleback.simulators.generative_model import GenerativeModel


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

    What a pair that is not allowed was to get goes to the one that it stands for, whose samples serve both.
    With ``held``, samples drawn before with the same seed and stream, only what a pair lacks is drawn, from the blocks
    that follow its own; a pair that has more keeps them. ``executor`` draws the blocks (None: here, one by one).
    """
    per_pair = np.broadcast_to(np.asarray(counts, dtype=np.int64), (design.size,))
    serving, own = serving_pairs(problem.stand_ins, design.states, design.actions), np.arange(design.size)
    if serving is not None:
        per_pair, own = np.bincount(serving, per_pair, design.size).astype(np.int64), np.unique(serving)
    require(
        bool(np.all(per_pair[own] >= 1)),
        "samples",
        f"must give each of the {design.size} pairs of the coreset at least one sample",
        f"{int(per_pair[own].min())} for one of them",
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
    if serving is None:
        return Samples(list(sequences.values()), means, variances, num_blocks)
    if means is not None and variances is not None:
        means, variances = means[serving], variances[serving]
    shared = int(n[serving].sum() - n[own].sum())
    return Samples([sequences[x] for x in serving.tolist()], means, variances, num_blocks, shared)
