"""What is stated follows from the limits and the bound by arithmetic: levels, verdicts, weak duality, the gap."""

from __future__ import annotations

import math

from msgspec import UnsetType

from saddleback.problem.cmdp import CMDP
from saddleback.runs.certificate_file import CertificateRecord, LinearityRecord
from saddleback.runs.evidence_file import RolloutValues
from saddleback.runs.recheck.bound import TABLE
from saddleback.runs.recheck.check import ROUNDING, STARTS_SHARE, Check, Request, close, digits, signals_of, size

_CAP = 1e-6  # γ^L of the longest rollout
_OF_SEVERAL = 0.8  # of δ: the most that one of several attempts of a strict solve may spend
_BOUNDED = "rewards and constraint signals within their declared ranges"


def check_levels(certificate: CertificateRecord, problem: CMDP | None, request: Request | None) -> Check:
    """The δ's of all statements must add up to no more than what 1 − confidence leaves to one certificate."""
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
    if problem is not None and problem.start.sampler is not None:
        share *= 1 - STARTS_SHARE
    detail = f"the statements may fail with probability {spent:.6g}, of {share * allowed:.6g} allowed"
    detail += "" if right else "; they are not divided evenly, or another confidence was asked for"
    return Check("division of δ", right and spent <= share * allowed + ROUNDING * allowed, detail)


def check_assumptions(certificate: CertificateRecord) -> Check:
    """Every statement must say what it needs: bounded signals, and linearity where it was proved from a coreset."""
    told, bound = certificate.assumes, certificate.evidence.bound
    on_bound = {"infeasible"} if certificate.value is None else {"upper_bound", "gap"} if bound else set[str]()
    wanted = on_bound if certificate.value is None else {"value", "constraints"} | on_bound
    if certificate.value is None and bound is None and "slack_bound" not in told and not told:
        wanted = set()
    right = told.keys() == wanted and all(text.startswith(_BOUNDED) for text in told.values())
    right &= all("independent simulator calls" in text for text in told.values()) or not certificate.samples
    if bound is not None and bound.kind != TABLE:
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
        right &= told.number <= told.steps <= told.number * cap and cap <= longest
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


def check_upper_bound(certificate: CertificateRecord) -> Check:
    """Weak duality, from the stated bound on the best mixed reward."""
    bound, told = certificate.evidence.bound, certificate.upper_bound
    if bound is None or linearity_refuted(certificate) or certificate.contradictions:
        refuted = "linearity was refuted" if linearity_refuted(certificate) else "the evidence contradicts itself"
        why = "no bound was computed" if bound is None else refuted
        return Check("upper bound", told is None, f"{why}; stated: {digits(told)}")
    problem, sigma = certificate.problem, bound.sigma
    H, b = problem.horizon, [c.unit_threshold for c in problem.constraints]
    paid = sum(s * x for s, x in zip(sigma[1:], b, strict=True))
    best = min((bound.value - paid) / sigma[0], H) if sigma[0] > 0 else math.inf
    best = best * problem.reward.scale + problem.reward.base * H
    right = told is not None and math.isfinite(best) and abs(told - best) <= ROUNDING * size(problem.reward, H, best)
    return Check("upper bound", right, f"{digits(told)} stated, {digits(best)} by weak duality")


def check_gap(certificate: CertificateRecord) -> Check:
    """The bound, less what the policy is proved to have."""
    top, told = certificate.upper_bound, certificate.gap
    if top is None or certificate.value is None:
        return Check("gap", told is None, f"no upper bound; stated: {digits(told)}")
    (low, high), reward = certificate.value, certificate.problem.reward
    gap = max(0.0, high - top if reward.scale < 0 else top - low)
    near = ROUNDING * size(reward, certificate.problem.horizon, top)
    right = told is not None and abs(told - gap) <= near
    return Check("gap", right, f"{digits(told)} stated, {digits(gap)} found")


def check_room(certificate: CertificateRecord) -> Check:
    """Infeasibility: from the bound on the constraints' mixed values, or from the ranges of the signals alone."""
    bound, told = certificate.evidence.bound, certificate.slack_bound
    problem = certificate.problem
    b = [c.unit_threshold for c in problem.constraints]
    nothing = (certificate.feasible, certificate.gap, certificate.upper_bound, certificate.linear)
    if nothing != ("undecided", None, None, None) or certificate.by_start or certificate.contradictions:
        return Check("infeasibility", False, "where there is no policy, something is stated of one")
    if isinstance(told, UnsetType):
        said = isinstance(certificate.infeasible, UnsetType) and (bound is None or linearity_refuted(certificate))
        return Check("infeasibility", said, "nothing is stated")
    if bound is None:
        room = problem.horizon - max(b)
    else:
        room = bound.value - sum(s * x for s, x in zip(bound.sigma[1:], b, strict=True))
    near = ROUNDING * (1 + problem.horizon + abs(room))  # of the horizon: what is no more is no room, and none missing
    proved = (bound is None or bound.sigma[0] == 0) and abs(told - room) <= near
    word = "proved" if told < 0 else "not proved"
    right = proved and math.isfinite(room) and certificate.infeasible == word
    return Check("infeasibility", right, f"room {digits(told)} stated, {digits(room)} found: {word}")
