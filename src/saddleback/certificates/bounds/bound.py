"""What every upper bound on the optimum is: a plan made before the fresh samples, a proof from them, and weak duality.

    max{V_r : V_c ≥ b} ≤ max_π V_□^π(ρ)/σ_0 − λᵀb,       □_σ = σᵀ(r, c),   λ = σ_c/σ_0 ≥ 0
    max{V_c − b}       : no policy is feasible if  max_π V_□^π(ρ) < σ_cᵀb  for a σ with σ_0 = 0

σ must not depend on the fresh samples.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.assumptions import BOUNDED
from saddleback.certificates.certificate import BoundEvidence
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import maurer_pontil_half_width
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


@dataclass(frozen=True)
class Bound:
    """max_π V_□^π(ρ) ≤ ``value`` for □_σ, in utilities; ``estimate`` is what the samples suggest without confidence.

    ``assumes`` says what it rests on, and ``arrays`` are what it can be computed again from, if that is kept. A method that
    proves more than this returns a subclass with its own ``on_…``.
    """

    sigma: Array
    value: float
    estimate: float
    kind: str
    delta: float
    samples: int
    assumes: str = BOUNDED
    arrays: dict[str, Array] | None = None

    def on_optimum(self, problem: CMDP) -> float:
        """The bound on max{V_r : V_c ≥ b}, in utilities; σ must give the reward some weight."""
        prices = self.sigma[1:] / self.sigma[0]
        return min(self.value / self.sigma[0] - float(prices @ problem.thresholds), problem.horizon)

    def on_reward(self, problem: CMDP) -> float:
        """The bound on the best feasible reward, in the user's units."""
        return float(self.on_optimum(problem) * problem.scale[0] + problem.base[0] * problem.horizon)

    def on_gap(self, problem: CMDP, value: tuple[float, float]) -> float:
        """The bound on what a policy with these limits of its value loses to the best one, in the user's units."""
        return problem.loss(self.on_reward(problem), value)

    def on_slack(self, problem: CMDP) -> float:
        """The bound on max_π min_i (V_{c_i} − b_i) where σ gives the reward no weight: negative proves infeasibility."""
        assert self.sigma[0] == 0
        return self.value - float(self.sigma[1:] @ problem.thresholds)

    def raised(self, by: float) -> Bound:
        """The bound for ρ from that for a sample of it."""
        return dataclasses.replace(self, value=self.value + by)

    def evidence(self, problem: CMDP) -> BoundEvidence:
        """The numbers behind it."""
        sigma, thresholds = tuple(self.sigma.tolist()), tuple(problem.thresholds.tolist())
        return BoundEvidence(self.kind, sigma, self.value, self.estimate, self.delta, self.samples, thresholds)


@dataclass(frozen=True)
class BoundPlan(ABC):
    """What is fixed before the fresh samples: σ and how many of each pair are wanted, ``(c,)``; and what is expected.

    ``estimate`` is max_π V_□^π(ρ) as the earlier samples have it, ``expected_excess`` by how much the bound is expected to
    exceed it, both in utilities.
    """

    sigma: Array
    counts: NDArray[np.int64]
    estimate: float
    expected_excess: float

    @abstractmethod
    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        """The bound at 1 − δ from a buffer that was drawn after the plan was made."""


class BoundMethod(Protocol):
    """A way to prove a bound over all policies."""

    def plan(self, guide: Guide, sigma: Array, samples: int, delta: float, *, draft: bool = False) -> BoundPlan | None:
        """How ``samples`` calls would prove it; a ``draft`` only tells what to expect. None where it does not apply."""
        ...


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
