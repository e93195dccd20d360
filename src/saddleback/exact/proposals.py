"""§2, which multiplier of one constraint to price next: the master's is right in the end, but rarely the quickest way there.

D(λ) is convex with slope g(λ) = V_c(π_λ) − b, and on a large table nearly smooth. The master's λ is where two tangents
meet: half-way, if D is a parabola. The zero of g is found faster by interpolation. The frontier of (V_c, V_r) runs from
slope 0 to slope ∞; were it a quarter of an ellipse with half-axes X and Y, then g would be linear in

    s = κλ/√(1 + κ²λ²) ∈ [0, 1],    κ = X/Y,     X, Y = by how much c alone and r alone differ in V_c and in V_r

so s as a polynomial of g through the points nearest to g = 0 is the next guess, if it lies between them.
"""

from __future__ import annotations

import numpy as np

from saddleback.spaces import Array

_POINTS = 4  # a cubic


def interpolate(asked: Array, values: Array, threshold: float) -> float | None:
    """The λ at which V_c should reach ``threshold``, or None where that is not bracketed.

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
    guess = _at_zero(g[order], s[order])
    if not low < guess < high:
        ends = [np.flatnonzero((s == low) & (g < 0))[0], np.flatnonzero((s == high) & (g >= 0))[0]]
        guess = _at_zero(g[ends], s[ends])
    return float(Y / X * guess / np.sqrt(1.0 - guess**2)) if low < guess < high else None


def _at_zero(g: Array, s: Array) -> float:
    """Lagrange's polynomial s(g) at g = 0, through the first points with distinct g."""
    first = np.sort(np.unique(g, return_index=True)[1])[:_POINTS]
    g, s = g[first], s[first]
    factors = np.divide(-g, g[:, None] - g, where=~np.eye(len(g), dtype=bool), out=np.ones((len(g), len(g))))
    return float(s @ factors.prod(axis=1))
