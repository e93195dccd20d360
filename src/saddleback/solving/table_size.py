"""Tables of middle size: samples go to states that the start reaches, and a budget that is too small is said to be.

Where the solver's samples (:mod:`saddleback.sampling.reach`) have not reached every state, its share is divided among those that were
reached, and so is the evaluator's; a little is kept back for states that only the further samples show. Where every state is
reached, all is as if nobody had asked. Only the default method does so: a-priori guarantees are about all pairs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from saddleback.designs.design import Design
from saddleback.errors import Remark
from saddleback.problem.actions import serving_pairs
from saddleback.problem.cmdp import CMDP
from saddleback.runs.settings import Method
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import usual_batches
from saddleback.sampling.reach import Spare

FEW = 30
"""Samples of a pair below which means and their standard errors say little: a table is then too large for its budget."""

ENOUGH = 200
"""Samples of a pair with which a table is usually solved well; half of a solve's calls go into its certificate."""

TRUSTED = 8
"""Samples of a pair from which on a state that none of them shows counts as not reached."""

_KEPT_BACK = 0.02  # of the samples, for states that are seen late


def may_skip(problem: CMDP, design: Design, method: Method, counts: NDArray[np.int64]) -> bool:
    """Whether states that are not reached may go without samples: a table, the default method, and ``counts`` that tell."""
    if int(counts.max(initial=0)) < TRUSTED:
        return False
    full = problem.lists_all_pairs and design.operator is None and design.size == _all_pairs(problem)
    return full and method.mode == "default" and method.grid is None and method.batch_size is None


def shared_over(
    problem: CMDP, design: Design, reached: NDArray[np.bool_], samples: int, in_one: bool = False
) -> tuple[int, NDArray[np.int64], Spare]:
    """T, the samples of every pair, the same for each that is ``reached``, and what is kept back; ``in_one`` batch: T = 1."""
    pairs = owners(problem, design) & reached
    kept = max(int(_KEPT_BACK * samples), min(samples // 2, problem.num_actions))
    N = max(1, (samples - kept) // max(1, int(pairs.sum())))
    T = 1 if in_one else usual_batches(N, problem.horizon)
    N = T * (N // T)
    return T, pairs.astype(np.int64) * N, Spare(N, samples - N * int(pairs.sum()), T)


def owners(problem: CMDP, design: Design) -> NDArray[np.bool_]:
    """Pairs that have samples of their own: those of actions that are allowed."""
    serving = serving_pairs(problem.stand_ins, design.states, design.actions)
    return np.ones(design.size, dtype=bool) if serving is None else np.asarray(serving == np.arange(design.size))


def table_remarks(problem: CMDP, buffer: Buffer, samples: int) -> list[Remark]:
    """What is to be said of a table: states that were not reached, and too few samples of a pair."""
    S, A, found = problem.num_states, problem.num_actions, list[Remark]()
    if S is None or buffer.design.operator is not None or buffer.design.size != S * A:
        return []
    pairs = owners(problem, buffer.design)
    if buffer.unsampled is not None:
        missed = int(buffer.unsampled.sum()) // A
        pairs &= ~buffer.unsampled
        found.append(Remark("unreached", _unreached(missed, S)))
    if samples < FEW * int(pairs.sum()):
        found.append(Remark("too-large", too_large(int(pairs.sum()), samples)))
    return found


def budget_remarks(problem: CMDP, buffer: Buffer, samples: int) -> list[Remark]:
    """The same before a solve of so many ``samples``, half of which go into its certificate, from the buffer of a pilot."""
    return table_remarks(problem, buffer, samples // 2)


def sampled_pairs(problem: CMDP, buffer: Buffer) -> int:
    """How many pairs have samples of their own."""
    if buffer.unsampled is None:
        return int(owners(problem, buffer.design).sum())
    return int((owners(problem, buffer.design) & ~buffer.unsampled).sum())


def _unreached(missed: int, states: int) -> str:
    return (
        f"{missed:,} of {states:,} states were not reached from the start by the samples, or too rarely to leave any for them: no "
        "sample was spent on them, and what the policy does there was not learned"
    )


def too_large(pairs: int, samples: int) -> str:
    """That so many samples are too few for a table of so many pairs, and what can be done."""
    wanted = 2 * ENOUGH * pairs
    return (
        f"the table is too large for this budget: {samples / pairs:.3g} samples for each of {pairs:,} pairs of a state and an "
        f"action that can be reached; draw more (--samples {_round(wanted):,} gives each {ENOUGH}, the proof included), merge "
        "states, or describe them by features, which share their samples (docs/how_to/features.md)"
    )


def _round(number: int) -> int:
    """Two digits."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def _all_pairs(problem: CMDP) -> int:
    return (problem.num_states or 0) * problem.num_actions
