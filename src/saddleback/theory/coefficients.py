"""The one form that every error bound of this package has, and its inverse.

With y = 1/√M and everything else (T, γ, δ, …) fixed, each f_mdp and f_eva is

    f(y) = (a₀ + a₁y + a₂y²) / (1 − cy),      infinite unless cy < 1

    bound                    a₀      a₁                          a₂                        c
    linear, solver           γH²/T   γH²Γ√(2L₂/T)                0                         2k
    linear, evaluator        γH²/T   γH²(Γ√(L₂/2T) − k/T)        0                         2k       k = γHΓ√(L₁/2) = κ/y
    Hoeffding, solver        γH²/T   γH²√(2L/T)                  0                         0
    Hoeffding, evaluator     γH²/T   γH²√(L/2T)                  0                         0
    Bernstein                see below

where they come from is told in :mod:`~saddleback.theory.errors`. Each rises with y (a₁ + ca₀ ≥ 0 ≤ a₂), so the fewest
samples that give an error f > a₀ follow from a quadratic equation:

    a₂y² + (a₁ + cf)y = f − a₀,      y = 2(f − a₀) / (p + √(p² + 4a₂(f − a₀))),   p = a₁ + cf,   M = ⌈1/y²⌉.

T and the logarithm of the number of problems may be arrays: a plan looks at thousands of (T, f) at once. T may be any real
number from 1 on; ``log_T`` stands for log T where logarithms ask for it. All coefficients fall with T at a fixed
``log_T``, so that those of (T, log(T + 1)) are limits for ⌈T⌉.

**The tabular oracles by Bernstein's inequality**: H³ in place of Hoeffding's H⁴ once M is large. It takes the place of
Lemmas lem_bern1 to lem_bern6, lem_varl and lem_TVL, whose proofs have gaps (docs/errata.md).
□ ∈ [0, 1], so 0 ≤ V̂^t ≤ H. ε_t = γ(P̂_t − P)V̂^t, e_i = (1/i) Σ_{t<i} ε_t, e = e_T; σ²(V)(s,a) is the variance of V(s')
under P(·|s,a), and σ(V + W) ≤ σ(V) + σ(W), σ(W) ≤ span(W)/2. h = √(L'/(2M)), x = √(2L/(TM)); T_π is π's Bellman operator.

**1. Total variance.** Given the first pair, the discounted sum of rewards varies by γ times the sum from the next state,
which lies in [0, H]: its variance is at most γ²H²/4 and, averaged over π, at least (I − γ²P_π)⁻¹πγ²σ²(V^π). As
(I − γP)⁻¹(I − γ²P) = (1−γ)(I − γP)⁻¹ + γI has norm 1 + γ, and by Jensen's inequality under the probability (1−γ)(I − γP)⁻¹,

    γ(I − γP_π)⁻¹πσ(V^π) ≤ √(H·(I − γP_π)⁻¹πγ²σ²(V^π)) ≤ γ√((1+γ)H³/4) =: B.

**2. Solver: V̂^t stays near V*.** By Hoeffding, |ε_t| ≤ γHh and |e_i| ≤ γHh/√i at every pair. W_t = max_a Q̃^t = Σ_{i≤t} V̂^i
and V̄_i = W_i/i. From greediness, T_{π_t}V̂^t + π_tε_t ≤ V̂^{t+1} ≤ T_{π_{t+1}}V̂^t + π_{t+1}ε_t, hence V̂^t − V* ≤ γH²h.
From Q̃^i/i = □ + γPV̄_{i−1} − γPV̄_{i−1}/i + e_i (V̄_0 = 0, e_1 = 0), with π* and with π_i,

    V* − V̄_i ≤ γP_{π*}(V* − V̄_{i−1}) + γH/i + |e_i|  (i ≥ 2),   V* − V̄_1 ≤ γH,   V̄_i ≤ T_{π_i}V̄_{i−1} + |e_i|.

The last line and V̂^{t+1} ≥ T_{π_t}V̂^t − |ε_t| are unrolled along the same π_t, …, π_1, from V̄_0 = 0 ≤ V̂^1, so that
V̂^{t+1} ≥ V̄_t − Σ_{i≤t} γ^{t−i}(|e_i| + |ε_i|). With S_t = γS_{t−1} + 1/t, Z_t = γZ_{t−1} + 1/√t (S_0 = Z_0 = 0):

    V* − V̂^{t+1} ≤ γHS_t + γHh(H + 2Z_t)  for t ≥ 1,      V* − V̂^0 ≤ H,   V* − V̂^1 ≤ γH.

So σ(V̂^t) ≤ σ(V*) + d_t, where d_t is half of D_t = min(H, γHS_{t−1}) plus half of γHh(2H + 2Z_{t−1}). As γ^k sums to H,
Young's inequality gives Σ_{t≤T} Z_t² ≤ H²(1 + log T). The root mean square of d_0..d_{T−1} is therefore at most

    D̃ = ½ rms(D_t) + γH²h(1 + √((1 + log T)/T)).

**3. Solver: the sum.** The TM differences behind e at one pair are at most γH/(TM) large, and while V̂^t keeps to step 2
(a predictable event) the mean variance is at most (σ(V*) + D̃)² by Minkowski. Freedman's inequality in its sub-gamma form
gives |e| ≤ γx(σ(V*) + D̃) + γHL/(3TM). Put Δ = max(V* − V^{π_T}): σ(V*) ≤ σ(V^{π_T}) + Δ/2, and

    V* − V^{π_T} ≤ (I − γP_{π*})⁻¹π*(γPV̂^T/T − e) + (I − γP_{π_T})⁻¹π_T(e − γPV̂^T/T)
    Δ ≤ γH²/T + x(B + γHD̃) + x(B + γH(D̃ + Δ/2)) + 2γH²L/(3TM)
    **f_mdp = {γH²/T + 2x(B + γHD̃) + 2γH²L/(3TM)} / (1 − γHx/2),**      if γHx < 2.

**4. Evaluator.** V̂^t − V^π = −(γP_π)^tV^π + Σ_{i<t} (γP_π)^{t−1−i}πε_i. π does not depend on the buffer, so the last sum is
a martingale with fixed weights: at most γH√(L'/(2M(1−γ²))) = γHh√(H/(1+γ)). Steps 1 and 3 with V^π for V*:

    D̃ = ½H√((1 − γ^{2T})/((1−γ²)T)) + γHh√(H/(1+γ))
    **f_eva = γH²/T + x(B + γHD̃) + γH²L/(3TM).**

**δ.** As with Hoeffding each oracle has δ/2. Half of it goes to the sums, 2·SA·n events: L = log(8·SA·n/δ). Half goes to
step 2 (ε_t and e_t, both signs: 4·SA·T·n events, L' = log(16·SA·T·n/δ)) or step 4 (2·S·T·n events, L' = log(8·SA·T·n/δ)).
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from saddleback.problem.spaces import Array

_TINY = 1e-150  # stands for a zero that is divided by (γ = 0: no error whatever M is)


class Coefficients(NamedTuple):
    """a₀, a₁, a₂ and c, arrays of one shape."""

    bias: Array
    slope: Array
    curvature: Array
    widening: Array

    def error(self, samples_per_iteration: float | Array) -> Array:
        """f for a given M."""
        y = 1 / np.sqrt(samples_per_iteration)
        room = 1 - self.widening * y
        f = (self.bias + (self.slope + self.curvature * y) * y) / np.where(room > 0, room, 1.0)
        return np.where(room > 0, f, np.inf)

    def samples(self, error: Array) -> Array:
        """The least M with f ≤ ``error``, a whole number; infinite where no M is enough."""
        rest = error - self.bias
        room = np.maximum(rest, 0.0)
        p = self.slope + self.widening * error
        y = 2 * room / np.maximum(p + np.sqrt(p * p + 4 * self.curvature * room), _TINY)
        y = np.clip(y, _TINY, 1.0)  # M ≥ 1
        return np.where(rest > 0, np.ceil(1 / (y * y)), np.inf)


def log_ratio(*counts: float, delta: float) -> float:
    """log(∏counts/δ), also where the product exceeds the floating-point range."""
    return sum(map(math.log, counts)) - math.log(delta)


def linear_solver(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, lebesgue: float, coreset_size: int, delta: float
) -> Coefficients:
    """LS-MDVI."""
    H, Gamma, L2 = 1 / (1 - gamma), lebesgue, log_ratio(8, coreset_size, delta=delta) + log_problems
    k = gamma * H * Gamma * np.sqrt((L2 + log_T) / 2)  # L₁ = L₂ + log T
    return _coefficients(gamma * H * H / T, gamma * H * H * Gamma * np.sqrt(2 * L2 / T), 0.0, 2 * k)


def linear_evaluation(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, lebesgue: float, coreset_size: int, delta: float
) -> Coefficients:
    """LS-PE."""
    H, Gamma, L2 = 1 / (1 - gamma), lebesgue, log_ratio(8, coreset_size, delta=delta) + log_problems
    k = gamma * H * Gamma * np.sqrt((L2 + log_T) / 2)
    return _coefficients(gamma * H * H / T, gamma * H * H * (Gamma * np.sqrt(L2 / (2 * T)) - k / T), 0.0, 2 * k)


def hoeffding_solver(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-MDVI."""
    H, L = 1 / (1 - gamma), log_ratio(4, num_pairs, delta=delta) + log_problems
    return _coefficients(gamma * H * H / T, gamma * H * H * np.sqrt(2 * L / T), 0.0, 0.0)


def hoeffding_evaluation(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-PE."""
    H, L = 1 / (1 - gamma), log_ratio(4, num_pairs, delta=delta) + log_problems
    return _coefficients(gamma * H * H / T, gamma * H * H * np.sqrt(L / (2 * T)), 0.0, 0.0)


def _coefficients(bias: Array, slope: Array, curvature: float | Array, widening: float | Array) -> Coefficients:
    return Coefficients(*np.broadcast_arrays(bias, slope, curvature, widening))


def bernstein_solver(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-MDVI."""
    H = 1 / (1 - gamma)
    L = log_ratio(8, num_pairs, delta=delta) + log_problems
    L_tube = log_ratio(16, num_pairs, delta=delta) + log_problems + log_T  # L'
    x = np.sqrt(2 * L / T)  # x/y
    drift = rms_drift(gamma, T) / 2
    noise = gamma * H * H * np.sqrt(L_tube / 2) * (1 + np.sqrt((1 + log_T) / T))  # D̃ = drift + noise·y
    slope = 2 * x * (total_deviation(gamma) + gamma * H * drift)
    curvature = 2 * x * gamma * H * noise + 2 * gamma * H * H * L / (3 * T)
    return Coefficients(*np.broadcast_arrays(gamma * H * H / T, slope, curvature, gamma * H * x / 2))


def bernstein_evaluation(
    T: Array, log_T: Array, log_problems: Array, *, gamma: float, num_pairs: int, delta: float
) -> Coefficients:
    """Tabular-PE."""
    H = 1 / (1 - gamma)
    L = log_ratio(8, num_pairs, delta=delta) + log_problems
    L_tube = L + log_T  # L'
    x = np.sqrt(2 * L / T)
    drift = H / 2 * np.sqrt((1 - gamma ** (2 * T)) / ((1 - gamma**2) * T))
    noise = gamma * H * math.sqrt(H / (1 + gamma)) * np.sqrt(L_tube / 2)
    slope = x * (total_deviation(gamma) + gamma * H * drift)
    curvature = x * gamma * H * noise + gamma * H * H * L / (3 * T)
    return Coefficients(*np.broadcast_arrays(gamma * H * H / T, slope, curvature, 0.0))


def total_deviation(gamma: float) -> float:
    """B = γ√((1+γ)H³/4)."""
    return gamma * math.sqrt((1 + gamma) / (4 * (1 - gamma) ** 3))


def rms_drift(gamma: float, T: Array) -> Array:
    """An upper limit, close and falling with T, for the root mean square of D_0..D_{T−1}."""
    ends, sums = _drift_sums(gamma)
    return np.sqrt(np.interp(T, ends, sums) / T)


@lru_cache(maxsize=64)
def _drift_sums(gamma: float) -> tuple[Array, Array]:
    """Σ_{t<n} D_t² at some n up to 10¹⁸, to be taken as linear in between.

    S_{t+k} = γ^k S_t + Σ_j γ^{k−j}/(t+j) ≤ γ^k S_t + (1 − γ^k)H/(t+1) lies between S_t and H/(t+1). So a block of k steps is
    taken at once with the larger of the two; k = t/128 keeps the loss small. Each D_t is raised to the largest that
    follows, which matters for the first few alone (S rises once and then falls).
    """
    H = 1 / (1 - gamma)
    S, t = 1.0, 1
    lengths, D = [1, 1, 1], [H, gamma * H, gamma * H]  # D_0, D_1, and D_2 with S_1
    while t < 10**18:
        k = max(1, t // 128)
        fade = gamma**k
        after = fade * S + (1 - fade) * H / (t + 1)
        lengths.append(k)
        D.append(gamma * H * (after if k == 1 else max(S, H / (t + 1))))
        S, t = after, t + k
    falling = np.maximum.accumulate(np.minimum(D, H)[::-1])[::-1]
    steps = np.array(lengths, dtype=np.float64)
    return np.append(0.0, np.cumsum(steps)), np.append(0.0, np.cumsum(steps * falling**2))
