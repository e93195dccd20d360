"""Does the simulator draw the same samples from the same key? Some blocks are drawn again, in the other order.

    forward:    b₁ b₂ … b_k    (or the samples that were drawn in the run)
    backward:   b_k … b₂ b₁    with the same keys

A simulator that ignores its random generator gives other samples the second time. So does one that remembers its calls,
because every block has another history on the way back. These calls are checks: their samples are never stored, and they are
counted as ``check_calls``, not on the simulator's meter.

A simulator that fails is not wrong for that: its samples are samples. But a run with it cannot be repeated, nor resumed with
the same result, and must say so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback.errors import require
from saddleback.sampling.blocks import Block, BlockSource, Executor, InOrder
from saddleback.simulators.generative_model import Draw


@dataclass(frozen=True)
class Determinism:
    """Whether blocks drawn again gave the same samples; if not, the first that did not, in the order of the blocks."""

    reproducible: bool
    check_calls: int
    num_blocks: int
    pair: int | None = None
    state: Any = None
    action: Any = None
    key: tuple[int, int, int, int] | None = None
    index: int | None = None

    def __str__(self) -> str:
        cost = f"{self.num_blocks} blocks drawn again, {self.check_calls:,} calls"
        if self.reproducible:
            return f"reproducible ({cost})"
        return (
            f"not reproducible: pair {self.pair} (state {self.state}, action {self.action}) gave another sample {self.index} "
            f"when drawn again with the seed key (seed, stream, pair, block) = {self.key} ({cost}); "
            "the simulator ignores its random generator or remembers earlier calls"
        )


def check_determinism(
    source: BlockSource,
    blocks: Sequence[Block],
    share: float = 0.01,
    *,
    drawn: Mapping[Block, Draw] | None = None,
    executor: Executor | None = None,
) -> Determinism:
    """Draw the first of ``blocks`` and ``share`` of all again, at least two if there are two, in the other order.

    ``drawn`` holds what the run has drawn, where it is still at hand: such blocks are drawn again once, others twice.
    ``executor`` draws them (None: here, one by one).
    """
    require(0 < share <= 1, "share", "must lie in (0, 1]", share, "0.01 checks one block in a hundred")
    chosen = _chosen(blocks, share)
    before = source.model.num_queries
    known = {} if drawn is None else {b: drawn[b] for b in chosen if b in drawn}
    carrier = executor or InOrder()
    try:
        first = known | dict(carrier.run(source.draw, [b for b in chosen if b not in known]))
        again = dict(carrier.run(source.draw, chosen[::-1]))
    finally:
        calls = source.model.num_queries - before
        source.account(-calls)
    for block in chosen:
        index = _difference(first[block], again[block])
        if index is not None:
            x = block.pair - source.first_pair
            state, action = source.states[x], source.actions[x]
            return Determinism(False, calls, len(chosen), block.pair, state, action, source.key(block), index)
    return Determinism(True, calls, len(chosen))


def _chosen(blocks: Sequence[Block], share: float) -> list[Block]:
    """Evenly spaced, the first and the last among them."""
    number = min(len(blocks), max(2, math.ceil(share * len(blocks))))
    return [blocks[i] for i in np.unique(np.linspace(0, len(blocks) - 1, number).astype(np.int64))] if number else []


def _difference(one: Draw, two: Draw) -> int | None:
    """The first sample in which two draws of a block differ, or None."""
    differs = np.zeros(len(one.next_states), dtype=bool)
    for a, b in zip(one, two, strict=True):
        if a is None or b is None:
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return 0
        differs |= (a != b).reshape(len(a), -1).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None
