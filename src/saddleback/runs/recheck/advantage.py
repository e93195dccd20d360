"""A gap by pairing on a table, computed again from its samples, by other means than :mod:`saddleback.certificates`.

For a policy p on P̂ let R = (I − γP̂_p)⁻¹ and V̂ = R u_p. Its true value for a signal u is V = V̂ + γR ξ_p with ξ = (P − P̂)V, so every error is
a sum Σ_y c_y ξ_y over pairs y: at state s the row is c = γR_s spread over actions, for an advantage γ(1_x + γP̂_xR − R_s). With earlier samples
in the place of P̂ the rows are fixed, and with V less its mean over states, fixed m_y and g, and D_y ≥ |V − m_y|,

    Σ_y c_yξ_y ≤ L/g + g Σ_y ψ(g D_y|c_y|/n_y)(c_y²/n_y) P̂_y(V − m_y)²          with probability 1 − e^{−L}.

docs/certificate.md has the proof, the order of the steps and how δ is divided. Every number below that is not read from the file is
computed from both sets of samples, the policies, the guesses and the function F that are kept; F is any function, and proves what it proves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from saddleback.certificates.certificate import BoundEvidence
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import ProblemRecord
from saddleback.runs.evidence_file import AdvantageArrays

_SLOPES, _STEPS, _BISECTIONS = 4, 20, 100
_BOX, _STATE, _ADVANTAGE, _GAIN, _VALUE, _PAIRED = 0.04, 0.06, 0.50, 0.05, 0.10, 0.25  # shares of δ: together 1


class Least(NamedTuple):
    """The least bounds on max V_□ and on max V_□ − σ_0V_r that the arrays prove, in utilities, or what is wrong with them."""

    value: float = math.nan
    paired: float = math.nan
    fault: str = ""


class _Model(NamedTuple):
    """Frequencies ``(SA, S)`` and numbers ``(SA,)``."""

    P: Array
    n: Array


class _Value(NamedTuple):
    """Of one policy and signal: V̂ less its mean, V̂(ρ), β, √P̂r², max r, fixed rows at the start and their change, m, D and expected squares."""

    V: Array
    at_start: float
    box: Array
    shift: Array
    off: float
    row: Array
    change: Array
    earlier: Array
    m: Array
    D: Array
    expected: Array


def least_paired(
    bound: BoundEvidence,
    arrays: AdvantageArrays,
    record: ProblemRecord,
    problem: CMDP | None,
    policy: MixturePolicy | None,
) -> Least:
    """Everything again, from the arrays of ``bound.npz``."""
    if fault := _strange(bound, arrays, record) or _another(arrays, problem) or _other_policy(arrays, policy):
        return Least(fault=fault)
    sigma, H, gamma, delta = np.array(bound.sigma), record.horizon, record.gamma, bound.delta
    box, reward = arrays.signals @ sigma, sigma[0] * arrays.signals[:, 0]
    now, before = _model(arrays, ""), _model(arrays, "earlier_")
    signals = [box, box - arrays.weights[0] * reward, *(-w * reward for w in arrays.weights[1:])]
    policies = [arrays.policies[0], *arrays.policies]
    S, pairs, many = len(arrays.start), len(box), 16 * len(signals)  # sides, spans and slopes of every form
    levels = math.log(many * pairs / (_BOX * delta)), math.log(many * S / (_STATE * delta))
    found = [
        _value(now, before, pi, u, limits, arrays.start, gamma, levels)
        for pi, u, limits in zip(policies, signals, arrays.limits, strict=True)
    ]
    if any(x is None for x in found):
        return Least(H, H)
    values = [x for x in found if x is not None]
    above = _above(now, before, arrays.policies[0], box, values[0], gamma, math.log(S / (_ADVANTAGE * delta)))
    level = math.log(S * len(arrays.gains) / (_GAIN * delta))
    G = min(H * max(0.0, float(above.max())), _gain(now, before, arrays, above, gamma, level))
    value = _sum(now, before, values[:1], None, math.log(1 / (_VALUE * delta)))
    paired = _sum(now, before, values[1:], arrays.reach, math.log(1 / (_PAIRED * delta)))
    if paired is None or value is None:
        return Least(H, H)
    return Least(min(H, value + G), min(H, paired + G))


def _strange(bound: BoundEvidence, arrays: AdvantageArrays, record: ProblemRecord) -> str:
    """What cannot be."""
    S, A, columns, pi = record.states or 0, record.actions, 1 + len(record.constraints), arrays.policies
    if pi.shape[1:] != (S, A) or arrays.signals.shape != (S * A, columns):
        return "the arrays are not of this problem"
    if int(arrays.counts.sum()) != bound.samples:
        return f"{int(arrays.counts.sum()):,} samples are kept, {bound.samples:,} stated"
    if arrays.signals.min() < -1e-9 or arrays.signals.max() > 1 + 1e-9:
        return "signals lie outside their ranges"
    if np.any((np.array(bound.sigma) > 0) & np.array(record.observed or [True] * columns)):
        return "a signal with a price is only observed"
    if min(x.min() for x in (arrays.start, arrays.gains, arrays.gain, pi, arrays.weights)) < 0:
        return "start distribution, policies, weights or gains are none"
    sums = [float(arrays.start.sum()), float(arrays.weights.sum()), *pi.sum(axis=2).ravel().tolist()]
    return "" if np.allclose(sums, 1, rtol=0, atol=1e-9) else "start distribution, policies or weights are none"


def _another(arrays: AdvantageArrays, problem: CMDP | None) -> str:
    """Whether signals and start distribution are those of the problem."""
    if problem is None:
        return ""
    S, A, known = len(arrays.start), problem.num_actions, ~problem.observed
    true = problem.utilities(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))
    rho = np.zeros(S)
    np.add.at(rho, problem.start.states, problem.start.weights)
    same = np.allclose(true[:, known], arrays.signals[:, known], rtol=0, atol=1e-9)
    same &= problem.start.sampler is not None or np.allclose(rho, arrays.start, rtol=0, atol=1e-9)
    return "" if same else "signals or start distribution are not those of the problem"


def _other_policy(arrays: AdvantageArrays, policy: MixturePolicy | None) -> str:
    """Whether the weights are those of the mixture that the gap is stated of."""
    if policy is None:
        return ""
    own, pi = np.zeros(len(arrays.policies)), arrays.policies
    for w, member in zip(policy.weights.tolist(), policy.members, strict=True):
        table = member.probabilities(np.arange(len(arrays.start)))
        same = [k for k in range(len(pi)) if np.allclose(pi[k], table, rtol=0, atol=1e-12)]
        if not same:
            return "a member of the policy is not among those that were compared"
        own[same[0]] += w
    return "" if np.allclose(own, arrays.weights, rtol=0, atol=1e-9) else "the weights are not those of the policy"


def _model(arrays: AdvantageArrays, which: str) -> _Model:
    first, states, counts = (getattr(arrays, f"{which}{name}") for name in ("first", "next_states", "counts"))
    P = np.zeros((len(first) - 1, len(arrays.start)))
    rows = np.repeat(np.arange(len(P)), np.diff(first))
    np.add.at(P, (rows, states), counts)
    n = P.sum(axis=1)
    return _Model(P / n[:, None], n)


def _resolvent(model: _Model, pi: Array, gamma: float) -> Array:
    S, A = pi.shape
    return np.linalg.inv(np.eye(S) - gamma * np.einsum("sa,sat->st", pi, model.P.reshape(S, A, S)))


def _rows(R: Array, pi: Array, gamma: float) -> Array:
    """γR spread over the actions: the coefficients of V − V̂ in every state ``(S, SA)``."""
    return np.asarray(gamma * (R[:, :, None] * pi[None]).reshape(len(R), -1))


def _psi(k: Array) -> Array:
    """Rounded up where the difference would cancel."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(k < 1e-4, 0.5 + k / 2, -(np.log(1 - k) + k) / k**2)


def _slopes(variance: Array, largest: Array, level: float) -> Array:
    """Of sixteen, the one of the least width for a variance that is 1.3 times what was expected."""
    v = np.maximum(1.3 * variance, 1e-300)
    top = np.minimum(np.sqrt(2 * level / v), 0.9 / np.maximum(largest, 1e-300))
    best, least = top, np.full(len(top), math.inf)
    for step in range(16):
        g = top * 0.85**step
        width = level / g + _psi(g * largest) * g * 1.3 * variance
        best, least = np.where(width < least, g, best), np.minimum(width, least)
    return best


class _Forms:
    """Limits of Σ_y c_yξ_y for rows of coefficients ``(k, SA)``, with a few slopes that are each an eighth of the one before."""

    def __init__(self, rows: Array, n: Array, D: Array, expected: Array, level: float, number: int):
        self.level, self.ratio, self.rows2 = level, np.abs(rows) * D / n, rows**2 / n
        best = _slopes(self.rows2 @ expected, self.ratio.max(axis=1), level)
        self.slopes = [best / 8.0**i for i in range(number)]
        self.weights = [_psi(g[:, None] * self.ratio) * self.rows2 for g in self.slopes]

    def __call__(self, squares: Array) -> Array:
        widths = [self.level / g + g * (w @ squares) for g, w in zip(self.slopes, self.weights, strict=True)]
        return np.where(self.ratio.max(axis=1) > 0, np.min(widths, axis=0), 0.0)


def _value(
    now: _Model, before: _Model, pi: Array, u: Array, limits: Array, start: Array, gamma: float, levels: Sequence[float]
) -> _Value | None:
    """The value of one signal and what is known of its errors; None where the guessed limits are not confirmed."""
    S, A = pi.shape
    u_pi, H = (pi * u.reshape(S, A)).sum(axis=1), 1 / (1 - gamma)
    R, R_before = _resolvent(now, pi, gamma), _resolvent(before, pi, gamma)
    rows, fixed = _rows(R, pi, gamma), _rows(R_before, pi, gamma)
    V, V_before = R @ u_pi, R_before @ u_pi
    at_start, V, V_before = float(start @ V), V - V.mean(), V_before - V_before.mean()
    m = before.P @ V_before
    expected = before.P @ V_before**2 - m**2
    expected = np.maximum(expected, 0.0) + 0.5 * float(np.ptp(V_before)) ** 2 / before.n
    certain = H * float(np.ptp(u_pi))
    wide = certain + np.abs(m) if certain > 0 else np.zeros(len(m))
    D = np.minimum(np.maximum(limits[1] - m, m - limits[0]), wide)
    centred = fixed - fixed.mean(axis=0)
    moved = np.abs((rows - rows.mean(axis=0)) - centred)
    own = np.sqrt(np.maximum(now.P @ V**2 - 2 * m * (now.P @ V) + m**2, 0.0))
    box, r, shift = np.full(len(m), certain), np.full(S, certain + float(np.ptp(V))), np.zeros(len(m))
    for reach, guessed in ((wide, False), (D, True)):
        outside = V.max() + r.max() > limits[1] + 1e-9 * H or V.min() - r.max() < limits[0] - 1e-9 * H
        if guessed and outside and np.any(wide > D):
            return None
        boxes = [_slopes(expected / now.n, reach / now.n, levels[0]) / 8.0**i for i in range(_SLOPES)]
        rise = [_psi(g * reach / now.n) * g / now.n for g in boxes]
        states = _Forms(centred, now.n, reach, expected, levels[1], _SLOPES)
        for _ in range(_STEPS):
            shift = np.sqrt(now.P @ r**2)
            squares = (own + shift) ** 2
            single = np.min([levels[0] / g + x * squares for g, x in zip(boxes, rise, strict=True)], axis=0)
            box = np.minimum(box, np.where(reach > 0, single, 0.0))
            r = np.minimum(r, states(squares) + moved @ box)
    row = start @ fixed
    return _Value(V, at_start, box, shift, float(r.max()), row, start @ rows - row, V_before, m, D, expected)


def _above(now: _Model, before: _Model, pi: Array, u: Array, value: _Value, gamma: float, level: float) -> Array:
    """Upper limits of all advantages ``(SA,)``."""
    S, A = pi.shape
    rows = []
    for model in (now, before):
        here = _rows(_resolvent(model, pi, gamma), pi, gamma)
        rows.append(gamma * np.eye(S * A) + gamma * (model.P @ here) - np.repeat(here, A, axis=0))
    own = now.P @ value.V**2 - 2 * value.m * (now.P @ value.V) + value.m**2
    squares = (np.sqrt(np.maximum(own, 0.0)) + value.shift) ** 2
    width = _Forms(rows[1], now.n, value.D, value.expected, level, 1)(squares) + np.abs(rows[0] - rows[1]) @ value.box
    V = _resolvent(now, pi, gamma) @ (pi * u.reshape(S, A)).sum(axis=1)
    return np.asarray(u + gamma * (now.P @ V) - np.repeat(V, A) + width)


def _sum(now: _Model, before: _Model, values: Sequence[_Value], reach: Array | None, level: float) -> float | None:
    """The upper limit of the sum of values at the start; None where what it reaches is not confirmed."""
    rows, size = np.array([x.row for x in values]), np.abs([x.row for x in values])
    m = (rows * np.array([x.m for x in values])).sum(axis=0)[:, None]
    F, F_before = (rows.T @ np.array(V) - m for V in zip(*((x.V, x.earlier) for x in values), strict=True))
    certain = (size * np.array([x.D for x in values])).sum(axis=0)
    shown = np.abs(F).max(axis=1) + np.array([x.off for x in values]) @ size
    guess = certain if reach is None else reach
    if np.any((shown > guess * (1 + 1e-9)) & (certain > guess * (1 + 1e-9))):
        return None
    shift = (size * np.array([x.shift for x in values])).sum(axis=0)
    expected = (before.P * F_before**2).sum(axis=1) + 0.5 * np.ptp(F_before, axis=1) ** 2 / before.n
    squares = (np.sqrt((now.P * F**2).sum(axis=1)) + shift) ** 2
    forms = _Forms(np.ones((1, len(now.n))), now.n, np.minimum(guess, certain), expected, level, 1)
    second = sum(float(np.abs(x.change) @ x.box) for x in values)
    return sum(x.at_start for x in values) + second + float(forms(squares)[0])


def _gain(now: _Model, before: _Model, arrays: AdvantageArrays, above: Array, gamma: float, level: float) -> float:
    """F(ρ) + H·max[T F − F]₊ for the F that is kept, U by bisection."""
    H, F, guess, A = 1 / (1 - gamma), arrays.gain, arrays.gains[0], arrays.policies.shape[2]
    mean = before.P @ guess
    spread = np.maximum(before.P @ guess**2 - mean**2, 0.0) + 0.5 * float(np.ptp(guess)) ** 2 / before.n
    top = max(1.2 * float(guess.max()), 1e-4 * H, 1e-12)
    g = np.minimum(np.sqrt(2 * level / now.n) / np.maximum(np.sqrt(spread), 1e-12), 0.9 / top)
    U = np.empty(len(now.n))
    for x in range(len(U)):
        there = now.P[x] > 0
        f, times = F[there], now.P[x, there] * now.n[x]
        low, high = max(float(f.min()), float(f.max()) - 1 / g[x]), float(f.max()) + math.expm1(level / now.n[x]) / g[x]
        for _ in range(_BISECTIONS):
            mu = (low + high) / 2
            wealth = float(times @ np.log(np.maximum(1 - g[x] * (f - mu), 1e-300)))
            low, high = (low, mu) if wealth > level else (mu, high)
        U[x] = max(low, float(F.max()) - 1 / g[x])
    best = np.clip((above + gamma * U).reshape(-1, A).max(axis=1), 0.0, H)
    return float(arrays.start @ F) + H * max(0.0, float((best - F).max()))
