"""The words of a verdict: the one place where a status and its reason become a sentence."""

from __future__ import annotations

from saddleback.runs.verdict import Proof, Reason, Verdict

_IF_LINEAR = "if P is linear in the features"
_ON_CANDIDATES = "and the candidates stand for all pairs"

RESTS_ON = {
    Proof.MEASURED: "by measured limits",
    Proof.PROVED: "which is proved",
    Proof.IF_LINEAR: f"which is proved {_IF_LINEAR}",
    Proof.IF_LINEAR_ON_CANDIDATES: f"which is proved {_IF_LINEAR} {_ON_CANDIDATES}",
}

_FIXED = {
    Reason.HOLDS_BY_ESTIMATES: "the constraints hold on average over the mixture, by the estimates",
    Reason.HOLDS_UP_TO_RELAXATION: "the constraints hold up to the relaxation of the target that was asked for",
    Reason.HOLDS_UP_TO_ACCURACY: "the constraints hold on average over the mixture, up to the accuracy of the run",
    Reason.HOLDS_BY_LIMITS: "every constraint holds, by its measured limits",
    Reason.HOLDS_PROVED: "every constraint is proved to hold",
    Reason.STRICT_NOT_PROVED: (
        "the constraints could not be proved to hold strictly; draw more samples for the certificate"
    ),
    Reason.NO_FEASIBLE_MIXTURE: (
        "no mixture of the policies found meets the target, although some policy may; draw more samples"
    ),
    Reason.FEATURES_CANNOT_TELL: (
        "no policy found meets the constraints, but the features cannot carry the rewards, so that proves nothing; use "
        "other features"
    ),
}


def sentence(verdict: Verdict) -> str:
    """What happened, why, and what to do about it; without a full stop."""
    text = _FIXED.get(verdict.reason) or _TOLD[verdict.reason](verdict)
    return f"{text} (no a-priori guarantee)" if verdict.promised is False else text


def _settling(verdict: Verdict) -> str:
    if verdict.needed is None:
        return "no affordable number of samples settles it: move the threshold"
    return f"about {verdict.needed:,.0f} samples should settle it, or move the threshold"


def _feasibility_open(v: Verdict) -> str:
    return (
        "it is not settled whether any policy meets the constraints: the best constraint value found lies within its own "
        f"error of the threshold; {_settling(v)}"
    )


def _multiplier_at_cap(v: Verdict) -> str:
    return (
        f"a multiplier stayed at its cap U = {v.cap:.3g}, so the dual has not converged; raise the cap or the number of "
        "samples, or move the threshold"
    )


def _strict_not_shown(v: Verdict) -> str:
    return (
        f"the constraint '{v.constraint}' could not be shown to hold strictly: its measured lower limit misses the "
        f"threshold; more iterations may do, or else {_settling(v)}"
    )


def _still_missed(v: Verdict) -> str:
    return (
        f"after {v.iterations} iterations the constraint '{v.constraint}' is still missed, by more than its measured limits "
        "and a hundredth of the horizon; run more iterations"
    )


def _accuracy_proved(v: Verdict) -> str:
    held = "every constraint is proved to hold" if v.strict else "no constraint is missed by more than was allowed"
    given = {
        Proof.IF_LINEAR: f", {_IF_LINEAR}",
        Proof.IF_LINEAR_ON_CANDIDATES: f", {_IF_LINEAR} {_ON_CANDIDATES}",
    }.get(v.proof, "")
    return f"proved with probability {v.confidence:g}: the reward is within {v.epsilon:g} of the optimum{given}, and {held}"


def _accuracy_unmet(v: Verdict) -> str:
    shown = "nothing was proved" if v.proved_error is None else f"the best that was proved is {v.proved_error:.4g}"
    return (
        f"an accuracy of {v.epsilon:g} was not proved within {v.allowed}: {shown}; allow more {v.limit} or ask for less"
    )


def _out_of_reach(v: Verdict) -> str:
    (row,) = v.shortfalls
    reach = "is at most" if row.sense == ">=" else "is at least"
    return (
        f"no policy can meet '{row.name}' {row.sense} {row.threshold:.6g}: with its range of values the discounted total "
        f"{reach} {row.best:.6g}; move the threshold"
    )


def _no_policy(v: Verdict) -> str:
    rows = [f"'{r.name}' {r.sense} {r.threshold:.6g} (the best found: {r.best:.6g})" for r in v.shortfalls]
    together = " together" if len(rows) > 1 else ""
    return f"no policy meets {' and '.join(rows)}{together}, {RESTS_ON[v.proof]}; relax a threshold"


def _refuted(v: Verdict) -> str:
    assert v.missed_by is not None
    low, high = v.missed_by
    return (
        f"its own certificate refutes this policy: '{v.constraint}' is missed by {low:.4g} to {high:.4g}; draw more samples "
        "for the solve, or ask for strict feasibility"
    )


_TOLD = {
    Reason.FEASIBILITY_OPEN: _feasibility_open,
    Reason.MULTIPLIER_AT_CAP: _multiplier_at_cap,
    Reason.STRICT_NOT_SHOWN: _strict_not_shown,
    Reason.STILL_MISSED: _still_missed,
    Reason.DUAL_GAP_OPEN: lambda v: f"the dual did not close its gap in {v.iterations} policies",
    Reason.CALLS_SPENT: lambda v: str(v.detail),
    Reason.ACCURACY_PROVED: _accuracy_proved,
    Reason.ACCURACY_UNMET: _accuracy_unmet,
    Reason.OUT_OF_REACH: _out_of_reach,
    Reason.NO_POLICY: _no_policy,
    Reason.REFUTED: _refuted,
}
