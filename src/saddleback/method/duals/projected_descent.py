"""The paper's dual (last line of Alg. 1): projected descent on λ, every iterate weighted alike.

    λ_{k+1} = Proj_[0,U] [λ_k − η (V̂_c^k(ρ) − b')],   λ_0 = 0,   U = 2/(ζ(1−γ)),   η = U(1−γ)/√K

With m constraints the projection is onto [0, U]^m.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saddleback.errors import require
from saddleback.method.oracles import Proposal, Step
from saddleback.problem.spaces import Array


@dataclass(frozen=True)
class ProjectedDescent:
    """``target`` is b' ``(m,)``, ``upper`` is U, ``step_size`` is η, ``num_iterations`` is K; all in the paper's units."""

    target: Array
    upper: float
    step_size: float
    num_iterations: int

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

    def saturated(self, steps: Sequence[Step]) -> bool:
        """Whether some multiplier spent most of the second half of the run at the cap U."""
        half = [s.multipliers for s in steps[len(steps) // 2 :]]
        return bool(np.any(np.mean(np.asarray(half) >= self.upper, axis=0) > 0.5))
