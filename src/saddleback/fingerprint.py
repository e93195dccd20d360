"""What samples are samples of: the simulator, features, signals, discount, start and version, as a few short hashes.

The simulator is known by its answers: a handful of pairs is drawn with a key of its own, twice, and the answers hashed. A
simulator that ignores its seed is found out here. These calls are checks: they are counted apart and never stored.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from saddleback._version import __version__
from saddleback.errors import SimulatorError
from saddleback.problem import CMDP
from saddleback.simulator import GenerativeModel, Stream, generator
from saddleback.spaces import BoxStates

_PROBES = 64
CHECK_CALLS = 2 * _PROBES
"""Simulator calls that a fingerprint costs."""


def fingerprint_of(problem: CMDP, model: GenerativeModel) -> dict[str, Any]:
    """Fields that must agree for samples to be continued; a simulator that does not repeat itself is refused.

    The probes have a seed of their own, so that runs with different seeds can be seen to be of one problem.
    """
    states, actions = problem.pairs()
    chosen = generator(0, Stream.DESIGN, 0, 0).integers(0, len(actions), _PROBES)
    states, actions = np.asarray(states)[chosen], np.asarray(actions)[chosen]
    key = (0, int(Stream.DESIGN), 1, 0)
    before = model.num_queries
    first, again = (model.sample(states, actions, generator(*key), key) for _ in range(2))
    model.num_queries = before  # checks are counted apart
    same = np.array_equal(first.next_states, again.next_states)
    if first.signals is not None and again.signals is not None:
        same = same and np.array_equal(first.signals, again.signals)
    if not same:
        at = int(np.argmax(np.any(np.atleast_2d((first.next_states != again.next_states).T), axis=0)))
        problem_text = "gave different answers to the same question with the same seed, so a run cannot be repeated"
        raise SimulatorError(problem_text, state=states[at], action=actions[at], key=key, index=at)
    features = None if problem.features is None else problem.features.at(states, actions)
    space = problem.states
    return {
        "version": __version__,
        "gamma": problem.gamma,
        "num_actions": problem.num_actions,
        "states": [space.low.tolist(), space.high.tolist()] if isinstance(space, BoxStates) else space.num,
        "simulator": _digest(first.next_states, first.signals),
        "features": _digest(features),
        "signals": _digest(np.nan_to_num(problem.utilities(states, actions), nan=-1.0)),
        "start": _digest(np.asarray(problem.start.states), problem.start.weights),
    }


def _digest(*arrays: Any) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
