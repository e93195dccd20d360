"""The same question with the same seed has the same answer, at once and in another order.

*Replay*: each call is made twice. A difference means other random numbers than ``rng``'s, or memory. NumPy's and Python's own
generators are then set to the same state before each call: where that cures it, they are named. *Two orders*: the calls are
made again in a shuffled order with their own seeds (the reverse would hide whatever undoes itself on the way back). Answers
that differ there but not in a replay are memory of what was asked before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from saddleback.problem.spaces import Actions, States
from saddleback.simulators.checks.probe import Key, Probe
from saddleback.simulators.generative_model import Draw, first_difference

_ROWS = 8


class _Question(NamedTuple):
    states: States
    actions: Actions
    key: Key


def check_repeatability(probe: Probe, number: int) -> bool:
    """Whether ``number`` questions of a few rows each have one answer, asked twice and in the other order."""
    with probe.noting("conformance"):
        states, actions = probe.pairs(_ROWS * number, 2)
        chosen = probe.rng(3).integers(0, len(actions), (number, _ROWS))
        questions = [_Question(states[rows], actions[rows], probe.key()) for rows in chosen]
        answers = []
        for question in questions:
            first, again = (probe.draw(*question) for _ in range(2))
            row = first_difference(first, again)
            if row is not None:
                _explain(probe, question, row, first, again)
                return False
            answers.append(again)
        for i in probe.rng(9).permutation(number):
            question, answer = questions[i], answers[i]
            row = first_difference(answer, other := probe.draw(*question))
            if row is not None:
                text = (
                    "the simulator remembers what it was asked before: the same question with the same seed gave "
                    f"{_shown(answer, row)} in one order and {_shown(other, row)} in another; keep everything in the "
                    "state, and nothing between calls"
                )
                probe.add("memory", text, question.states[row], question.actions[row], question.key)
                return False
        return True
    return False


def _explain(probe: Probe, question: _Question, row: int, first: Draw, again: Draw) -> None:
    answers = []
    for _ in range(2):
        with _same_generators():
            answers.append(probe.draw(*question))
    if first_difference(*answers) is None:
        cause = "it draws from NumPy's or Python's own generator (np.random, random); use the rng it is given"
    else:
        cause = "it keeps something between calls, or has random numbers of its own; keep everything in the state and use the rng it is given"
    text = f"the same question with the same seed gave {_shown(first, row)} and then {_shown(again, row)}: {cause}"
    probe.add("replay", text, question.states[row], question.actions[row], question.key)


@contextmanager
def _same_generators() -> Iterator[None]:
    """NumPy's and Python's own generators in one fixed state, and afterwards as they were."""
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def _shown(draw: Draw, row: int) -> str:
    """One row of an answer, in words."""
    signals = "" if draw.signals is None else f" with {draw.signals[row].tolist()}"
    return f"{draw.next_states[row]}{signals}"
