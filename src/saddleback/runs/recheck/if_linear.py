"""What a certificate says under linearity: that it stands in its own place, says what it needs, and withstands the misfit that it claims.

A statement withstands ε if it still holds, with its margin doubled, where P is ε away from linear in total variation. The bounds that hold there
(``evidence.bound.bent``) need new samples; that the claims follow from them is looked at here. What limits of values withstand is not kept.
"""

from __future__ import annotations

import math

import numpy as np

from saddleback.certificates.certificate import BoundEvidence
from saddleback.problem.cmdp import CMDP
from saddleback.runs.certificate_file import IF_LINEAR, CertificateRecord
from saddleback.runs.recheck.check import ROUNDING, Check, digits, size, unchecked
from saddleback.runs.recheck.endings import declared_ends, most_reward

_NOT_HERE = "where episodes end and what can follow is not known here"


def free_bound(certificate: CertificateRecord) -> BoundEvidence | None:
    """The bound behind what is proved: one that does not assume linearity."""
    bound = certificate.evidence.bound
    return None if bound is None or bound.kind in IF_LINEAR else bound


def best_reward(
    certificate: CertificateRecord, bound: BoundEvidence, value: float, ceiling: float | None = None
) -> float:
    """Weak duality in the user's units, from a bound on the best mixed reward, or the most that was declared (None: of totals alone)."""
    problem, sigma = certificate.problem, bound.sigma
    paid = sum(s * c.unit_threshold for s, c in zip(sigma[1:], problem.constraints, strict=True))
    most = float(declared_ends(problem, np.zeros(len(sigma))).values[1, 0]) if ceiling is None else ceiling
    best = min((value - paid) / sigma[0], most) if sigma[0] > 0 else math.inf
    return best * problem.reward.scale + problem.reward.base * problem.horizon


def least_gap(certificate: CertificateRecord, bound: BoundEvidence | None, top: float, paired: float | None) -> float:
    """The bound, less what the policy is proved to have; or what is paired, less what the constraints cost, if that is less."""
    assert certificate.value is not None
    (low, high), reward = certificate.value, certificate.problem.reward
    gap = max(0.0, high - top if reward.scale < 0 else top - low)
    if bound is None or paired is None or not bound.sigma[0] > 0:
        return gap
    paid = sum(s * c.unit_threshold for s, c in zip(bound.sigma[1:], certificate.problem.constraints, strict=True))
    return min(gap, max(0.0, (paired - paid) / bound.sigma[0]) * abs(reward.scale))


def room_left(certificate: CertificateRecord, bound: BoundEvidence, value: float) -> float:
    """The bound on what any policy leaves in all constraints together."""
    rows = zip(bound.sigma[1:], certificate.problem.constraints, strict=True)
    return value - sum(s * c.unit_threshold for s, c in rows)


def check_place(certificate: CertificateRecord, problem: CMDP | None) -> Check | None:
    """What assumes linearity must stand under ``linear``, and nothing else may; None where nothing does.

    That nothing of it is called proved follows from the checks of what is, which know only bounds without the assumption.
    """
    bound, given = certificate.evidence.bound, certificate.linear
    if given is None:
        return None
    linear = bound is not None and bound.kind in IF_LINEAR
    stray = not linear and (given.upper_bound, given.gap, given.slack_bound) != (None, None, None)
    m = len(certificate.problem.constraints)
    right = not stray and len(given.constraints) == (0 if given.value is None else m)
    told = " ".join([given.assumes, *certificate.assumes.values()])
    right &= given.on_candidates == ("candidate" in told) or certificate.problem.states is not None
    if certificate.problem.states is None:
        right &= given.on_candidates
    return Check("if linear", right, "what assumes linearity stands apart" if right else "it is not where it belongs")


def check_best(certificate: CertificateRecord, problem: CMDP | None) -> Check | None:
    """Weak duality and the gap under linearity, by the same rules as what is proved; None where no such bound was computed."""
    name, bound, given = "bound if linear", certificate.evidence.bound, certificate.linear
    if bound is None or free_bound(certificate) is not None or certificate.value is None:
        return None
    report = certificate.linearity
    if certificate.contradictions or (report is not None and not report.passed):
        nothing = given is None or (given.upper_bound, given.gap) == (None, None)
        return Check(name, nothing, "linearity was refuted, or the evidence contradicts itself")
    if given is None or given.upper_bound is None or given.gap is None:
        return Check(name, False, "it was computed and is not stated")
    ceiling, told = most_reward(certificate.problem, problem), given.upper_bound
    top = best_reward(certificate, bound, bound.value, ceiling)
    near = ROUNDING * size(certificate.problem.reward, certificate.problem.horizon, top)
    detail = f"{digits(told)} stated, {digits(top)} by weak duality"
    if ceiling is None and (told - top) * certificate.problem.reward.scale < 0 and abs(told - top) > near:
        return Check(name, True, f"{detail}; {_NOT_HERE}", "not checked")
    gap = least_gap(certificate, bound, told, bound.paired)
    right = math.isfinite(top) and abs(told - top) <= near and abs(given.gap - gap) <= near
    return Check(name, right, f"{detail}; gap {digits(given.gap)} stated, {digits(gap)} found")


def check_withstood(certificate: CertificateRecord, problem: CMDP | None) -> Check | None:
    """The misfits that the statements withstand, from the bounds that hold there; None where none is stated."""
    given, bound = certificate.linear, certificate.evidence.bound
    name = "misfit withstood"
    if given is None or given.withstands is None:
        return None if bound is None or not bound.bent else Check(name, False, "bounds are kept, and nothing is stated")
    told, rows = given.withstands, () if bound is None else bound.bent
    each = [told.value, *told.constraints, told.upper_bound, told.gap, told.slack_bound]
    right = all(x is None or x == 0 or 1e-7 <= x <= 1 for x in each)
    right &= (told.value is None) == (given.value is None) and len(told.constraints) == len(given.constraints)
    right &= [row[0] for row in rows] == sorted({row[0] for row in rows})
    right &= bound is None or all(row[1] >= bound.value - ROUNDING * (1 + bound.value) for row in rows)
    ceiling = most_reward(certificate.problem, problem)
    if right and rows and ceiling is None:
        return unchecked(name, _NOT_HERE)
    wanted = _withstood(certificate, rows, ceiling)
    right &= (told.upper_bound, told.gap, told.slack_bound) == wanted
    shown = ", ".join(f"{x:.3g}" for x in wanted if x is not None) or "no bound"
    if right and not rows:
        return unchecked(name, "what limits of values withstand needs new samples")
    return Check(name, right, f"{shown}, from the bounds that hold there" if right else "does not follow")


def _withstood(
    certificate: CertificateRecord, rows: tuple[tuple[float, ...], ...], ceiling: float | None
) -> tuple[float | None, float | None, float | None]:
    given, bound = certificate.linear, certificate.evidence.bound
    assert given is not None
    if bound is None or (given.upper_bound is None and given.slack_bound is None):
        return None, None, None
    if given.upper_bound is None:
        assert given.slack_bound is not None
        near = ROUNDING * (1 + certificate.problem.horizon)
        holds = [room_left(certificate, bound, row[1]) < -near for row in rows]
        return None, None, _largest(rows, holds) if given.slack_bound < 0 else None
    if certificate.value is None or given.gap is None:
        return None, None, None
    near = ROUNDING * size(certificate.problem.reward, certificate.problem.horizon, given.upper_bound)

    def at(row: tuple[float, ...], paired: bool) -> float:
        top = best_reward(certificate, bound, row[1], ceiling)
        return least_gap(certificate, bound, top, row[2] if paired and len(row) > 2 else None)

    above = least_gap(certificate, None, given.upper_bound, None)
    tops = [at(row, False) <= 2 * above + near for row in rows]
    gaps = [at(row, True) <= 2 * given.gap + near for row in rows]
    return _largest(rows, tops), _largest(rows, gaps), None


def _largest(rows: tuple[tuple[float, ...], ...], holds: list[bool]) -> float:
    """The largest misfit up to which all hold; 0 where there is none."""
    first = holds.index(False) if False in holds else len(holds)
    return rows[first - 1][0] if first else 0.0
