"""The paper's dual (last line of Alg. 1): projected descent on λ, every iterate weighted alike.

    λ_{k+1} = Proj_[0,U] [λ_k − η (V̂_c^k(ρ) − b')],   λ_0 = 0,   U = 2/(ζ(1−γ)),   η = U(1−γ)/√K

With m constraints the projection is onto [0, U]^m. Configured as the theorem (thm_main2) says wherever a proved error f of
the oracles is at most a sixth of a proved lower bound on ζ: b' = b − 2f (relaxed) or b + 4f (strict). With affordable
budgets the worst-case f exceeds that (often it is H itself) and would silently drop the constraint; then b' = b, or for
strict feasibility b plus the measured half-width of an evaluation, and ζ is its measured lower limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from saddleback.errors import require
from saddleback.method.oracles import DescentTerms, DualContext, DualSummary, Ending, Proposal, Step
from saddleback.problem.spaces import Array


@dataclass(frozen=True)
class ProjectedDescent:
    """``target`` is b' ``(m,)``, ``upper`` is U, ``step_size`` is η, ``num_iterations`` is K; all in the paper's units."""

    target: Array
    upper: float
    step_size: float
    num_iterations: int
    error: float = np.inf
    zeta: float | None = None
    retargets: ClassVar[bool] = False

    @classmethod
    def configure(
        cls, context: DualContext, *, iterations: int = 1000, upper: float | None = None, step_size: float | None = None
    ) -> ProjectedDescent:
        """The rule for one run: ``iterations`` is K, ``upper`` U and ``step_size`` η, the theorem's unless given."""
        H, b, K = context.horizon, context.thresholds, iterations
        require(isinstance(K, int) and K >= 1, "iterations", "must be at least 1", K, "use 1000 or more")
        f = context.errors(()).both
        proved = context.room - f  # a lower bound on ζ whenever f is one on the evaluation error
        guaranteed = len(b) == 1 and b[0] >= 0 and proved > 0 and f <= proved / 6
        # Without that, the measured limit; an undecided problem may have no room at all: a hundredth of H keeps U finite.
        zeta = proved if guaranteed else context.least_room if context.least_room > 0 else 0.01 * H
        target = context.target
        if target is None and (guaranteed or context.error_given):
            target = b + 4 * f if context.strict else b - 2 * f
        elif target is None:
            target = context.measured_target()
        U = 2 * H / zeta if upper is None else upper
        eta = U / (H * math.sqrt(K)) if step_size is None else step_size
        return cls(np.broadcast_to(target, b.shape), U, eta, K, f, proved if guaranteed else None)

    @property
    def num_steps(self) -> int:
        """K."""
        return self.num_iterations

    def __post_init__(self) -> None:
        require(self.num_iterations >= 1, "iterations", "must be at least 1", self.num_iterations, "use 1000 or more")
        require(self.upper > 0, "upper", "must be positive", self.upper, "use 2H/ζ")
        require(self.step_size > 0, "step_size", "must be positive", self.step_size, "use U/(H√K)")

    def propose(self, steps: Sequence[Step]) -> Proposal:
        """One projected step from the last iterate; uniform weights after K of them."""
        if not steps:
            return Proposal((0.0,) * len(self.target), None, False)  # λ_0
        if len(steps) >= self.num_iterations:
            K = len(steps)
            return Proposal(steps[-1].multipliers, np.full(K, 1.0 / K), True)
        last, eta, U = steps[-1], self.step_size, self.upper
        gradient = last.values[1:] - self.target  # V̂_c^k(ρ) − b'
        following = [
            min(max(lam - eta * g, 0.0), U) for lam, g in zip(last.multipliers, gradient.tolist(), strict=True)
        ]
        return Proposal(tuple(following), None, False)  # λ_{k+1}

    def gap(self, steps: Sequence[Step]) -> float:
        """Not known."""
        return math.inf

    def summary(self, steps: Sequence[Step]) -> DualSummary:
        """The average multipliers; whether one of them stayed at the cap."""
        terms = None
        if self.zeta is not None:
            terms = DescentTerms(self.upper, self.step_size, self.num_iterations, self.zeta)
        return DualSummary(
            Ending.AT_CAP if self.saturated(steps) else Ending.CONVERGED,
            np.mean([s.multipliers for s in steps], axis=0),
            None,
            False,
            terms,
            {"upper": self.upper},
        )

    def saturated(self, steps: Sequence[Step]) -> bool:
        """Whether some multiplier spent most of the second half of the run at the cap U."""
        half = [s.multipliers for s in steps[len(steps) // 2 :]]
        return bool(np.any(np.mean(np.asarray(half) >= self.upper, axis=0) > 0.5))
