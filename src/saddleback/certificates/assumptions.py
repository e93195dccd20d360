"""What each statement of a certificate rests on, in words.

The intervals assume bounded signals and independent calls. What is proved from a coreset also assumes linearity, which is
tested (:mod:`~saddleback.certificates.linearity.checks`): where the tests refute it, no such statement is made.
"""

from __future__ import annotations

import numpy as np

from saddleback.designs.design import Design
from saddleback.problem.cmdp import CMDP

BOUNDED = "rewards and constraint signals within their declared ranges, independent simulator calls"


def bound_assumes(problem: CMDP, design: Design) -> str:
    """What a bound over all policies needs that is proved from samples of the design's pairs."""
    if design.operator is None:
        return BOUNDED
    # Pair by pair, with the rewards as they are.
    searched = problem.num_states is not None and not problem.required_features().direct
    known = searched and not np.any(problem.observed)
    needs = f"{BOUNDED}; {'' if known else 'rewards and '}transition probabilities linear in the features"
    if searched or design.complete:
        return needs
    return f"{needs}; features of all pairs in the span of the candidates', where the design's Lebesgue constant is no larger"
