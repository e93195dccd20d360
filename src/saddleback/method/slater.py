"""§2, the Slater constant ζ = max_π min_i (V_{c_i}^π(ρ) − b_i): how much room the constraints leave, and the verdict.

For one constraint it takes one solver call, for c alone. For several it is a matrix game between policies and
constraints, solved by the same two oracles: over the policies seen so far,

    max_w min_i Σ_k w_k (V̂_{c_i}^k − b_i)   →   weights w, constraint prices μ;    next policy = Solver(μᵀc)

until the new policy improves nothing. The lower limit of ζ is that of a policy at hand. The upper limit must speak of every
policy, so it cannot come from one that a solver happened to find: ζ ≤ max_π Σ_i μ_i (V_{c_i} − b_i) for any prices μ, and
the optimum of the estimated model on the evaluation buffer, which errs upwards, stands for the right side, plus the
measured width of an evaluation. The verdict has three values: feasible (ζ_low ≥ 0), infeasible (ζ_high < 0), undecided.
Nothing is ever capped in silence.

Where nothing is feasible, :func:`reach` says what the constraints leave to one another: max V̂_{c_i} over mixtures that meet
others, by column generation with c_i in the reward's place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from saddleback.method.framework import Oracle
from saddleback.method.master_lp import matrix_game, solve_master
from saddleback.method.oracles import Interval
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array

_MOST_COLUMNS = 60


class Verdict(Enum):
    """Whether some policy meets every constraint."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Slater:
    """ζ in the paper's units: estimate and limits.

    ``reachable`` is the largest V̂_{c_i} seen, ``slacks`` are those of the best mixture found, per constraint ``(m,)``, ``reward`` its
    V̂_r; ``policy`` is its heaviest member, ``prices`` ``(m,)`` what the upper limit was computed for.
    """

    estimate: float
    low: float
    high: float
    reachable: Array
    slacks: Array
    policy: Policy
    prices: Array
    rounding: float = 0.0
    reward: float = math.nan

    @property
    def verdict(self) -> Verdict:
        """The three-way answer."""
        if self.low >= -self.rounding:
            return Verdict.FEASIBLE
        return Verdict.INFEASIBLE if self.high < -self.rounding else Verdict.UNDECIDED


def estimate_slater(
    problem: CMDP,
    oracle: Oracle,
    interval: Callable[[Policy], Interval],
    optimum: Callable[[Array], float],
    accuracy: float = 0.05,
) -> Slater:
    """ζ from the two oracles; ``optimum`` gives the estimated model's best value at ρ for a point σ of the simplex.

    For several constraints the game is solved to a relative ``accuracy``: a verdict and a lower limit need no more, and
    every further digit costs solver calls.
    """
    m, b = problem.num_constraints, problem.thresholds
    oracle.prefetch(np.eye(1 + m)[1:])
    columns: list[tuple[Policy, Array]] = [oracle(point) for point in np.eye(1 + m)[1:]]
    prices, weights, answer = np.ones(m), np.ones(1), columns[0][0]
    while m > 1:
        weights, prices, worth = matrix_game(np.array([values[1:] - b for _, values in columns]))
        answer, values = oracle(np.concatenate([[0.0], prices]))  # the solver's best reply to the prices
        bound = float(prices @ (values[1:] - b))
        if bound <= worth + accuracy * abs(worth) + 1e-9 or len(columns) >= _MOST_COLUMNS:
            break
        columns.append((answer, values))
    slack = np.array([values[1:] - b for _, values in columns])
    used = [(w, interval(policy)) for (policy, _), w in zip(columns, weights, strict=True) if w > 0]
    low = sum((w * limits.low[1:] for w, limits in used), start=-b)
    slacks = weights @ slack
    limits = interval(answer)
    half = float(prices @ (limits.high - limits.low)[1:]) / 2
    upper = max(optimum(np.concatenate([[0.0], prices])) + half, float(prices @ limits.high[1:])) - float(prices @ b)
    rounding = 1e-9 * problem.horizon  # a threshold at the very edge of what is reachable counts as met
    heaviest = columns[int(first_largest(weights))][0]
    reward = float(weights @ np.array([values[0] for _, values in columns]))
    reachable = (slack + b).max(axis=0)
    return Slater(float(slacks.min()), float(np.min(low)), upper, reachable, slacks, heaviest, prices, rounding, reward)


def reach(problem: CMDP, oracle: Oracle, constraint: int, others: Sequence[int], tolerance: float) -> float | None:
    """max V̂_{c_i} over mixtures that meet the ``others``, in the paper's units; None where no mixture does."""
    m, i, held = problem.num_constraints, constraint, list(others)
    b = problem.thresholds[held]
    oracle.prefetch(np.eye(1 + m)[[1 + j for j in (i, *held)]])
    while True:
        columns = np.array([values for _, values in oracle.columns])
        if not held:
            return float(columns[:, 1 + i].max())
        slacks, sigma = columns[:, [1 + j for j in held]], np.zeros(1 + m)
        master = solve_master(np.column_stack([columns[:, 1 + i], slacks]), b)
        if master is None:  # is there a mixture that the columns do not know? Ask for the one that misses least
            _, prices, worth = matrix_game(slacks - b)
            sigma[[1 + j for j in held]] = prices
            _, new = oracle(sigma)
            gain = float(prices @ (new[[1 + j for j in held]] - b)) - worth
            if gain <= tolerance or len(oracle.columns) == len(columns):
                return None
            continue
        sigma[1 + i] = 1.0
        sigma[[1 + j for j in held]] = master.multipliers
        _, new = oracle(sigma / sigma.sum())
        gain = float(new @ sigma - master.multipliers @ b - master.value)
        if gain <= tolerance * sigma.sum() or len(oracle.columns) == len(columns):
            return float(master.value)
