"""Column generation: the default dual. A master linear program over the policies seen so far replaces the small steps.

    master(b'):   Z = max Σ_i w_i V̂_r^i    s.t.  Σ_i w_i V̂_{c_j}^i ≥ b'_j,  Σ w = 1,  w ≥ 0      →   w, Z, prices λ̂
    pricing:      π = Solver(r + λ̂ᵀc);  add its column (V̂_r, V̂_c)
    stop:         gap = min_k D(λ_k) − Z ≤ τ(1 + ‖λ‖₁),      D(λ) = max_i V̂_r^i + λᵀ(V̂_c^i − b')

D(λ_k) is the Lagrangian over every column once λ_k has been priced, so Z ≤ optimum ≤ min_k D(λ_k) up to the errors of the
oracles. There is no U, ζ, K or η, hence no cap for λ to stick at; the vertex that the master returns mixes at most m + 1
policies. It starts with r alone (done at once if that is feasible) and each c_j alone. While no mixture of the columns is
feasible, a phase one maximises the smallest slack; its prices μ ask the solver for μᵀc (λ = ∞), until the master is
feasible or the best μ shows that it never will be.

With several constraints the prices of a small master may swing without improving the bound. When none of the last m + 2
did, the next question lies halfway between them and the best λ so far (Wentges smoothing). Doing so always costs calls
where there is no swinging: on random tables 17 instead of 8 at m = 2, 23 instead of 14 at m = 4.

Configured from the oracles' proved errors f_m and f_e where these are small enough to be of use, f_m + 2f_e + τ ≤ ζ̂:
b' = b − (f_m + f_e + τ) (relaxed) or b + f_e (strict). Otherwise b' = b, or for strict feasibility b plus the measured
half-width of an evaluation.

Guarantee (for the solver's f_m and the evaluator's f_e, b⁺ = b' + f_m + f_e + τ): V_c ≥ b' − f_e and
V_r ≥ F(b⁺) − (f_m + 2f_e + τ). See :func:`saddleback.theory.meta_theorem.column_guarantee`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddleback.errors import require
from saddleback.method.master_lp import Master, matrix_game, solve_master, upper_bound
from saddleback.method.oracles import ColumnTerms, DualContext, DualSummary, Ending, OracleErrors, Proposal, Step
from saddleback.problem.spaces import Array

_LEAST_WEIGHT = 1e-6


def column_shift(errors: OracleErrors, tolerance: float, strict: bool) -> float:
    """b' − b for oracles of these proved errors and the tolerance τ."""
    return errors.evaluation if strict else -(errors.solver + errors.evaluation + tolerance)


@dataclass(frozen=True)
class ColumnGeneration:
    """``target`` is b' ``(m,)``, ``tolerance`` is τ, both in the paper's units; ``margin`` is forgiven when b' is tested."""

    target: Array
    tolerance: float = 1e-6
    max_columns: int = 500
    error: float = np.inf
    useful: bool = False
    margin: float = 0.0
    num_steps: int = 15
    retargets: ClassVar[bool] = True

    @classmethod
    def configure(
        cls, context: DualContext, *, tolerance: float | None = None, max_columns: int = 500
    ) -> ColumnGeneration:
        """The rule for one run; ``tolerance`` is τ, 10⁻⁴·H unless given."""
        H, b = context.horizon, context.thresholds
        tau = 1e-4 * H if tolerance is None else tolerance
        errors = context.errors(())
        useful = errors.solver + 2 * errors.evaluation + tau <= max(context.room, 0.0)
        target = context.target
        if target is None and useful:
            target = b + column_shift(errors, tau, context.strict)
        elif target is None:
            target = context.measured_target()
        # A threshold at the very edge of what is reachable must not fail by a rounding error.
        return cls(np.broadcast_to(target, b.shape), tau, max_columns, errors.both, useful, 1e-9 * H)

    def __post_init__(self) -> None:
        require(self.tolerance > 0, "tolerance", "must be positive", self.tolerance, "use 1e-6")
        require(self.max_columns >= 2, "max_columns", "must be at least 2", self.max_columns, "use 500")

    @property
    def _aim(self) -> Array:
        return self.target - self.margin

    def propose(self, steps: Sequence[Step]) -> Proposal:
        """The next prices, or the master's weights."""
        m = len(self.target)
        if len(steps) <= m:
            return self._first(steps, m)
        columns, priced, master = self._seen(steps)
        if master is None:
            return self._phase_one(steps, columns)
        best, gap = upper_bound(columns, priced, self._aim, master.value)
        done = gap <= self.tolerance * (1 + best.sum())
        if not done and len(steps) < self.max_columns:
            lam = master.multipliers
            age = len(priced) - 1 - int(np.flatnonzero(np.all(priced == best, axis=1))[0])
            if m > 1 and age > m + 2:
                lam = self._smoothed(lam, best, priced)
            if not np.any(np.all(priced == lam, axis=1)):
                return Proposal(tuple(lam.tolist()), None, False)
        return Proposal(tuple(master.multipliers.tolist()), self._swept(master.weights, columns), True)

    def _swept(self, weights: Array, columns: Array) -> Array:
        """Without members that only use up what rounding is forgiven: nobody wants to pay once in ten million episodes."""
        kept = np.where(weights >= _LEAST_WEIGHT, weights, 0.0)
        kept /= kept.sum()
        return kept if np.all(kept @ columns[:, 1:] >= self._aim) else weights

    def gap(self, steps: Sequence[Step]) -> float:
        """The primal-dual gap of a finished run; infinite when no mixture is feasible."""
        columns, priced, master = self._seen(steps)
        return np.inf if master is None else upper_bound(columns, priced, self._aim, master.value)[1]

    def summary(self, steps: Sequence[Step]) -> DualSummary:
        """What came of the run."""
        feasible, gap = self.feasible(steps), self.gap(steps)
        prices = np.array(self.propose(steps).multipliers)
        ending = Ending.OUT_OF_STEPS if len(steps) >= self.max_columns else Ending.CONVERGED
        closed = feasible and gap <= self.tolerance * (1 + 2 * float(prices.sum()))
        return DualSummary(
            ending if feasible else Ending.NOTHING_FEASIBLE,
            prices if np.all(np.isfinite(prices)) else np.zeros(0),
            gap if np.isfinite(gap) else None,
            True,
            ColumnTerms(self.tolerance, closed) if self.useful else None,
        )

    def feasible(self, steps: Sequence[Step]) -> bool:
        """Whether some mixture of the columns meets the target."""
        return self._seen(steps)[2] is not None

    def _seen(self, steps: Sequence[Step]) -> tuple[Array, Array, Master | None]:
        """The columns ``(k, 1+m)``, the finite prices ``(q, m)``, and the best mixture."""
        columns = np.array([s.values for s in steps])
        priced = np.array([s.multipliers for s in steps if np.all(np.isfinite(s.multipliers))])
        return columns, priced, solve_master(columns, self._aim)

    def _first(self, steps: Sequence[Step], m: int) -> Proposal:
        """r alone, then each c_j alone."""
        if not steps:
            return Proposal((0.0,) * m, None, False)
        if np.all(steps[0].values[1:] >= self._aim):
            return Proposal((0.0,) * m, np.append(1.0, np.zeros(len(steps) - 1)), True)
        return _constraints_only(np.eye(m)[len(steps) - 1])

    def _phase_one(self, steps: Sequence[Step], columns: Array) -> Proposal:
        weights, prices, _ = matrix_game(columns[:, 1:] - self._aim)
        stuck = False
        if len(steps) > len(self.target) + 1 and not np.isfinite(steps[-1].multipliers).all():
            # The last column answers the prices of the game before it: what it is worth there bounds every policy's slack.
            _, asked, before = matrix_game(columns[:-1, 1:] - self._aim)
            stuck = bool(asked @ (columns[-1, 1:] - self._aim) <= before + self.tolerance)
        if stuck or len(steps) >= self.max_columns:
            return Proposal((np.inf,) * len(self.target), weights, True)
        return _constraints_only(prices)

    @staticmethod
    def _smoothed(lam: Array, center: Array, priced: Array) -> Array:
        halfway = 0.5 * (lam + center)
        return lam if np.any(np.all(priced == halfway, axis=1)) else halfway


def _constraints_only(prices: Array) -> Proposal:
    return Proposal((np.inf,) * len(prices), None, False, np.concatenate([[0.0], prices]))
