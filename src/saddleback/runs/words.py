"""The words of a verdict: the one place where a status and its reason become a sentence, and limits a judgement."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.problem.criteria import Unit
from saddleback.runs.numbers import room_in_units, roughly
from saddleback.runs.verdict import Proof, Reason, Safest, Verdict

_ROUNDING = 1e-9

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
    Reason.HOLDS_BY_LIMITS: "every constraint should hold by its measured limits, which is not proved",
    Reason.HOLDS_PROVED: "every constraint is proved to hold",
    Reason.STRICT_NOT_PROVED: (
        "the constraints could not be proved to hold strictly; allow more samples (`--samples`), half of which are the proof's"
    ),
    Reason.NO_FEASIBLE_MIXTURE: (
        "no mixture of the policies found meets the target, although some policy may; draw more samples (`--samples`)"
    ),
    Reason.FEATURES_CANNOT_TELL: (
        "no policy found meets the constraints, but the features cannot carry the rewards, so that proves nothing; use "
        "other features"
    ),
    Reason.FEASIBILITY_OPEN: (
        "it is not settled whether any policy meets the constraints: the best constraint value found lies within its own "
        "error of the threshold; {settling}, or move the threshold"
    ),
    Reason.MULTIPLIER_AT_CAP: (
        "a multiplier stayed at its cap U = {v.cap:.3g}, so the dual has not converged; raise the cap or the number of "
        "samples (`--samples`), or move the threshold"
    ),
    Reason.STRICT_NOT_SHOWN: (
        "the constraint '{v.constraint}' could not be shown to hold strictly: its measured lower limit misses the "
        "threshold; run more iterations, draw more samples (`--samples`), or move the threshold"
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
        "an accuracy of {v.epsilon:g} was not proved within {v.allowed}: {shown}; allow more {limit} or ask for less"
    ),
    Reason.OUT_OF_REACH: (
        "no policy can meet '{row.name}' {row.sense} {threshold}: with its range of values the {row.unit.words} "
        "{reach} {best}; move the threshold"
    ),
    Reason.NO_POLICY: "no policy meets {rows}, {rests_on}; relax a threshold",
    Reason.PROBABLY_NO_POLICY: (
        "no policy that was found meets {rows}, and by measured limits probably none does, which is not proved; {settling}, or "
        "relax a threshold"
    ),
    Reason.REFUTED: ("its own certificate refutes this policy: '{v.constraint}' is missed by {missed_by}; {remedy}"),
    Reason.ESTIMATES_OFF: (
        "the constraints hold by the solve's estimates, but these lie outside their proved limits, and by the estimate of the "
        "proof itself '{v.constraint}' is missed by {missed_about}, which is not proved; draw more samples (`--samples`), or ask for "
        "strict feasibility"
    ),
    Reason.OPTIMUM_OF_TABLE: "this is the optimum of the known table, computed and checked on it",
    Reason.CONTRADICTED: "nothing is decided, for the evidence contradicts itself: {v.detail}",
}
"""What happened, why, and what to do about it; ``v`` is the verdict, the other names are those of :func:`_phrases`."""


def sentence(verdict: Verdict, samples: int = 0) -> str:
    """The verdict in words, without a full stop; ``samples`` are the simulator calls from which it was found."""
    text = _SENTENCES[verdict.reason].format(v=verdict, **_phrases(verdict, samples))
    text += "" if verdict.safest is None else _beside_safest(verdict.safest)
    return f"{text} (no a-priori guarantee)" if verdict.promised is False else text


def _beside_safest(s: Safest) -> str:
    if s.best_found:
        return f", by a policy whose reward, {s.own:.4g}, is also the best found"
    better = "no better" if s.no_better else "hardly better"
    rest = f"{s.best:.4g} is the best found without the constraints"
    help_ = "more samples (`--samples`) help only if a better policy meets them, else only another threshold does"
    return f", but the reward, {s.own:.4g}, is {better} than the {s.safest:.4g} of the safest policy found, and {rest}; {help_}"


def _phrases(v: Verdict, samples: int) -> dict[str, object]:
    """What depends on which facts there are."""
    settling = (
        "how many samples would settle it cannot be foreseen from these: draw several times as many (`--samples`)"
    )
    if v.times is not None:
        settling = "by a forecast from these, {:.2g} to {:.2g} times as many samples should settle it".format(*v.times)
        if samples:
            few, many = (roughly(math.ceil(samples * x)).replace(",", "") for x in v.times)
            settling += f" (`--samples {few}` to `--samples {many}`)"
    rows = [
        f"'{r.name}' {r.sense} {r.unit.say(r.threshold)} (the best found: {r.unit.shown(r.best):.6g})"
        for r in v.shortfalls
    ]
    row = v.shortfalls[0] if v.shortfalls else None
    return {
        "settling": settling,
        "remedy": v.detail or "draw more samples for the solve (`--samples`), or ask for strict feasibility",
        "limit": "samples (`--max-samples`)" if v.limit == "samples" else v.limit,
        "held": "every constraint is proved to hold"
        if v.strict
        else "no constraint is missed by more than was allowed",
        "given": _GIVEN.get(v.proof, ""),
        "shown": "nothing was proved"
        if v.proved_error is None
        else f"the best that was proved is {v.proved_error:.4g}",
        "row": row,
        "threshold": None if row is None else row.unit.say(row.threshold, both=row.unit.per_step),
        "best": None if row is None else f"{row.unit.shown(row.best):.6g}",
        "missed_by": None if v.missed_by is None else _missed_by(v.missed_by, v.unit),
        "missed_about": None if v.missed_by is None else v.unit.say(v.missed_by[0], "{:.4g}".format),
        "reach": "is at most" if row is not None and row.sense == ">=" else "is at least",
        "rows": " and ".join(rows) + (" together" if len(rows) > 1 else ""),
        "rests_on": RESTS_ON[v.proof],
    }


def _missed_by(totals: tuple[float, float], unit: Unit) -> str:
    least, most = (f"{x:.4g}" for x in unit.limits_of(totals))
    return f"{least} to {most}{unit.suffix}"


def slack_sentence(problem: CMDP, slack: float, *, exact: bool) -> str:
    """How far off the constraints are where none of the policies found meets them, ``exact`` or by the estimates."""
    of, how = _tightest(problem), "The" if exact else "By the estimates, which are no proof, the"
    return f"{how} largest slack of {of} that a policy reaches is {room_in_units(problem, slack)} (negative: it is missed)."


def slack_by_ranges(problem: CMDP, slack: float) -> str:
    """The same where the declared ranges alone leave no room, and nothing was drawn."""
    room = room_in_units(problem, slack)
    return f"By the declared ranges alone, no policy has a slack of {_tightest(problem)} above {room}."


def _tightest(problem: CMDP) -> str:
    return f"'{problem.constraints[0].name}'" if problem.num_constraints == 1 else "the tightest constraint"


def reach(problem: CMDP) -> tuple[float, float]:
    """The least and the largest reward that the declared range leaves, up to rounding towards the middle."""
    ends = (float(problem.values_of(np.full(1 + problem.num_constraints, x))[0]) for x in (0.0, problem.horizon))
    (least, most), rounding = sorted(ends), _ROUNDING * problem.reward_span
    return least + rounding, most - rounding


def whole_range(problem: CMDP, limits: tuple[float, float]) -> str:
    """That limits of the reward say no more than its declared range does, or nothing."""
    least, most = reach(problem)
    return "no information: the whole range" if limits[0] <= least and limits[1] >= most else ""


def empty_bound(problem: CMDP, bound: float | None) -> str:
    """That a bound on the best policy says no more than the declared range does, or nothing."""
    least, most = reach(problem)
    if bound is None or (bound > least if problem.minimise else bound < most):
        return ""
    return f"no information: no {problem.objective} can be {'smaller' if problem.minimise else 'larger'}"


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
