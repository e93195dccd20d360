"""Theorem thm_main2 (§3): what Alg. 1 is told, and what it then promises, as written and corrected.

    U = 2/(ζ(1−γ)),   η = U(1−γ)/√K,   K = U²/(f²(1−γ)²),   f = max{f_mdp, f_eva}
    relaxed   b' = b − 2f:            V_r ≥ V* − 4f,            V_c ≥ b − 6f
    strict    b' = b + 4f, f ≤ ζ/6:   V_r ≥ V* − 16f/(ζ(1−γ)),  V_c ≥ b

The paper's constants are true, its proof of them is not (docs/errata.md). The proof below gives better ones.

**Why it holds.** All values in [0, H], 0 ≤ b, b + ζ ≤ H where ζ is any *lower bound* on max V_c − b, evaluations clipped
to [0, H], b' ≤ H. F(x) = max{V_r : V_c ≥ x} is concave and non-increasing. Write v_k for the true and V̂_k for the
estimated values of π_k, v̄ for averages over k, and b̃ = b' + f_mdp + f_eva.

1. *One round.* Compare π_k with a policy that reaches F(b̃), if b̃ ≤ b + ζ. The solver is f_mdp(1+λ_k)-optimal for
   r + λ_k c and the evaluator errs by f_eva at most, so F(b̃) − v_{r,k} ≤ λ_k (V̂_k − b') + f_mdp: the two errors that
   λ_k multiplies are what b̃ was moved by.
2. *Reward.* The projection is non-expansive, so λ_{k+1}² ≤ λ_k² − 2ηλ_k(V̂_k − b') + η²H²; with λ_0 = 0 the mean of
   λ_k(V̂_k − b') is at most ηH²/2. (If b' < 0 then λ stays at 0 and the mean is 0.) Hence F(b̃) − v̄_r ≤ f_mdp + ηH²/2,
   and between b and b + ζ the concave F falls no faster than its chord, F(b) − F(b+x) ≤ xH/ζ:

       F(b) − v̄_r ≤ max(0, b̃ − b)·H/ζ + f_mdp + ηH²/2.

3. *Constraint, steps whose update is not cut at U.* They move λ by at least −η(V̂_k − b'), the others do not lower it,
   and λ_K ≤ U: so over those steps Σ(V̂_k − b') ≥ −U/η, and each true value is within f_eva of its estimate.
4. *Constraint, steps cut at U.* There λ_k ≥ U − ηH =: ℓ. Against the policy with V_c ≥ b + ζ (and V_r ≥ 0), with
   v_{r,k} ≤ H, the solver's promise reads v_{c,k} ≥ b + ζ − H/ℓ − f_mdp(1 + 1/ℓ). Together

       v̄_c ≥ min{b' − f_eva,  b + ζ − H/ℓ − f_mdp(1 + 1/ℓ)} − U/(ηK).

Nothing here fixes U, η or K: :func:`guarantee_of` evaluates these two lines for any choice. With U = 2H/ζ ≥ 2,
η = U/(H√K), K ≥ (UH/f)² and √K ≥ 10: ηH²/2 ≤ f/2, U/(ηK) = H/√K ≤ f/U ≤ f/2, and the second term of the minimum is
at least b + ζ/2 − 2.1f. The corrected constants follow: relaxed, b̃ ≤ b gives 1.5f and 3.5f; strict, b' = b + 1.5f
gives V_c ≥ b and (3.5H/ζ + 1.5)f ≤ 5fH/ζ, and the paper's b' = b + 4f gives V_c ≥ b and 7.5fH/ζ.

**Several constraints.** All of this is for m = 1. With λ ∈ [0, U]^m the solver's error grows with 1 + ‖λ‖₁, steps 1 and
2 hold with m·ηH²/2, but step 4 bounds only a λ-weighted average of the constraints, so the constraint line does not
carry over coordinate by coordinate.

**Column generation** may take the dual's place. With a solver that is f_m-optimal for every □_σ it is asked about, an
evaluator that errs by f_e at most on r and c, and a run that stopped at a reduced cost of at most τ(1 + λ̂), put
b⁺ = b' + f_m + f_e + τ. Then

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

import math
from dataclasses import dataclass
from typing import Literal

from saddleback.errors import require
from saddleback.method.oracles import DescentTerms, OracleErrors

Feasibility = Literal["relaxed", "strict"]
Version = Literal["paper", "corrected", "corrected, paper's target"]

_CONSTANTS: dict[tuple[str, str], tuple[float, float, float]] = {
    # (b' − b)/f, reward loss / f (relaxed) or / (fH/ζ) (strict), violation / f
    ("relaxed", "paper"): (-2.0, 4.0, 6.0),
    ("relaxed", "corrected"): (-2.0, 1.5, 3.5),
    ("strict", "paper"): (4.0, 16.0, 0.0),
    ("strict", "corrected"): (1.5, 5.0, 0.0),
    ("strict", "corrected, paper's target"): (4.0, 7.5, 0.0),
}


@dataclass(frozen=True)
class Guarantee:
    """V_r ≥ V* − ``reward_loss`` and V_c ≥ b − ``violation`` for the mixture, in the paper's units."""

    reward_loss: float
    violation: float
    label: str


@dataclass(frozen=True)
class DualSettings:
    """What Alg. 1 is told (U, η, K, b') and what it promises in return."""

    upper: float
    step_size: float
    num_iterations: int
    target: float
    guarantee: Guarantee


def dual_settings(
    error: float,
    *,
    horizon: float,
    zeta: float,
    threshold: float,
    feasibility: Feasibility,
    version: Version = "corrected",
) -> DualSettings:
    """U, η, K and b' for oracles of ``error`` f = max{f_mdp, f_eva}; ``zeta`` is a lower bound on max V_c − b."""
    row = (feasibility, version)
    require(
        row in _CONSTANTS, "feasibility, version", f"must be one of {sorted(_CONSTANTS)}", row, "choose a listed pair"
    )
    _check_problem(horizon, zeta, threshold)
    f, H, b = error, horizon, threshold
    U = 2 * H / zeta  # U = 2/(ζ(1−γ))
    low, high = U * H / 1e9, U * H / 10  # the upper end is √K ≥ 10; the lower keeps K ≤ 1e18 an honest integer
    rule = f"must lie in [{low:g}, {high:g}], where K = (UH/f)² is at least 100 and at most 1e18"
    remedy = "above that range the theorem promises nothing, so draw more samples; below it no computer would finish"
    require(low <= f <= high, "error", rule, f, remedy)
    if feasibility == "strict":
        remedy = "draw more samples, lower the threshold, or ask for relaxed feasibility"
        require(f <= zeta / 6, "error", f"must lie in (0, ζ/6] = (0, {zeta / 6:g}] for strict feasibility", f, remedy)
    shift, loss, violation = _CONSTANTS[row]
    K = math.ceil((U * H / f) ** 2)  # K = U²/(f²(1−γ)²)
    eta = U / (H * math.sqrt(K))  # η = U(1−γ)/√K
    unit = f if feasibility == "relaxed" else f * H / zeta
    return DualSettings(U, eta, K, b + shift * f, Guarantee(loss * unit, violation * f, version))


def guarantee_of(
    terms: DescentTerms, errors: OracleErrors, *, target: float, horizon: float, threshold: float
) -> Guarantee:
    """The bounds proved above for any U, η, K and b'; values in [0, H] cap the loss at H and the violation at b."""
    (U, eta, K, zeta), (f_m, f_e), H, b = terms, errors, horizon, threshold
    _check_problem(H, zeta, b)
    require(0 < U < math.inf, "upper", "must be positive and finite", U, "use 2H/ζ")
    require(0 < eta < math.inf, "step_size", "must be positive and finite", eta, "use U/(H√K)")
    require(K >= 1, "iterations", "must be at least 1", K, "use 1000 or more")
    require(target <= H, "target", f"must be at most H = {H:g}", target, "lower the margin above b")
    require(f_m >= 0, "solver_error", "must not be negative", f_m, "give f_mdp")
    require(f_e >= 0, "evaluation_error", "must not be negative", f_e, "give f_eva")
    shift = target + f_m + f_e - b  # b̃ − b
    loss = H
    if shift <= zeta:
        loss = min(H, max(0.0, shift) * H / zeta + f_m + eta * H * H / 2)
    ell = U - eta * H  # ℓ, the least λ_k of a step that is cut at U
    cut = b + zeta - H / ell - f_m * (1 + 1 / ell) if ell > 0 else -math.inf
    floor = min(target - f_e, cut) - U / (eta * K)
    return Guarantee(loss, min(b, max(0.0, b - floor)), "corrected, any K")


def column_guarantee(
    errors: OracleErrors, tolerance: float, *, target: float, horizon: float, zeta: float, threshold: float
) -> Guarantee:
    """The bounds above for any b'; ``zeta`` is a lower bound on max V_c − b, used only where b⁺ > b."""
    (f_m, f_e), tau, H, b = errors, tolerance, horizon, threshold
    remedy = "give f_mdp, f_eva and the tolerance"
    require(min(f_m, f_e, tau) >= 0, "errors", "must not be negative", (f_m, f_e, tau), remedy)
    shift = target + f_m + f_e + tau - b  # b⁺ − b
    loss = H
    if shift <= 0:
        loss = f_m + 2 * f_e + tau
    elif zeta > 0 and shift <= zeta:
        loss = shift * H / zeta + f_m + 2 * f_e + tau
    return Guarantee(min(H, loss), max(0.0, b - (target - f_e)), "column generation")


def _check_problem(horizon: float, zeta: float, threshold: float) -> None:
    H = horizon
    require(1 <= H < math.inf, "horizon", "must lie in [1, ∞)", H, "give H = 1/(1−γ)")
    remedy = "a negative one always holds, one of H or more leaves no slack"
    require(0 <= threshold < H, "threshold", f"must lie in [0, H) = [0, {H:g}) in the paper's units", threshold, remedy)
    room, remedy = H - threshold, "give a lower bound on max V_c − b; without slack there is no guarantee"
    within = 0 < zeta <= room * (1 + 1e-12)  # b + ζ ≤ H may be computed with rounding
    require(within, "zeta", f"must lie in (0, H − b] = (0, {room:g}]", zeta, remedy)
