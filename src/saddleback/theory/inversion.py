"""The cheapest T, M and grid for an error: the bounds of :mod:`~saddleback.theory.errors`, turned round.

How the error q (column generation) or f (the paper's dual) is shared out:

    column generation     q = f_m + 2f_e + τ + rounding,   τ = q/100,   rounding = w·q,   f_m : 2f_e = s : 1 − s
    projected descent     f ≥ f_m + rounding,  f ≥ f_e,                 rounding = w·f

Rounding costs (m+1)H/(2n) on a grid of resolution n and n enters the bounds through its logarithm only, so that w is a
few hundredths; a τ of a hundredth costs 2 % of the samples while column generation needs few more rounds for it. The
noise of f_m is twice that of f_e, so s is near ½. The bias γH²/T must be a part of f: T = max(1, aH²/f) with a from 1.05
to 400, and M follows from T and f in closed form (:mod:`~saddleback.theory.coefficients`), T still a real number; ⌈T⌉ only
helps.

All w, s and a on a fixed grid are tried, and nothing else. For each point of the grid n, T and M do not rise with q (put
T = aH²/f into the equation for y and divide it by f: y rises with f), so neither does the number of samples, and
bisection finds the q that a budget buys.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from saddleback.problem.spaces import Array
from saddleback.theory.bernstein import bernstein_evaluation, bernstein_solver
from saddleback.theory.coefficients import (
    Coefficients,
    hoeffding_evaluation,
    hoeffding_solver,
    linear_evaluation,
    linear_solver,
)

Dual = Literal["column-generation", "projected-descent"]
Buffers = Literal["own", "alike"]

TOLERANCE_SHARE: Final = 0.01  # τ/q
_ROUNDING_SHARES: Final = np.array([0.01, 0.02, 0.03, 0.045, 0.07])[:, None, None]  # w
_SOLVER_SHARES: Final = (np.arange(16) / 32 + 0.265625)[None, :, None]  # s, from about a quarter to three
_MULTIPLES: Final = np.geomspace(1.05, 400, 200)[None, None, :]  # a


class Stage(NamedTuple):
    """One oracle's buffer: T batches of M samples of every pair."""

    num_iterations: int
    samples_per_iteration: int


class Choice(NamedTuple):
    """What was chosen for an error q or f; ``rounding`` is what the grid costs, ``samples`` counts both buffers."""

    solver: Stage
    evaluation: Stage
    resolution: int
    rounding: float
    tolerance: float
    samples: int


@dataclass(frozen=True)
class Setting:
    """A problem as the bounds see it: |C| pairs, and Γ for linear features (None: a table)."""

    gamma: float
    delta: float
    num_pairs: int
    lebesgue: float | None
    num_constraints: int
    dual: Dual
    buffers: Buffers
    rounding: bool

    @property
    def horizon(self) -> float:
        """H."""
        return 1 / (1 - self.gamma)

    def grid_size(self, resolution: int) -> int:
        """n, the rewards that the solver may be asked for."""
        return math.comb(resolution + self.num_constraints, self.num_constraints)

    def choose(self, error: float) -> Choice:
        """The cheapest way to an error q (column generation) or f (projected descent)."""
        q, H, m = error, self.horizon, self.num_constraints
        w = _ROUNDING_SHARES if self.rounding else np.zeros((1, 1, 1))
        if self.rounding:
            resolutions = [max(1, math.ceil((m + 1) * H / (2 * share * q))) for share in w.flat]
        else:
            resolutions = [max(1, math.ceil(10 * H / q))]
        log_n = np.array([math.log(self.grid_size(n)) for n in resolutions])[:, None, None]
        f_m, f_e, tau = self._shares(q, w)
        A, B = self._buffers(f_m, f_e, log_n)
        best = np.unravel_index(int(np.argmin(A.cost + B.cost)), A.cost.shape)
        solver, evaluation = A.stage(best), B.stage(best)
        n = resolutions[int(best[0])]
        total = self.num_pairs * (math.prod(solver) + math.prod(evaluation))
        return Choice(solver, evaluation, n, (m + 1) * H / (2 * n) if self.rounding else 0.0, tau, total)

    def errors(self, choice: Choice) -> tuple[float, float]:
        """f_m (without rounding) and f_e of what was chosen."""
        log_n, found = math.log(self.grid_size(choice.resolution)), []
        for role, (T, M) in enumerate((choice.solver, choice.evaluation)):
            log_role = np.array(log_n + role * math.log(1 + self.num_constraints))
            bounds = self._bounds(np.array(float(T)), np.array(math.log(T)), log_role, role)
            found.append(min(float(bound.error(M)) for bound in bounds))
        return found[0], found[1]

    def _shares(self, q: float, w: Array) -> tuple[Array, Array, float]:
        if self.dual == "projected-descent":
            return q * (1 - w), np.full_like(w, q), 0.0
        rest = q * (1 - TOLERANCE_SHARE - w)
        return _SOLVER_SHARES * rest, (1 - _SOLVER_SHARES) / 2 * rest, TOLERANCE_SHARE * q

    def _buffers(self, f_m: Array, f_e: Array, log_n: Array) -> tuple[_Candidates, _Candidates]:
        log_e = log_n + math.log(1 + self.num_constraints)  # the evaluator is asked about 1 + m rewards
        if self.buffers == "own":
            T_m, T_e = self._iterations(f_m), self._iterations(f_e)
            A, B = self._samples(T_m, f_m, log_n, 0), self._samples(T_e, f_e, log_e, 1)
            return _cheapest(np.ceil(T_m), A), _cheapest(np.ceil(T_e), B)
        T = self._iterations(np.minimum(f_m, f_e))
        M = np.maximum(self._samples(T, f_m, log_n, 0), self._samples(T, f_e, log_e, 1))
        both = _cheapest(np.ceil(T), M)
        return both, both

    def _iterations(self, error: Array) -> Array:
        return np.maximum(1.0, _MULTIPLES * self.horizon**2 / error)

    def _samples(self, T: Array, error: Array, log_n: Array, role: int) -> Array:
        """M for the solver (role 0) or the evaluator (role 1), by whichever bound needs fewer; T is not yet whole."""
        bounds = self._bounds(T, np.log(T + 1), log_n, role)  # no less than log⌈T⌉
        return np.min([bound.samples(error) for bound in bounds], axis=0)

    def _bounds(self, T: Array, log_T: Array, log_n: Array, role: int) -> list[Coefficients]:
        given: dict[str, Any] = {"gamma": self.gamma, "delta": self.delta}
        if self.lebesgue is not None:
            given |= {"lebesgue": self.lebesgue, "coreset_size": self.num_pairs}
            return [(linear_solver, linear_evaluation)[role](T, log_T, log_n, **given)]
        given["num_pairs"] = self.num_pairs
        tabular = (hoeffding_solver, bernstein_solver), (hoeffding_evaluation, bernstein_evaluation)
        return [bound(T, log_T, log_n, **given) for bound in tabular[role]]


class _Candidates(NamedTuple):
    """The cheapest T and M for each pair of shares, and T·M."""

    iterations: Array
    samples: Array
    cost: Array

    def stage(self, index: Any) -> Stage:
        return Stage(int(self.iterations[index]), int(self.samples[index]))


def _cheapest(T: Array, M: Array) -> _Candidates:
    at = np.argmin(T * M, axis=2, keepdims=True)
    T, M = np.take_along_axis(T, at, 2)[:, :, 0], np.take_along_axis(M, at, 2)[:, :, 0]
    return _Candidates(T, M, T * M)
