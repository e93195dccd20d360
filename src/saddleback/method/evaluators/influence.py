"""How uncertain an evaluation is, measured from its own buffer: first-order influence of the samples on V̂(ρ).

The error of a fixed-point evaluation is, to first order and exactly for LSTD,

    V̂(ρ) − V^π(ρ) = Σ_x a_x [◇̂ − ◇ + γ(P̂ − P)V^π](x) + (γ/T) Σ_x a_x (P(V⁰ − V̂^T))(x),      a = φ_ρᵀ (I − γBE)⁻¹ B

where a_x is how much the value at ρ moves with the target at coreset pair x (on a table: the discounted visits of x). The
first term is noise, of the next states and of rewards that are only observed; its variance is at most
Σ a_x² (σ_◇ + γσ_V)²/N_x, read off the samples with V̂ in the place of V^π. The second
is the bias of T averaged iterations that started from V⁰ (LSTD has none); it is estimated by the same weights and taken
out, so the interval is V̂ minus the bias, plus or minus z standard errors, and may not hold V̂ itself. It is an
approximation (central limit theorem, plug-in variances), labelled so wherever it is printed; it assumes that the policy was
not chosen on this buffer.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from saddleback.method.oracles import Interval
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer


def interval_from_influence(
    problem: CMDP,
    buffer: Buffer,
    influence: Array,
    estimate: Array,
    V: Array,
    drift: Array | None,
    confidence: float,
) -> Interval:
    """Limits for the true values; ``V`` is V̂ and ``drift`` V⁰ − V̂^T (None: no bias) on the support, ``(n, 1+m)``."""
    _, variance = buffer.moments(V)
    # A pair whose samples agree by chance gets the variance of half a dissenting sample, as in Laplace's rule.
    span = V.max(axis=0) - V.min(axis=0)
    variance += (0.5 / buffer.counts[:, None]) * span**2
    noise = buffer.signal_noise(problem) + problem.gamma * np.sqrt(variance)
    standard_error = np.sqrt((influence**2 / buffer.counts) @ noise**2)
    bias = np.zeros_like(estimate)
    if drift is not None:
        bias = problem.gamma * (influence @ buffer.average(drift)) / buffer.num_batches
    z = float(ndtri(0.5 + 0.5 * confidence))
    low, high = estimate - bias - z * standard_error, estimate - bias + z * standard_error
    return Interval(np.clip(low, 0.0, problem.horizon), np.clip(high, 0.0, problem.horizon))
