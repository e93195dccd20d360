"""G-Sampling-and-Stop at a fixed number of samples (app:gss): i.i.d. pairs from the design, ridge regression, plug-in VI.

    DataCollection-GSS:  (s_t, a_t) ~ ρ*,  s'_t ~ P(·|s_t, a_t),  t = 1 … N      (so n ~ Multinomial(N, ρ*) samples a pair)

    Λ = Σ_x n_x φ_x φ_xᵀ + λ_reg I                 (features scaled so that their largest value on C is 1)
    θ⁰ = 0;  repeat until z settles:
        V^i     = max_a ⟨φ, θ^i⟩
        z^i(x)  = □(x) + γ (P̂V^i)(x),   x ∈ C
        θ^{i+1} = Λ⁻¹ Σ_x n_x φ_x z^i(x)
    π = argmax_a ⟨φ, θ⟩

The paper regresses the reward and the transitions apart; both regressions share Λ, so their sum is the one above.

*Ridge.* Shrinkage moves a prediction by |⟨φ, λ_reg Λ⁻¹θ⟩| ≤ √λ_reg ‖θ‖ ‖φ‖_{Λ⁻¹}, noise moves it by about σ‖φ‖_{Λ⁻¹}. With
the customary λ_reg = 1 the bias exceeds the noise as soon as ‖θ‖ > σ, which is the rule for θ ~ H; at 10⁻⁶ it is a
thousandth of that, and directions without samples are still held at zero. The scaling keeps the answer free of the
unit of the features.

*No contraction.* The regression may expand (its Lebesgue constant exceeds one), so V^i need not converge. Sweeps are
capped and growth is detected; either is an error, never a policy. The stopping rule is in
:mod:`saddleback.method.solvers.gss_stopping`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from saddleback.designs.design import Design, weighted_design
from saddleback.errors import InputError, NumericalError, require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import GreedyPolicy, Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, MaxDifference, counted

_BLOW_UP = 1e3  # times H: values that large can only come from an operator that expands


@dataclass(frozen=True)
class GSS:
    """Plug-in value iteration on a buffer; ``regularization`` is λ_reg, ``tolerance`` the last change of z."""

    regularization: float = 1e-6
    tolerance: float = 1e-8
    max_sweeps: int = 100_000

    def __post_init__(self) -> None:
        require(self.regularization > 0, "regularization", "must be positive", self.regularization, "use 1e-6")
        require(self.tolerance > 0, "tolerance", "must be positive", self.tolerance, "use 1e-8")
        require(self.max_sweeps >= 1, "max_sweeps", "must be at least 1", self.max_sweeps, "use 100000")

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The greedy policy of the plug-in fixed point for each row σ of ``mixing``, ``(k, 1+m)``."""
        features, theta = problem.required_features(), self.parameters(problem, buffer, mixing)
        return [GreedyPolicy(features, np.ascontiguousarray(column)) for column in theta.T]

    def allocate(self, design: Design, total: int, rng: np.random.Generator) -> tuple[Design, NDArray[np.int64]]:
        """DataCollection-GSS: ``total`` pairs i.i.d. from the design, as the pairs that came up and how often each did."""
        require(total >= 1, "samples", "must be at least 1", total, "raise the number of samples")
        counts = np.asarray(rng.multinomial(total, design.weights), dtype=np.int64)  # n ~ Multinomial(N, ρ*)
        return sampled_part(design, counts), counts[counts > 0]

    def parameters(self, problem: CMDP, buffer: Buffer, mixing: Array) -> Array:
        """θ at the plug-in fixed point, ``(d, k)``, all rows of ``mixing`` at once."""
        gamma, H = problem.gamma, problem.horizon
        phi = problem.required_features().at(buffer.design.states, buffer.design.actions)  # φ_x, (c, d)
        fit = ridge(phi, buffer.counts, self.regularization)  # z ↦ Λ⁻¹ Σ n_x φ_x z(x)
        box = buffer.utilities(problem) @ np.asarray(mixing, dtype=np.float64).T  # □, (c, k)
        P = counted(buffer).empirical_model()  # P̂, (c, support)
        origin = np.zeros((phi.shape[1], 1))  # the second θ of MaxDifference: V = max_a⟨φ, θ⟩ − 0
        z, change = box, np.inf
        theta = fit @ z  # θ¹, as V⁰ = 0
        for sweep in range(1, self.max_sweeps + 1):
            V = buffer.at_support(MaxDifference(theta, origin))  # V^i
            previous, z = z, box + gamma * (P @ V)  # z^i
            theta = fit @ z  # θ^{i+1}
            change = float(np.abs(z - previous).max())
            if change <= self.tolerance:
                return theta
            if not float(np.abs(z).max()) <= _BLOW_UP * H:
                raise NumericalError(
                    f"plug-in value iteration grew to {np.abs(z).max():.1e} after {sweep} sweeps, where values lie in "
                    f"[0, {H:g}]: with {buffer.counts.sum()} samples of {buffer.design.size} pairs the regression "
                    f"expands more than gamma = {gamma:g} contracts; use more samples, a design with a smaller g, or a "
                    f"larger regularization than {self.regularization:g}."
                )
        raise NumericalError(
            f"plug-in value iteration still moved by {change:.1e} after {self.max_sweeps} sweeps (tolerance "
            f"{self.tolerance:g}, horizon {H:g}); raise max_sweeps or tolerance, or use more samples."
        )


def sampled_part(design: Design, counts: NDArray[np.int64]) -> Design:
    """The design without the pairs of count zero; g and the Lebesgue constant then speak of the kept pairs only."""
    keep = np.flatnonzero(counts > 0)
    if len(keep) == design.size:
        return design
    if design.features is None:
        raise InputError(
            "samples",
            f"must reach each of the {design.size} pairs of a design without features",
            f"{int(counts.sum())} draws that missed {design.size - len(keep)} pairs",
            "raise the number of samples, or use a design on features",
        )
    return weighted_design(
        design.states[keep], design.actions[keep], design.features[keep], design.weights[keep], complete=False
    )


def ridge(features: Array, counts: NDArray[np.int64], regularization: float) -> Array:
    """The matrix ``(d, c)`` of z ↦ Λ⁻¹ Σ_x n_x φ_x z(x), by QR of (√n Φ; √λ_reg I): Λ itself is never formed."""
    c, d = features.shape
    scale = float(np.abs(features).max()) or 1.0
    root = np.sqrt(counts.astype(np.float64))[:, None]
    Q, R = np.linalg.qr(np.vstack([root * (features / scale), np.sqrt(regularization) * np.eye(d)]))
    return np.asarray(scipy.linalg.solve_triangular(R, (root * Q[:c]).T) / scale)
