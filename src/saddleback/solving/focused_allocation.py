"""Fresh evaluation samples where they matter: *focused* counts.

The evaluation buffer is drawn after the solver's, so it can ask the solver's buffer where the value at ρ comes from. For a
few policies between "reward only" and "constraints only", the standard error of V̂(ρ) is √(Σ_x a_x²σ_x²/n_x) with the
influence a_x and the spread σ_x of V at the next states of x (:mod:`saddleback.method.evaluators.lstd`); it is smallest
for n_x ∝ |a_x|σ_x (Neyman). A pair whose samples agree by chance counts as if half a sample had dissented, as in the interval
of an evaluation: a pair that is often visited and has not shown its rare event yet is where samples are wanted. A third of the samples still follow the design, for the policies nobody has thought of yet. The
choice depends on the solver's buffer alone, so the evaluation stays honest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import NumericalError
from saddleback.method.evaluators.lstd import LSTD, cautious_variance
from saddleback.method.oracles import Solver
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import PLAN_DIGITS, TIE, on_grid
from saddleback.sampling.buffer import Buffer

_UNFOCUSED = 1 / 3


def focused_counts(problem: CMDP, solver: Solver, buffer: Buffer, usual: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many samples as ``usual`` in all, two thirds of them where the values at ρ come from."""
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
        return usual
    need = np.where(usual > 0, need, 0.0)  # what has no samples now gets none
    if not np.all(np.isfinite(need)) or need.sum() <= 0:
        return usual
    total, least = int(usual.sum()), (usual > 0).astype(np.int64)  # pairs that are not allowed get none
    shares = _UNFOCUSED * usual / total + (1 - _UNFOCUSED) * need / need.sum()
    shares = on_grid(shares, PLAN_DIGITS)
    return least + np.floor((total - least.sum()) * shares / max(1.0, float(shares.sum()))).astype(np.int64)
