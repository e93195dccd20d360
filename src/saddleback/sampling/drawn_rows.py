"""Rows that a run draws anyway, put to exact tests of independence: blocks of samples, rollouts, and start states.

**Blocks** are calls of up to 4,096 rows of one pair: their halves must have one law, and that of the pair's earlier block and of
its rows in mixed calls (:mod:`.examination`); rows must not depend on those at any distance before, nor on the same rows of
another block. **Rollouts** are calls of up to 1,024 rows of many pairs: the first answers to a pair, in the order in which they came,
must not depend on one another, nor have another law than its other rows; the actions of a user's policy, asked 32 times for 32
in a few start states, must not agree too often. **Start states** come from a sampler, which is asked 32 times for 32 more:
states of one call must not agree too often, nor those of the same place in all calls, and neither the halves of a sample nor
samples of other sizes differ.

All tests are exact (:mod:`saddleback.simulators.independence`): together they accuse a sound simulator in one run of a million
at most, of which half is for the examination at the start of a run, a quarter for blocks, rollouts and policies (the n-th test has 1/n(n+1) of
it) and a quarter for start states. Which pairs rollouts come to, and how often, depends on the answers; but what the first N
visits to a pair lead to is independent all the same, and the place of a pair among those that are visited is known before its
first answer: the tests of the i-th have 1/i(i+1) of what all rollouts have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.spaces import Actions, Array, States, StateSpace
from saddleback.problem.user_code import Guarded
from saddleback.sampling.blocks import Key
from saddleback.simulators.generative_model import Draw, GenerativeModel, Stream, generator
from saddleback.simulators.independence import FALSE_ALARM, few_columns, in_no_order, one_law, ungrouped, unrelated

_BLOCK_PAIRS, _LEAST = 4, 64  # pairs of a collection whose blocks are looked at, and rows that there must be
_MOST_KNOWN, _MOST_ROWS = 64, 2048  # pairs of which a block is remembered, and rows of it
_VISITS = (64, 256, 1024, 4096)  # N
_VISITED, _MOST_VISITED = 256, 8  # pairs: the first ones, and the most that are tested
MOST_ROLLED = 1 << 14  # rows of rollouts that are looked at
_POLICY_STATES, _POLICIES = 4, 20  # states in which a user's policy is asked, and their place in a key
_STARTS, _START_CALLS = 32, 32  # start states a call, and calls

SHARED = (
    "gives rows of one call that agree too often to be independent; draw a random number for each row, as in "
    "rng.random(len(states))"
)
SEEDED = "gives the same rows in calls with different seeds too often; use the rng that is given, and make no generator of your own"
_ORDER = "gives rows whose law changes with their place in the call; row i of the answer must depend on states[i] and actions[i] only"
_OTHER = (
    "gave other answers before, to the same question in other calls: its law depends on how much it is asked for or on what went "
    "before; row i of the answer must depend on states[i] and actions[i] only, with a random number of its own"
)


@dataclass
class Notes:
    """What is known of a simulator in one run: values ``(k, n)`` of pairs from mixed calls and from their latest block;
    ``numbers`` are those of the tests of blocks and rollouts, ``again`` asks functions what they were asked before."""

    examined: bool = False
    mixed: dict[bytes, Array] = field(default_factory=dict)
    blocks: dict[bytes, tuple[Key, Array | None]] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    again: list[Callable[[], None]] = field(default_factory=list)


_NOTES: WeakKeyDictionary[GenerativeModel, Notes] = WeakKeyDictionary()


def notes_of(model: GenerativeModel) -> Notes:
    """What is known of it; nothing where it is new."""
    return _NOTES.setdefault(model, Notes())


def columns_of(draws: Sequence[Draw]) -> Array:
    """``(k, n)``: what calls gave, one after the other."""
    signals = [d.signals for d in draws if d.signals is not None]
    return few_columns(np.concatenate([d.next_states for d in draws]), np.concatenate(signals) if signals else None)


def name_of(state: Any, action: Any) -> bytes:
    """By which a pair is known in the notes."""
    return np.asarray(state).tobytes() + bytes(str(int(action)), "ascii")


def examine_blocks(model: GenerativeModel, pairs: list[tuple[Any, Any, Key, list[Draw]]]) -> None:
    """Refuse samples of pairs (state, action, key of the first block, blocks) that are not independent.

    A few pairs are tested: those that were looked at before, or else the longest.
    """
    notes = notes_of(model)
    ranked = sorted(pairs, key=lambda pair: (name_of(*pair[:2]) not in notes.mixed, -len(pair[3])))
    previous: Array | None = None
    for state, action, key, draws in ranked[:_BLOCK_PAIRS]:
        drawn, name = columns_of(draws), name_of(state, action)
        if drawn.shape[1] < _LEAST:
            continue
        mixed, (of, before) = notes.mixed.get(name), notes.blocks.get(name, (key, None))
        before = None if of == key else before  # the same samples once more
        for j, x in enumerate(drawn):
            half = len(x) // 2
            tests = [(one_law(x[:half], x[half:]), _ORDER), (in_no_order(x[:_MOST_ROWS]), SHARED)]
            tests += [(one_law(y[j], x), _OTHER) for y in (mixed, before) if y is not None]
            tests += [(_aligned(y[j], x), SEEDED) for y in (before, previous) if y is not None]
            for p, text in tests:
                number = next(notes.numbers)
                if p <= FALSE_ALARM / 4 / (number * (number + 1)):
                    raise SimulatorError(f"{text} (p = {p:.1g})", state=state, action=action, key=key)
        previous = drawn[:, :_MOST_ROWS]
        if name in notes.blocks or len(notes.blocks) < _MOST_KNOWN:
            notes.blocks[name] = (key, previous)


def examine_rollouts(model: GenerativeModel, rows: list[tuple[States, Actions, Draw]], key: Key) -> None:
    """Refuse rollouts whose rows, call by call, are not independent or not of the law of earlier samples."""
    notes, number = notes_of(model), next(notes_of(model).numbers)
    if not rows:
        return
    states, actions = (np.concatenate([row[i] for row in rows]) for i in (0, 1))
    values, pairs = columns_of([drawn for _, _, drawn in rows]), np.column_stack([states, actions])
    _, first, which, visits = np.unique(pairs, axis=0, return_index=True, return_inverse=True, return_counts=True)
    ranked = [(i, x) for i, x in enumerate(np.argsort(first)[:_VISITED], start=1) if visits[x] >= _VISITS[0]]
    share = FALSE_ALARM / 4 / (number * (number + 1)) / (3 * len(_VISITS) * len(values))
    for i, x in ranked[:_MOST_VISITED]:
        state, action = states[first[x]], actions[first[x]]
        name, mine = name_of(state, action), values[:, which.ravel() == x]
        known = [y for y in (notes.mixed.get(name), notes.blocks.get(name, (key, None))[1]) if y is not None]
        for N in (n for n in _VISITS if n <= visits[x]):
            for j, column in enumerate(mine[:, :N]):
                tests = [(in_no_order(column), SHARED), *((one_law(y[j], column), _OTHER) for y in known)]
                for p, text in tests:
                    if p <= share / (i * (i + 1)):
                        raise SimulatorError(f"{text} (p = {p:.1g})", state=state, action=action, key=key)


def examine_policies(model: GenerativeModel, members: Sequence[Any], states: States, seed: int) -> None:
    """Refuse policies of a user's whose actions in one of the ``states`` are not drawn one by one; no simulator call is made."""
    notes = notes_of(model)
    for member in members:
        if not isinstance(member, Guarded):
            continue
        for state in states[:_POLICY_STATES]:
            rows = np.repeat(state[None], _STARTS, axis=0)
            rngs = (generator(seed, Stream.EXAMINATION, _POLICIES, call) for call in range(_START_CALLS))
            drawn, number = np.array([member.act(rows, rng) for rng in rngs], dtype=np.float64), next(notes.numbers)
            if min(ungrouped(drawn), ungrouped(drawn.T)) <= FALSE_ALARM / 4 / (number * (number + 1)) / 2:
                found = f"actions in state {state} that agree too often, in one call or from call to call"
                remedy = "draw a random number for each state, from the rng that is given"
                raise InputError(
                    f"policy {type(member.inner).__name__}", "must draw each action by itself", found, remedy
                )


def _aligned(one: Array, two: Array) -> float:
    n = min(len(one), len(two), _MOST_ROWS)
    return unrelated(one[:n], two[:n])


_INDEPENDENT = "draw every start state from the rng that is given, as in rng.choice(states, number)"


def examine_starts(draw: Callable[[int, int], States], states: States, space: StateSpace) -> None:
    """Refuse a start sampler whose ``states``, drawn for a certificate, are no independent ones of one law.

    ``draw(number, purpose)`` calls the sampler with a random stream for the purpose: 0 is that of ``states``, others are
    for checks. No simulator call is made.
    """

    def refuse(rule: str, value: str) -> NoReturn:
        raise InputError("start sampler", rule, value, _INDEPENDENT)

    calls = [space.cast(draw(_STARTS, 1 + i)) for i in range(_START_CALLS)]
    for x in calls:
        if x.shape != (_STARTS, *states.shape[1:]):
            refuse(f"must give {_STARTS} states where so many are asked for", f"shape {x.shape}")
    tables = np.array([few_columns(x) for x in calls])  # (calls, columns, states)
    drawn = few_columns(states)
    level, half, side = FALSE_ALARM / 4 / (6 * len(drawn)), drawn.shape[1] // 2, int(np.sqrt(drawn.shape[1]))
    where = f"(of {_START_CALLS} calls for {_STARTS} states each, with random streams of their own)"
    for x, y in zip(tables.transpose(1, 0, 2), drawn, strict=True):
        square = y[: side * side].reshape(side, side)
        if ungrouped(x) <= level:
            refuse("must draw independent states", f"states of one call that agree too often {where}")
        if ungrouped(x.T) <= level:
            refuse("must use the random generator that it is given", f"calls that give the same states {where}")
        if one_law(y[:half], y[half:]) <= level:
            found = f"halves of {len(y)} with means {y[:half].mean():.4g} and {y[half:].mean():.4g}"
            refuse("must give states in no order", found)
        if min(ungrouped(square), ungrouped(square.T)) <= level:
            refuse("must draw independent states", f"{len(y)} states that agree with their neighbours too often")
        if one_law(x.ravel(), y) <= level:
            found = f"means {x.mean():.4g} of {_STARTS} and {y.mean():.4g} of {len(y)}"
            refuse("must have one law, however many states are asked for", found)
