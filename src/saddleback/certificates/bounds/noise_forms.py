"""What noise at the sampled pairs does to values and advantages: linear forms of it, their limits, and what is of second order.

A policy π is fixed, u a known signal, V = V_u^π its value: a fixed function, which nobody knows. With fresh samples (P̂, n_y of pair
y ∈ C) let ξ_y = ((P − P̂)V)(y). Where P is linear in φ, (Pf)(x) = φ(x)ᵀB(Pf)_C; on a table C is all pairs, φ and B are the identity,
and nothing is assumed. Then with E = P̂φ_π, the mean next features,

    N = (I − γBE)⁻¹B,   V̂ = u_π + γφ_πNP̂u_π,      V = V̂ + γφ_πNξ,      A(x) = Â(x) + γ(φ(x) − φ_π(s))ᵀNξ            exactly:

q = B(PV)_C = BP̂V + Bξ and V = u_π + γφ_πq give q = Bξ + BP̂u_π + γBEq. So every error is a form Σ_y c_y ξ_y with known coefficients.

**First order.** ξ does not change where a constant is added to V, so let V be centred: its mean over all states is 0. For coefficients c,
means m_y and a slope g that were fixed before the samples, D_y ≥ max_s|V(s) − m_y| and κ_y = g D_y|c_y|/n_y < 1,

    Σ_y c_yξ_y ≤ L/g + g Σ_y ψ(κ_y)(c_y²/n_y) P̂_y(V − m_y)²,      ψ(κ) = (−log(1−κ) − κ)/κ² → ½,

with probability 1 − e^{−L}: exp(z − ψ(κ)z²) ≤ 1 + z for z ≥ −κ, so z = (g c_y/n_y)(m_y − V(s')) has E exp(z − ψz²) ≤ exp((g c_y/n_y)(m_y − (PV)(y))),
and the product over all samples, divided by these bounds, has mean at most one. At the best g this is √(2L·variance): variances add, not
widths.

**Second order.** The coefficients ĉ of the identity come from the same samples; c̄ from earlier ones are fixed. The difference is limited
by boxes, |Σ_y (ĉ_y − c̄_y)ξ_y| ≤ Σ_y |ĉ_y − c̄_y| β_y with |ξ_y| ≤ β_y. And √P̂_y(V − m_y)² ≤ √P̂_y(V̂ − m_y)² + √P̂_y r², where r(s) ≥ |(V − V̂)(s)|, both
centred. Boxes are forms with one coefficient, and (V − V̂)(s) is a form too. So

    β_y  = limit of |ξ_y|                       from r
    r(s) = limit of |c̄_sᵀξ| + |ĉ_s − c̄_s|ᵀβ       from r, β,        c_s = γ(φ_π(s) − mean φ_π)ᵀN

are iterated from what is known without samples, span(V) ≤ R = H·(max u_π − min u_π); every iterate is valid in the same events, so the smallest
counts. A slope that suits the last iterate is too steep for the first: each of these forms has a few slopes, which share its level.

**Misfit.** Where P may be off linear, what that adds to V and A is added to their limits (:mod:`.bias`); span(V) is at most R and span(V̂) + 2 max r.

**Spans.** D_y = R + |m_y| is certain, and large. So the limits [l, h] of V are guessed beforehand, and once r shows them to hold, forms for
D_y = max(h − m_y, m_y − l) count too: if the guess is wrong, it is only in the events of the first forms' failure that it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from saddleback.certificates.bounds.bias import Bias
from saddleback.errors import NumericalError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, counted

SLOPES = 4
"""Of a form whose variance is found step by step, each an eighth of the one before."""

_FLATTER = 8.0
_STEEPEST = 0.9  # κ
_CAUTION = 1.3  # of a variance: what is of second order adds to it
_ITERATIONS = 20


@dataclass(frozen=True)
class Space:
    """φ of all pairs ``(SA, d)``, the operator B ``(d, c)``, γ and the start distribution ``(S,)``.

    ``misfit`` is how far P may be from linear in φ, in total variation.
    """

    phi: Array
    operator: Array
    gamma: float
    start: Array
    table: bool = False
    misfit: float = 0.0

    @staticmethod
    def of(problem: CMDP, buffer: Buffer) -> Space:
        """Of a finite problem; on a table φ and B are the identity."""
        S, A = problem.num_states, problem.num_actions
        assert S is not None
        start, B = np.zeros(S), buffer.design.operator
        np.add.at(start, problem.start.states, problem.start.weights)
        if B is None:
            return Space(np.eye(S * A), np.eye(S * A), problem.gamma, start, table=True)
        return Space(problem.required_features().all(np.arange(S)).reshape(S * A, -1), B, problem.gamma, start)

    @cached_property
    def carried(self) -> Array:
        """φᵀB ``(SA, c)``: what the means at the sampled pairs say of every pair."""
        return self.phi @ self.operator

    @cached_property
    def off(self) -> Array | None:
        """By how much Pf may differ from what is carried, for each unit of span(f) ``(SA,)``; None where P is linear."""
        return None if self.misfit == 0 else np.asarray(self.misfit * (1 + np.abs(self.carried).sum(axis=1)))

    def bent(self, misfit: float) -> Space:
        """The same, where P may be so far from linear."""
        return replace(self, misfit=misfit)

    def carry(self, means: Array) -> Array:
        """Pf at every pair ``(SA,)`` from its means at the sampled ones ``(c,)``."""
        return means if self.table else self.carried @ means


class Sampled(NamedTuple):
    """Frequencies of next states ``(c, S)`` and the numbers of samples ``(c,)``."""

    P: Array
    counts: Array

    @staticmethod
    def of(buffer: Buffer, num_states: int) -> Sampled:
        """All samples of a buffer of a finite problem."""
        P = np.zeros((buffer.design.size, num_states))
        P[:, np.asarray(buffer.support)] = counted(buffer).empirical_model().toarray()
        return Sampled(P, buffer.counts.astype(np.float64))

    def squares(self, V: Array, means: Array) -> Array:
        """P̂_y(V − m_y)² ``(c,)`` of a function ``(S,)``."""
        return np.asarray(np.maximum(self.P @ V**2 - 2 * means * (self.P @ V) + means**2, 0.0))

    def cautious(self, V: Array) -> Array:
        """The variance of each pair's samples, as a guess: a pair whose samples agree gets half a dissenting one."""
        return self.squares(V, self.P @ V) + 0.5 * float(np.ptp(V)) ** 2 / self.counts


class Chain:
    """One policy ``(S, A)`` on one set of samples: its values, and the coefficients of their errors."""

    def __init__(self, space: Space, samples: Sampled, policy: Array):
        S, A = policy.shape
        self.space, self.samples, self.policy = space, samples, policy
        self._own = (policy == 1).ravel()  # pairs whose advantage is 0
        B, P, gamma = space.operator, samples.P, space.gamma
        try:
            if space.table:  # by way of the states, of which there are fewer
                self.phi = np.zeros((S, S * A))
                self.phi[np.repeat(np.arange(S), A), np.arange(S * A)] = policy.ravel()
                self._there = np.asarray(np.linalg.solve(np.eye(S) - gamma * (self.phi @ P), self.phi))
                self.N = np.asarray(np.eye(S * A) + gamma * (P @ self._there))
            else:
                self.phi = np.einsum("sa,sad->sd", policy, space.phi.reshape(S, A, -1))  # φ_π
                self.N = np.asarray(np.linalg.solve(np.eye(len(B)) - gamma * (B @ (P @ self.phi)), B))
                self._there = self.phi @ self.N
        except np.linalg.LinAlgError:
            raise NumericalError("the fixed point of a policy is singular on these samples; draw more.") from None

    def values(self, signal: Array) -> tuple[Array, Array]:
        """V̂ ``(S,)`` and Q̂ ``(SA,)`` of a signal ``(SA,)``."""
        at_policy = mean_over_actions(self.policy, signal)
        means = self.samples.P @ at_policy
        V = at_policy + self.space.gamma * (self._there @ means)
        Q = signal + self.space.gamma * self.space.carry(self.samples.P @ V)
        return V, np.where(self._own, np.repeat(V, self.policy.shape[1]), Q)

    @cached_property
    def state_rows(self) -> Array:
        """Coefficients of (V − V̂)(s) − k, ``(S, c)``."""
        return self.space.gamma * (self._there - self._there.mean(axis=0))

    @cached_property
    def start_row(self) -> Array:
        """Coefficients of (V − V̂)(ρ), ``(c,)``."""
        return self.space.gamma * (self.space.start @ self._there)

    @cached_property
    def advantage_rows(self) -> Array:
        """Coefficients of A − Â, ``(SA, c)``."""
        here = self.N if self.space.table else self.space.phi @ self.N
        rows = self.space.gamma * (here - np.repeat(self._there, self.policy.shape[1], axis=0))
        rows[self._own] = 0.0
        return np.asarray(rows)


class Form:
    """Forms with coefficients c ``(k, c)`` that were fixed before the samples, their slopes, and the limits they have at level L.

    ``reach`` is D ``(c,)``, and ``expected`` ``(c,)`` is what P̂_y(V − m_y)² is taken to be.
    """

    def __init__(self, rows: Array, counts: Array, reach: Array, expected: Array, level: float, number: int = 1):
        ratio = np.abs(rows) * (reach / counts)
        self._largest = ratio.max(axis=1)
        best = _best_slopes(_CAUTION * (rows**2 @ (expected / counts)), self._largest, level)
        self._slopes = best / _FLATTER ** np.arange(number)[:, None]
        self._weights = _psi(self._slopes[:, :, None] * ratio) * (rows**2 / counts)
        self._level = level

    def width(self, squares: Array) -> Array:
        """The least L/g + g Σ_y ψ(κ_y)(c_y²/n_y)·square_y over the slopes ``(k,)``; 0 where nothing can vary."""
        widths = self._level / self._slopes + self._slopes * (self._weights @ squares)
        return np.where(self._largest > 0, widths.min(axis=0), 0.0)


class Boxes:
    """The forms ξ_y themselves, one coefficient each."""

    def __init__(self, counts: Array, reach: Array, expected: Array, level: float, number: int):
        ratio = reach / counts
        self._slopes = _best_slopes(_CAUTION * expected / counts, ratio, level) / _FLATTER ** np.arange(number)[:, None]
        self._fixed, self._rising = level / self._slopes, _psi(self._slopes * ratio) * self._slopes / counts
        self._varies = ratio > 0

    def width(self, squares: Array) -> Array:
        """The same as for :class:`Form` ``(c,)``."""
        return np.where(self._varies, (self._fixed + self._rising * squares).min(axis=0), 0.0)


class Levels(NamedTuple):
    """log(1/probability) of one box and of one state's form."""

    box: float
    state: float


@dataclass(frozen=True)
class Frozen:
    """A policy and a signal with what earlier samples make of them: V̄, centred, and R; and a guess (l, h) of the limits of V."""

    chain: Chain
    signal: Array
    value: Array
    certain: float
    limits: tuple[float, float]

    @staticmethod
    def of(chain: Chain, signal: Array, horizon: float, limits: Array) -> Frozen:
        """``limits`` may be infinite: then R is all that is used."""
        certain = horizon * float(np.ptp(mean_over_actions(chain.policy, signal)))
        low, high = limits.tolist()
        return Frozen(chain, signal, centred(chain.values(signal)[0]), certain, (low, high))

    @cached_property
    def means(self) -> Array:
        """m ``(c,)``."""
        return self.chain.samples.P @ self.value

    @cached_property
    def expected(self) -> Array:
        """P̄_y(V̄ − m_y)², and half a dissenting sample where all agree ``(c,)``."""
        return self.chain.samples.cautious(self.value)

    @property
    def widest(self) -> Array:
        """D that is certain ``(c,)``."""
        return np.where(self.certain > 0, self.certain + np.abs(self.means), 0.0)

    @property
    def reach(self) -> Array:
        """D of the guess, where it is less ``(c,)``."""
        low, high = self.limits
        return np.minimum(np.maximum(high - self.means, self.means - low), self.widest)


class Found(NamedTuple):
    """Of V, from fresh samples: their chain, V̂ (centred), its start value and Q̂ − V̂, β ``(c,)``, √P̂r² ``(c,)``, max r, a limit of span(V), and its bias.

    ``first_off`` is max r before the guess was used, and ``confirmed`` whether that shows it.
    """

    chain: Chain
    value: Array
    at_start: float
    advantages: Array
    box: Array
    shift: Array
    off: float
    span: float
    bias: Bias
    first_off: float
    confirmed: bool

    def squares(self, means: Array) -> Array:
        """A limit of P̂_y(V − m_y)² ``(c,)``."""
        return np.asarray((np.sqrt(self.chain.samples.squares(self.value, means)) + self.shift) ** 2)


def find(frozen: Frozen, chain: Chain, levels: Levels) -> Found:
    """The iteration of the module's first lines; ``chain`` is the same policy on the fresh samples."""
    before, fresh, R = frozen.chain, chain.samples, frozen.certain
    n, (V, Q) = fresh.counts, chain.values(frozen.signal)
    advantages, at_start, V = Q - np.repeat(V, chain.policy.shape[1]), float(chain.space.start @ V), centred(V)
    rows = before.state_rows
    moved, own = np.abs(chain.state_rows - rows), np.sqrt(fresh.squares(V, frozen.means))
    box, off, spread = np.full(len(n), R), np.full(len(V), R + float(np.ptp(V))), float(np.ptp(V))
    first_off, confirmed, of = 0.0, False, Bias(chain.space.gamma, chain.space.off, chain.policy, fresh.P)
    bias = of.of_states(chain.state_rows)
    for reach in (frozen.widest, frozen.reach):
        boxes = Boxes(n, reach, frozen.expected, levels.box, SLOPES)
        states = Form(rows, n, reach, frozen.expected, levels.state, SLOPES)
        for _ in range(_ITERATIONS):
            shift = np.sqrt(fresh.P @ off**2)
            squares = (own + shift) ** 2
            box = np.minimum(box, boxes.width(squares))
            span = min(R, spread + 2 * float(off.max()))
            off = np.minimum(off, states.width(squares) + moved @ box + span * bias)
        first_off = first_off or float(off.max())
        confirmed = confirmed or _within(V, first_off, frozen)
        if not confirmed:  # nothing may rest on the guess
            break
    span = min(R, spread + 2 * float(off.max()))
    return Found(chain, V, at_start, advantages, box, shift, float(off.max()), span, of, first_off, confirmed)


def _within(V: Array, off: float, frozen: Frozen) -> bool:
    """Whether the value lies within what was guessed, or the guess is no better than what is certain."""
    low, high = frozen.limits
    shown = float(V.max()) + off <= high and float(V.min()) - off >= low
    return shown or bool(np.all(frozen.reach >= frozen.widest))


def _best_slopes(variance: Array, largest: Array, level: float) -> Array:
    """The g of the least L/g + ψ(κ)·g·variance among some: √(2L/variance) and smaller ones, where that would make κ large."""
    steepest = np.sqrt(2 * level / np.maximum(variance, 1e-300))
    tried = np.minimum(steepest, _STEEPEST / np.maximum(largest, 1e-300)) * 0.85 ** np.arange(16)[:, None]
    widths = level / tried + _psi(tried * largest) * tried * variance
    return np.asarray(np.take_along_axis(tried, widths.argmin(axis=0)[None], axis=0)[0])


def _psi(kappa: Array) -> Array:
    """(−log(1−κ) − κ)/κ² for κ < 1, by its series ½ + κ/3 + …, rounded up, where that would cancel."""
    small = kappa < 1e-4
    k = np.where(small, 0.5, kappa)
    return np.where(small, 0.5 + kappa / 2, (-np.log1p(-k) - k) / k**2)


def centred(V: Array) -> Array:
    """V less its mean over all states."""
    return np.asarray(V - V.mean())


def mean_over_actions(policy: Array, signal: Array) -> Array:
    """Σ_a π(a|s) u(s, a), ``(S,)``."""
    return np.asarray((policy * signal.reshape(policy.shape)).sum(axis=1))
