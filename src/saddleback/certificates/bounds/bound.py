"""What every upper bound on the optimum is: a plan made before the fresh samples, a proof from them, and weak duality.

    max{V_r : V_c ≥ b} ≤ max_π V_□^π(ρ)/σ_0 − λᵀb,       □_σ = σᵀ(r, c),   λ = σ_c/σ_0 ≥ 0
    max{V_c − b}       : no policy is feasible if  max_π V_□^π(ρ) < σ_cᵀb  for a σ with σ_0 = 0

σ must not depend on the fresh samples.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.assumptions import BOUNDED
from saddleback.certificates.certificate import ROUNDING, BoundEvidence
from saddleback.certificates.guide import Guide
from saddleback.certificates.values.intervals import chernoff_upper
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
        """The bound on max_π min_i (V_{c_i} − b_i) where σ gives the reward no weight: negative proves infeasibility.

        What differs from zero by no more than rounding, as in a verdict, is zero.
        """
        assert self.sigma[0] == 0
        room = self.value - float(self.sigma[1:] @ problem.thresholds)
        return 0.0 if abs(room) <= ROUNDING * problem.horizon else room

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


class RewardWidths(NamedTuple):
    """By how much □_σ may lie below and above its observed mean at each pair, ``(c,)``; zero where it is known.

    ``rare`` ``(2, c, 1+m)`` says where a signal's limit below, and above, is Chernoff's.
    """

    below: Array
    above: Array
    rare: NDArray[np.bool_]


class ExpectedRewards(NamedTuple):
    """What earlier samples make of r, c_1..c_m and of their standard deviations at each pair, ``(c, 1+m)``.

    Pairs that differ by no more than chance are taken for alike: an allocation that follows the noise of the earlier
    samples starves pairs that are as good as the others.
    """

    means: Array
    noise: Array

    @classmethod
    def of(cls, problem: CMDP, earlier: Buffer) -> ExpectedRewards:
        """Means and variances that are only observed are drawn to those of all pairs, as far as their own errors reach."""
        means, noise = earlier.utilities(problem), earlier.signal_noise(problem)
        errors = noise**2 / earlier.counts[:, None]
        seen = slice(None) if earlier.unsampled is None else ~earlier.unsampled  # of the others nothing was observed
        between = np.maximum(0.0, means[seen].var(axis=0) - errors[seen].mean(axis=0))
        own = np.where(problem.observed, between / np.maximum(between + errors, 1e-300), 1.0)
        drawn = [own * x + (1 - own) * x[seen].mean(axis=0) for x in (means, noise**2)]
        return cls(drawn[0], np.sqrt(drawn[1]))

    def widths(self, problem: CMDP, sigma: Array, counts: Array | NDArray[np.int64], delta: float) -> Array:
        """What :meth:`limits` will leave above with so many samples of each pair, about ``(c,)``."""
        seen = _observed(problem, sigma)
        L = math.log(len(counts) * max(1, len(seen)) / delta)
        noise = self.noise[:, seen] @ sigma[seen]
        return np.asarray(noise * np.sqrt(2 * L / counts) + float(sigma[seen].sum()) * L / counts)

    def limits(self, problem: CMDP, fresh: Buffer, sigma: Array, delta: float, above: float = 0.5) -> RewardWidths:
        """Limits at 1 − δ for all pairs together, a share ``above`` of it for those above.

        Each is Maurer and Pontil's or Chernoff's, whichever the earlier samples expect to be narrower.
        """
        seen, n, out = _observed(problem, sigma), fresh.counts, np.zeros((2, fresh.design.size))
        means, deviations = fresh.utilities(problem), fresh.signal_deviations(problem)
        chosen = np.zeros((2, *means.shape), dtype=bool)
        for side, share in enumerate((1 - above, above)):
            L = math.log(fresh.design.size * max(1, len(seen)) / (share * delta))
            for j in seen:
                guess, x = (1 - y[:, j] if side == 0 else y[:, j] for y in (self.means, means))
                rare = chernoff_upper(guess, n, L) - guess < _maurer_pontil(self.noise[:, j], n, L)
                chosen[side, :, j] = rare
                widths = np.where(rare, chernoff_upper(x, n, L) - x, _maurer_pontil(deviations[:, j], n, L))
                out[side] += sigma[j] * np.minimum(1.0, widths)
        return RewardWidths(out[0], out[1], chosen)


def _observed(problem: CMDP, sigma: Array) -> NDArray[np.int64]:
    """The signals that □_σ has from the simulator."""
    return np.flatnonzero(problem.observed & (sigma > 0))


def _maurer_pontil(deviations: Array, n: NDArray[np.int64], log_inverse_delta: float) -> Array:
    """The half-width of a mean in [0, 1] from the standard deviation of its samples, one-sided."""
    L, spare = log_inverse_delta + math.log(2), np.maximum(n - 1, 1)
    return np.where(n < 2, 1.0, deviations * np.sqrt(2 * L / spare) + 7 * L / (3 * spare))
