"""The bound over all policies of a table, computed again from its samples, by other means than :mod:`saddleback.certificates`.

For one fixed V, (PV)(x) is less than U_x(V) := max{sup{μ : Π_i (1 − g_x (V(s'_i) − μ)) ≤ 1/δ'}, max V − 1/g_x} with probability
1 − δ', whatever the stake g_x was before the samples; the first is found by bisection. With T V = min{H, max_a(□ + w + γU(V))}
every V gives

    max_π V_□^π(ρ) ≤ V(ρ) + H·max_s[T V − V]₊,

and one that makes it small is kept. One event a state, the pair that the best policy plays there: δ' = δ/S. With signals that are only
observed the variable is O + γV(s'), O their sum weighed by σ, in the place of γV(s'): it comes with each next state, 0 ≤ O ≤ Σσ_j, and
U_x is of O + γV, cut at the most that this can be. The means of the O that are kept must be those of the signals, up to what was rounded up.

Runs of before are looked at by rules of their own: those that forgot which signal came with which next state gave half of δ to
limits w of the signals' means, Maurer and Pontil's or Chernoff's, whichever was chosen before the samples; those that had a frozen function
and a span in the place of the stakes are for :mod:`.earlier_bound`.
"""

from __future__ import annotations

import math

import numpy as np

from saddleback.certificates.certificate import BoundEvidence
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import value_limits
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import CertificateRecord, ProblemRecord
from saddleback.runs.evidence_file import AdvantageArrays, BoundArrays
from saddleback.runs.recheck.advantage import least_paired
from saddleback.runs.recheck.check import Check, close, digits, observed_signals, unchecked
from saddleback.runs.recheck.earlier_bound import least_bound_before
from saddleback.runs.recheck.endings import declared_ends
from saddleback.runs.recheck.rewards import reward_error

_TABLE, _CORESET = "all pairs", "coreset, if P is linear in the features"
_PAIRED, _PAIRED_CORESET = "advantages, all pairs", "advantages on a coreset, if P is linear in the features"
ON_TABLES = (_TABLE, _PAIRED)
"""Bounds that assume no linearity."""
_BISECTIONS = 100
_CELLS = 256  # where more than two values a cell were observed, they are put on the cells' edges, and what is left over is rounded up
_NEAR = 1e-8  # a signal may lie by 1e-9 of its range outside of it


def check_bound(
    certificate: CertificateRecord,
    arrays: BoundArrays | AdvantageArrays | None,
    problem: CMDP | None,
    policy: MixturePolicy | None = None,
    hidden: float = 0.0,
) -> Check:
    """max_π V_□^π(ρ) ≤ value, and what is paired with it, where the samples behind it are kept; else it is taken as stated.

    ``hidden`` is how far values may be from those for the start states that were drawn: V*_□, and V_r of the policy too.
    """
    bound, name = certificate.evidence.bound, "bound over all policies"
    if bound is None:
        return Check(name, arrays is None, "none was computed")
    b = [c.unit_threshold for c in certificate.problem.constraints]
    same = len(bound.thresholds) in (0, len(b)) and all(map(close, bound.thresholds, b))
    table = bound.kind in ON_TABLES
    same &= bound.kind in (*ON_TABLES, _CORESET, _PAIRED_CORESET) and table == (certificate.linearity is None)
    if not same or (bound.paired is not None) != (bound.kind in (_PAIRED, _PAIRED_CORESET)):
        return Check(name, False, "kind or thresholds are not those of the problem")
    if table and arrays is None and certificate.about is not None:
        return Check(name, False, "its samples are missing, which this version of a proof keeps")
    if not table or arrays is None:
        why = "its samples are not kept" if table else "rests on linearity"
        return unchecked(name, f"{why}: taken as stated; draw new samples with `saddleback certify`")
    near = 1e-7 * (1 + certificate.problem.horizon)
    if isinstance(arrays, AdvantageArrays):
        found = least_paired(bound, arrays, certificate.problem, problem, policy)
        least, fault = found.value, found.fault
        wider = found.paired + hidden * (1 + bound.sigma[0])
        right = bound.paired is not None and not bound.paired < wider - near
    else:
        (least, fault), right = least_bound(bound, arrays, certificate.problem, problem), True
    if fault:
        return Check(name, False, fault)
    right &= bound.value >= least + hidden - near
    detail = f"{digits(bound.value)} stated, {digits(least + hidden)} found, in utilities"
    declared = certificate.problem.declared
    if problem is None and declared is not None and (declared.terminal or declared.successors):
        detail = f"{detail}; where episodes end and what can follow is taken as stated"
        return Check(name, right, detail, "not checked")
    return Check(name, right, detail)


def least_bound(
    bound: BoundEvidence, arrays: BoundArrays, record: ProblemRecord, problem: CMDP | None
) -> tuple[float, str]:
    """The least bound that the arrays of ``bound.npz`` prove, in utilities, and what is wrong with them, if anything."""
    counts, S, pairs = arrays.counts, len(arrays.optimistic), len(arrays.first) - 1
    m, sigma = len(record.constraints), np.array(bound.sigma)
    if record.states != S or pairs != S * record.actions or arrays.signals.shape != (pairs, 1 + m):
        return math.nan, "the arrays are not of this problem"
    if int(counts.sum()) != bound.samples:
        return math.nan, f"{int(counts.sum()):,} samples are kept, {bound.samples:,} stated"
    if fault := _strange(arrays, problem) or _undeclared(arrays, record, sigma, problem):
        return math.nan, fault
    shown = observed_signals(record, arrays) if problem is None else problem.observed
    observed, kept = np.flatnonzero(shown), arrays.rare is not None
    if arrays.noise[:, ~shown].max(initial=0.0) > 0:
        return math.nan, "a signal that is known has noise"
    seen = [int(j) for j in observed if sigma[j] > 0]
    if arrays.observed is not None:
        if not len(observed):
            return math.nan, "something was observed with next states, and every signal is known"
        if fault := _unlike(arrays, arrays.observed, np.where(shown, sigma, 0.0)):
            return math.nan, fault
        return _optimistic_bound(bound, arrays, record, seen, False), ""
    if kept != bool(len(observed)) and (kept or record.observed is not None):
        return math.nan, "what was observed with each next state is missing, or nothing is"
    if arrays.stakes is None:
        return least_bound_before(bound, arrays, record, seen, bool(len(observed))), ""
    return _optimistic_bound(bound, arrays, record, seen, bool(len(observed))), ""


def _unlike(arrays: BoundArrays, observed: Array, sigma: Array) -> str:
    """Whether what is kept with the next states cannot be what was observed; σ is 0 where a signal is known."""
    if observed.min() < -_NEAR or observed.max() > sigma.sum() + _NEAR:
        return "what was observed with next states lies outside its range"
    sampled, first = np.diff(arrays.first) > 0, arrays.first[:-1]
    total, n = (np.add.reduceat(x, first[sampled]) for x in (arrays.counts * observed, arrays.counts))
    entries, apart = np.diff(arrays.first)[sampled], total / n - (arrays.signals @ sigma)[sampled]
    rounded = np.where(entries > 2 * _CELLS, float(sigma.sum()) / _CELLS * entries / n, 0.0)
    if np.any((apart < -_NEAR) | (apart > rounded + _NEAR)):
        return "what was observed with next states has not the mean of the signals"
    return ""


def _optimistic_bound(
    bound: BoundEvidence, arrays: BoundArrays, record: ProblemRecord, seen: list[int], halved: bool
) -> float:
    """V(ρ) + H·max_s[T V − V]₊ of the function V that is kept."""
    assert arrays.stakes is not None
    counts, V, H, pairs = arrays.counts, arrays.optimistic, record.horizon, len(arrays.stakes)
    S, sigma, sampled = len(V), np.array(bound.sigma), np.diff(arrays.first) > 0
    first, g, lengths = arrays.first[:-1][sampled], arrays.stakes[sampled], np.diff(arrays.first)[sampled]
    n = np.ones(pairs)
    n[sampled] = np.add.reduceat(counts, first)
    goal = math.log(S / (bound.delta / 2 if halved else bound.delta))
    box, joint, most = arrays.signals @ sigma, arrays.observed, float(sigma[seen].sum())
    if joint is not None:  # what is observed is in the variable
        box -= arrays.signals[:, seen] @ sigma[seen]
    for j in seen if joint is None else ():
        rare = None if arrays.rare is None else arrays.rare[:, j]
        level = bound.delta / 2 / (S * len(seen))
        box += sigma[j] * reward_error(arrays.signals[:, j], arrays.noise[:, j], n, level, rare)
    rows, at = np.repeat(np.arange(len(first)), lengths), V[arrays.next_states]
    scale = record.gamma if joint is None else 1.0  # of the variable
    at = at if joint is None else joint + record.gamma * at
    top = np.full(len(first), V.max())
    if arrays.followers is not None and arrays.followers_first is not None:
        top = np.maximum.reduceat(V[arrays.followers], arrays.followers_first[:-1])[sampled]
    top = top if joint is None else most + record.gamma * top
    ceiling = np.full(S, H) if arrays.ceiling is None else arrays.ceiling
    # Of U_x(V) one end is excluded, or is the limit that needs no probability; at the other all factors are e^{goal/n} or more.
    low = np.maximum(np.minimum.reduceat(at, first), np.maximum.reduceat(at, first) - 1 / g)
    high = np.maximum.reduceat(at, first) + np.expm1(goal / n[sampled]) / g
    for _ in range(_BISECTIONS):
        mu = (low + high) / 2
        factor = np.maximum(1 - g[rows] * (at - mu[rows]), 1e-300)
        beyond = np.add.reduceat(counts * np.log(factor), first) > goal
        low, high = np.where(beyond, low, mu), np.where(beyond, mu, high)
    Q = np.full(pairs, H)
    limit = np.maximum(low, top - 1 / g)
    Q[sampled] = box[sampled] + scale * (limit if joint is None else np.minimum(limit, top))
    excess = np.minimum(Q.reshape(S, -1).max(axis=1), ceiling) - V
    return float(arrays.start @ np.minimum(V + H * max(0.0, float(excess.max())), ceiling))


def _undeclared(arrays: BoundArrays, record: ProblemRecord, sigma: Array, problem: CMDP | None) -> str:
    """What was not declared: a ceiling below the horizon, or states that cannot follow."""
    told, ceiling, H = record.declared, arrays.ceiling, record.horizon
    if (arrays.followers is not None) != (told is not None and told.successors) and arrays.stakes is not None:
        return "successors are kept and not declared, or declared and not kept"
    if ceiling is not None:
        if told is None or ceiling.min() < 0 or ceiling.max() > H * (1 + 1e-9):
            return "a ceiling that nothing declares, or none"
        ends, played = declared_ends(record, np.zeros(len(sigma))), np.diff(arrays.first).reshape(len(ceiling), -1) > 0
        # A state that was sampled is not terminal, and of one that is nothing more can come.
        least = np.full(len(ceiling), float(ends.values[1] @ sigma))
        if told.terminal:
            least[~played.any(axis=1)] = min(least[0], float(ends.zero @ sigma) * H)
        if not told.successors and np.any(ceiling < least - 1e-9 * (1 + H)):
            return "the ceiling is below what was declared"
    if problem is None:
        return ""
    if arrays.stakes is not None:
        known = np.minimum(value_limits(problem, np.arange(len(arrays.start)))[1] @ sigma, H)
        if not np.allclose(H if ceiling is None else ceiling, known, rtol=0, atol=1e-9 * (1 + H)):
            return "the ceiling is not what the problem declares"
    if arrays.followers is not None and arrays.followers_first is not None:
        succ = problem.successors
        same = succ is not None and np.array_equal(succ.indices, arrays.followers)
        if not (same and succ is not None and np.array_equal(succ.indptr, arrays.followers_first)):
            return "the successors are not those of the problem"
    return ""


def _strange(arrays: BoundArrays, problem: CMDP | None) -> str:
    """What cannot be: signals outside [0, 1] or not those of the problem, another start distribution, negative spreads."""
    signals, noise, start = arrays.signals, arrays.noise, arrays.start
    if signals.min() < -1e-9 or signals.max() > 1 + 1e-9 or noise.min() < 0 or noise.max() > 0.5 + 1e-6:
        return "signals lie outside their ranges"
    if start.min() < 0 or abs(float(start.sum()) - 1) > 1e-9:
        return "the start distribution is none"
    if arrays.stakes is None:
        assert arrays.spread is not None and arrays.span is not None
        if arrays.spread.min() < 0 or arrays.span < 0:
            return "spread or span are none"
    elif arrays.stakes.min() <= 0 or arrays.optimistic.min() < 0:
        return "stakes must be positive, and no value negative"
    if problem is None:
        return ""
    S, A = len(arrays.optimistic), problem.num_actions
    known = ~problem.observed
    true = problem.utilities(np.repeat(np.arange(S), A), np.tile(np.arange(A), S))[:, known]
    if not np.allclose(true, signals[:, known], rtol=0, atol=1e-9) or noise[:, known].max(initial=0.0) > 0:
        return "the signals are not those of the problem"
    rho = np.zeros(S)
    np.add.at(rho, problem.start.states, problem.start.weights)
    if problem.start.sampler is None and not np.allclose(rho, start, rtol=0, atol=1e-9):
        return "the start distribution is not that of the problem"
    return ""
