"""How a command ends: one table for all verbs, for the help page, for the documents and for scripts."""

from __future__ import annotations

from enum import IntEnum


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


def code_of_proof(feasible: str, *, has_policy: bool, infeasible: bool, strict: bool) -> ExitCode:
    """How ``certify`` ends after a new proof.

    Parameters
    ----------
    feasible    the proof's verdict on the policy: certified, refuted or undecided
    has_policy  whether the run has a policy; if not, the proof is about infeasibility
    infeasible  whether it is proved that no policy meets the constraints
    strict      whether the run asked for constraints that are proved to hold; a relaxed one is content with undecided
    """
    if not has_policy:
        return ExitCode.INFEASIBLE if infeasible else ExitCode.UNDECIDED
    if feasible == "refuted":
        return ExitCode.REFUTED
    return ExitCode.UNDECIDED if strict and feasible != "certified" else ExitCode.ANSWERED
