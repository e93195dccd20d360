"""The gap of a frozen mixture, proved from differences: what each action is better or worse than a frozen policy's own.

Frozen are the mixture (members l of weight w_l), σ, and one deterministic policy π to compare with, which earlier samples take for the best
at σ. With V = V_□^π, its advantages A(x) = □(x) + γ(PV)(x) − V(s), and G = V*_□ − V ≥ 0, weak duality gives, in utilities,

    σ_0·(max{V_r : V_c ≥ b} − V_r(mix))  ≤  [V − σ_0 V_r(mix)](ρ) + G(ρ) − σ_cᵀb.                                              (1)

*Pairing.* V ≈ V_□(mix), so the bracket is about σ_cᵀV_c(mix): the noise of V_r cancels. It is *one* form of noise over all its policies p with
signals u_p (□ − σ_0w_π r for π, −σ_0w_l r for the other members) and coefficients c_p of V_p(ρ),

    Σ_p V_p(ρ) = Σ_p V̂_p(ρ) + Σ_y ((P − P̂)F_y)(y),      F_y = Σ_p c_py V_p,      V_p = V_{u_p}^p,

so that :mod:`.noise_forms` applies with the squares of F_y.

*Advantages.* A(x) ≤ a⁺(x) := Â + form + second order. An optimal policy π* is one fixed policy, so the event is needed at its S pairs alone,
whichever they are: log(S/δ), not log(SA/δ).

*G.* V* = □ + γPV* at x = (s, π*(s)), so G(s) = A(x) + γ(PG)(x) ≤ a⁺(x) + γ(PG)(x). Where every a⁺ ≤ 0 all other actions are eliminated, and G = 0.

    table      U_x(G) = max{:class:`.Bets` at a frozen stake g, max G − 1/g} ≥ (PG)(x) needs no limit of G: if (PG)(x) < max G − 1/g the second
               part holds for certain, else all factors are positive. U is monotone and U(G + k) = U(G) + k, the event is about the fixed G,
               so G ≤ T G := min{H, max_a[a⁺ + γU(G)]₊}, and G ≤ F + H·max[T F − F]₊ for every F ≥ 0, also one from the same samples.
    features   φᵀB has weights of both signs, so T is not monotone. For a frozen Ḡ ≥ 0 with U ≥ PḠ at those x, a form with known squares,
               G ≤ Ḡ + H·max[a⁺ + γU − Ḡ]₊. Several Ḡ are frozen.

The bound on max_π V_□^π(ρ) is V(ρ) + G(ρ), V(ρ) by a form of its own.

Where P may be off linear by ``space.misfit``, what that adds to V, to A and to PḠ is added to their limits, without any probability.

Coefficients, means, slopes, stakes, guesses and Ḡ come from earlier samples; V, V_p, G and π* are fixed. δ is divided once, in :class:`Shares`.
Signals with a price must be known: one that is only observed has noise beside that of V, and the method does not apply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse

from saddleback.certificates.bounds.noise_forms import (
    SLOPES,
    Chain,
    Form,
    Found,
    Frozen,
    Levels,
    Sampled,
    Space,
    find,
)
from saddleback.certificates.values.intervals import Bets, stakes
from saddleback.problem.spaces import Array

_ROUNDING = 1e-9  # of H
_ROUNDS, _SWEEPS, _NEAR = 10, 5_000, 1e-3
_LEAST_GAIN = 1e-4  # of H, for stakes


class Shares(NamedTuple):
    """log(1/probability) of a single event of each family; their δ's add up to δ."""

    second: Levels
    advantage: float
    gain: float
    value: float
    paired: float

    @staticmethod
    def of(delta: float, states: int, pairs: int, functions: int, gains: int) -> Shares:
        """``functions`` have boxes at ``pairs`` and a form in every state; there are so many Ḡ."""
        many = 2 * 2 * SLOPES * functions  # two sides, limits that are certain or guessed
        return Shares(
            Levels(math.log(many * pairs / (0.04 * delta)), math.log(many * states / (0.06 * delta))),
            advantage=math.log(states / (0.50 * delta)),
            gain=math.log(states * gains / (0.05 * delta)),
            value=math.log(1 / (0.10 * delta)),
            paired=math.log(1 / (0.25 * delta)),
        )


@dataclass(frozen=True)
class Compared:
    """What is frozen: earlier samples, the policies ``(p, S, A)`` and their weights in the mixture ``(p,)``, and Ḡ ``(z, S)``.

    The first policy is the one that is compared with. ``limits`` ``(functions, 2)`` are guesses of what the values of
    :func:`functions_of` lie between, and ``reach`` ``(c,)`` of what F_y − m_y reaches: fresh samples must confirm them, or nothing is proved.
    """

    earlier: Sampled
    policies: Array
    weights: Array
    gains: Array
    limits: Array
    reach: Array


class Proved(NamedTuple):
    """max_π V_□^π(ρ) ≤ ``value``, V*_□(ρ) − σ_0V_r(mix)(ρ) ≤ ``paired``; the function behind G ``(S,)``, a⁺ − Â ``(SA,)``, limits and reach as they were shown."""

    value: float
    paired: float
    gain: Array
    widths: Array
    limits: Array
    reach: Array


def prove_gap(space: Space, frozen: Compared, fresh: Sampled, signals: Array, sigma: Array, delta: float) -> Proved:
    """Everything of the module's first lines, from ``signals`` ``(SA, 1+m)`` in utilities."""
    box, (Z, S), H = signals @ sigma, frozen.gains.shape, 1 / (1 - space.gamma)
    before = [Chain(space, frozen.earlier, policy) for policy in frozen.policies]
    after = [Chain(space, fresh, policy) for policy in frozen.policies]
    wanted = functions_of(frozen.weights, box, sigma[0] * signals[:, 0])
    shares = Shares.of(delta, S, len(fresh.counts), len(wanted), Z)
    guesses = [Frozen.of(before[p], u, H, limits) for (p, u), limits in zip(wanted, frozen.limits, strict=True)]
    found = [find(guess, after[p], shares.second) for guess, (p, _) in zip(guesses, wanted, strict=True)]
    widths = _advantage_widths(guesses[0], found[0], shares.advantage)
    G, F = _gain(space, frozen.earlier, fresh, found[0].advantages + widths, frozen.gains, shares.gain)
    alone, whole = _Sum.of(guesses[:1], found[:1]), _Sum.of(guesses[1:], found[1:])
    told = F, widths, np.array([(x.value.min() - x.first_off, x.value.max() + x.first_off) for x in found]), whole.reach
    if not (all(x.confirmed for x in found) and whole.confirms(frozen.reach)):
        return Proved(H, H, *told)
    value, paired = alone.limit(alone.certain, shares.value), whole.limit(frozen.reach, shares.paired)
    return Proved(min(H, value + G + _ROUNDING * H), min(H, paired + G + _ROUNDING * H), *told)


def functions_of(weights: Array, box: Array, reward: Array) -> list[tuple[int, Array]]:
    """Policies and signals whose values are needed: □ of the first, then what (1) adds up over all; ``reward`` is σ_0r."""
    others = [(p, -weights[p] * reward) for p in range(1, len(weights))]
    return [(0, box), (0, box - weights[0] * reward), *others]


def _advantage_widths(guess: Frozen, found: Found, level: float) -> Array:
    """a⁺ − Â ``(SA,)``."""
    rows = guess.chain.advantage_rows
    form = Form(rows, found.chain.samples.counts, guess.reach, guess.expected, level)
    second = np.abs(found.chain.advantage_rows - rows) @ found.box
    second += found.span * found.bias.of_advantages(found.chain.advantage_rows)
    return np.asarray(form.width(found.squares(guess.means)) + second)


class _Sum(NamedTuple):
    """Σ_p V_p(ρ): its estimate, what F_y − m_y reaches as shown and for certain ``(c,)``, and squares as they are and were expected ``(c,)``."""

    estimate: float
    reach: Array
    certain: Array
    squares: Array
    expected: Array
    counts: Array

    @staticmethod
    def of(guesses: Sequence[Frozen], found: Sequence[Found]) -> _Sum:
        """F_y = Σ_p c̄_py V_p with frozen coefficients and centred V_p; that the true ones differ is in the estimate."""
        fresh, earlier = found[0].chain.samples, guesses[0].chain.samples
        rows = np.array([guess.chain.start_row for guess in guesses])  # c̄, (p, c)
        now = np.array([x.chain.start_row for x in found])
        size, box = np.abs(rows), np.array([x.box for x in found])
        bias = sum(x.span * x.bias.at_start(x.chain.space.start, x.chain.start_row) for x in found)
        means = (rows * np.array([guess.means for guess in guesses])).sum(axis=0)[:, None]
        F = rows.T @ np.array([x.value for x in found]) - means  # F̂_y − m_y at every state, (c, S)
        before = rows.T @ np.array([guess.value for guess in guesses]) - means
        shift = (size * np.array([x.shift for x in found])).sum(axis=0)
        dissent = 0.5 * np.ptp(before, axis=1) ** 2 / earlier.counts
        return _Sum(
            sum(x.at_start for x in found) + float((np.abs(now - rows) * box).sum()) + bias,
            np.abs(F).max(axis=1) + np.array([x.off for x in found]) @ size,
            (np.array([guess.reach for guess in guesses]) * size).sum(axis=0),
            (np.sqrt((fresh.P * F**2).sum(axis=1)) + shift) ** 2,
            (earlier.P * before**2).sum(axis=1) + dissent,
            fresh.counts,
        )

    def confirms(self, reach: Array) -> bool:
        """Whether every F_y − m_y stays within that."""
        return bool(np.all((self.reach <= reach) | (self.certain <= reach)))

    def limit(self, reach: Array, level: float) -> float:
        """The upper limit, if every F_y − m_y stays within ``reach``."""
        ones, reach = np.ones((1, len(self.counts))), np.minimum(reach, self.certain)
        return self.estimate + float(Form(ones, self.counts, reach, self.expected, level).width(self.squares)[0])


def _gain(
    space: Space, earlier: Sampled, fresh: Sampled, above: Array, gains: Array, level: float
) -> tuple[float, Array]:
    """The upper limit of G(ρ) from a⁺ and the frozen Ḡ ``(z, S)``, and the function that proves it ``(S,)``."""
    H, A, F = 1 / (1 - space.gamma), len(above) // len(space.start), np.zeros(len(space.start))
    least = H * max(0.0, float(above.max()))
    if least > 0 and space.table:
        found = _gain_on_table(space, earlier, fresh, above, gains[0], level)
        return (least, F) if least < found[0] else found
    for G in gains:
        U = gain_limits(space, earlier, fresh, G, level)
        worst = float((above + space.gamma * U - np.repeat(G, A)).max())
        least, F = min((least, F), (float(space.start @ G) + H * max(0.0, worst), G), key=lambda found: found[0])
    return least, F


def _gain_on_table(
    space: Space, earlier: Sampled, fresh: Sampled, above: Array, guess: Array, level: float
) -> tuple[float, Array]:
    """F(ρ) + H·max[T F − F]₊ for an F near the fixed point of T; stakes suit the frozen Ḡ."""
    gamma, A, H = space.gamma, len(above) // len(space.start), 1 / (1 - space.gamma)
    n = fresh.counts.astype(np.int64)
    g = stakes(np.sqrt(earlier.cautious(guess)), n, level, max(1.2 * float(guess.max()), _LEAST_GAIN * H))
    bets = Bets(scipy.sparse.csr_array(fresh.P), n, g, level)

    def upper(F: Array) -> Array:
        return np.asarray(np.maximum(bets.upper(F), F.max() - 1 / g))

    def best(Q: Array) -> Array:
        return np.clip(Q.reshape(-1, A).max(axis=1), 0.0, H)

    F = np.zeros(len(space.start))
    for _ in range(_ROUNDS):  # what U adds to P̂F is held while F settles, then taken at the new F
        bonus, before = gamma * (upper(F) - fresh.P @ F), F
        for _ in range(_SWEEPS):
            new = best(above + bonus + gamma * (fresh.P @ F))
            change, F = float(np.abs(new - F).max()), new
            if change <= _NEAR * (1 - gamma) * float(F.max()):
                break
        if np.abs(F - before).max() <= _NEAR * float(F.max()):
            break
    return float(space.start @ F) + H * max(0.0, float((best(above + gamma * upper(F)) - F).max())), F


def gain_limits(space: Space, earlier: Sampled, fresh: Sampled, G: Array, level: float) -> Array:
    """U ≥ PḠ at every pair ``(SA,)``, one event each: a form with the coefficients φᵀB of a known function."""
    rows, m = space.carried, earlier.P @ G
    reach = np.maximum(G.max() - m, m - G.min())
    form = Form(rows, fresh.counts, reach, earlier.cautious(G), level)
    limits = np.asarray(space.carry(fresh.P @ G) + form.width(fresh.squares(G, m)))
    return limits if space.off is None else limits + space.off * float(np.ptp(G))
