"""§3, the unit of sampling: a block, up to 4,096 consecutive samples of one pair from one random stream.

A block's samples depend on (seed, stream, pair, block) and its size, never on who draws it or when. Whoever has samples to
draw makes a list of blocks, and an :class:`Executor` draws them, here or elsewhere, in any order. A pair's sequence is its
blocks in order; one that is continued later begins a new block, so blocks may be shorter than 4,096.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, States
from saddleback.simulators.generative_model import BLOCK, Draw, GenerativeModel, generator

Task = TypeVar("Task")
Result = TypeVar("Result")
Key = tuple[int, int, int, int]


class Block(NamedTuple):
    """Which samples: the key of a random stream (but for the seed), and how many."""

    stream: int
    pair: int
    block: int
    size: int

    @property
    def name(self) -> str:
        """In words, for messages."""
        return f"block {self.block} of pair {self.pair}, stream {self.stream}"


class Source(ABC):
    """All that is needed to draw blocks with a simulator: a frozen dataclass that can be sent elsewhere, with a meter."""

    __dataclass_fields__: ClassVar[dict[str, Any]]
    model: GenerativeModel
    problem: CMDP
    seed: int

    @abstractmethod
    def draw(self, block: Block) -> Draw:
        """The block's samples, checked."""

    @abstractmethod
    def fault(self, block: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error that says what the simulator did when this block was drawn, wherever that was."""

    def key(self, block: Block) -> Key:
        """(seed, stream, pair, block): the key of the block's random stream."""
        return (self.seed, block.stream, block.pair, block.block)

    def account(self, num_queries: int) -> None:
        """Put calls made for this source elsewhere on its meter (negative: take off calls that are counted apart)."""
        self.model.count(num_queries)

    def check_signals(self, drawn: Draw, states: States, actions: Actions, key: Key) -> None:
        """Refuse observed signals that are out of their range."""
        if drawn.signals is not None:
            for column in np.flatnonzero(self.problem.observed):
                self.problem.signals[column].check(drawn.signals[:, column], states, actions, key)


@dataclass(frozen=True)
class BlockSource(Source):
    """Simulator, problem, pairs and the seed; the pairs have the numbers from ``first_pair`` on."""

    model: GenerativeModel
    problem: CMDP
    states: States
    actions: Actions
    seed: int
    first_pair: int = 0

    def draw(self, block: Block) -> Draw:
        """The block's samples, checked."""
        key = self.key(block)
        x = block.pair - self.first_pair
        states, actions = np.repeat(self.states[x : x + 1], block.size, axis=0), np.repeat(self.actions[x], block.size)
        drawn = self.model.sample(states, actions, generator(*key), key)
        self.check_signals(drawn, states, actions, key)
        return drawn

    def fault(self, block: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error, with the block's pair."""
        x = block.pair - self.first_pair
        state, action = self.states[x], self.actions[x]
        return SimulatorError(problem, state=state, action=action, key=self.key(block), index=index)


def joined(draws: Sequence[Draw]) -> Draw:
    """One draw after the other, as one."""
    signals = [draw.signals for draw in draws if draw.signals is not None]
    return Draw(np.concatenate([draw.next_states for draw in draws]), np.concatenate(signals) if signals else None)


def part_of(draw: Draw, rows: slice) -> Draw:
    """Some samples of a draw."""
    return Draw(draw.next_states[rows], None if draw.signals is None else draw.signals[rows])


class Executor(Protocol):
    """Whoever carries out tasks: in this process, in others, or on a cluster."""

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Every task with its result, in any order. ``function`` must be a pure function of the task."""
        ...

    def close(self) -> None:
        """Let go of what was started: processes, connections, files."""
        ...


class Closing(ABC):
    """Closed at the end of a ``with`` block."""

    @abstractmethod
    def close(self) -> None:
        """Let go of what was started or opened."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class InOrder:
    """One task after the other, in this process."""

    def run(self, function: Callable[[Task], Result], tasks: Sequence[Task]) -> Iterator[tuple[Task, Result]]:
        """Every task with its result, in the order given."""
        for task in tasks:
            yield task, function(task)

    def close(self) -> None:
        """Nothing was started."""


def in_key_order(drawn: Iterator[tuple[Block, Result]]) -> Iterator[tuple[Block, Result]]:
    """The same blocks from the first of each group on: sums over them must not depend on who was quicker.

    Results that come too early wait in memory.
    """
    waiting: dict[Block, Result] = {}
    following: dict[tuple[int, int], int] = {}
    for block, result in drawn:
        waiting[block] = result
        group = (block.stream, block.pair)
        number = following.get(group, 0)
        while ready := [b for b in waiting if (b.stream, b.pair) == group and b.block == number]:
            yield ready[0], waiting.pop(ready[0])
            number += 1
        following[group] = number
    yield from sorted(waiting.items())  # groups that do not begin with number 0


def blocks_for(
    stream: int,
    wanted: NDArray[np.int64],
    held: NDArray[np.int64] | None = None,
    used: NDArray[np.int64] | None = None,
    first_pair: int = 0,
) -> list[Block]:
    """The blocks that bring every pair from ``held`` to ``wanted`` samples; a pair that has more keeps them.

    ``used`` says how many blocks each pair has had: what is held may lie in short ones, and none is drawn twice.
    """
    nothing = np.zeros(len(wanted), dtype=np.int64)
    held, used = nothing if held is None else held, nothing if used is None else used
    found = []
    rows = zip(wanted.tolist(), held.tolist(), used.tolist(), strict=True)
    for pair, (n, had, first_block) in enumerate(rows, start=first_pair):
        for i, first in enumerate(range(0, n - had, BLOCK)):
            found.append(Block(int(stream), pair, first_block + i, min(BLOCK, n - had - first)))
    return found
