"""§2, which multiplier of one constraint to price next: the master's is right in the end, but rarely the quickest way there.

D(λ) is convex with slope g(λ) = V_c(π_λ) − b, and on a large table nearly smooth. The master's λ is where two tangents
meet: half-way, if D is a parabola. The zero of g is found faster by interpolation. The frontier of (V_c, V_r) runs from
slope 0 to slope ∞; were it a quarter of an ellipse with half-axes X and Y, then g would be linear in

    s = κλ/√(1 + κ²λ²) ∈ [0, 1],    κ = X/Y,     X, Y = by how much c alone and r alone differ in V_c and in V_r

so s as a polynomial of g through the points nearest to g = 0 is the next guess, if it lies between them. A policy close to
the zero is worth little without one on its other side to mix it with: two that are Δλ apart, one of them with slope g, leave
a gap of about |g|Δλ/2. So the guess is moved on, past the zero, by what the tolerance allows.
"""

from __future__ import annotations

import numpy as np

from saddleback.problem.spaces import Array

_POINTS = 4  # a cubic


def interpolate(asked: Array, values: Array, threshold: float, tolerance: float) -> float | None:
    """The λ at which V_c should just have passed ``threshold``, or None where that is not bracketed.

    ``asked`` ``(n, 2)`` are the prices of reward and constraint so far, ``values`` ``(n, 2)`` those of the policies they led
    to; one of the prices must be (1, 0) and one (0, 1).
    """
    free, most = values[asked[:, 1] == 0], values[asked[:, 0] == 0]
    if not (len(free) and len(most)):
        return None
    X, Y = float(most[0, 1] - free[0, 1]), float(free[0, 0] - most[0, 0])
    if not (X > 0 and Y > 0):
        return None
    s = X * asked[:, 1] / np.hypot(Y * asked[:, 0], X * asked[:, 1])
    g = values[:, 1] - threshold
    low, high = s[g < 0].max(initial=-1.0), s[g >= 0].min(initial=2.0)
    if not 0 <= low < high <= 1:
        return None
    order = np.argsort(np.abs(g), kind="stable")
    zero = _at_zero(g[order], s[order])
    if not low < zero < high:
        ends = [np.flatnonzero((s == low) & (g < 0))[0], np.flatnonzero((s == high) & (g >= 0))[0]]
        zero = _at_zero(g[ends], s[ends])
    if not low < zero < high:
        return None
    lam, nearest = Y / X * zero / np.sqrt(1.0 - zero**2), g[order[0]]
    if nearest == 0:
        return float(lam)
    x = X / Y * (lam - tolerance / (2 * nearest))
    beyond = float(x / np.hypot(1.0, x))
    past = beyond if low < beyond < high else (zero + (high if nearest < 0 else low)) / 2
    return float(Y / X * past / np.sqrt(1.0 - past**2)) if past < 1 else float(lam)


def _at_zero(g: Array, s: Array) -> float:
    """Lagrange's polynomial s(g) at g = 0, through the first points with distinct g."""
    first = np.sort(np.unique(g, return_index=True)[1])[:_POINTS]
    g, s = g[first], s[first]
    factors = np.divide(-g, g[:, None] - g, where=~np.eye(len(g), dtype=bool), out=np.ones((len(g), len(g))))
    return float(s @ factors.prod(axis=1))
