"""Short hashes: of arrays, to the bit, and of a problem, to what may be said about it.

:func:`digest` tells arrays apart by their bits, except that −0.0 is 0.0: the same sum has either sign under other versions of
NumPy. :func:`problem_digest` is the same on every machine, so it forgets the last digits of what was computed; it knows a
problem by discount, spaces, signals, thresholds and start, but not by its name, its features or P.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import on_grid, rounded
from saddleback.problem.spaces import BoxStates

_MOST_PAIRS = 4096  # whose signals are looked at, spread evenly over all
_LENGTH = 16
_SIGNED: dict[str, str] = {}  # digests of arrays that hold a −0.0, with what earlier versions made of them
_MOST_SIGNED = 10_000


def digest(*arrays: Any) -> str:
    """Arrays in short, such as those of a draw; None stands for one that is missing."""
    found, signed = hashlib.sha256(), hashlib.sha256()
    for array in arrays:
        found.update(b"none" if array is None else bits(array))
        signed.update(b"none" if array is None else np.ascontiguousarray(array).tobytes())
    told, before = found.hexdigest()[:_LENGTH], signed.hexdigest()[:_LENGTH]
    if told != before and len(_SIGNED) < _MOST_SIGNED:
        _SIGNED[told] = before
    return told


def same_digest(stored: Any, found: Any) -> bool:
    """Whether a stored digest is one that was found in this process; earlier versions told −0.0 from 0.0."""
    return bool(stored == found or (isinstance(found, str) and stored == _SIGNED.get(found)))


def problem_digest(problem: CMDP) -> str:
    """What a problem asks, in short: numbers that differ by rounding alone give the same."""
    states, actions = problem.pairs()
    chosen = np.linspace(0, len(actions) - 1, min(len(actions), _MOST_PAIRS)).round().astype(np.int64)
    space = problem.states
    signals = problem.utilities(np.asarray(states)[chosen], np.asarray(actions)[chosen])
    fields = {
        "gamma": float(problem.gamma),
        "actions": int(problem.num_actions),
        "minimise": bool(problem.minimise),
        "constraints": [[c.name, c.sense] for c in problem.constraints],
        "scales": [digest(rounded(x, 9)) for x in (problem.base, problem.scale, problem.user_thresholds())],
        "states": [_coarse(space.low), _coarse(space.high)] if isinstance(space, BoxStates) else int(space.num),
        "start": [_coarse(problem.start.states), _coarse(problem.start.weights)],
        "signals": _coarse(np.nan_to_num(signals, nan=-1.0)),
        "allowed": None if problem.allowed is None else digest(problem.allowed),
    }
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:_LENGTH]


def _coarse(x: Any) -> str:
    """An array to six digits of its largest entry."""
    values = np.asarray(x, dtype=np.float64)
    return f"{values.shape} {digest(on_grid(rounded(values), 6))}"


def bits(array: Any) -> bytes:
    """The bytes of an array; those of 0.0 for −0.0."""
    x = np.ascontiguousarray(array)
    return (x + 0.0 if x.dtype.kind == "f" else x).tobytes()
