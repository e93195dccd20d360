"""§2, column generation on a known table: the loop between a master problem and policy iteration.

    repeat   (w, Z, q) = best mixture of the policies seen, its value and its prices             master
             π         = best policy for the reward qᵀ(r, c) on the true P                       price
             D(q)      = an upper limit of max_π V_□q^π(ρ) − q_cᵀb, which no mixture's value exceeds
    until    min_q D(q) − Z ≤ tolerance

Every number that enters is proved: columns stand in the master with lower limits of their values, and D(q) comes from one
pass of the Bellman operator over the whole table (:mod:`saddleback.exact.bellman`), so the gap is certified however the
values were obtained, rounding included. Early policies need not be good; what is left to gain decides how good.

Prices need not be the master's either. With one constraint they are interpolated; with several, half-way to the best so far
is steadier than the master's, which jump about. A step that did not halve the gap is followed by one with the master's own
prices, so the loop ends as it does without any of this.

**One constraint.** D(λ) is convex with slope g(λ) = V_c(π_λ) − b, and on a large table nearly smooth. The master's λ is
where two tangents meet: half-way, if D is a parabola. The zero of g is found faster by interpolation. The frontier of
(V_c, V_r) runs from slope 0 to slope ∞; were it a quarter of an ellipse with half-axes X and Y, then g would be linear in

    s = κλ/√(1 + κ²λ²) ∈ [0, 1],    κ = X/Y,     X, Y = by how much c alone and r alone differ in V_c and in V_r

so s as a polynomial of g through the points nearest to g = 0 is the next guess, if it lies between them. A policy close to
the zero is worth little without one on its other side to mix it with: two that are Δλ apart, one of them with slope g, leave
a gap of about |g|Δλ/2. So the guess is moved on, past the zero, by what the tolerance allows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from saddleback.errors import NumericalError
from saddleback.exact.bellman import Choice, Limits, Model
from saddleback.exact.master import Master
from saddleback.exact.policy_iteration import ROUNDING, anywhere, price
from saddleback.problem.spaces import Array

_TARGET = 0.3  # of the tolerance: how near the best a policy is priced at the end
_SHARE = 0.1  # of what can be gained on the columns known: what a policy may leave before that, and less than that
_NEAR = 1e4  # from so many tolerances on, where the least upper limit is about to decide
_MOST_COLUMNS = 2000
_POINTS = 4  # of an interpolation: a cubic


class Column(NamedTuple):
    """A policy, the prices ``(1+m,)`` it was found for, and proved limits of its values ``(1+m,)``, in the paper's units."""

    actions: Choice
    asked: Array
    limits: Limits

    @property
    def values(self) -> Array:
        """The middle of the limits."""
        return np.asarray((self.limits.low + self.limits.high) / 2)


class Certified(NamedTuple):
    """The master's last word, the least upper limit of its optimum, and the prices ``(1+m,)`` that proved it."""

    master: Master
    bound: float
    prices: Array

    @property
    def gap(self) -> float:
        """Upper limit − value."""
        return max(self.bound - self.master.value, 0.0)


class Columns:
    """The policies seen, and the place from which the next pricing starts."""

    def __init__(self, model: Model):
        self.model = model
        self.seen: list[Column] = []
        self._place = anywhere(model)
        self._short = np.min_scalar_type(model.num_actions - 1)  # actions fit in one byte, usually

    @property
    def low(self) -> Array:
        """Lower limits of all values, ``(n, 1+m)``."""
        return np.array([column.limits.low for column in self.seen])

    @property
    def latest(self) -> Choice:
        """The policy priced last."""
        return self._place.actions

    def ask(self, q: Array, tolerance: float, share: float = 0.0) -> float:
        """An upper limit of max_π V_□q^π(ρ); adds a column, unless those seen leave less than the tolerance to gain."""
        incumbent = float((self.low @ q).max()) if self.seen else -np.inf
        bound, self._place, found = price(self.model, q, self._place, _TARGET * tolerance, incumbent, share)
        if found is not None:
            k = len(q)
            limits = Limits(found.limits.low[:k], found.limits.high[:k])
            self.seen.append(Column(self._place.actions.astype(self._short), q, limits))
        return bound

    def generate(
        self,
        master: Callable[[Array], Master],
        thresholds: Array,
        bound: float,
        prices: Array,
        tolerance: float,
        strict: bool = True,
    ) -> Certified:
        """The loop above from the upper limit ``bound`` that ``prices`` gave; ``master`` takes lower limits ``(n, 1+m)``.

        Not ``strict``, it returns what it has where rounding keeps it from the tolerance.
        """
        noise = 2 * ROUNDING * self.model.discount.horizon**2  # a unit of price
        last, stuck, detour = np.inf, False, False
        while True:
            best = Certified(master(self.low), bound, prices)
            own = best.master.prices
            totals = sorted([float(own.sum()), float(prices.sum())])
            enough = max(tolerance, noise * totals[0])
            if best.gap <= enough or (stuck and (best.gap <= noise * totals[1] or not strict)):
                return best
            if stuck or len(self.seen) >= _MOST_COLUMNS:
                raise NumericalError(
                    f"column generation proved a gap of {best.gap:.3g} with {len(self.seen)} policies, more than "
                    f"{enough:.3g}, in spans of the signals; ask for a larger tolerance, or try the linear program."
                )
            q = own if detour and best.gap > 0.5 * last else self._elsewhere(own, prices, thresholds, tolerance)
            last, known, detour = best.gap, float((self.low @ q).max()), q is not own
            share = _SHARE * min(1.0, best.gap / (_NEAR * tolerance))
            upper = self.ask(q, tolerance, share) - float(q[1:] @ thresholds)
            if upper < bound:
                bound, prices = upper, q
            stuck = not detour and float((self.low @ q).max()) <= known  # rounding leaves nothing to find

    def _elsewhere(self, own: Array, best: Array, thresholds: Array, tolerance: float) -> Array:
        """Prices that should get further than the master's ``own``."""
        if len(thresholds) > 1:
            return np.asarray((own + best) / 2)
        asked, values = np.array([c.asked for c in self.seen]), np.array([c.values for c in self.seen])
        lam = interpolate(asked, values, float(thresholds[0]), tolerance) if own[0] else None
        return own if lam is None else np.array([1.0, lam])


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
