"""What column generation promises (in place of Theorem thm_main2, whose dual it replaces).

With a solver that is f_m-optimal for every □_σ it is asked about, an evaluator that errs by f_e at most on r and c, and a
run that stopped at a reduced cost of at most τ(1 + λ̂), put b⁺ = b' + f_m + f_e + τ. Then

    V_c ≥ b' − f_e            (the master holds Σ w V̂_c ≥ b', and each V̂_c is off by f_e at most)
    V_r ≥ F(b⁺) − (f_m + 2f_e + τ)

*Why.* Let π⁺ attain F(b⁺). The last column π̂ answers λ̂: V_r(π⁺) + λ̂V_c(π⁺) ≤ V_r(π̂) + λ̂V_c(π̂) + (1+λ̂)f_m, the
evaluator moves the right side by (1+λ̂)f_e, and the stopping rule bounds it by Z + λ̂b' + (1+λ̂)τ. The terms with λ̂ are
λ̂(b' + f_m + f_e + τ) = λ̂b⁺ ≤ λ̂V_c(π⁺) and cancel. What is left is F(b⁺) ≤ Z + f_m + f_e + τ, and the mixture's true
reward is at least Z − f_e. ∎

F is concave, so F(b) − F(b⁺) ≤ (b⁺ − b)H/ζ while b⁺ ≤ b + ζ. Hence with q = f_m + 2f_e + τ: relaxed,
b' = b − (f_m + f_e + τ), loses q and misses by q; strict, b' = b + f_e with q ≤ ζ, misses by nothing and loses q(1 + H/ζ).
"""

from __future__ import annotations

from saddleback.errors import require
from saddleback.theory.meta_theorem import Feasibility, Guarantee


def column_target(
    threshold: float, *, solver_error: float, evaluation_error: float, tolerance: float, feasibility: Feasibility
) -> float:
    """b' for relaxed and strict feasibility."""
    if feasibility == "strict":
        return threshold + evaluation_error
    return threshold - (solver_error + evaluation_error + tolerance)


def column_guarantee(
    *,
    target: float,
    solver_error: float,
    evaluation_error: float,
    tolerance: float,
    horizon: float,
    zeta: float,
    threshold: float,
) -> Guarantee:
    """The bounds above for any b'; ``zeta`` is a lower bound on max V_c − b, used only where b⁺ > b."""
    require(min(solver_error, evaluation_error, tolerance) >= 0, "errors", "must not be negative",
            (solver_error, evaluation_error, tolerance), "give f_mdp, f_eva and the tolerance")  # fmt: skip
    f_m, f_e, tau, H, b = solver_error, evaluation_error, tolerance, horizon, threshold
    shift = target + f_m + f_e + tau - b  # b⁺ − b
    loss = H
    if shift <= 0:
        loss = f_m + 2 * f_e + tau
    elif zeta > 0 and shift <= zeta:
        loss = shift * H / zeta + f_m + 2 * f_e + tau
    return Guarantee(min(H, loss), max(0.0, b - (target - f_e)), "column generation")
