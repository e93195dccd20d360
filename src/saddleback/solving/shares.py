"""How the samples of a solve are shared out: between its two buffers, and over the pairs of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.problem.cmdp import CMDP
from saddleback.runs.settings import Method
from saddleback.sampling.collect import TooFewSamples, batches_and_counts
from saddleback.solving.prepared import USUAL_PARTS


def batches(
    problem: CMDP, design: Design, samples: int, method: Method, full: bool, parts: int = 1
) -> tuple[int, NDArray[np.int64]]:
    """T and the samples of each pair, as the method shares out so many: one of ``parts`` of a solve, which has three tenths of all."""
    allocation = method.allocation or USUAL_PARTS[method.mode, full][3]
    literal = method.mode == "literal"
    try:
        return batches_and_counts(
            problem, design, samples, literal=literal, batch_size=method.batch_size, allocation=allocation
        )
    except TooFewSamples as few:
        calls, proof = parts * few.pairs, method.certificate
        least = -(-10 * calls // 3) if proof is None else calls + proof
        raise TooFewSamples(few.rule, str(few.value), few.otherwise, few.pairs, least) from None


def divided_by(method: Method, interactive: bool, pooling: bool) -> int:
    """Of how many equal parts of a solve's samples the solver has one.

    Half where guarantees are at stake (an interactive solver's half is a limit), and where all serve both: the first half tells
    where the second is wanted. Apart, a quarter: the solver's error is second order, the evaluator's is what a user sees.
    """
    if method.buffers == 1 and not interactive:
        return 1
    return 2 if interactive or pooling or method.mode == "literal" or method.grid is not None else 4


def shares(samples: int, parts: int) -> tuple[int, int]:
    """The solver's and the evaluator's samples, where the solver has one of so many parts; all serve both where there is one."""
    return samples // parts, {1: samples, 2: samples // 2, 4: samples - samples // 4}[parts]
