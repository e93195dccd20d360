"""What each statement of a certificate rests on, in words.

The intervals assume bounded signals and independent calls. What is proved from a coreset also assumes linearity, which is
tested (:mod:`~saddleback.certificates.linearity.checks`): where the tests refute it, no such statement is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import Remark
from saddleback.problem.cmdp import CMDP


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


_BOUNDED = Remark("bounded", "rewards and constraint signals within their declared ranges, independent simulator calls")
BOUNDED = Assumptions(_BOUNDED)


def bound_assumes(problem: CMDP, design: Design) -> Assumptions:
    """What a bound over all policies needs that is proved from samples of the design's pairs."""
    if design.operator is None:
        return BOUNDED
    # Pair by pair, with the rewards as they are.
    searched = problem.num_states is not None and not problem.required_features().direct
    known = searched and not np.any(problem.observed)
    linear = Remark("linear", f"{'' if known else 'rewards and '}transition probabilities linear in the features")
    if searched or design.complete:
        return Assumptions(_BOUNDED, linear)
    text = "features of all pairs in the span of the candidates', where the design's Lebesgue constant is no larger"
    return Assumptions(_BOUNDED, linear, Remark("candidates", text))
