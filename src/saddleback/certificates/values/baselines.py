"""V̂_k of the mixture's members, fitted on buffers that were drawn before: what rollouts measure the difference to.

Coreset LSTD (on a table: the values of the estimated model), cut to [0, H]. Nothing depends on its quality but the width of
the intervals; where it cannot be had, a constant serves.
"""

from __future__ import annotations

import numpy as np

from saddleback.certificates.values.rollouts import Baseline, ValueFunction
from saddleback.errors import NumericalError
from saddleback.method.evaluators import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import Buffer

_TABLE_STATES = 1_000_000  # finite problems up to this size keep V̂ as a table


def fit_baseline(problem: CMDP, buffer: Buffer, mixture: MixturePolicy) -> Baseline:
    """V̂ of every member from ``buffer``, which must not hold any sample that the rollouts will use."""
    functions, lows, highs = [], [], []
    for member in mixture.members:
        try:
            fitted = LSTD().value_function(problem, buffer, member)
        except NumericalError:
            middle = np.full(1 + problem.num_constraints, problem.horizon / 2)
            functions.append(_constant(middle))
            lows.append(middle)
            highs.append(middle)
            continue
        seen = np.asarray(problem.start.states) if problem.num_states is None else np.arange(problem.num_states)
        if problem.num_states is None or problem.num_states > _TABLE_STATES:
            seen = np.concatenate([np.asarray(problem.start.states), buffer.support])
        V = np.clip(fitted(seen), 0.0, problem.horizon)
        low, high = V.min(axis=0), V.max(axis=0)
        tabled = problem.num_states is not None and len(V) == problem.num_states
        functions.append(_table(V) if tabled else _clipped(fitted, low, high))
        lows.append(low)
        highs.append(high)
    return Baseline(functions, np.min(lows, axis=0), np.max(highs, axis=0))


def _constant(value: Array) -> ValueFunction:
    return lambda states: np.broadcast_to(value, (len(states), len(value)))


def _table(V: Array) -> ValueFunction:
    return lambda states: V[states]


def _clipped(fitted: ValueFunction, low: Array, high: Array) -> ValueFunction:
    def values(states: States) -> Array:
        return np.clip(fitted(states), low, high)

    return values
