"""Where the samples go: T and the number of each pair, and fresh evaluation samples where they matter.

*Equal*: the paper's N for every pair. *Design*: in proportion to ρ̃, which is what makes a refined design pay. *Focused*:
the evaluation buffer is drawn after the solver's, so it can ask the solver's buffer where the value at ρ comes from. For a
few policies between "reward only" and "constraints only", the standard error of V̂(ρ) is √(Σ_x a_x²σ_x²/n_x) with the
influence a_x and the spread σ_x of V at the next states of x (:mod:`saddleback.evaluators.influence`); it is smallest for
n_x ∝ |a_x|σ_x (Neyman). A third of the samples still follow the design, for the policies nobody has thought of yet. The
choice depends on the solver's buffer alone, so the evaluation stays honest.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from saddleback.buffer import Buffer
from saddleback.design import Design
from saddleback.errors import NumericalError, require
from saddleback.evaluators import LSTD
from saddleback.oracles import Solver
from saddleback.problem import CMDP
from saddleback.rounding import PLAN_DIGITS, TIE, on_grid, rounded

_UNFOCUSED = 1 / 3


def batches_and_counts(
    problem: CMDP, design: Design, total: int, *, literal: bool, batch_size: int | None, allocation: str
) -> tuple[int, NDArray[np.int64]]:
    """T and the samples of each pair, ``total`` at the most.

    T = N/4 in literal mode. Otherwise T grows with the horizon only (the averaging lag falls with T, the noise does not
    care), samples follow the design's weights, and every pair has a whole multiple of T, so that none is left over.
    """
    c, H = design.size, problem.horizon
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
        return T, np.full(c, N if literal else T * (N // T))
    T = min(T, max(1, total // (4 * c)))
    return T, T * np.maximum(1, np.floor((total - c * T) * rounded(design.weights) / T).astype(np.int64))


def focused_counts(problem: CMDP, solver: Solver, buffer: Buffer, usual: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many samples as ``usual`` in all, two thirds of them where the values at ρ come from."""
    corners = np.eye(1 + problem.num_constraints)
    mixing = np.vstack([corners, corners.mean(axis=0)])
    need = np.zeros(len(usual))
    try:
        for policy in solver.solve(problem, buffer, mixing):
            a, V = LSTD().influence_and_values(problem, buffer, policy)
            visits = np.where(np.abs(a) > TIE * np.abs(a).max(), np.abs(a), 0.0)  # the rest is rounding error
            pull = visits[:, None] * np.sqrt(buffer.moments(V)[1])
            need = np.maximum(need, (pull / np.maximum(pull.sum(axis=0), 1e-300)).max(axis=1))
    except NumericalError:
        return usual
    if not np.all(np.isfinite(need)) or need.sum() <= 0:
        return usual
    total, c = int(usual.sum()), len(usual)
    shares = _UNFOCUSED * usual / total + (1 - _UNFOCUSED) * need / need.sum()
    shares = on_grid(shares, PLAN_DIGITS)
    return 1 + np.floor((total - c) * shares / max(1.0, float(shares.sum()))).astype(np.int64)
