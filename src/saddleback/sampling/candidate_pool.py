"""Notes to §4.1: the pool of candidates of a design grows where next states show leverage that no candidate has.

A design over a pool promises φᵀG⁻¹φ ≤ g for the pool's pairs only. Where the states are a continuum, or too many to list, its
coreset may lead to states the pool knows nothing of. So, before the samples proper are drawn, in rounds:

    ρ̃, g ← design of the pool
    a few samples of every pair of the coreset; ℓ = max φ(s',a)ᵀ G⁻¹ φ(s',a) over the states s' seen and all actions
    ℓ ≤ 1.1·g:  done.    Otherwise the pairs with the largest leverage join the pool, and the samples are drawn anew

The samples of a round choose the next design and are not used again; each round has its own seed. They are counted.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from saddleback.designs.design import EXCESS as EXCESS
from saddleback.designs.design import Design, Designer, leverages
from saddleback.problem.cmdp import CMDP
from saddleback.problem.numerics import falling_order
from saddleback.problem.spaces import Actions, Array, Features, States
from saddleback.sampling.blocks import Executor
from saddleback.sampling.collect import collect
from saddleback.simulators.generative_model import GenerativeModel, Stream, derived_seed
from saddleback.simulators.seed_rounds import CANDIDATES

_ROUNDS = 6
_SHARE = 0.02  # of all samples, for one round
_MOST_PER_PAIR = 32
_MOST_STATES = 1 << 16  # that are looked at
_PIECE = 1 << 22  # entries of φ at a time


class Grown(NamedTuple):
    """The problem with its larger pool and the design on it; what that cost, and the largest leverage seen in the end."""

    problem: CMDP
    design: Design
    samples: int
    seen: float
    added: int


class Highest(NamedTuple):
    """Pairs with the largest leverages, in falling order."""

    states: States
    actions: Actions
    leverages: Array


def grown(
    problem: CMDP, model: GenerativeModel, designer: Designer, samples: int, seed: int, executor: Executor | None = None
) -> Grown:
    """A design that the states it leads to do not contradict, or the last of a few attempts."""
    design, spent, added, seen = designer.design(problem), 0, 0, 0.0
    features = problem.required_features()
    for number in range(_ROUNDS):
        each = min(_MOST_PER_PAIR, int(_SHARE * samples) // design.size)
        if each < 1 or design.whitening is None or features.direct:
            break
        key = derived_seed(seed, CANDIDATES[number])
        drawn = collect(model, problem, design, each, seed=key, stream=Stream.DESIGN, executor=executor)
        spent += drawn.total
        top = highest_leverages(features, design, np.concatenate(drawn.next_states), 2 * features.dim)
        seen = float(top.leverages[0])
        new = top.leverages > EXCESS * design.leverage_bound
        if not np.any(new):
            break
        states, actions = problem.pairs()
        pool = np.concatenate([states, top.states[new]]), np.concatenate([actions, top.actions[new]])
        problem = dataclasses.replace(problem, candidates=pool)
        design, added = designer.design(problem), added + int(new.sum())
    return Grown(problem, design, spent, seen, added)


def may_grow(problem: CMDP) -> bool:
    """Whether there are pairs that a design may not know of."""
    return not problem.lists_all_pairs


def highest_leverages(features: Features, design: Design, states: States, most: int = 1) -> Highest:
    """The pairs (s, a), s among ``states``, with the largest φᵀG⁻¹φ; of very many states every so-manieth is looked at."""
    assert design.whitening is not None
    states = states[:: max(1, -(-len(states) // _MOST_STATES))]
    A, step = features.num_actions, max(1, _PIECE // (features.num_actions * features.dim))
    found = []
    for first in range(0, len(states), step):
        piece = states[first : first + step]
        found.append(leverages(features.all(piece).reshape(-1, features.dim), design.whitening))
    values = np.concatenate(found)
    order = falling_order(values)[:most]
    return Highest(states[order // A], (order % A).astype(np.int64), values[order])


def growth_remark(found: Grown) -> str:
    """What came of it, for the solution."""
    g = found.design.leverage_bound
    told = f"{found.added} pairs joined the candidates" if found.added else "no pair had to join the candidates"
    end = f"the largest leverage seen is {found.seen:.3g}, of {g:.3g} among them"
    if found.seen > EXCESS * g:
        end += ": still more, so give the design a wider pool"
    return f"{found.samples:,} samples looked for states beyond the candidates: {told}; {end}"
