"""What samples are samples of: the simulator, features, signals, discount, start and version, as a few short hashes.

The simulator is known by its answers: a handful of pairs is drawn with keys of their own, twice, and the answers hashed.

    forward:    q₁ q₂ … q₈        eight questions of eight pairs each
    backward:   q₈ … q₂ q₁        with the same keys

A simulator that ignores its seed is found out here, and so is one that remembers earlier calls, since every question has
another history on the way back. These calls are checks: they are counted apart and never stored.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from saddleback._version import __version__
from saddleback.errors import SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, BoxStates, States
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream, first_difference, generator

_PROBES, _QUESTIONS = 64, 8
CHECK_CALLS = 2 * _PROBES
"""Simulator calls that a fingerprint costs."""

CAUSE = "ignores its random generator or remembers earlier calls"  # a simulator that does not repeat itself


class UnrepeatableError(SimulatorError):
    """The simulator answered the same question in two ways."""


def fingerprint_of(problem: CMDP, model: GenerativeModel) -> dict[str, Any]:
    """Fields that must agree for samples to be continued; a simulator that does not repeat itself is refused.

    The probes have a seed of their own, so that runs with different seeds can be seen to be of one problem.
    """
    states, actions = problem.pairs()
    chosen = generator(0, Stream.DESIGN, 0, 0).integers(0, len(actions), _PROBES)
    states, actions = np.asarray(states)[chosen], np.asarray(actions)[chosen]
    answers = _answers(model, states, actions)
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
        "start": digest(np.asarray(problem.start.states), problem.start.weights),
    }


def _answers(model: GenerativeModel, states: States, actions: Actions) -> list[Draw]:
    """Every question's answer, which must be the same in both orders."""
    parts = np.array_split(np.arange(_PROBES), _QUESTIONS)
    keys = [(0, int(Stream.DESIGN), 1, i) for i in range(_QUESTIONS)]

    def ask(i: int) -> Draw:
        return model.sample(states[parts[i]], actions[parts[i]], generator(*keys[i]), keys[i])

    before = model.num_queries
    forward = [ask(i) for i in range(_QUESTIONS)]
    backward = [ask(i) for i in reversed(range(_QUESTIONS))][::-1]
    model.num_queries = before  # checks are counted apart
    for i, (one, other) in enumerate(zip(forward, backward, strict=True)):
        at = first_difference(one, other)
        if at is not None:
            said = (
                "gave different answers to the same question with the same seed, so a run cannot be repeated: it "
                + CAUSE
            )
            state, action = states[parts[i][at]], actions[parts[i][at]]
            raise UnrepeatableError(said, state=state, action=action, key=keys[i], index=at)
    return forward


def digest(*arrays: Any) -> str:
    """Arrays in short, such as those of a draw; None stands for one that is missing."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]
