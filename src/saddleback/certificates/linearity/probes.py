"""Where and with what linearity is probed: pairs outside the coreset, and functions of the next state with values in [0, 1].

Both are chosen before the samples that test them are drawn, and independently of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from saddleback.designs.design import Design
from saddleback.errors import require
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.simulators.generative_model import Draw

StateFunction = Callable[[States], Array]
"""A function of states ``(n,)`` or ``(n, k)`` with values ``(n,)``."""

_MOST_STATES = 100_000  # of the pool, where the range of a value function is looked up


class Probes(NamedTuple):
    """K functions of a draw with values in [0, 1]: ``evaluate`` gives ``(n, K)``."""

    names: tuple[str, ...]
    evaluate: Callable[[Draw], Array]


def choose_pairs(problem: CMDP, design: Design, num: int, rng: np.random.Generator) -> tuple[States, Actions]:
    """``num`` distinct candidates outside the coreset, all equally likely; where there are none, any candidates."""
    states, actions = problem.pairs()

    def key(s: States, a: Actions, i: int) -> tuple[bytes, int]:
        return s[i].tobytes(), int(a[i])

    coreset = {key(design.states.astype(states.dtype), design.actions, i) for i in range(design.size)}
    order = rng.permutation(len(actions))
    chosen = list[int]()
    for excluded in (coreset, set[tuple[bytes, int]]()):
        seen = set(excluded)
        for i in order:
            pair = key(states, actions, i)
            if pair not in seen:
                seen.add(pair)
                chosen.append(i)
            if len(chosen) == num:
                break
        if chosen:
            break
    return states[chosen], actions[chosen]


def choose_probes(problem: CMDP, functions: Sequence[StateFunction], num: int, rng: np.random.Generator) -> Probes:
    """``num`` random binary functions, the given ones mapped to [0, 1], and the utilities of observed signals."""
    pool = problem.pairs()[0]
    pool = pool[:: 1 + len(pool) // _MOST_STATES]
    random = _halves(problem.num_states, num, rng) if problem.num_states else _half_spaces(pool, num, rng)
    ranges = []
    for f in functions:
        values = _values(f, pool)
        ranges.append((float(values.min()), float(values.max())))
    seen = np.flatnonzero(problem.observed)

    def evaluate(draw: Draw) -> Array:
        columns = [random(draw.next_states)]
        for f, (low, high) in zip(functions, ranges, strict=True):
            x = (_values(f, draw.next_states) - low) / (high - low or 1.0)
            # Cut where the pool did not show the whole range: what is tested then is another function, a bounded one.
            columns.append(np.clip(x, 0.0, 1.0)[:, None])
        if draw.signals is not None:
            columns.append(problem.utilities_of(draw.signals)[:, seen])
        return np.hstack(columns)

    names = [f"random function {i + 1}" for i in range(num)]
    names += [f"value function {i + 1}" for i in range(len(functions))]
    names += [f"observed {problem.signals[i].name}" for i in seen]
    return Probes(tuple(names), evaluate)


def _halves(num_states: int, num: int, rng: np.random.Generator) -> StateFunction:
    """Indicators of random halves of a finite space, ``(n, num)``."""
    half = np.arange(num_states) < num_states / 2
    halves = rng.permuted(np.repeat(half[:, None], num, axis=1), axis=0)
    return lambda states: halves[states].astype(np.float64)


def _half_spaces(pool: States, num: int, rng: np.random.Generator) -> StateFunction:
    """Indicators of half-spaces whose edges pass through points of the pool, ``(n, num)``."""
    spread = pool.std(axis=0)
    normals = rng.standard_normal((pool.shape[1], num)) / np.where(spread > 0, spread, 1.0)[:, None]
    offsets = (pool[rng.integers(len(pool), size=num)] @ normals).diagonal()
    return lambda states: (states @ normals >= offsets).astype(np.float64)


def _values(function: StateFunction, states: States) -> Array:
    values = np.asarray(function(states), dtype=np.float64)
    require(
        values.shape == (len(states),) and bool(np.all(np.isfinite(values))),
        "functions",
        f"must return {len(states)} finite numbers for {len(states)} states",
        f"shape {values.shape}",
        "vectorise them over the states",
    )
    return values
