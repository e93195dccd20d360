"""What is frozen for :mod:`.advantage` before the fresh samples: the policy to compare with, how many samples of each pair, guesses.

*Policy.* The best deterministic policy at σ on the pooled earlier samples, by policy iteration, or the heaviest member of the mixture: its own
noise then cancels exactly in what is paired. The one that promises less is taken.

*Allocation.* The gap to be expected is J(n) = G(ρ) + √(2L Σ_y f_y²/n_y), where f_y is the spread of what is paired, and G solves
G = max_a[Ā + w + γP̄G]₊ with the widths w_x ≈ √(2L Σ_y c_xy² s_y²/n_y) of the advantages. The numbers are moved towards n_y ∝ −n_y ∂J/∂n_y. Pairs
that are eliminated with room cost nothing; a pair that is starved until it is not is visited, and gets more.

*What to expect.* The proof itself, on samples that are drawn from the earlier model; that is drawn anew first, for it is as far from the truth.
So the second order is in it, and where it does not settle the plan says so, and another bound is used. The same samples, drawn again, show how
wide the advantages are beside their first order, for the allocation, and what limits to guess.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.bounds.advantage import (
    Compared,
    Proved,
    Shares,
    gain_limits,
    prove_gap,
)
from saddleback.certificates.bounds.noise_forms import Chain, Sampled, Space
from saddleback.errors import NumericalError
from saddleback.problem.numerics import PLAN_DIGITS, first_largest, on_grid, rounded
from saddleback.problem.spaces import Array

_STEPS, _DRAFT_STEPS = 16, 6
_FLOOR = 0.15  # share of the samples that follows the design
_CAUTION = 1.25  # widths between an action and its elimination, in the allocation
_FIRST_SCALE = 1.2  # of the advantages' widths, before samples like those to come have shown it
_RARE = 0.6  # of L·D/n: what a mean may hide that few samples show
_ROOM = 1.3  # between a span as it was shown by such samples and its guess
_ROOMS = (1.0, 2.0, 3.5)  # standard deviations of an advantage between Ḡ and what is expected
_POLICIES = 30
_FEW = 250  # sampled pairs up to which two policies are tried


class Choice(NamedTuple):
    """What would be frozen, samples of each pair ``(c,)``, and what to expect of them."""

    compared: Compared
    counts: NDArray[np.int64]
    expected: Proved


class Planner:
    """One problem, one σ: everything that the earlier samples say of it."""

    def __init__(
        self,
        space: Space,
        earlier: Sampled,
        signals: Array,
        sigma: Array,
        delta: float,
        samples: int,
        shares: Array,
        weights: Array,
        members: Array,
    ):
        self.space, self.earlier, self.signals, self.sigma = space, earlier, signals, sigma
        self.delta, self.samples, self.shares = delta, samples, shares
        self.weights, self.members = weights, members
        self.box, self.actions = signals @ sigma, members.shape[2]
        self.chain = self._best_policy(members[int(first_largest(weights))])

    def best(self, draft: bool) -> Choice:
        """The choice that promises the least gap, the first of those that promise about the same."""
        tried, heaviest = [self._tried(self.chain.policy, draft)], self.members[int(first_largest(self.weights))]
        another = not np.array_equal(heaviest, self.chain.policy) and bool(np.all(heaviest.max(axis=1) == 1))
        if another and not draft and len(self.shares) <= _FEW:
            tried.append(self._tried(heaviest, draft))
        return min(tried, key=lambda choice: float(rounded(choice.expected.paired)))

    def _tried(self, policy: Array, draft: bool) -> Choice:
        compared, steps = self._against(policy), _DRAFT_STEPS if draft else _STEPS
        counts = self._allocated(compared, np.full(len(self.box), _FIRST_SCALE), steps)
        for _ in range(2):  # what is certain first, then the guesses that this suggests
            compared, scale = self._with_guesses(compared, counts)
        if not draft:
            counts = self._allocated(compared, scale, steps)
            compared, _ = self._with_guesses(compared, counts)
        return Choice(compared, counts, self._proved(compared, _redrawn(self.earlier, counts, 2)))

    def _best_policy(self, policy: Array) -> Chain:
        """Policy iteration on the earlier samples; features may make it go round, so the best that was met counts."""
        best, seen = (-math.inf, Chain(self.space, self.earlier, policy)), set[bytes]()
        while policy.tobytes() not in seen and len(seen) < 100:
            seen.add(policy.tobytes())
            chain = Chain(self.space, self.earlier, policy)
            V, Q = chain.values(self.box)
            value = float(on_grid(self.space.start @ V))
            best = max(best, (value, chain), key=lambda found: found[0])
            policy = np.eye(self.actions)[first_largest(Q.reshape(-1, self.actions), axis=1)]
        return best[1]

    def _against(self, policy: Array) -> Compared:
        """This policy, and the members that are another; no guess but what is certain."""
        other = [k for k, member in enumerate(self.members) if not np.array_equal(member, policy)]
        policies, own = np.array([policy, *self.members[other]]), 1 - float(self.weights[other].sum())
        weights = np.array([own if len(other) < len(self.members) else 0.0, *self.weights[other]])
        gains, anything = np.zeros((len(_ROOMS), len(self.space.start))), [[-np.inf, np.inf]] * (1 + len(policies))
        return Compared(self.earlier, policies, weights, gains, np.array(anything), np.full(len(self.shares), np.inf))

    def _allocated(self, compared: Compared, scale: Array, steps: int) -> NDArray[np.int64]:
        """Samples of each pair ``(c,)``; the widths of the advantages are ``scale`` ``(SA,)`` times what they are to first order."""
        space, chain, levels = self.space, Chain(self.space, self.earlier, compared.policies[0]), self._levels(compared)
        n = equal = self.samples * self.shares
        V, Q = chain.values(self.box)
        A, rows = Q - np.repeat(V, self.actions), chain.advantage_rows
        s2, f2 = self.earlier.cautious(V), self._paired_squares(compared)
        best, span = (math.inf, n), float(np.ptp(V))
        for _ in range(steps):
            ratio = np.abs(rows) * (span / n)
            rare = _RARE * levels.advantage * ratio.max(axis=1)  # what a function of that span may hide
            w = scale * (np.sqrt(2 * levels.advantage * (rows**2 @ (s2 / n))) + rare)
            w_paired = math.sqrt(2 * levels.paired * float((f2 / n).sum()))
            G = self._control(A + w)[0]
            J = float(space.start @ G) + w_paired
            if best[0] * (1 - 1e-6) > J:
                best = (J, n)
            visits = self._visits(A + _CAUTION * w)
            fall = levels.advantage * ((scale**2 * visits / np.maximum(w, 1e-300)) @ rows**2) * s2 / n
            fall += np.bincount(first_largest(ratio, axis=1), scale * visits * rare, minlength=len(n))
            fall += levels.paired * f2 / n / max(w_paired, 1e-300)
            if not fall.sum() > 0:
                break
            n = np.sqrt(n * ((1 - _FLOOR) * self.samples * fall / fall.sum() + _FLOOR * equal))
            n *= self.samples / n.sum()
        n = on_grid(best[1], PLAN_DIGITS)
        return np.maximum(2, (n * min(1.0, self.samples / n.sum())).astype(np.int64))

    def _paired_squares(self, compared: Compared) -> Array:
        """f_y² ``(c,)``."""
        reward, total = self.sigma[0] * self.signals[:, 0], np.zeros((len(self.earlier.counts), len(self.space.start)))
        for p, (policy, w) in enumerate(zip(compared.policies, compared.weights.tolist(), strict=True)):
            signal = (self.box if p == 0 else 0.0) - w * reward
            if np.any(signal):
                chain = Chain(self.space, self.earlier, policy)
                total += chain.start_row[:, None] * chain.values(signal)[0]
        P, n = self.earlier.P, self.earlier.counts
        squares = (P * total**2).sum(axis=1) - (P * total).sum(axis=1) ** 2
        return np.asarray(np.maximum(squares, 0.0) + 0.5 * np.ptp(total, axis=1) ** 2 / n)

    def _control(self, reward: Array) -> tuple[Array, NDArray[np.int64]]:
        """G = max_a[reward + γP̄G]₊ ``(S,)`` by policy iteration, and the pairs that it takes; features may make it go round."""
        S, A = len(self.space.start), self.actions
        G, last = np.zeros(S), b""
        for _ in range(_POLICIES):
            Q = (reward + self.space.gamma * self.space.carry(self.earlier.P @ G)).reshape(S, A)
            taken = first_largest(Q, axis=1) + A * np.arange(S)
            stays = Q.ravel()[taken] > 0
            if (key := taken.tobytes() + stays.tobytes()) == last:
                break
            last, C = key, self.space.carried[taken] * stays[:, None]
            G = np.clip(_fixed_point(C, self.earlier.P, self.space.gamma, reward[taken] * stays), 0.0, None)
        return G, taken

    def _visits(self, reward: Array) -> Array:
        """Of the pairs that :meth:`_control` would take, from the start ``(SA,)``."""
        taken, out = self._control(reward)[1], np.zeros(len(reward))
        here = _fixed_point(self.earlier.P.T, self.space.carried[taken].T, self.space.gamma, self.space.start)
        out[taken] = np.maximum(here, 0.0)
        return out

    def _with_guesses(self, compared: Compared, counts: NDArray[np.int64]) -> tuple[Compared, Array]:
        """Limits as samples of the earlier model show them, and Ḡ ``(z, S)``; and the advantages' widths beside their first order ``(SA,)``.

        Ḡ is what optimism about the advantages would come to, with more and more room for noise.
        """
        gamma, level, shown = self.space.gamma, self._levels(compared), _redrawn(self.earlier, counts, 1)
        seen, gains = self._proved(compared, shown), []
        middle, half = seen.limits.mean(axis=1, keepdims=True), np.ptp(seen.limits, axis=1, keepdims=True) / 2
        limits, widths = middle + _ROOM * half * np.array([-1.0, 1.0]), seen.widths
        chain = Chain(self.space, self.earlier, compared.policies[0])
        V, Q = chain.values(self.box)
        A, rows, s2 = Q - np.repeat(V, self.actions), chain.advantage_rows, self.earlier.cautious(V)
        first = np.sqrt(2 * level.advantage * (rows**2 @ (s2 / counts)))
        first += _RARE * level.advantage * float(np.ptp(V)) * (np.abs(rows) / counts).max(axis=1)
        noise = np.sqrt(rows**2 @ (s2 * (1 / counts + 1 / self.earlier.counts)))
        for room in _ROOMS:
            reward = A + widths + room * noise
            G = self._control(reward)[0]
            for _ in range(2):  # what the limits of PḠ will add
                more = gain_limits(self.space, self.earlier, shown, G, level.gain) - self.space.carry(shown.P @ G)
                G = self._control(reward + (1 + 0.2 * room) * gamma * more)[0]
            gains.append(G)
        compared = replace(compared, gains=np.array(gains), limits=limits, reach=_ROOM * seen.reach)
        return compared, np.clip(widths / np.maximum(first, 1e-300), 0.5, 3.0)

    def _levels(self, compared: Compared) -> Shares:
        Z, S = compared.gains.shape
        return Shares.of(self.delta, S, len(self.shares), len(compared.limits), Z)

    def _proved(self, compared: Compared, shown: Sampled) -> Proved:
        return prove_gap(self.space, compared, shown, self.signals, self.sigma, self.delta)


def _fixed_point(C: Array, P: Array, gamma: float, r: Array) -> Array:
    """V = r + γCPV for C ``(S, c)`` and P ``(c, S)``, in the smaller of both sizes."""
    try:
        if len(C) <= len(P):
            return np.asarray(np.linalg.solve(np.eye(len(C)) - gamma * (C @ P), r))
        return np.asarray(r + gamma * (C @ np.linalg.solve(np.eye(len(P)) - gamma * (P @ C), P @ r)))
    except np.linalg.LinAlgError:
        raise NumericalError("the earlier model is singular; draw more samples.") from None


def _redrawn(earlier: Sampled, counts: NDArray[np.int64], key: int) -> Sampled:
    """Samples that the fresh ones may be like: of a model that is as far from the earlier one as that is from the truth."""
    rng = np.random.default_rng(key)
    for numbers in (earlier.counts.astype(np.int64), counts):
        drawn = np.array([rng.multinomial(n, p / p.sum()) for n, p in zip(numbers.tolist(), earlier.P, strict=True)])
        earlier = Sampled(drawn / numbers[:, None], numbers.astype(np.float64))
    return earlier
