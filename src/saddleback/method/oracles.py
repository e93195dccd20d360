"""§3, the framework's oracles, as protocols: what Alg. 1 asks of a solver, an evaluator and a dual.

    Assumption asmp_b1.  MDP-Solver(□, B, φ) returns π̃ with  max_π V_□^π(ρ) − V_□^π̃(ρ) ≤ R·f_mdp(B),   □ ∈ [0, R]
    Assumption asmp_b2.  PolicyEvaluation(π, ◇, B, φ) returns V̂ with  |V̂_◇(ρ) − V_◇^π(ρ)| ≤ f_eva(B),   ◇ ∈ {r, c}

The reward □ = r + λᵀc is handed over as a point of the simplex, σ = (1, λ)/(1 + Σλ), so □_σ = σᵀ(r, c_1..c_m) ∈ [0, 1]
and R = 1: every solver here is positively homogeneous, the policy is the same, and λ = ∞ ("constraints only") is a point
like any other. *Buffer oracles* see the problem and a buffer, never the simulator; *interactive oracles* get a metered
:class:`~saddleback.simulators.generative_model.Sampler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer
from saddleback.simulators.generative_model import Sampler


@runtime_checkable
class Solver(Protocol):
    """A buffer oracle for Assumption asmp_b1; ``mixing`` holds one point σ of the simplex per row, ``(k, 1+m)``."""

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """One policy per row of ``mixing``."""
        ...


@runtime_checkable
class InteractiveSolver(Protocol):
    """A solver that decides for itself what to sample; its calls are metered."""

    def solve_interactively(self, problem: CMDP, design: Design, sampler: Sampler, mixing: Array) -> list[Policy]:
        """One policy per row of ``mixing``."""
        ...


@runtime_checkable
class Evaluator(Protocol):
    """A buffer oracle for Assumption asmp_b2."""

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̂_r(ρ), V̂_{c_1}(ρ), … in the paper's units, ``(1+m,)``, within [0, H]."""
        ...

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """What the data say of the error of :meth:`evaluate`: approximate, by the central limit theorem."""
        ...


@runtime_checkable
class InteractiveEvaluator(Protocol):
    """An evaluator that plays the policies itself; its calls are metered."""

    def evaluate_interactively(self, problem: CMDP, sampler: Sampler, policies: Sequence[Policy]) -> Evaluator:
        """What was measured of ``policies``, as an evaluator that draws nothing more."""
        ...


class Interval(NamedTuple):
    """Lower and upper limits ``(1+m,)`` for the true values in the paper's units."""

    low: Array
    high: Array


@dataclass(frozen=True, slots=True)
class Step:
    """One round of Alg. 1: λ_k, the policy it led to, and that policy's estimated values ``(1+m,)``.

    ``multipliers`` holds infinities where the round asked for the constraints alone.
    """

    multipliers: tuple[float, ...]
    policy: Policy
    values: Array


class Proposal(NamedTuple):
    """What a dual says next: try these ``multipliers`` ``(m,)``; or, when done, mix the steps with ``weights``.

    Where the reward has no part in what is asked (λ = ∞), ``point`` gives the point σ of the simplex itself.
    """

    multipliers: tuple[float, ...]
    weights: Array | None
    done: bool
    point: Array | None = None


@runtime_checkable
class Dual(Protocol):
    """The rule that moves the multipliers; it sees the whole history."""

    def propose(self, steps: Sequence[Step]) -> Proposal:
        """The next multipliers, or the final weights."""
        ...


def simplex_point(multipliers: Sequence[float]) -> Array:
    """σ = (1, λ_1..λ_m) / (1 + Σλ)."""
    point = np.array([1.0, *multipliers])
    return point / point.sum()


def round_to_grid(sigma: Array, resolution: int | None) -> Array:
    """The nearest point of the simplex whose coordinates are multiples of 1/resolution (largest remainders first).

    The grid is fixed before sampling, which is what lets a union bound cover every reward the solver is asked about
    (docs/errata.md, data dependence). ``None`` leaves σ as it is, as the paper does.
    """
    if resolution is None:
        return sigma
    scaled = sigma * resolution
    whole = np.floor(scaled + 1e-9)
    missing = round(resolution - float(whole.sum()))
    if missing > 0:
        order = np.argsort(-(scaled - whole), kind="stable")
        whole[order[:missing]] += 1
    return whole / resolution


def require_bounded(theta: Array) -> None:
    """Refuse what an iteration has made of features that next states have and the coreset has not."""
    if not np.all(np.isfinite(theta)):
        raise NumericalError(
            "the least-squares iteration grew without bound: next states have features far outside those of the design's "
            "candidates; add such pairs to the candidates, or let the default mode do it."
        )
