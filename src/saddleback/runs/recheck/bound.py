"""The bound over all policies of a table, computed again from its samples, by other means than :mod:`saddleback.certificates`.

For one fixed V, (PV)(x) is less than U_x(V) := sup{μ : Π_i (1 − g_x (V(s'_i) − μ)) ≤ 1/δ'} with probability 1 − δ', whatever the
stake g_x was before the samples; U is found by bisection. With T V = max_a(□ + w + γU(V)) every V gives

    max_π V_□^π(ρ) ≤ V(ρ) + H·max_s[T V − V]₊

for the frozen V, and, once the frozen V has shown that V* varies by no more than the span D that the stakes were made for, for
any V at all: the optimistic one that is kept. Three events, δ' = δ/(3SA); half of δ is for rewards that are only observed: w is
Maurer and Pontil's or Chernoff's, whichever was chosen before the samples, which is kept; four fifths of that half are for what
lies above, a fifth for what lies below. Earlier versions did not keep the choice, and gave a half to either side: of their files
the narrower counts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from saddleback.certificates.certificate import BoundEvidence
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import CertificateRecord, ProblemRecord
from saddleback.runs.evidence_file import BoundArrays
from saddleback.runs.recheck.check import Check, close, digits, observed_signals, unchecked

TABLE, _CORESET = "all pairs", "coreset, if P is linear in the features"
_BISECTIONS = 100
_MOST_OF_A_STAKE = 0.9
_ABOVE = 0.8


def check_bound(certificate: CertificateRecord, arrays: BoundArrays | None, problem: CMDP | None) -> Check:
    """max_π V_□^π(ρ) ≤ value, where the samples behind it are kept; else it is taken as stated."""
    bound, name = certificate.evidence.bound, "bound over all policies"
    if bound is None:
        return Check(name, arrays is None, "none was computed")
    b = [c.unit_threshold for c in certificate.problem.constraints]
    same = len(bound.thresholds) in (0, len(b)) and all(map(close, bound.thresholds, b))
    if not same or bound.kind not in (TABLE, _CORESET) or (bound.kind == TABLE) != (certificate.linearity is None):
        return Check(name, False, "kind or thresholds are not those of the problem")
    if bound.kind == TABLE and arrays is None and certificate.about is not None:
        return Check(name, False, "its samples are missing, which this version of a proof keeps")
    if bound.kind == _CORESET or arrays is None:
        why = "rests on linearity" if bound.kind == _CORESET else "its samples are not kept"
        return unchecked(name, f"{why}: taken as stated; draw new samples with `saddleback certify`")
    least, fault = least_bound(bound, arrays, certificate.problem, problem)
    if fault:
        return Check(name, False, fault)
    right = bound.value >= least - 1e-7 * (1 + certificate.problem.horizon)
    return Check(name, right, f"{digits(bound.value)} stated, {digits(least)} found, in utilities")


def least_bound(
    bound: BoundEvidence, arrays: BoundArrays, record: ProblemRecord, problem: CMDP | None
) -> tuple[float, str]:
    """The least bound that the arrays of ``bound.npz`` prove, in utilities, and what is wrong with them, if anything."""
    counts, S, pairs = arrays.counts, len(arrays.frozen), len(arrays.spread)
    sampled = np.diff(arrays.first) > 0  # of a pair without samples it is known that 0 ≤ V* ≤ H
    first = arrays.first[:-1][sampled]
    n = np.ones(pairs)
    n[sampled] = np.add.reduceat(counts, first)
    m, H, gamma, sigma = len(record.constraints), record.horizon, record.gamma, np.array(bound.sigma)
    if record.states != S or pairs != S * record.actions or arrays.signals.shape != (pairs, 1 + m):
        return math.nan, "the arrays are not of this problem"
    if int(counts.sum()) != bound.samples:
        return math.nan, f"{int(counts.sum()):,} samples are kept, {bound.samples:,} stated"
    if fault := _strange(arrays, problem):
        return math.nan, fault
    shown = observed_signals(record, arrays) if problem is None else problem.observed
    observed, kept = np.flatnonzero(shown), arrays.rare is not None
    if arrays.noise[:, ~shown].max(initial=0.0) > 0:
        return math.nan, "a signal that is known has noise"
    if kept != bool(len(observed)) and (kept or record.observed is not None):
        return math.nan, "which limits of observed signals were chosen is missing, or there are none"
    goal = math.log(3 * pairs / (bound.delta / 2 if len(observed) else bound.delta))
    box = arrays.signals @ sigma
    seen = [int(j) for j in observed if sigma[j] > 0]
    above, below = np.zeros(pairs), np.zeros(pairs)
    for j in seen:
        level, mean, noise = bound.delta / 2 / (pairs * len(seen)), arrays.signals[:, j], arrays.noise[:, j]
        rare = (None, None) if arrays.rare is None else arrays.rare[:, :, j]
        above += sigma[j] * _error(mean, noise, n, _ABOVE * level, rare[1])
        below += sigma[j] * _error(1 - mean, noise, n, (0.5 if rare[0] is None else 1 - _ABOVE) * level, rare[0])
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

    def stakes(span: float) -> Array:
        wanted = np.sqrt(2 * goal / n) / np.maximum(arrays.spread, 1e-12)
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
    return min(found), ""


def _strange(arrays: BoundArrays, problem: CMDP | None) -> str:
    """What cannot be: signals outside [0, 1] or not those of the problem, another start distribution, negative spreads."""
    signals, noise, start = arrays.signals, arrays.noise, arrays.start
    if signals.min() < -1e-9 or signals.max() > 1 + 1e-9 or noise.min() < 0 or noise.max() > 0.5 + 1e-6:
        return "signals lie outside their ranges"
    if start.min() < 0 or abs(float(start.sum()) - 1) > 1e-9 or arrays.spread.min() < 0 or arrays.span < 0:
        return "start distribution, spread or span are none"
    if problem is None:
        return ""
    S, A = len(arrays.frozen), problem.num_actions
    known = ~problem.observed
    true = problem.utilities(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))[:, known]
    if not np.allclose(true, signals[:, known], rtol=0, atol=1e-9) or noise[:, known].max(initial=0.0) > 0:
        return "the signals are not those of the problem"
    rho = np.zeros(S)
    np.add.at(rho, problem.start.states, problem.start.weights)
    if problem.start.sampler is None and not np.allclose(rho, start, rtol=0, atol=1e-9):
        return "the start distribution is not that of the problem"
    return ""


def _error(mean: Array, noise: Array, n: Array, level: float, rare: NDArray[np.int64] | None) -> Array:
    """How far above its observed ``mean`` in [0, 1] the truth may lie: where it is ``rare`` from that, else from its noise."""
    L, spare = math.log(2 / level), np.maximum(n - 1, 1)
    plain = np.where(n < 2, 1.0, np.sqrt(2 * (noise**2 * n / spare) * L / n) + 7 * L / (3 * spare))
    low, high = np.array(mean), np.ones_like(mean)
    for _ in range(_BISECTIONS):  # n·kl(mean, q) = log 1/level
        q = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            apart = np.where(mean > 0, mean * np.log(mean / q), 0.0)
            apart += np.where(mean < 1, (1 - mean) * np.log((1 - mean) / (1 - q)), 0.0)
        low, high = np.where(n * apart <= math.log(1 / level), (q, high), (low, q))
    chosen = np.minimum(plain, high - mean) if rare is None else np.where(rare == 1, high - mean, plain)
    return np.asarray(np.minimum(chosen, 1.0))
