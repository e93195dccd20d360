"""Fresh evaluation samples where they matter: *focused* counts.

The evaluation buffer is drawn after the solver's, so it can ask the solver's buffer where the value at ρ comes from. For a
few policies between "reward only" and "constraints only", the standard error of V̂(ρ) is √(Σ_x a_x²σ_x²/n_x) with the
influence a_x and the spread σ_x of V at the next states of x (:mod:`saddleback.method.evaluators.lstd`); it is smallest
for n_x ∝ |a_x|σ_x (Neyman). A pair whose samples agree by chance counts as if half a sample had dissented, as in the interval
of an evaluation: a pair that is often visited and has not shown its rare event yet is where samples are wanted. A third of the
samples still follow the design, for the policies nobody has thought of yet, and more where the solver's buffer is too small to be
believed. The choice depends on the solver's buffer alone, so the evaluation stays honest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import NumericalError
from saddleback.method.evaluators.lstd import LSTD, cautious_variance
from saddleback.method.oracles import Solver
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import PLAN_DIGITS, TIE, falling_order, on_grid, rounded
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

_FOCUSED = 2 / 3
_ENOUGH = 50  # samples of a pair that tell where more are wanted; fewer are believed less, and ten not at all


def focused_counts(
    problem: CMDP, solver: Solver, buffer: Buffer, usual: NDArray[np.int64], total: int | None = None
) -> NDArray[np.int64]:
    """``total`` samples, as many as ``usual`` unless given, two thirds of them where the values at ρ come from."""
    total = int(usual.sum()) if total is None else max(total, int(usual.sum()))
    corners = np.eye(1 + problem.num_constraints)
    mixing = np.vstack([corners, corners.mean(axis=0)])
    need = np.zeros(len(usual))
    try:
        for policy in solver.solve(problem, buffer, mixing):
            a, V = LSTD().influence_and_values(problem, buffer, policy)
            visits = np.where(np.abs(a) > TIE * np.abs(a).max(), np.abs(a), 0.0)  # the rest is rounding error
            pull = visits[:, None] * np.sqrt(cautious_variance(buffer, V))
            need = np.maximum(need, (pull / np.maximum(pull.sum(axis=0), 1e-300)).max(axis=1))
    except NumericalError:
        return spread_out(usual / usual.sum(), usual, total)
    need = np.where(usual > 0, need, 0.0)  # what has no samples now gets none
    if not np.all(np.isfinite(need)) or need.sum() <= 0:
        return spread_out(usual / usual.sum(), usual, total)
    seen = float(buffer.counts[usual > 0].mean())
    focus = _FOCUSED * min(1.0, max(0.0, float(rounded(seen, 3)) / _ENOUGH - 0.2))
    return spread_out((1 - focus) * usual / usual.sum() + focus * need / need.sum(), usual, total)


def spread_out(shares: Array, usual: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """``total`` samples by ``shares``, to the last one: at least one of each pair that ``usual`` gives some, and none of others."""
    least = (usual > 0).astype(np.int64)
    shares = on_grid(shares, PLAN_DIGITS)
    wanted = (total - least.sum()) * shares / max(float(shares.sum()), 1e-300)
    counts = np.floor(wanted).astype(np.int64)
    left = int(total - least.sum() - counts.sum())
    order = falling_order(on_grid(wanted - counts, PLAN_DIGITS))
    counts[order[least[order] > 0][:left]] += 1
    return least + counts
