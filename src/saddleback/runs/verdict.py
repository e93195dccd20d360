"""How a run ended, as data: a status, the reason for it, and the facts that its words need.

A status never says more than its reason. The words are attached once, in :mod:`saddleback.runs.words`; nobody reads them
back to learn what happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from saddleback.problem.criteria import TOTAL, Unit


class Status(Enum):
    """How a run ended; each has an exit code on the command line."""

    SOLVED = "solved"
    INFEASIBLE = "infeasible"
    UNDECIDED = "undecided"
    BUDGET_EXHAUSTED = "budget-exhausted"
    REFUTED = "refuted"

    @property
    def exit_code(self) -> int:
        """0 answered as asked, 3 infeasible, 4 undecided or out of budget, 6 refuted by its own certificate."""
        return {"solved": 0, "infeasible": 3, "refuted": 6}.get(self.value, 4)


class Reason(Enum):
    """Why a run ended as it did."""

    HOLDS_BY_ESTIMATES = "holds-by-estimates"
    HOLDS_UP_TO_RELAXATION = "holds-up-to-relaxation"
    HOLDS_UP_TO_ACCURACY = "holds-up-to-accuracy"
    HOLDS_BY_LIMITS = "holds-by-limits"
    HOLDS_PROVED = "holds-proved"
    ACCURACY_PROVED = "accuracy-proved"
    ACCURACY_UNMET = "accuracy-unmet"
    FEATURES_CANNOT_TELL = "features-cannot-tell"
    FEASIBILITY_OPEN = "feasibility-open"
    MULTIPLIER_AT_CAP = "multiplier-at-cap"
    STRICT_NOT_SHOWN = "strict-not-shown"
    STRICT_NOT_PROVED = "strict-not-proved"
    NO_FEASIBLE_MIXTURE = "no-feasible-mixture"
    DUAL_GAP_OPEN = "dual-gap-open"
    STILL_MISSED = "still-missed"
    CALLS_SPENT = "calls-spent"
    OUT_OF_REACH = "out-of-reach"
    NO_POLICY = "no-policy"
    PROBABLY_NO_POLICY = "probably-no-policy"
    REFUTED = "refuted"
    CONTRADICTED = "contradicted"
    OPTIMUM_OF_TABLE = "optimum-of-table"
    ESTIMATES_OFF = "estimates-off"


class Proof(Enum):
    """What a statement about all policies rests on."""

    MEASURED = "measured"
    PROVED = "proved"
    IF_LINEAR = "if-linear"
    IF_LINEAR_ON_CANDIDATES = "if-linear-on-candidates"


@dataclass(frozen=True)
class Shortfall:
    """One constraint of a problem that cannot be met: discounted totals, and the unit in which they are said."""

    name: str
    sense: str
    threshold: float
    best: float
    unit: Unit = TOTAL


@dataclass(frozen=True)
class Safest:
    """Rewards by the same estimates, in the user's units: of the answer, of the safest policy, of the best policy found.

    ``no_better`` says that the answer's is none better than the safest policy's, ``best_found`` that none is.
    """

    own: float
    safest: float
    best: float
    no_better: bool
    best_found: bool


@dataclass(frozen=True)
class Verdict:
    """A status with its reason; the other fields are facts, filled where the reason needs them.

    ``constraint`` names the one that decided, ``unit`` what it was given in, ``missed_by`` the discounted totals by which it is
    missed at least and at most, ``times`` is the forecast of how many times as many samples should settle the
    question, from and to (None: these samples cannot tell), ``promised`` says whether there was a guarantee before the run
    (None: it no longer matters), ``limit`` what ran out ("samples" or "memory") and ``allowed`` how much of it there was.
    ``safest`` is filled where the constraints hold and the reward is hardly better than that of the safest policy.
    """

    status: Status
    reason: Reason
    constraint: str | None = None
    times: tuple[float, float] | None = None
    cap: float | None = None
    iterations: int | None = None
    epsilon: float | None = None
    confidence: float | None = None
    proved_error: float | None = None
    strict: bool = False
    limit: str | None = None
    allowed: str | None = None
    proof: Proof = Proof.MEASURED
    shortfalls: tuple[Shortfall, ...] = ()
    missed_by: tuple[float, float] | None = None
    unit: Unit = TOTAL
    detail: str | None = None
    promised: bool | None = None
    safest: Safest | None = None


class ExitCode(IntEnum):
    """What a command says to the program that called it; ``meaning`` is the same in words."""

    meaning: str

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """A member is a number with its meaning."""
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member

    ANSWERED = 0, "answered as asked"
    PROOF_FAILS = 1, "a stored proof does not check out (`certify --recheck` only)"
    BAD_INPUT = 2, "bad input"
    INFEASIBLE = 3, "infeasible, proved"
    UNDECIDED = 4, "undecided, or the budget is spent"
    FAULT = 5, "the simulator or the disk failed"
    REFUTED = 6, "the policy is refuted by its own certificate"
    INTERNAL_ERROR = 70, "internal error"
    INTERRUPTED = 130, "interrupted"


def code_of_proof(
    feasible: str, *, has_policy: bool, infeasible: bool, strict: bool, contradicted: bool = False
) -> ExitCode:
    """How ``certify`` ends after a new proof.

    Parameters
    ----------
    feasible    the proof's verdict on the policy: certified, refuted or undecided
    has_policy  whether the run has a policy; if not, the proof is about infeasibility
    infeasible  whether it is proved that no policy meets the constraints
    strict      whether the run asked for constraints that are proved to hold; a relaxed one is content with undecided
    contradicted    whether what was found speaks against the assumptions, so that nothing is decided
    """
    if contradicted:
        return ExitCode.UNDECIDED
    if not has_policy:
        return ExitCode.INFEASIBLE if infeasible else ExitCode.UNDECIDED
    if feasible == "refuted":
        return ExitCode.REFUTED
    return ExitCode.UNDECIDED if strict and feasible != "certified" else ExitCode.ANSWERED
