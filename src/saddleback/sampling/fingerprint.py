"""What samples are samples of: the simulator, features, signals, discount, start and version, as a few short hashes.

The simulator is known by its answers: a handful of pairs is drawn with keys of their own, twice, and the answers hashed; and
by its code (:mod:`~saddleback.simulators.sources`), for what these pairs do not show.

    forward:    q₁ q₂ … q₈        eight questions of eight pairs each
    backward:   q₈ … q₂ q₁        with the same keys

A simulator that ignores its seed is found out here, and so is one that remembers earlier calls, since every question has
another history on the way back. These calls are checks: they are counted apart and never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback._version import __version__
from saddleback.errors import SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.digest import digest
from saddleback.problem.spaces import Actions, Array, BoxStates, States
from saddleback.sampling.blocks import Block, Source
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream, first_difference, generator
from saddleback.simulators.sources import sources_of

_PROBES, _QUESTIONS = 64, 8
_ALONE = 6  # in the place of a pair's number in a key: a pair that is asked for by itself
CHECK_CALLS = 2 * _PROBES
"""Simulator calls that a fingerprint costs."""

CAUSE = "ignores its random generator or remembers earlier calls"  # a simulator that does not repeat itself


class UnrepeatableError(SimulatorError):
    """The simulator answered the same question in two ways."""


Ask = Callable[[Callable[[Block], Draw], Sequence[Block]], list[Draw]]
"""Who carries out the questions, in the order given: this process, or a child that can be ended."""


def fingerprint_of(problem: CMDP, model: GenerativeModel, ask: Ask | None = None) -> dict[str, Any]:
    """Fields that must agree for samples to be continued; a simulator that does not repeat itself is refused.

    The probes have a seed of their own, so that runs with different seeds can be seen to be of one problem.
    """
    states, actions = problem.some_pairs(_PROBES, generator(0, Stream.DESIGN, 0, 0))
    answers = _answers(Probes(model, problem, states, actions), ask or (lambda draw, tasks: [*map(draw, tasks)]))
    features = None if problem.features is None else problem.features.at(states, actions)
    space = problem.states
    return {
        "version": __version__,
        "gamma": problem.gamma,
        "num_actions": problem.num_actions,
        "states": [space.low.tolist(), space.high.tolist()] if isinstance(space, BoxStates) else space.num,
        "simulator": digest(*(array for answer in answers for array in answer)),
        "features": digest(features),
        "signals": digest(np.nan_to_num(problem.utilities(states, actions), nan=-1.0)),
        "values": digest(*_values(problem, states, actions)),
        "start": digest(np.asarray(problem.start.states), problem.start.weights),
        "sources": sources_of(problem, model),
    }


def _values(problem: CMDP, states: States, actions: Actions) -> list[Array]:
    """The known signals in the user's units, which do not depend on the ranges that are declared."""
    if problem.stand_ins is not None:
        actions = problem.stand_ins[states, actions]
    return [signal.at(states, actions) for signal in problem.signals if signal.values is not None]


@dataclass(frozen=True)
class Probes(Source):
    """The questions as blocks, and each of their pairs alone (:data:`_ALONE`)."""

    model: GenerativeModel
    problem: CMDP
    states: States
    actions: Actions
    seed: int = 0

    def rows(self, block: Block) -> slice:
        """Which pairs a block asks for."""
        first = block.block * (1 if block.pair == _ALONE else _PROBES // _QUESTIONS)
        return slice(first, first + block.size)

    def draw(self, block: Block) -> Draw:
        """Their answers."""
        rows, key = self.rows(block), self.key(block)
        return self.model.sample(self.states[rows], self.actions[rows], generator(*key), key)

    def fault(self, block: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error, with a pair."""
        at = self.rows(block).start + index
        state, action = self.states[at], self.actions[at]
        return SimulatorError(problem, state=state, action=action, key=self.key(block), index=index)


def _answers(probes: Probes, ask: Ask) -> list[Draw]:
    """Every question's answer, which must be the same in both orders."""
    model, before = probes.model, probes.model.num_queries
    blocks = [Block(int(Stream.DESIGN), 1, i, _PROBES // _QUESTIONS) for i in range(_QUESTIONS)]
    try:
        forward = ask(probes.draw, blocks)
        backward = ask(probes.draw, blocks[::-1])[::-1]
    except SimulatorError as error:
        if error.ended:  # one of the question's pairs: which of them?
            ask(probes.draw, [Block(int(Stream.DESIGN), _ALONE, x, 1) for x in range(_PROBES)])
        raise
    finally:
        model.num_queries = before  # checks are counted apart
    for i, (one, other) in enumerate(zip(forward, backward, strict=True)):
        at = first_difference(one, other)
        if at is not None:
            said = (
                "gave different answers to the same question with the same seed, so a run cannot be repeated: it "
                + CAUSE
            )
            x = probes.rows(blocks[i]).start + at
            state, action = probes.states[x], probes.actions[x]
            raise UnrepeatableError(said, state=state, action=action, key=probes.key(blocks[i]), index=at)
    return forward
