"""Check a stored certificate without the code that made it, and without a new sample.

The intervals are computed again from the single rollouts, with a player who bets on "the mean is larger than μ" and whose
stakes follow from what he has seen (docs/certificate.md has the rule): μ is excluded once his capital has grown 1/δ-fold.
Maurer and Pontil's interval, which needs no bets, must agree with it. The rest is arithmetic on the stated numbers: how δ
is divided, the maps between units, weak duality, the gap, the verdicts. What cannot be checked without drawing samples is
the stated bound on max_π V_□^π(ρ) itself, and the limits by start state.

Nothing is imported from the certificate's own code but the form of its evidence: an error there must not hide here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import UnsetType
from numpy.typing import ArrayLike

from saddleback.certificates.certificate import RolloutEvidence
from saddleback.files.json_file import Limits
from saddleback.problem.spaces import Array
from saddleback.runs.certificate_file import CertificateRecord, ConstraintRecord, SignalRecord
from saddleback.runs.run_folder import RolloutValues

_ROUNDING = 1e-9
_BISECTIONS = 60


class Check(NamedTuple):
    """One statement that was looked at again."""

    name: str
    passed: bool
    detail: str


def recheck(certificate: CertificateRecord, rollouts: RolloutValues | None) -> list[Check]:
    """All that can be checked, in the order of the file; ``certificate`` has the form of ``certificate.json``."""
    checks = [_levels(certificate)]
    if certificate.value is None:
        return [*checks, _room(certificate)]
    if rollouts is None:
        return [*checks, Check("rollouts", False, "the values of the single rollouts are missing")]
    told, problem = certificate.evidence.rollouts, certificate.problem
    assert told is not None  # a record with limits has them
    checks.append(_same_rollouts(told, rollouts))
    names = ["reward", *(c.name for c in problem.constraints)]
    stated = [certificate.value, *certificate.constraints]
    signals: list[SignalRecord | ConstraintRecord] = [problem.reward, *problem.constraints]
    for j, (signal, limits) in enumerate(zip(signals, stated, strict=True)):
        found = _interval(signal, limits, j, told, rollouts, problem.horizon)
        checks += [check._replace(name=f"limits of {names[j]}{check.name}") for check in found]
    return [*checks, _verdict(certificate), _upper_bound(certificate), _gap(certificate)]


def _levels(certificate: CertificateRecord) -> Check:
    """The δ's of all statements must add up to no more than 1 − confidence."""
    rollouts, bound = certificate.evidence.rollouts, certificate.evidence.bound
    spent = (1 + len(certificate.constraints)) * rollouts.delta_of_each if rollouts else 0.0
    spent += bound.delta if bound else 0.0
    allowed = 1 - certificate.confidence
    detail = f"the statements may fail with probability {spent:.6g}, of {allowed:.6g} allowed"
    return Check("division of δ", spent <= allowed + _ROUNDING, detail)


def _same_rollouts(told: RolloutEvidence, rollouts: RolloutValues) -> Check:
    z = rollouts.values
    pairs: list[tuple[ArrayLike, Array]] = [
        (told.mean, z.mean(axis=0)),
        (told.variance, z.var(axis=0)),
        (told.low, rollouts.low),
        (told.high, rollouts.high),
        (told.tail, rollouts.tail),
    ]
    same = len(z) == told.number and all(np.allclose(a, b, rtol=_ROUNDING, atol=_ROUNDING) for a, b in pairs)
    inside = bool(np.all(z >= rollouts.low - _ROUNDING) and np.all(z <= rollouts.high + _ROUNDING))
    detail = f"{len(z):,} values; {'they' if inside else 'NOT all of them'} lie within their stated range"
    return Check("rollouts", same and inside, detail if same else f"{detail}; they are not those of the certificate")


def _interval(
    signal: SignalRecord | ConstraintRecord,
    stated: Limits,
    j: int,
    told: RolloutEvidence,
    rollouts: RolloutValues,
    H: float,
) -> list[Check]:
    """One interval against both ways to compute it, in the user's units."""
    z, low, high = rollouts.values[:, j], float(rollouts.low[j]), float(rollouts.high[j])
    delta, span, n = told.delta_of_each, high - low, len(z)
    y = np.clip((z - low) / span, 0.0, 1.0) if span > 0 else np.zeros(n)
    plain = _maurer_pontil(y, delta)
    mine = plain if told.method != "betting" else (_lower(y, delta / 2), 1 - _lower(1 - y, delta / 2))

    def in_units(ends: tuple[float, float]) -> list[float]:  # with what the cap may hide
        tails = rollouts.tail[:, j].tolist()
        values = (min(max(low + span * x + tail, 0.0), H) for x, tail in zip(ends, tails, strict=True))
        return sorted(x * signal.scale + signal.base * H for x in values)

    # The certificate's bisection ends with an interval a millionth of a standard error too wide.
    tolerance = span * 3e-6 * (math.sqrt(float(y.var()) * math.log(2 / delta) / n) + math.log(2 / delta) / n)
    tolerance = abs(signal.scale) * (tolerance + _ROUNDING * (1 + H))
    found, other = in_units(mine), in_units(plain)
    right = max(abs(a - b) for a, b in zip(found, stated, strict=True)) <= tolerance
    detail = f"{_words(stated)} stated, {_words(found)} found"
    meets = stated[0] <= other[1] + tolerance and other[0] <= stated[1] + tolerance
    return [Check("", right, detail), Check(", another way", meets, f"{_words(other)} by Maurer-Pontil")]


def _digits(x: float | None) -> str:
    return "none" if x is None else f"{x:.9g}"


def _words(limits: Sequence[float]) -> str:
    return f"{limits[0]:.6g} to {limits[1]:.6g}"


def _lower(y: Array, delta: float) -> float:
    """The least mean in [0, 1] at which the player's capital never grows 1/δ-fold."""
    n, need = len(y), math.log(1 / delta)
    stakes, total, squares = np.empty(n), 0.5, 0.01
    for i, x in enumerate(y.tolist()):
        stakes[i] = math.sqrt(2 * need / (n * max(squares / (i + 1), 1e-12)))
        total += x
        squares += (x - total / (i + 2)) ** 2

    def excluded(mean: float) -> bool:
        growth = 1 + np.minimum(stakes, 0.75 / mean) * (y - mean)
        return float(np.cumsum(np.log(growth)).max()) >= need

    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excluded(middle) else (low, middle)
    return low


def _maurer_pontil(y: Array, delta: float) -> tuple[float, float]:
    n, L = len(y), math.log(4 / delta)
    if n < 2:
        return 0.0, 1.0
    half = math.sqrt(2 * float(y.var(ddof=1)) * L / n) + 7 * L / (3 * (n - 1))
    return max(0.0, float(y.mean()) - half), min(1.0, float(y.mean()) + half)


def _verdict(certificate: CertificateRecord) -> Check:
    """What was said must follow from the limits, where a limit that equals its threshold may be read either way."""
    slacks = []
    rows = zip(certificate.problem.constraints, certificate.constraints, certificate.allowance, strict=True)
    for c, limits, allowed in rows:
        sign = 1 if c.sense == ">=" else -1
        worst, best = sorted(sign * (x - c.threshold) + allowed for x in limits)
        slacks.append((worst, best, _ROUNDING * (1 + abs(c.threshold))))
    follows = {
        "certified": all(worst >= -r for worst, _, r in slacks),
        "refuted": any(best < r for _, best, r in slacks),
        "undecided": any(worst < r for worst, _, r in slacks) and not any(best < -r for _, best, r in slacks),
    }[certificate.feasible]
    return Check(
        "verdict", follows, f"'{certificate.feasible}' {'follows' if follows else 'does not follow'} from the limits"
    )


def _upper_bound(certificate: CertificateRecord) -> Check:
    """Weak duality, from the stated bound on the best mixed reward."""
    bound, told, report = certificate.evidence.bound, certificate.upper_bound, certificate.linearity
    if bound is None or (report is not None and report.failures):
        why = "no bound was computed" if bound is None else "linearity was refuted"
        return Check("upper bound", told is None, f"{why}; stated: {_digits(told)}")
    problem, sigma = certificate.problem, bound.sigma
    H, b = problem.horizon, [c.unit_threshold for c in problem.constraints]
    paid = sum(s * x for s, x in zip(sigma[1:], b, strict=True))
    best = min((bound.value - paid) / sigma[0], H) if sigma[0] > 0 else math.inf
    best = best * problem.reward.scale + problem.reward.base * H
    right = told is not None and math.isfinite(best) and abs(told - best) <= _ROUNDING * (1 + abs(best))
    return Check("upper bound", right, f"{_digits(told)} stated, {_digits(best)} by weak duality")


def _gap(certificate: CertificateRecord) -> Check:
    top, told = certificate.upper_bound, certificate.gap
    if top is None or certificate.value is None:
        return Check("gap", told is None, f"no upper bound; stated: {_digits(told)}")
    low, high = certificate.value
    gap = max(0.0, high - top if certificate.problem.reward.scale < 0 else top - low)
    return Check(
        "gap",
        told is not None and abs(told - gap) <= _ROUNDING * (1 + abs(top)),
        f"{_digits(told)} stated, {_digits(gap)} found",
    )


def _room(certificate: CertificateRecord) -> Check:
    """Infeasibility: from the bound on the constraints' mixed values, or from the ranges of the signals alone."""
    bound, told = certificate.evidence.bound, certificate.slack_bound
    problem = certificate.problem
    b = [c.unit_threshold for c in problem.constraints]
    if isinstance(told, UnsetType):
        return Check("infeasibility", bound is None, "nothing is stated")
    if bound is None:
        room = problem.horizon - max(b)
    else:
        room = bound.value - sum(s * x for s, x in zip(bound.sigma[1:], b, strict=True))
    proved = (bound is None or bound.sigma[0] == 0) and abs(told - room) <= _ROUNDING * (1 + abs(room))
    word = "proved" if told < 0 else "not proved"
    right = proved and math.isfinite(room) and certificate.infeasible == word
    return Check("infeasibility", right, f"room {_digits(told)} stated, {_digits(room)} found: {word}")
