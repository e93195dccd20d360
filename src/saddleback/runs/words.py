"""The words of a verdict: the one place where a status and its reason become a sentence, and limits a judgement."""

from __future__ import annotations

from typing import Literal, NamedTuple

from saddleback.runs.verdict import Proof, Reason, Verdict

_IF_LINEAR = "if P is linear in the features"
_ON_CANDIDATES = "and the candidates stand for all pairs"

_GIVEN = {Proof.IF_LINEAR: f", {_IF_LINEAR}", Proof.IF_LINEAR_ON_CANDIDATES: f", {_IF_LINEAR} {_ON_CANDIDATES}"}
RESTS_ON = {
    Proof.MEASURED: "by measured limits",
    Proof.PROVED: "which is proved",
    Proof.IF_LINEAR: f"which is proved {_IF_LINEAR}",
    Proof.IF_LINEAR_ON_CANDIDATES: f"which is proved {_IF_LINEAR} {_ON_CANDIDATES}",
}

_SENTENCES = {
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
    Reason.FEASIBILITY_OPEN: (
        "it is not settled whether any policy meets the constraints: the best constraint value found lies within its own "
        "error of the threshold; {settling}"
    ),
    Reason.MULTIPLIER_AT_CAP: (
        "a multiplier stayed at its cap U = {v.cap:.3g}, so the dual has not converged; raise the cap or the number of "
        "samples, or move the threshold"
    ),
    Reason.STRICT_NOT_SHOWN: (
        "the constraint '{v.constraint}' could not be shown to hold strictly: its measured lower limit misses the "
        "threshold; more iterations may do, or else {settling}"
    ),
    Reason.STILL_MISSED: (
        "after {v.iterations} iterations the constraint '{v.constraint}' is still missed, by more than its measured limits "
        "and a hundredth of the horizon; run more iterations"
    ),
    Reason.DUAL_GAP_OPEN: "the dual did not close its gap in {v.iterations} policies",
    Reason.CALLS_SPENT: "{v.detail}",
    Reason.ACCURACY_PROVED: (
        "proved with probability {v.confidence:g}: the reward is within {v.epsilon:g} of the optimum{given}, and {held}"
    ),
    Reason.ACCURACY_UNMET: (
        "an accuracy of {v.epsilon:g} was not proved within {v.allowed}: {shown}; allow more {v.limit} or ask for less"
    ),
    Reason.OUT_OF_REACH: (
        "no policy can meet '{row.name}' {row.sense} {row.threshold:.6g}: with its range of values the discounted total "
        "{reach} {row.best:.6g}; move the threshold"
    ),
    Reason.NO_POLICY: "no policy meets {rows}, {rests_on}; relax a threshold",
    Reason.PROBABLY_NO_POLICY: (
        "no policy that was found meets {rows}, and by measured limits probably none does, which is not proved; draw more samples, "
        "or relax a threshold"
    ),
    Reason.REFUTED: (
        "its own certificate refutes this policy: '{v.constraint}' is missed by {v.missed_by[0]:.4g} to "
        "{v.missed_by[1]:.4g}; draw more samples for the solve, or ask for strict feasibility"
    ),
    Reason.CONTRADICTED: "nothing is decided, for the evidence contradicts itself: {v.detail}",
}
"""What happened, why, and what to do about it; ``v`` is the verdict, the other names are those of :func:`_phrases`."""


def sentence(verdict: Verdict) -> str:
    """The verdict in words, without a full stop."""
    text = _SENTENCES[verdict.reason].format(v=verdict, **_phrases(verdict))
    return f"{text} (no a-priori guarantee)" if verdict.promised is False else text


def _phrases(v: Verdict) -> dict[str, object]:
    """What depends on which facts there are."""
    settling = "no affordable number of samples settles it: move the threshold"
    if v.needed is not None:
        settling = f"about {v.needed:,.0f} samples should settle it, or move the threshold"
    rows = [f"'{r.name}' {r.sense} {r.threshold:.6g} (the best found: {r.best:.6g})" for r in v.shortfalls]
    row = v.shortfalls[0] if v.shortfalls else None
    return {
        "settling": settling,
        "held": "every constraint is proved to hold"
        if v.strict
        else "no constraint is missed by more than was allowed",
        "given": _GIVEN.get(v.proof, ""),
        "shown": "nothing was proved"
        if v.proved_error is None
        else f"the best that was proved is {v.proved_error:.4g}",
        "row": row,
        "reach": "is at most" if row is not None and row.sense == ">=" else "is at least",
        "rows": " and ".join(rows) + (" together" if len(rows) > 1 else ""),
        "rests_on": RESTS_ON[v.proof],
    }


class Standing(NamedTuple):
    """How limits stand to a threshold, up to ``allowed``, and by how much it is missed at least and at most."""

    kind: Literal["holds", "allowed", "fails", "open"]
    least: float
    most: float


def standing(limits: tuple[float, float], sense: str, threshold: float, allowed: float, rounding: float) -> Standing:
    """What the limits of a value say of its threshold, in the same units."""
    (low, high), b = limits, threshold
    most, least = (b - low, b - high) if sense == ">=" else (high - b, low - b)
    if most <= rounding:
        return Standing("holds", least, most)
    if allowed > 0 and most <= allowed + rounding:
        return Standing("allowed", least, most)
    return Standing("fails" if least > allowed + rounding else "open", least, most)
