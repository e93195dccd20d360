"""The perturbed model-based solver of Li et al. (app:model-based): plan in the empirical model, rewards slightly shaken.

    P̂(s'|s,a) = (1/N) Σ_i 1{s'_i = s'},   s'_1 … s'_N from DataCollection(Gen, S × A, N)
    r_p(s,a)  = □(s,a) + ζ(s,a),   ζ(s,a) ~ Unif(0, ξ),   ξ = c₁(1−γ)ε / (SA)⁵
    π̂*_p      = the optimal policy of (S, A, P̂, r_p, γ), by policy iteration

(ζ here is the paper's letter for the noise; elsewhere it is the Slater constant.) The shake makes the best action of the
empirical model unique by a margin, which the proof needs and float64 cannot hold: ξ ≈ 10⁻¹⁷ at S = 100, A = 10, while
values up to H are spaced by about H·10⁻¹⁶. :meth:`PerturbedModel.resolution` says whether ξ is more than rounding. Where
it is not, ties go to the lowest action index as everywhere else. The same ζ serves every row of ``mixing``: it belongs
to the pair, not to the reward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saddleback.errors import require
from saddleback.method.oracles import Needs, estimated_table, met_needs
from saddleback.problem.cmdp import CMDP
from saddleback.problem.finite_model import policy_iteration
from saddleback.problem.numerics import Stream, generator
from saddleback.problem.policies import Policy, TabularPolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


class Perturbation(NamedTuple):
    """ξ, whether float64 can tell it from rounding at this problem's values, and a sentence that says so."""

    size: float
    resolved: bool
    message: str


@dataclass(frozen=True)
class PerturbedModel:
    """``epsilon`` is the accuracy ε in ξ, ``perturbation_constant`` is c₁, ``seed`` that of ζ."""

    epsilon: float = 0.1
    perturbation_constant: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.epsilon > 0, "epsilon", "must be positive", self.epsilon, "use an accuracy in (0, H]")
        rule = "must be positive"
        require(self.perturbation_constant > 0, "perturbation_constant", rule, self.perturbation_constant, "use 1")

    def needs(self, problem: CMDP) -> Needs:
        """A table."""
        return Needs(every_pair=True)

    def resolution(self, problem: CMDP) -> Perturbation:
        """ξ for this problem against the spacing of float64 at H, the size of the values that it should tell apart."""
        met_needs("solver", "perturbed-model", self, problem)
        S, A = problem.num_states, problem.num_actions
        assert S is not None
        xi = self.perturbation_constant * (1 - problem.gamma) * self.epsilon / float(S * A) ** 5
        H = problem.horizon
        spacing = float(np.spacing(H))
        if xi > spacing:
            return Perturbation(xi, True, f"the reward perturbation xi = {xi:.1e} is resolved by float64")
        return Perturbation(
            xi,
            False,
            f"the reward perturbation xi = {xi:.1e} (S = {S}, A = {A}) is below float64's resolution {spacing:.1e} at "
            f"values up to {H:g}: it does not separate actions, and ties go to the lowest action index",
        )

    def remarks(self, problem: CMDP) -> list[str]:
        """What a user of this solver should be told about this problem."""
        perturbation = self.resolution(problem)
        return [] if perturbation.resolved else [perturbation.message]

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The optimal policy of the perturbed empirical model for each row σ of ``mixing``, ``(k, 1+m)``."""
        P, box = estimated_table(problem, buffer, mixing)
        _, S, A = box.shape
        xi = self.resolution(problem).size
        noise = generator(self.seed, Stream.PERTURBATION, 0, 0).uniform(0.0, xi, S * A)  # ζ(s,a) ~ Unif(0, ξ)
        policies: list[Policy] = []
        for reward in box + noise.reshape(S, A):  # r_p
            start = reward.argmax(axis=1)
            actions, _ = policy_iteration(P, reward.reshape(-1, 1), np.ones(1), problem.gamma, start, tie=0.0)
            policies.append(TabularPolicy.deterministic(actions, A))
        return policies
