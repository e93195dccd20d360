"""What both upper bounds on the optimum return, and weak duality.

    max{V_r : V_c ≥ b} ≤ max_π V_□^π(ρ)/σ_0 − λᵀb,       □_σ = σᵀ(r, c),   λ = σ_c/σ_0 ≥ 0
    max{V_c − b}       : no policy is feasible if  max_π V_□^π(ρ) < σ_cᵀb  for a σ with σ_0 = 0

σ must not depend on the fresh samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from saddleback.certificates.intervals import maurer_pontil_half_width
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

NUM_STARTS = 1 << 16
"""Start states that a certificate draws where ρ can only be sampled."""

STARTS_SHARE = 0.1
"""Of δ: what those may cost."""


@dataclass(frozen=True)
class Bound:
    """max_π V_□^π(ρ) ≤ ``value`` for □_σ, in utilities; ``estimate`` is what the samples suggest without confidence."""

    sigma: Array
    value: float
    estimate: float
    kind: str
    delta: float
    samples: int

    def on_optimum(self, problem: CMDP) -> float:
        """The bound on max{V_r : V_c ≥ b}, in utilities; σ must give the reward some weight."""
        prices = self.sigma[1:] / self.sigma[0]
        return min(self.value / self.sigma[0] - float(prices @ problem.thresholds), problem.horizon)

    def on_slack(self, problem: CMDP) -> float:
        """The bound on max_π min_i (V_{c_i} − b_i) where σ gives the reward no weight: negative proves infeasibility."""
        assert self.sigma[0] == 0
        return self.value - float(self.sigma[1:] @ problem.thresholds)


def hidden_by_starts(problem: CMDP, delta: float, functions: int | None = None) -> float:
    """w: how far V(ρ̂) may be from V(ρ) for k functions in [0, H] (:mod:`.fresh_start`), utilities; 0 where ρ is known."""
    if problem.start.sampler is None:
        return 0.0
    k, part = functions or 2 + problem.num_constraints, STARTS_SHARE * delta
    return problem.horizon * math.sqrt(math.log(2 * k / part) / (2 * NUM_STARTS))


def at_start(problem: CMDP, V_at_start: Array) -> float:
    """V(ρ) from V at the start states."""
    return float(np.dot(problem.start.weights, V_at_start))


def reward_widths(problem: CMDP, fresh: Buffer, sigma: Array, delta: float) -> Array:
    """By how much the observed mean of □_σ may be wrong at each pair, ``(c,)``; zero where the rewards are known."""
    seen = np.flatnonzero(problem.observed & (sigma > 0))
    out = np.zeros(fresh.design.size)
    if not seen.size:
        return out
    noise = fresh.signal_noise(problem)
    level = delta / (fresh.design.size * len(seen))
    for x, n in enumerate(fresh.counts.tolist()):
        for j in seen:
            variance = float(noise[x, j]) ** 2 * n / max(1, n - 1)
            out[x] += sigma[j] * (1.0 if n < 2 else min(1.0, maurer_pontil_half_width(variance, n, 1.0, level)))
    return out
