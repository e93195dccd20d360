"""What every run asks of users' code before it believes it: rows that are independent, of each other and of what went before.

**Functions of pairs** (features, rewards, costs) are asked for the same pairs in one batch, once more, in another order, in a larger
batch and alone, and when all is drawn (:func:`examine_again`). The answers must be equal up to rounding.

**Simulators** are asked eight questions about 16 pairs, again, and in another order. Other answers in another order, where the
same order gives the same answers, are memory; so is a question that takes random numbers once and none when it is asked again.
A simulator that never gives the same answer twice may have random numbers of its own, which is said elsewhere
(:mod:`saddleback.sampling.fingerprint`) and spoils no proof. Of four pairs, with varied answers and laws far apart,

    alone      16 calls of one row, and 8 calls of 16 rows of the same pair
    mixed      32 calls of 16 rows, four of each pair

must have one law, rows of one call must not agree too often, nor rows of the same place in all calls, nor may the first
half of the calls differ from the second. That takes 1,728 simulator calls, which are counted apart (``check_calls``) and made
wherever samples are drawn. The samples themselves are tested too (:mod:`.drawn_rows`, which says how often a sound simulator is
accused).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.blocks import Block, Executor, InOrder, Source, joined
from saddleback.sampling.drawn_rows import SEEDED, SHARED, columns_of, name_of, notes_of
from saddleback.simulators.generative_model import (
    NOT_DRAWN_AGAIN,
    Draw,
    GenerativeModel,
    Stream,
    first_difference,
    generator,
    place_of,
)
from saddleback.simulators.independence import FALSE_ALARM, one_law, ungrouped

_QUESTIONS, _ASKED = 8, 16  # and pairs in each
_PILOT = 16  # rows of each of these pairs, to choose among them
_PAIRS, _ALONE, _UNIFORM, _UNIFORM_ROWS, _CALLS, _ROWS = 4, 16, 8, 16, 32, 4  # as above
EXAMINATION_CALLS = (3 * _QUESTIONS + _PILOT) * _ASKED + _PAIRS * (_ALONE + _UNIFORM * _UNIFORM_ROWS + _CALLS * _ROWS)
"""Simulator calls of :func:`examine`, at the most."""

_FUNCTION_PAIRS, _FUNCTION_ALONE, _FUNCTION_ROWS = 512, 4, 2048
_REPEATED, _MIXED, _TRIED, _BY_ITSELF = 1, 2, 3, 10  # what a block of an examination is for

_MEMORY = (
    "remembers what it was asked before: the same question with the same seed has other answers in another order; keep "
    "everything in the state, and nothing between calls"
)
_BATCH = (
    "answers otherwise in a batch of several pairs than alone; row i of the answer must depend on states[i] and actions[i] only, "
    "with a random number of its own"
)
_DRIFT = "changes its law between calls; keep everything in the state, and nothing between calls"


def examine(
    problem: CMDP, model: GenerativeModel, seed: int, pairs: tuple[States, Actions], executor: Executor | None = None
) -> None:
    """Refuse code whose rows are not independent.

    ``pairs`` are those that samples will be drawn of, ``executor`` draws them (None: here); one that keeps account of check
    calls is told how many were made, and they are on nobody's meter. A simulator is examined once a run: the first to draw
    does it, and for whoever comes after it is done.
    """
    notes = notes_of(model)
    if notes.examined:
        return
    notes.examined = True
    before, rng = model.num_queries, generator(seed, Stream.EXAMINATION, 0, 0)
    notes.again = _examine_functions(problem, rng)
    try:
        _examine_simulator(Questions(model, problem, *_some_of(pairs, _ASKED, rng), seed), _innermost(executor))
    finally:
        calls, model.num_queries = model.num_queries - before, before
        if executor is not None and hasattr(executor, "check_calls"):
            executor.check_calls += calls


def examine_again(model: GenerativeModel) -> None:
    """Refuse functions of pairs that have changed since :func:`examine`."""
    for ask in notes_of(model).again:
        ask()


def _innermost(executor: Executor | None) -> Executor:
    """Who draws, inside whoever keeps or counts what is drawn."""
    inner = getattr(executor, "inner", None) or getattr(executor, "_inner", None)
    return (executor or InOrder()) if inner is None else _innermost(inner)


# ---- functions of pairs ------------------------------------------------------------------------------------------------


def _examine_functions(problem: CMDP, rng: np.random.Generator) -> list[Callable[[], None]]:
    """Features, rewards and costs: each pair by itself. What is returned asks them again."""
    states, actions = _some_of(problem.pairs(), _FUNCTION_PAIRS, rng)
    order = rng.permutation(len(actions))
    known = [(s.name, s.at) for s in problem.signals if callable(s.values)]
    many, later = np.resize(order, _FUNCTION_ROWS), list[Callable[[], None]]()
    if problem.features is not None:
        known.append(("features", problem.features.at))
    for name, function in known:
        batch = np.array(function(states, actions))
        scale = float(np.abs(batch).max(initial=1e-300))

        def compare(
            rows: Any, found: Any, how: str, name: str = name, batch: Any = batch, scale: float = scale
        ) -> None:
            off = np.abs(np.asarray(found) - batch[rows]).reshape(len(batch[rows]), -1).max(axis=1)
            for i in np.flatnonzero(~(off <= 1e-9 * scale))[:1]:
                at = np.arange(len(batch))[rows][i]
                value = f"{batch[at]} in a batch and {np.asarray(found)[i]} {how}"
                where = f"{value:.300} at state {states[at]}, action {actions[at]}"
                remedy = "let row i depend on states[i] and actions[i] alone, and on nothing that changes between calls"
                raise InputError(name, "must be a function of each pair by itself", where, remedy)

        compare(slice(None), function(states, actions), "when asked again")
        compare(order, function(states[order], actions[order]), "in another order")
        compare(many, function(states[many], actions[many]), f"in a batch of {len(many)}")
        for i in range(min(_FUNCTION_ALONE, len(actions))):
            compare(slice(i, i + 1), function(states[i : i + 1], actions[i : i + 1]), "alone")

        def ask(function: Any = function, compare: Any = compare) -> None:
            compare(slice(None), function(states, actions), "at the end of the run")

        later.append(ask)
    return later


def _some_of(pairs: tuple[States, Actions], number: int, rng: np.random.Generator) -> tuple[States, Actions]:
    """Pairs by chance, in no order; all of them where they are few."""
    states, actions = pairs
    n = len(actions)
    chosen = rng.permutation(n) if n <= number else rng.choice(n, number, replace=False)
    return np.asarray(states)[chosen], np.asarray(actions)[chosen]


# ---- simulators --------------------------------------------------------------------------------------------------------


def questions_drawn(
    problem: CMDP, model: GenerativeModel, executor: Executor
) -> Callable[[Sequence[tuple[States, Actions, Any]]], list[Draw]]:
    """A function that lets ``executor`` answer many questions, each pairs with the key of a random stream."""

    def draw_all(questions: Sequence[tuple[States, Actions, Any]]) -> list[Draw]:
        source = Listed(model, problem, tuple(questions))
        blocks = [Block(int(Stream.DESIGN), 0, i, len(question[1])) for i, question in enumerate(questions)]
        found = dict(executor.run(source.draw, blocks))
        return [found[block] for block in blocks]

    return draw_all


@dataclass(frozen=True)
class Listed(Source):
    """Questions as they come: a block's number says which."""

    model: GenerativeModel
    problem: CMDP
    questions: tuple[tuple[States, Actions, Any], ...]
    seed: int = 0

    def draw(self, block: Block) -> Draw:
        """The simulator's answer."""
        states, actions, key = self.questions[block.block]
        drawn = self.model.sample(states, actions, generator(*key), key)
        self.check_signals(drawn, states, actions, key)
        return drawn

    def fault(self, block: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error, with the first of the pairs."""
        states, actions, key = self.questions[block.block]
        return SimulatorError(problem, state=states[index], action=actions[index], key=key, index=index)


@dataclass(frozen=True)
class Questions(Source):
    """The questions about some pairs. A block's place of the pair says what it is for, its number which of several it is."""

    model: GenerativeModel
    problem: CMDP
    states: States
    actions: Actions
    seed: int

    def draw(self, block: Block) -> Draw:
        """What the simulator answered, one call after the other."""
        if block.pair == _REPEATED:
            return self._repeated(block)
        key, n = self.key(block), len(self.actions)
        rng = generator(*key)
        if block.pair == _MIXED:
            return self._ask(self.order(), rng, key)
        if block.pair == _TRIED:
            return self._ask(np.full(_PILOT, block.block), rng, key)
        calls = [np.full(rows, block.block % n) for rows in [1] * _ALONE + [_UNIFORM_ROWS] * _UNIFORM]
        return joined([self._ask(rows, rng, key) for rows in calls])

    def fault(self, block: Block, problem: str, index: int = 0) -> SimulatorError:
        """The error, with the pair where the block is of one."""
        x = block.block if block.pair in (_TRIED, _BY_ITSELF) else 0
        state, action = self.states[x], self.actions[x]
        return SimulatorError(problem, state=state, action=action, key=self.key(block), index=index)

    def order(self) -> NDArray[np.int64]:
        """Whose turn it is in a mixed call. It is the same in all of them: where one row decides for others, it is always the
        same row, which shows best."""
        rows = np.repeat(np.arange(len(self.actions)), _ROWS)
        return generator(self.seed, Stream.EXAMINATION, 0, 1).permutation(rows)

    def _ask(self, rows: Any, rng: np.random.Generator, key: Any) -> Draw:
        return self.model.sample(self.states[rows], self.actions[rows], rng, key)

    def _repeated(self, block: Block) -> Draw:
        """The answers to the questions, which must be the same in whatever order they are asked: in one process."""
        choice = generator(self.seed, Stream.EXAMINATION, 0, 2)
        orders = [choice.permutation(len(self.actions)) for _ in range(_QUESTIONS)]
        keys = [self.key(block._replace(block=i)) for i in range(_QUESTIONS)]

        def ask(i: int) -> tuple[Draw, bytes]:
            rng = generator(*keys[i])
            return self._ask(orders[i], rng, keys[i]), place_of(rng)

        def refuse(i: int, row: int, text: str) -> NoReturn:
            at = orders[i][row]
            raise SimulatorError(text, state=self.states[at], action=self.actions[at], key=keys[i], index=row)

        first, again = ([ask(i) for i in range(_QUESTIONS)] for _ in range(2))
        other = {int(i): ask(int(i)) for i in choice.permutation(_QUESTIONS)}
        same = [first_difference(a[0], b[0]) is None for a, b in zip(first, again, strict=True)]
        for i in range(_QUESTIONS):
            if same[i] and first[i][1] != again[i][1]:
                refuse(i, 0, NOT_DRAWN_AGAIN)
            row = first_difference(again[i][0], other[i][0])
            if all(same[1:]) and row is not None:
                refuse(i, row, _MEMORY)
        whole = joined([drawn for drawn, _ in first])
        rows = np.concatenate([i * len(order) + np.argsort(order) for i, order in enumerate(orders)])
        return Draw(whole.next_states[rows], None if whole.signals is None else whole.signals[rows])


def _examine_simulator(about: Questions, executor: Executor) -> None:
    """All of it, or a :class:`SimulatorError`."""
    n = len(about.actions)
    tasks = [_block(_REPEATED, 0, 3 * _QUESTIONS * n), *(_block(_TRIED, i, _PILOT) for i in range(n))]
    repeated, *tried = _answers(about, tasks, executor)
    mixed = columns_of([repeated]).reshape(-1, _QUESTIONS, n)
    chosen = _choose(columns_of(tried).reshape(-1, n, _PILOT), mixed.transpose(0, 2, 1))
    about, n = dataclasses.replace(about, states=about.states[chosen], actions=about.actions[chosen]), len(chosen)
    tasks = [_block(_BY_ITSELF, i, _ALONE + _UNIFORM * _UNIFORM_ROWS) for i in range(n)]
    tasks += [_block(_MIXED, j, _ROWS * n) for j in range(_CALLS)]
    answers = _answers(about, tasks, executor)
    together, order = columns_of(answers[n:]).reshape(-1, _CALLS, _ROWS * n), about.order()
    for i in range(n):
        alone, mine = columns_of([answers[i]]), together[:, :, order == i]
        notes_of(about.model).mixed[name_of(about.states[i], about.actions[i])] = mine.reshape(len(mine), -1)
        for x, y in zip(alone, mine, strict=True):
            _compare(about, i, x[:_ALONE], x[_ALONE:].reshape(_UNIFORM, -1), y, FALSE_ALARM / 2 / (n * len(alone)))


def _block(purpose: int, number: int, rows: int) -> Block:
    return Block(int(Stream.EXAMINATION), purpose, number, rows)


def _answers(about: Questions, tasks: Sequence[Block], executor: Executor) -> list[Draw]:
    found = dict(executor.run(about.draw, tasks))
    return [found[task] for task in tasks]


def _choose(pilot: Array, mixed: Array) -> list[int]:
    """Pairs with varied answers, each with the one whose law is farthest from its own: where one row decides for others, some
    of them have a law that is not theirs. Values are ``(columns, pairs, calls or rows)``."""
    both, n = np.concatenate([pilot, mixed], axis=2), pilot.shape[1]
    variety = np.array([max(len(set(x)) for x in both[:, i].tolist()) for i in range(n)])
    left, found = np.argsort(-variety, kind="stable").tolist(), list[int]()
    while left and len(found) < _PAIRS:
        i = left.pop(0)
        apart = [max(_apart(x[i], x[j]) for x in pilot) for j in left]
        found += [i] if not left else [i, left.pop(int(np.argmax(apart)))]
    return found


def _apart(one: Array, two: Array) -> float:
    """Kolmogorov's distance between two samples."""
    points = np.concatenate([one, two])
    below = [np.searchsorted(np.sort(x), points, side="right") / len(x) for x in (one, two)]
    return float(np.abs(below[0] - below[1]).max())


def _compare(about: Questions, i: int, ones: Array, several: Array, mixed: Array, level: float) -> None:
    """One column of a pair: values ``(16,)``, ``(8, 16)`` and ``(32, 4)``."""
    half, alone = _CALLS // 2, np.concatenate([ones, several.ravel()])
    tests = [
        (one_law(ones, several.ravel()), _BY_ITSELF, _BATCH),
        (one_law(alone, mixed.ravel()), _MIXED, _BATCH),
        (ungrouped(several), _BY_ITSELF, SHARED),
        (ungrouped(mixed), _MIXED, SHARED),
        (ungrouped(several.T), _BY_ITSELF, SEEDED),
        (ungrouped(mixed.T), _MIXED, SEEDED),
        (one_law(mixed[:half].ravel(), mixed[half:].ravel()), _MIXED, _DRIFT),
    ]
    for p, purpose, text in tests:
        if p <= level / len(tests):
            key = about.key(_block(purpose, i if purpose == _BY_ITSELF else 0, 0))
            raise SimulatorError(f"{text} (p = {p:.1g})", state=about.states[i], action=about.actions[i], key=key)
