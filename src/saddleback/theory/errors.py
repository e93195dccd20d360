"""f_mdp and f_eva with explicit constants: what Assumptions asmp_b1 and asmp_b2 (§3) cost in samples.

    Lemma lem_optGL (LS-MDVI), lem_optG2L (LS-PE):   O(H²/T + H²√(d/(TM))),   M ≥ Õ(dH²)

**Where the constants come from.** □ ∈ [0, 1], V̂⁰ = 0, H = 1/(1−γ). Γ bounds the extrapolation: |⟨φ, W(z)⟩| ≤ Γ·max_C|z|
over all pairs, with Γ = √g or the smaller Lebesgue constant. Summing the T regressions, with the noise
e = ⟨φ, W((γ/T) Σ_{i<T} (P̂_i − P)V̂^i)⟩ and V̄ = (1/T) Σ_{i=1..T} V̂^i,

    LS-PE     V̄ − V^π = (I − γP_π)⁻¹ [π e − γP_π V̂^T/T]
    LS-MDVI   V* − V^{π_T} ≤ H [γ·span(V̂^T)/T + span(e)].

*Range.* One regression is off by at most Γγ·span(V̂^t)·h, h = √(L₁/(2M)) (Hoeffding, M draws). Put κ = γHΓh. If κ < ½ the
interval [−a, H + a] with a = κH/(1−2κ) maps into itself: 1 + γ(H + a) + κ(H + 2a)/H = H + a. So every span is at most
H/(1−2κ).
*Noise.* At one pair of the coreset the TM centred draws are martingale differences of that range, so that with
Azuma-Hoeffding their mean is at most H/(1−2κ)·√(L₂/(2TM)), and |e| ≤ γΓ times that; span(e) is twice it. Hence

    f_mdp = γH²/(1−2κ) · [1/T + Γ√(2L₂/(TM))]
    f_eva = γH²/(1−2κ) · [(1−κ)/T + Γ√(L₂/(2TM))],     as |V̂^T| ≤ H + a = H(1−κ)/(1−2κ).

δ is shared by four events, the ranges and the sums of solver and evaluator: L₁ = log(8|C|Tn/δ), L₂ = log(8|C|n/δ).
In the tabular case 0 ≤ V̂ ≤ H surely; κ = 0, Γ = 1, two events, L = log(4·SA·n/δ).

**Hoeffding or Bernstein.** For tables there is a second bound, :mod:`~saddleback.theory.coefficients`, smaller where M is very
large. Both are numbers that (T, M, γ, SA, n, δ) fix before a sample is drawn, and each fails with probability δ/2 at
most. The smaller one is always the same one of the two, so it fails no more often: δ is not split between them.

**What they rest on** (the label "rigorous" means all of it): P, r, c linear in φ; the rewards asked of the solver lie on
a grid fixed before sampling; the policies evaluated do not depend on the evaluator's buffer; and n counts them:
grid points for the solver, grid points times 1 + m rewards for the evaluator. Solver and evaluator have buffers, hence
(T, M), of their own.

**Turned round**: the cheapest T, M and grid for an error q (column generation) or f (the paper's dual), shared out as

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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from saddleback.errors import require
from saddleback.problem.spaces import Array
from saddleback.theory.coefficients import (
    Coefficients,
    bernstein_evaluation,
    bernstein_solver,
    hoeffding_evaluation,
    hoeffding_solver,
    linear_evaluation,
    linear_solver,
)

LABEL: Final = "rigorous"

Method = Literal["smaller", "hoeffding", "bernstein"]
Dual = Literal["column-generation", "projected-descent"]
Buffers = Literal["own", "alike"]

_LINEAR: Final = (linear_solver, linear_evaluation)  # for roles 0 and 1
_HOEFFDING: Final = (hoeffding_solver, hoeffding_evaluation)
_BERNSTEIN: Final = (bernstein_solver, bernstein_evaluation)
_BOUNDS: Final[dict[str, tuple[tuple[Callable[..., Coefficients], ...], ...]]] = {
    "linear": (_LINEAR,),
    "hoeffding": (_HOEFFDING,),
    "bernstein": (_BERNSTEIN,),
    "smaller": (_HOEFFDING, _BERNSTEIN),
}

ErrorBound = Callable[[int, int], float]
"""An error bound as a function of (T, M)."""
TOLERANCE_SHARE: Final = 0.01  # τ/q
_ROUNDING_SHARES: Final = np.array([0.01, 0.02, 0.03, 0.045, 0.07])[:, None, None]  # w
_SOLVER_SHARES: Final = (np.arange(16) / 32 + 0.265625)[None, :, None]  # s, from about a quarter to three
_MULTIPLES: Final = np.geomspace(1.05, 400, 200)[None, None, :]  # a


class Split(NamedTuple):
    """T, M and the error they give; ``error`` is infinite where no split has a bound."""

    num_iterations: int
    samples_per_iteration: int
    error: float


class Linear(TypedDict):
    """What the bounds of least-squares oracles depend on: γ, Γ (the design's Lebesgue constant, or √g), |C|, n and δ."""

    gamma: float
    lebesgue: float
    coreset_size: int
    num_problems: int
    delta: float


class Tabular(TypedDict):
    """What the bounds of tabular oracles depend on: γ, S·A, n and δ."""

    gamma: float
    num_pairs: int
    num_problems: int
    delta: float


def linear_solver_error(num_iterations: int, samples_per_iteration: int, **asked: Unpack[Linear]) -> float:
    """f_mdp of LS-MDVI. Infinite unless κ < ½."""
    return _error("linear", 0, num_iterations, samples_per_iteration, **asked)


def linear_evaluation_error(num_iterations: int, samples_per_iteration: int, **asked: Unpack[Linear]) -> float:
    """f_eva of LS-PE; ``num_problems`` counts policies times rewards. Infinite unless κ < ½."""
    return _error("linear", 1, num_iterations, samples_per_iteration, **asked)


def tabular_solver_error(
    num_iterations: int, samples_per_iteration: int, *, method: Method = "smaller", **asked: Unpack[Tabular]
) -> float:
    """f_mdp of Tabular-MDVI from V̂⁰ = 0, by ``method``; no condition on M. After a burn-in only "hoeffding" is proved."""
    return _error(method, 0, num_iterations, samples_per_iteration, **asked)


def tabular_evaluation_error(
    num_iterations: int, samples_per_iteration: int, *, method: Method = "smaller", **asked: Unpack[Tabular]
) -> float:
    """f_eva of Tabular-PE, by ``method``; ``num_problems`` counts policies times rewards."""
    return _error(method, 1, num_iterations, samples_per_iteration, **asked)


def with_rounding(solver_error: float, *, horizon: float, resolution: int, num_constraints: int = 1) -> float:
    """f_mdp of a solver asked for σ rounded to multiples of ω = 1/resolution: plus (m+1)ωH/2, so ωH for m = 1.

    Rounding by largest remainders moves σ by at most (m+1)ω/2 in the 1-norm, and two policies differ by at most H in the
    value of each of r, c_1..c_m.
    """
    require(resolution >= 1, "resolution", "must be at least 1", resolution, "use about 10H/f")
    return solver_error + (num_constraints + 1) * horizon / (2 * resolution)


def num_grid_points(resolution: int, num_constraints: int = 1) -> int:
    """How many points of the simplex have coordinates that are multiples of 1/resolution: the solver's n."""
    require(resolution >= 1, "resolution", "must be at least 1", resolution, "use about 10H/f")
    return math.comb(resolution + num_constraints, num_constraints)


def best_split(num_samples: int, *errors: ErrorBound, most_iterations: int | None = None) -> Split:
    """T and M = ⌊N/T⌋, for N = ``num_samples`` a pair, whose largest error is least; T on a logarithmic grid.

    Give both errors where solver and evaluator read one buffer; call it for each where they have their own. The tabular
    bounds have no condition on M and always prefer M = 1; ``most_iterations`` limits T, which costs time.
    """
    N = num_samples
    most = N if most_iterations is None else min(N, most_iterations)
    require(N >= 1, "samples", "must be at least 1 a pair", N, "draw more samples")
    require(most >= 1, "most_iterations", "must be at least 1", most, "leave it out for no limit")
    require(len(errors) >= 1, "errors", "must hold at least one bound", 0, "pass f_mdp, f_eva or both")
    candidates = np.unique(np.rint(np.geomspace(1, most, 241)).astype(np.int64)).tolist()
    return min((Split(T, N // T, max(f(T, N // T) for f in errors)) for T in candidates), key=lambda s: s.error)


def _error(method: str, role: int, T: int, M: int, *, num_problems: int, **given: Any) -> float:
    """The least error by the bounds of ``method``, of the solver (role 0) or the evaluator (role 1)."""
    n, size = num_problems, int(given.get("coreset_size", given.get("num_pairs", 0)))
    gamma, delta, Gamma = given["gamma"], given["delta"], given.get("lebesgue", 1.0)
    rule, remedy = "must be 'smaller', 'hoeffding' or 'bernstein'", "leave it out for the smaller of the two"
    require(method in _BOUNDS, "method", rule, repr(method), remedy)
    require(T >= 1, "num_iterations", "must be at least 1", T, "T is the number of batches")
    require(M >= 1, "samples_per_iteration", "must be at least 1", M, "draw at least T samples a pair")
    require(0 <= gamma < 1, "gamma", "must lie in [0, 1)", gamma, "for undiscounted problems set a horizon")
    require(0 < Gamma < math.inf, "lebesgue", "must be positive and finite", Gamma, "use the design's or √g")
    require(size >= 1, "coreset_size", "must be at least 1", size, "count the pairs that are sampled")
    require(n >= 1, "num_problems", "must be at least 1", n, "count the rewards asked of the oracle")
    require(0 < delta < 1, "delta", "must lie in (0, 1)", delta, "give the failure probability you accept, such as 0.1")
    at = np.array(float(T)), np.array(math.log(T)), np.array(math.log(n))
    return min(float(bounds[role](*at, **given).error(M)) for bounds in _BOUNDS[method])


class Stage(NamedTuple):
    """One oracle's buffer: T batches of M samples of every pair."""

    num_iterations: int
    samples_per_iteration: int


@dataclass(frozen=True)
class Choice:
    """What was chosen for an error q or f: (T, M) of the two buffers, and the grid.

    ``rounding`` is what the grid of ``resolution`` costs, ``tolerance`` column generation's τ (None: another dual), and
    ``samples`` counts both buffers.
    """

    solver: Stage
    evaluation: Stage
    resolution: int
    rounding: float
    tolerance: float | None
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

    def choose(self, error: float) -> Choice:
        """The cheapest way to an error q (column generation) or f (projected descent)."""
        q, H, m = error, self.horizon, self.num_constraints
        w = _ROUNDING_SHARES if self.rounding else np.zeros((1, 1, 1))
        if self.rounding:
            resolutions = [max(1, math.ceil((m + 1) * H / (2 * share * q))) for share in w.flat]
        else:
            resolutions = [max(1, math.ceil(10 * H / q))]
        log_n = np.array([math.log(num_grid_points(n, m)) for n in resolutions])[:, None, None]
        f_m, f_e, tau = self._shares(q, w)
        A, B = self._buffers(f_m, f_e, log_n)
        best = np.unravel_index(int(np.argmin(A.cost + B.cost)), A.cost.shape)
        solver, evaluation = A.stage(best), B.stage(best)
        n = resolutions[int(best[0])]
        total = self.num_pairs * (math.prod(solver) + math.prod(evaluation))
        return Choice(solver, evaluation, n, (m + 1) * H / (2 * n) if self.rounding else 0.0, tau, total)

    def errors(self, choice: Choice) -> tuple[float, float]:
        """f_m (without rounding) and f_e of what was chosen."""
        log_n, found = math.log(num_grid_points(choice.resolution, self.num_constraints)), []
        for role, (T, M) in enumerate((choice.solver, choice.evaluation)):
            log_role = np.array(log_n + role * math.log(1 + self.num_constraints))
            bounds = self._bounds(np.array(float(T)), np.array(math.log(T)), log_role, role)
            found.append(min(float(bound.error(M)) for bound in bounds))
        return found[0], found[1]

    def _shares(self, q: float, w: Array) -> tuple[Array, Array, float | None]:
        if self.dual == "projected-descent":
            return q * (1 - w), np.full_like(w, q), None
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
        if self.lebesgue is None:
            method, given["num_pairs"] = "smaller", self.num_pairs
        else:
            method, given["lebesgue"], given["coreset_size"] = "linear", self.lebesgue, self.num_pairs
        return [bounds[role](T, log_T, log_n, **given) for bounds in _BOUNDS[method]]


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
