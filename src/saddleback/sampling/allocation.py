"""Where the samples go: T and the number of each pair.

*Equal*: the paper's N for every pair. *Design*: in proportion to ρ̃, which is what makes a refined design pay.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.rounding import rounded


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
    require(
        N >= 1,
        "samples",
        f"must give each of the {c} pairs of every buffer at least one",
        f"{total} for one buffer",
        "raise the number of samples, or use fewer features",
    )
    if batch_size is not None or literal:
        T = N // min(batch_size or 4, N)
    else:
        # Fewer than four samples in a mean make the maximum over actions noisy; measured, they cost more than the lag.
        T = max(1, N // max(4, math.ceil(N / np.clip(20 * H, 200, 2000))))
    if allocation == "equal" or N < 2:
        return T, np.full(design.size, N if literal else T * (N // T)) * every
    T = min(T, max(1, total // (4 * c)))
    return T, T * every * np.maximum(1, np.floor((total - c * T) * rounded(weights) / T).astype(np.int64))
