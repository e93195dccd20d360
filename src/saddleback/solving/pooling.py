"""All samples find the policy, and none of them praises it unnoticed.

Without an a-priori guarantee solver and evaluator need no samples of their own: every policy is found and valued on all of them,
B = A ∪ B. Values of the policy that looks best on the samples that value it are too high on average (notes on the paper: the
solver's errors and the evaluator's are then the same). By how much, two *crossed* solves tell. With π_A found on A alone, and π_B on B,

    ½ [(V̂_A − V̂_B)(π_A) − (V̂_A − V̂_B)(π_B)]

has the mean of what both halves flatter their own choices by, (f_A + f_B)/2, for neither is in the other's noise, while the noise that
the two policies share drops out. An error of second order falls as 1/n, and where actions nearly tie as 1/√n at worst. So of parts
with n_A and n_B samples, n in all, what all of them flatter theirs by is a share of it between

    (1/n) / ½(1/n_A + 1/n_B) = 2n_An_B/n²      and      (1/√n) / ½(1/√n_A + 1/√n_B):      ½ and 0.71 for halves, 0.375 and 0.63 for 1 : 3.

Samples that are stored are divided as they were drawn, which is unequal. The share that is taken lies in between. What is flattered is
measured once, near the prices of the best mixture, signal by signal, and is taken off the value of *every* policy, so that the choice
among those that are as uncertain does not change. One that is known better is flattered less, and what is known exactly not at all.
What a constraint keeps is lowered by it and never raised:

    V̂(π) − β·min(1, s(π)/s̄),        s(π) its standard error, s̄ that of the policies at which β was measured
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import NumericalError
from saddleback.method.framework import EvaluatePolicy, Oracle, SolveRewards
from saddleback.method.master_lp import matrix_game, solve_master
from saddleback.method.oracles import simplex_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array

HALF_SHARE = 0.6
"""What all samples flatter their choice by, of what a half does: between ½ for errors of second order and 0.71 for ties."""

_TIED = (HALF_SHARE - 0.5) / (math.sqrt(0.5) - 0.5)  # how far on the way from the one to the other
_ROUGHLY = 1e-3  # of H: accuracy of the prices
_MOST_COLUMNS = 20
_NEAR = 0.5, 0.7, 0.85, 1.2, 1.45, 2.0  # times the prices


@dataclass(frozen=True)
class Optimism:
    """β and s̄ ``(1+m,)``, in utilities; ``error`` gives the standard error of a policy's values."""

    bias: Array
    usual: Array
    error: Callable[[Policy], Array]

    def of(self, policy: Policy) -> Array:
        """What the samples flatter one policy by, ``(1+m,)``."""
        if not np.any(self.bias):
            return self.bias
        return np.asarray(self.bias * np.minimum(1.0, self.error(policy) / np.maximum(self.usual, 1e-300)))


def optimism(
    problem: CMDP,
    oracle: Oracle,
    divisions: Sequence[Sequence[tuple[SolveRewards, EvaluatePolicy]]],
    error: Callable[[Policy], Array],
    share: float = HALF_SHARE,
) -> Optimism:
    """By how much ``oracle``, on all samples, overrates what it finds; the parts of each division solve and value on theirs alone.

    ``share`` of what the parts show is what all samples flatter by (:func:`share_of`).
    """
    around = _around(_prices(problem, oracle))
    nothing = np.zeros(1 + problem.num_constraints)
    try:
        seen = [_crossed(halves, around) for halves in divisions]
    except NumericalError:  # a half may be too small where the whole is not
        return Optimism(nothing, nothing, error)
    usual = np.mean([error(policy) for _, found in seen for policy in found], axis=0)
    bias = share * np.mean([flattered for flattered, _ in seen], axis=0)
    bias[1:] = np.maximum(bias[1:], 0.0)
    return Optimism(bias, usual, error)


def share_of(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """What all samples flatter their choice by, of what two parts of so many samples a pair ``(c,)`` do on average."""
    whole, *parts = (float(np.mean(1 / n)) for n in (first + second, first, second))
    smooth, tied = (2 * whole**p / sum(x**p for x in parts) for p in (1.0, 0.5))
    return (1 - _TIED) * smooth + _TIED * tied


def _crossed(halves: Sequence[tuple[SolveRewards, EvaluatePolicy]], around: Array) -> tuple[Array, list[Policy]]:
    """What a half flatters its own choice by, ``(1+m,)``, and the policies that were found."""
    found = [solve(around) for solve, _ in halves]
    # values[i, k]: on half i, the mean over the policies that half k has found.
    values = np.array([[np.mean([evaluate(p) for p in of], axis=0) for of in found] for _, evaluate in halves])
    return (values[0, 0] + values[1, 1] - values[0, 1] - values[1, 0]) / 2, [p for of in found for p in of]


def _around(sigma: Array) -> Array:
    """Points near σ, ``(k, 1+m)``: at σ itself two policies tie by construction, and chance decides between them."""
    if sigma[0] == 0 or sigma[0] == 1:
        return sigma[None]
    prices = np.array(_NEAR)[:, None] * sigma[1:] / sigma[0]
    return np.array([simplex_point(row) for row in prices.tolist()])


def _prices(problem: CMDP, oracle: Oracle) -> Array:
    """The point σ of the best mixture, roughly; where none meets the constraints, that of the one that misses least."""
    m, b, tolerance = problem.num_constraints, problem.thresholds, _ROUGHLY * problem.horizon
    oracle.prefetch(np.eye(1 + m))
    sigma = np.eye(1 + m)[0]
    for _ in range(_MOST_COLUMNS):
        columns = np.array([values for _, values in oracle.columns])
        master = solve_master(columns, b)
        if master is None:
            sigma = np.concatenate([[0.0], matrix_game(columns[:, 1:] - b)[1]])
        else:
            sigma = simplex_point(master.multipliers.tolist())
        best = float((columns @ sigma).max())
        if float(oracle(sigma)[1] @ sigma) <= best + tolerance:
            break
    return sigma
