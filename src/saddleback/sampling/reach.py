"""Which states of a table the start leads to, as the samples show: no others are sampled.

    front = the start states
    repeat   draw the samples of every action in the states of the front
             front = the next states among them that were not in a front before
    until the front is empty

Nothing is known of the simulator but its answers, and nothing is drawn that would not be drawn anyway: the samples are those
of the buffer itself, of the same blocks, in another order. What was never seen has no part in the estimated model that the
start can notice, so every estimate at the start is what it would be with samples there. A state that the start reaches too
rarely to be seen stays without samples like one that it cannot reach: certificates, which play the policy on the simulator,
hold all the same, and a solution says in how many states nothing was learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.cmdp import CMDP
from saddleback.sampling.blocks import Block, BlockSource, Executor, InOrder, blocks_for
from saddleback.simulators.generative_model import Draw


class Spare(NamedTuple):
    """For states that nobody has planned for: at most ``each`` samples a pair, a multiple of ``step``, ``total`` in all."""

    each: int = 0
    total: int = 0
    step: int = 1


def drawn_in_reach(
    problem: CMDP,
    source: BlockSource,
    tasks: Sequence[Block],
    own: NDArray[np.int64],
    held: Sequence[NDArray[np.int64]],
    executor: Executor | None,
    spare: Spare,
) -> tuple[dict[Block, Draw], NDArray[np.bool_]]:
    """The blocks of the states that are reached, and which pairs have samples now ``(S·A,)``.

    ``tasks`` are the blocks that are planned, of any pairs in the order s·A + a; ``own`` are the pairs that have samples of
    their own (others serve actions that are not allowed), ``held`` what each pair has drawn before.
    """
    S, A = problem.num_states, problem.num_actions
    assert S is not None
    runner, stream = executor or InOrder(), tasks[0].stream if tasks else 0
    planned: dict[int, list[Block]] = {}
    for task in tasks:
        planned.setdefault(task.pair // A, []).append(task)
    served = np.zeros(S * A, dtype=bool)
    served[own] = True
    sampled, front = np.zeros((2, S), dtype=bool)
    for x, states in enumerate(held):
        sampled[x // A] |= len(states) > 0
        front[states] = True
    front[problem.start.states] = True
    done, drawn, left = np.zeros(S, dtype=bool), dict[Block, Draw](), spare.total
    while np.any(front):
        done |= front
        new = np.flatnonzero(front).tolist()
        level = [task for s in new for task in planned.get(s, ())]
        late = np.array([s for s in new if s not in planned and not sampled[s]], dtype=np.int64)
        if late.size:
            wanted = np.zeros((S, A), dtype=np.int64)
            wanted[late] = 1
            pairs = np.flatnonzero(wanted.ravel() * served)
            each = spare.step * (min(spare.each, left // len(pairs)) // spare.step)
            left -= each * len(pairs)
            if each:
                wanted.ravel()[pairs] = each
                level += blocks_for(stream, wanted.ravel() * served)
        front = np.zeros(S, dtype=bool)
        for block, draw in runner.run(source.draw, level):
            drawn[block] = draw
            sampled[block.pair // A] = True
            front[draw.next_states] = True
        front &= ~done
    return drawn, np.repeat(sampled, A)
