"""What each statement of a certificate rests on, in words.

The intervals assume bounded signals and independent calls. What is concluded from a coreset also assumes linearity, which is
tested (:mod:`~saddleback.certificates.linearity.checks`): where the tests refute it, no such statement is made, and where they
do not it is still not called proved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import Remark
from saddleback.problem.cmdp import CMDP
from saddleback.problem.endings import declared_totals


class Assumptions(str):
    """What a statement needs, as one text; ``parts`` are the single assumptions, each with a kind that programs may ask for."""

    parts: tuple[Remark, ...]

    def __new__(cls, *parts: Remark) -> Assumptions:
        """The parts in the order in which they are said."""
        whole = super().__new__(cls, "; ".join(part.text for part in parts))
        whole.parts = parts
        return whole

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.parts


def rests_on(assumes: str, kind: str) -> bool:
    """Whether a statement that says ``assumes`` needs that kind of assumption: "linear", "candidates"."""
    return isinstance(assumes, Assumptions) and any(part.kind == kind for part in assumes.parts)


def condition(on_candidates: bool) -> str:
    """What a statement under linearity needs, as the beginning of a sentence."""
    more = " and the candidate pairs stand for all pairs" if on_candidates else ""
    return f"if P is linear in the features{more}"


_BOUNDED = Remark("bounded", "rewards and constraint signals within their declared ranges, independent simulator calls")
BOUNDED = Assumptions(_BOUNDED)
_DECLARED = {
    "terminal": "terminal states as declared",
    "successors": "no next states but the declared successors",
    "totals": "signals that add up to no more and no less than declared",
}


def bounded(problem: CMDP) -> Assumptions:
    """What every statement needs: bounded signals, independent calls, and what was declared of ends, successors and totals."""
    given = {
        "terminal": problem.terminal is not None,
        "successors": problem.successors is not None,
        "totals": bool(np.isfinite(declared_totals(problem)).any()),
    }
    return Assumptions(_BOUNDED, *(Remark(kind, text) for kind, text in _DECLARED.items() if given[kind]))


def bound_assumes(problem: CMDP, design: Design) -> Assumptions:
    """What a bound over all policies needs that is proved from samples of the design's pairs."""
    needed = bounded(problem)
    if design.operator is None:
        return needed
    # Pair by pair, with the rewards as they are.
    searched = problem.num_states is not None and not problem.required_features().direct
    known = searched and not np.any(problem.observed)
    linear = Remark("linear", f"{'' if known else 'rewards and '}transition probabilities linear in the features")
    if searched or design.complete:
        return Assumptions(*needed.parts, linear)
    text = "features of all pairs in the span of the candidates', where the design's Lebesgue constant is no larger"
    return Assumptions(*needed.parts, linear, Remark("candidates", text))
