"""How far P may be from linear before a statement that assumes it is off by as much as its own margin.

The *misfit* of P to the features is ε = inf_μ sup_x TV(P(·|x), φ(x)ᵀμ), TV = ½‖·‖₁, over signed measures μ; signals that are only observed belong
to the law of the next state. It is at most 1: P⁰(·) for one distribution P⁰ is linear, since the constant is (tested exactly). Where a coreset C spans
the features, φᵀBΦ_C = φᵀ and φᵀB1 = 1. Let m be the middle of the range of f. At every pair P(f − m) = φᵀμ(f − m) + e with |e| ≤ ε·span(f), so

    |(Pf)(x) − φ(x)ᵀB(Pf)_C| = |e(x) − φ(x)ᵀBe_C| ≤ ε·span(f)·(1 + λ(x)),        λ(x) = Σ_y|φ(x)ᵀB_y| ≤ Λ.                              (1)

No probability is in it: every statement that was made of φᵀB(Pf)_C holds, at the same confidence, once (1) is added wherever it was used.

    coreset bound      V(ρ) + H·max_x[□ + γPV − V]  rises by  H(γ·span(V) + Σ of observed σ_j)(1 + Λ)·ε                  :mod:`.bounds.linear`
    advantages         V, A and PḠ are off by multiples of span(V) and span(Ḡ), through the same matrices                :mod:`.bounds.bias`
    values             each rollout's sum is off by at most  γ·span(V̂_k)·Σ_t w_t(1 + λ(s_t, a_t))·ε                     :mod:`.values.linear`

A statement *withstands* the largest ε up to which it still holds with its margin doubled, at the same confidence:

    interval of a value        [low − h, high + h],  h half of its width
    upper bound on the best    what it leaves above the lower limit of this policy's reward, which assumes nothing, twice
    gap                        twice the gap
    no policy is feasible      the bound on the room of all policies is still negative

What was stated may then be wrong by no more than what it says itself. ε is looked for among 1, 0.8, 0.63, 0.5, 0.4, 0.32, 0.25, 0.2, 0.16, 0.125, a tenth of these,
and so on down to 10⁻⁶; it is 0 where none of them will do.

**What the test would have seen.** At a pair p of :mod:`.held_out`, D(p, f) has the mean Δ = (Pf)(p) − φ(p)ᵀB(Pf)_C. A misfit ε at p alone that one of the
tested functions sees the whole of gives |Δ| = ε. Means of [0, 1]-valued samples have variances of at most ¼, so with a_p = Σ_y A_py²

    |Δ| ≥ t(a_p/(4(n − 1)), β_p, L) + √(a_p ln(1/(1 − power))/2n)

is refuted with the stated power at least (Hoeffding): the limit t grows with the variance that was found. The largest over the pairs is ``detectable``:
smaller ones may be seen, and those confined to pairs that were not drawn are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from saddleback.certificates.values.intervals import deviation_limit
from saddleback.problem.spaces import Array

GRID = tuple(float(f"{x}e-{k}") for k in range(7) for x in (1, 0.8, 0.63, 0.5, 0.4, 0.32, 0.25, 0.2, 0.16, 0.125))[:61]
"""Of ε, downwards."""

POWER = 0.9
"""Of the held-out test at what it is said to detect."""


def withstood(holds: Callable[[float], bool]) -> float:
    """The largest ε of the grid at which a statement holds that holds at all smaller ones; 0 where there is none."""
    low, high = 0, len(GRID)  # the first that holds, or beyond the grid
    while low < high:
        i = (low + high) // 2
        low, high = (low, i) if holds(GRID[i]) else (i + 1, high)
    return GRID[low] if low < len(GRID) else 0.0


def detectable(A: Array, number: int, log_term: float) -> float:
    """The least ε that the test one by one is sure to see, see the first lines; ``A`` ``(k, Y)``, ``number`` samples a pair."""
    a, beta = (A**2).sum(axis=1), np.abs(A).max(axis=1) / (number - 1)
    seen = deviation_limit(a / (4 * (number - 1)), beta, log_term)
    return min(1.0, float((seen + np.sqrt(a * math.log(1 / (1 - POWER)) / (2 * number))).max()))
