"""The bound over all policies of a table as runs of before kept it: with a frozen function, and a guessed span of V*.

For one fixed V, (PV)(x) is less than U_x(V) := sup{μ : Π_i (1 − g_x (V(s'_i) − μ)) ≤ 1/δ'} with probability 1 − δ', where g_x was
fixed before the samples and g_x·(max V − min V) < 1. With T V = max_a(□ + w + γU(V)),

    max_π V_□^π(ρ) ≤ V(ρ) + H·max_s[T V − V]₊

for the frozen V, and, once the frozen V has shown that V* varies by no more than the span D that the stakes were made for, for
any V at all: the optimistic one that is kept. Three events, δ' = δ/(3SA); half of δ is for rewards that are only observed, four
fifths of it for what lies above and a fifth for what lies below. The earliest files did not keep which of two limits was chosen, and
gave a half to either side: of these the narrower counts.
"""

from __future__ import annotations

import math

import numpy as np

from saddleback.certificates.certificate import BoundEvidence
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import ProblemRecord
from saddleback.runs.evidence_file import BoundArrays
from saddleback.runs.recheck.rewards import reward_error

_BISECTIONS = 100
_MOST_OF_A_STAKE = 0.9
_ABOVE = 0.8


def least_bound_before(
    bound: BoundEvidence, arrays: BoundArrays, record: ProblemRecord, seen: list[int], halved: bool
) -> float:
    """The least bound that such arrays prove, in utilities; ``seen`` are the observed signals that □ has, ``halved`` whether δ is."""
    assert arrays.frozen is not None and arrays.spread is not None and arrays.span is not None
    counts, S, pairs = arrays.counts, len(arrays.frozen), len(arrays.spread)
    sampled = np.diff(arrays.first) > 0  # of a pair without samples it is known that 0 ≤ V* ≤ H
    first = arrays.first[:-1][sampled]
    n = np.ones(pairs)
    n[sampled] = np.add.reduceat(counts, first)
    H, gamma, sigma = record.horizon, record.gamma, np.array(bound.sigma)
    goal = math.log(3 * pairs / (bound.delta / 2 if halved else bound.delta))
    box = arrays.signals @ sigma
    above, below = np.zeros(pairs), np.zeros(pairs)
    for j in seen:
        level, mean, noise = bound.delta / 2 / (pairs * len(seen)), arrays.signals[:, j], arrays.noise[:, j]
        rare = (None, None) if arrays.rare is None else arrays.rare[:, :, j]
        above += sigma[j] * reward_error(mean, noise, n, _ABOVE * level, rare[1])
        below += sigma[j] * reward_error(1 - mean, noise, n, (0.5 if rare[0] is None else 1 - _ABOVE) * level, rare[0])
    rows = np.repeat(np.arange(len(first)), np.diff(arrays.first)[sampled])

    def limits(V: Array, g: Array, width: Array, without: float, sign: float = 1.0) -> Array:
        """□ ± w + γU_x(±V) of every pair; ``without`` samples, that."""
        Q = np.full(pairs, without)
        Q[sampled] = (box + sign * width)[sampled] + sign * gamma * upper(sign * V, g[sampled])
        return Q

    def upper(V: Array, g: Array) -> Array:
        """U_x(V) of the pairs that have samples."""
        at = V[arrays.next_states]
        top, bottom = np.maximum.reduceat(at, first), np.minimum.reduceat(at, first)
        low, high = (
            np.maximum(bottom, top - 1 / g),
            top + np.expm1(goal / n[sampled]) / g,
        )  # where all factors are e^{goal/n} or more
        for _ in range(_BISECTIONS):
            mu = (low + high) / 2
            factor = np.maximum(1 - g[rows] * (at - mu[rows]), 1e-300)
            beyond = np.add.reduceat(counts * np.log(factor), first) > goal
            low, high = np.where(beyond, low, mu), np.where(beyond, mu, high)
        return np.asarray(low)

    def best(Q: Array) -> Array:
        return np.asarray(Q.reshape(S, -1).max(axis=1))

    spread = np.maximum(arrays.spread, 1e-12)

    def stakes(span: float) -> Array:
        wanted = np.sqrt(2 * goal / n) / spread
        return np.asarray(np.minimum(wanted, _MOST_OF_A_STAKE / max(span, 1e-12)))

    frozen, start, D = arrays.frozen, arrays.start, float(arrays.span)
    wide = stakes(float(np.ptp(frozen)))
    up = H * max(0.0, float((best(limits(frozen, wide, above, H)) - frozen).max()))
    down = H * max(0.0, float((frozen - best(limits(frozen, wide, below, 0.0, -1.0))).max()))
    span = min(H, float(frozen.max()) + up) - max(0.0, float(frozen.min()) - down)
    found = [float(start @ frozen) + up, H]
    if span <= D * (1 + 1e-9):
        V = arrays.optimistic
        excess = max(0.0, float((best(limits(V, stakes(D), above, H)) - V).max()))
        found.append(float(start @ V) + H * excess)
    return min(found)
