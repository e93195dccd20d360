"""What is stated follows from the limits and the bound by arithmetic: levels, verdicts, weak duality, the gap."""

from __future__ import annotations

import math

import numpy as np
from msgspec import UnsetType

from saddleback.problem.cmdp import CMDP
from saddleback.runs.certificate_file import CertificateRecord, LinearityRecord
from saddleback.runs.evidence_file import RolloutValues
from saddleback.runs.recheck.bound import ON_TABLES
from saddleback.runs.recheck.check import ROUNDING, STARTS_SHARE, Check, Request, close, digits, signals_of, size
from saddleback.runs.recheck.endings import declared_ends, most_reward
from saddleback.runs.recheck.if_linear import free_bound, least_gap, room_left

_CAP = 1e-6  # γ^L of the longest rollout
_OF_SEVERAL = 0.8  # of δ: the most that one of several attempts of a strict solve may spend
_BOUNDED = "rewards and constraint signals within their declared ranges"
_ONE_BY_ONE = "held-out pairs, one by one"
_DECLARED = (
    "terminal states as declared",
    "no next states but the declared successors",
    "signals that add up to no more and no less than declared",
)


def check_levels(certificate: CertificateRecord, drawn_starts: bool, request: Request | None) -> Check:
    """The δ's of all statements must add up to no more than what 1 − confidence leaves to one certificate, and to its start states."""
    rollouts, bound = certificate.evidence.rollouts, certificate.evidence.bound
    spent = (1 + len(certificate.constraints)) * rollouts.delta_of_each if rollouts else 0.0
    spent += bound.delta if bound else 0.0
    asked = request or Request()
    allowed = 1 - certificate.confidence if asked.delta is None else asked.delta
    right = abs(1 - certificate.confidence - allowed) <= 1e-15  # the rounding of a number near 1
    if rollouts and bound:  # divided evenly
        right &= close(rollouts.delta_of_each, bound.delta)
    share = asked.share if rollouts else 1.0
    if asked.strict and _calls(certificate) < certificate.samples:  # the rest went to other attempts
        share *= _OF_SEVERAL
    share *= 1 - STARTS_SHARE if drawn_starts else 1.0
    detail = f"the statements may fail with probability {spent:.6g}, of {share * allowed:.6g} allowed"
    detail += "" if right else "; they are not divided evenly, or another confidence was asked for"
    return Check("division of δ", right and spent <= share * allowed + ROUNDING * allowed, detail)


def check_assumptions(certificate: CertificateRecord) -> Check:
    """Every statement must say what it needs: bounded signals, and linearity where it was proved from a coreset."""
    told, bound = certificate.assumes, certificate.evidence.bound
    some = bound is not None or certificate.upper_bound is not None
    on_bound = {"infeasible"} if certificate.value is None else {"upper_bound", "gap"} if some else set[str]()
    wanted = on_bound if certificate.value is None else {"value", "constraints"} | on_bound
    if certificate.value is None and bound is None and "slack_bound" not in told and not told:
        wanted = set()
    right = told.keys() == wanted and all(text.startswith(_BOUNDED) for text in told.values())
    right &= all("independent simulator calls" in text for text in told.values()) or not certificate.samples
    declared = certificate.problem.declared
    if declared is not None:
        given = (declared.terminal, declared.successors, any(declared.totals))
        wanted_words = [words for words, there in zip(_DECLARED, given, strict=True) if there]
        right &= all(words in text for words in wanted_words for text in told.values())
    by_samples = bound is not None and not (linearity_refuted(certificate) and certificate.upper_bound is not None)
    if bound is not None and by_samples and bound.kind not in ON_TABLES:
        right &= all("linear in the features" in told.get(name, "") for name in on_bound)
        right &= certificate.problem.states is not None or all("candidates" in told.get(name, "") for name in on_bound)
    if certificate.linear is not None:
        right &= (
            certificate.linear.assumes.startswith(_BOUNDED) and "linear in the features" in certificate.linear.assumes
        )
    return Check("assumptions", right, "each statement says what it needs" if right else "a statement leaves some out")


def check_calls(certificate: CertificateRecord, rollouts: RolloutValues | None, request: Request | None) -> Check:
    """The calls of the parts add up to those of the proof; a strict solve may have made several."""
    told, parts = certificate.evidence.rollouts, _calls(certificate)
    several = request is None or request.strict
    right = parts <= certificate.samples if several else parts == certificate.samples
    if told is not None:
        longest = (
            1 if certificate.problem.gamma <= _CAP else math.ceil(math.log(_CAP) / math.log(certificate.problem.gamma))
        )
        cap = longest if rollouts is None or rollouts.cap is None else rollouts.cap
        least = told.number if certificate.problem.declared is None else 0  # one that begins at an end takes none
        begun = told.number if rollouts is None or rollouts.waves is None else sum(rollouts.waves[:, 0].tolist())
        right &= least <= told.steps <= begun * cap and cap <= longest
    return Check("simulator calls", right, f"{parts:,} in the parts, {certificate.samples:,} stated")


def _calls(certificate: CertificateRecord) -> int:
    """The simulator calls of the parts that are shown."""
    told, bound, report = certificate.evidence.rollouts, certificate.evidence.bound, certificate.linearity
    parts = (told.steps if told else 0) + (bound.samples if bound else 0) + (report.samples if report else 0)
    return parts + (certificate.averages.samples if certificate.averages else 0)


def linearity_refuted(certificate: CertificateRecord) -> bool:
    """Whether a bound that rests on linearity had to be withheld."""
    return certificate.linearity is not None and not certificate.linearity.passed


def check_linearity(report: LinearityRecord) -> Check:
    """A test passes where its statistic is within its limit; all but that against the rollouts refute linearity."""
    fallen = [test for test in report.tests if not test.passed]
    right = all(test.passed == (test.statistic <= test.limit) for test in report.tests)
    right &= all(test.rigorous == (not test.name.endswith("against rollouts")) for test in report.tests)
    right &= report.assumed and report.failures == [test.name for test in fallen]
    right &= report.passed == (not any(test.rigorous for test in fallen))
    pairs = [test.limit for test in report.tests if test.name == _ONE_BY_ONE]
    if report.detectable is not None:  # no test sees what is below its own limit
        right &= bool(pairs) and report.samples > 0 and min(*pairs, 1.0) <= report.detectable <= 1
    detail = (
        f"{len(fallen)} of {len(report.tests)} tests failed; linearity {'stands' if report.passed else 'is refuted'}"
    )
    return Check("linearity", right, detail)


def check_contradiction(certificate: CertificateRecord) -> Check | None:
    """Whether the limits contradict the bound over all policies, or what was fitted before: then it must be said.

    σᵀV_low > bound, or a fitted value further from its limits than its error, are evidence against what the proof assumes.
    An honest run says so itself, and that is a warning.
    """
    problem, bound, fitted = certificate.problem, certificate.evidence.bound, certificate.evidence.fitted
    H = problem.horizon
    assert certificate.value is not None
    signals = signals_of(certificate)
    units = [
        sorted((x - s.base * H) / s.scale for x in limits)
        for s, limits in zip(signals, [certificate.value, *certificate.constraints], strict=True)
    ]
    if linearity_refuted(certificate):
        bound = fitted = None
    # A difference that rounding may have made may be read either way.
    near = 1e-6 * H
    least = 0.0 if bound is None else sum(s * low for s, (low, _) in zip(bound.sigma, units, strict=True))
    apart = [-math.inf if bound is None else least - bound.value]
    if fitted is not None:
        rows = zip(fitted.values, fitted.errors, units, strict=True)
        apart += [max(low - V, V - high) - e for V, e, (low, high) in rows]
    worst, said = max(apart), bool(certificate.contradictions)
    if worst > near and not said:
        return Check(
            "contradiction", False, f"the statements contradict each other by {digits(worst)}, which is not said"
        )
    if said and worst < -near:
        return Check("contradiction", False, "one is stated, and there is none")
    detail = f"the run itself says: {'; '.join(certificate.contradictions)}"
    return Check("contradiction", True, detail, "warning") if said else None


def check_verdict(certificate: CertificateRecord) -> Check:
    """What was said must follow from the limits, where a limit that equals its threshold may be read either way."""
    if not isinstance(certificate.slack_bound, UnsetType) or not isinstance(certificate.infeasible, UnsetType):
        return Check("verdict", False, "there is a policy, and yet it is said that there can be none")
    if certificate.contradictions:
        open_ = certificate.feasible == "undecided"
        return Check("verdict", open_, f"'{certificate.feasible}', where the evidence contradicts itself")
    slacks = []
    rows = zip(certificate.problem.constraints, certificate.constraints, certificate.allowance, strict=True)
    for c, limits, allowed in rows:
        sign = 1 if c.sense == ">=" else -1
        worst, best = sorted(sign * (x - c.threshold) + allowed for x in limits)
        H = certificate.problem.horizon
        slacks.append((worst, best, ROUNDING * max(size(c, H, c.threshold), (1 + 1e-6) * H * abs(c.scale))))
    follows = {
        "certified": all(worst >= -r for worst, _, r in slacks),
        "refuted": any(best < r for _, best, r in slacks),
        "undecided": any(worst < r for worst, _, r in slacks) and not any(best < -r for _, best, r in slacks),
    }[certificate.feasible]
    return Check(
        "verdict", follows, f"'{certificate.feasible}' {'follows' if follows else 'does not follow'} from the limits"
    )


def check_allowance(certificate: CertificateRecord, request: Request | None) -> Check:
    """By how much a constraint may be missed: the ε of a relaxed request, as a share of the ranges; else nothing."""
    if request is None:
        return Check("allowance", min(certificate.allowance) >= 0, "taken as stated", "not checked")
    relaxed = request.epsilon is not None and not request.strict
    share = (request.epsilon or 0.0) / abs(certificate.problem.reward.scale) if relaxed else 0.0
    wanted = [share * abs(c.scale) for c in certificate.problem.constraints]
    rows = zip(certificate.allowance, wanted, certificate.problem.constraints, strict=True)
    right = all(math.isclose(told, x, rel_tol=ROUNDING, abs_tol=1e-12 * min(1.0, abs(c.scale))) for told, x, c in rows)
    words = ", ".join(f"{x:.6g}" for x in wanted)
    return Check("allowance", right, f"{words} by the request" + ("" if right else "; another is stated"))


def check_upper_bound(certificate: CertificateRecord, problem: CMDP | None) -> Check:
    """Weak duality, from the stated bound on the best mixed reward; or what was declared, if that is less or nothing was proved."""
    name, bound, told = "upper bound", free_bound(certificate), certificate.upper_bound
    record, refuted = certificate.problem, linearity_refuted(certificate)
    H, reward, best, how = record.horizon, record.reward, math.inf, "by weak duality"
    if certificate.contradictions:
        return Check(name, told is None, f"the evidence contradicts itself; stated: {digits(told)}")
    if bound is not None and not refuted:
        paid = sum(s * c.unit_threshold for s, c in zip(bound.sigma[1:], record.constraints, strict=True))
        best = (bound.value - paid) / bound.sigma[0] if bound.sigma[0] > 0 else math.nan
    ceiling = most_reward(record, problem)
    least = (
        float(declared_ends(record, np.zeros(1 + len(record.constraints))).values[1, 0]) if ceiling is None else ceiling
    )
    if least < H * (1 - ROUNDING) or math.isfinite(best):
        best, how = (best, how) if best <= least else (least, "by what was declared")
    if told is None or math.isinf(best):
        why = "linearity was refuted" if refuted else "no bound was computed"
        nothing = math.isinf(best) or (ceiling is None and (bound is None or refuted))
        return Check(name, told is None and nothing, f"{why}; stated: {digits(told)}")
    found = best * reward.scale + reward.base * H
    near, detail = ROUNDING * size(reward, H, found), f"{digits(told)} stated, {digits(found)} {how}"
    if ceiling is None and (told - found) * reward.scale < -near * abs(reward.scale):
        why = f"{detail}; where episodes end and what can follow is not known here"
        return Check(name, True, why, "not checked")
    return Check(name, math.isfinite(found) and abs(told - found) <= near, detail)


def check_gap(certificate: CertificateRecord) -> Check:
    """The bound, less what the policy is proved to have; or what is paired, less what the constraints cost, if that is less."""
    top, told, bound = certificate.upper_bound, certificate.gap, free_bound(certificate)
    if top is None or certificate.value is None:
        return Check("gap", told is None, f"no upper bound; stated: {digits(told)}")
    gap = least_gap(certificate, bound, top, None if bound is None else bound.paired)
    near = ROUNDING * size(certificate.problem.reward, certificate.problem.horizon, top)
    right = told is not None and abs(told - gap) <= near
    return Check("gap", right, f"{digits(told)} stated, {digits(gap)} found")


def check_room(certificate: CertificateRecord) -> Check:
    """Infeasibility: from the bound on the constraints' mixed values, or from the ranges of the signals alone."""
    bound, told, given = certificate.evidence.bound, certificate.slack_bound, certificate.linear
    problem = certificate.problem
    nothing = (certificate.feasible, certificate.gap, certificate.upper_bound)
    beside = given is not None and (given.value, given.upper_bound, given.gap) != (None, None, None)
    if nothing != ("undecided", None, None) or beside or certificate.by_start or certificate.contradictions:
        return Check("infeasibility", False, "where there is no policy, something is stated of one")
    if given is not None and given.slack_bound is not None:
        return _check_room_if_linear(certificate, given.slack_bound)
    if isinstance(told, UnsetType):
        said = isinstance(certificate.infeasible, UnsetType) and (bound is None or linearity_refuted(certificate))
        return Check("infeasibility", said, "nothing is stated")
    if bound is not None and bound.kind not in ON_TABLES:
        return Check("infeasibility", False, "what assumes linearity is said without it")
    if bound is None:
        room = problem.horizon - max(c.unit_threshold for c in problem.constraints)
    else:
        room = room_left(certificate, bound, bound.value)
    near = ROUNDING * (1 + problem.horizon + abs(room))  # of the horizon: what is no more is no room, and none missing
    proved = (bound is None or bound.sigma[0] == 0) and abs(told - room) <= near
    word = "proved" if told < 0 else "not proved"
    right = proved and math.isfinite(room) and certificate.infeasible == word
    return Check("infeasibility", right, f"room {digits(told)} stated, {digits(room)} found: {word}")


def _check_room_if_linear(certificate: CertificateRecord, told: float) -> Check:
    """The same where the bound assumes linearity: then nothing may be called proved."""
    bound = certificate.evidence.bound
    room = math.inf if bound is None else room_left(certificate, bound, bound.value)
    near = ROUNDING * (1 + certificate.problem.horizon + abs(told))
    right = bound is not None and bound.kind not in ON_TABLES and bound.sigma[0] == 0 and abs(told - room) <= near
    right &= isinstance(certificate.slack_bound, UnsetType) and isinstance(certificate.infeasible, UnsetType)
    right &= not linearity_refuted(certificate)
    return Check("infeasibility if linear", right, f"room {digits(told)} stated, {digits(room)} found: not proved")
