"""§2, the generative model Gen (def_genm): given any pair (s, a), an independent next state s' ~ P(·|s, a).

A user's simulator is one batched function ``sample(states, actions, rng)`` that returns the next states, or a pair
``(next_states, signals)`` where ``signals`` ``(n, 1+m)`` holds the observed reward and constraint signals in the user's
units. :class:`GenerativeModel` wraps it: it counts every query and refuses, before anything is averaged, whatever a
simulator must not return. Arrays are copied both ways, since simulators may write into what they get and reuse what they
return. States have one type from the moment they are received, whatever the simulator computes in: int64 where they are
finite, float64 in a box; what that type cannot hold exactly is refused.

Randomness is one Philox stream per (seed, stream, pair, block of 4,096 consecutive samples of a pair), so a sample's
value depends on which sample it is and never on who drew it.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import BudgetError, InputError, SimulatorError, whole_number
from saddleback.problem.names import state_space
from saddleback.problem.numerics import Stream as Stream
from saddleback.problem.numerics import generator as generator
from saddleback.problem.spaces import Actions, Array, FiniteStates, States, StateSpace, returned_numbers
from saddleback.problem.user_code import TimeUp, calling, culprit, fail, received

BLOCK = 4096
"""Samples of one pair that share a random stream: a constant of the file formats too."""

ANSWER = "it must answer for every state and action"
LATE = f"{ANSWER}, or be given more time with --timeout"
EXPECTED = "return the next state, then what is declared as observed, in the order reward, constraints"
FINITE = "a reward or cost must be a finite number: look for a division by zero or a logarithm of zero"

_FEW = 8  # pairs of a call that are all named where it ends the process


def derived_seed(seed: int, number: int) -> int:
    """A seed of its own for a later round or another purpose, a function of the first."""
    words = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(2, np.uint32)
    return int(words[0]) << 31 | int(words[1]) >> 1


class Draw(NamedTuple):
    """What one query of the simulator gave."""

    next_states: States
    signals: Array | None


SampleFunction = Callable[[States, Actions, np.random.Generator], Any]

_METERS = threading.RLock()  # whoever was interrupted while holding it may take it again


class GenerativeModel:
    """Gen, metered and checked: ``sample(states, actions, rng)`` over a declared state space.

    Parameters
    ----------
    sample        arrays ``(n,)`` or ``(n, k)`` of states, ``(n,)`` of actions and a generator to next states, or to
                  ``(next_states, signals (n, num_signals))``; functions of one pair go through ``as_simulator``
    states        the space, spelled as for a CMDP
    num_signals   1 + m where the simulator returns the reward and the constraints' signals, 0 where it returns none
    """

    def __init__(self, sample: SampleFunction, states: StateSpace, num_signals: int = 0):
        if sample is not None and not callable(sample):  # None: an executor's workers make their own
            remedy = "pass the function itself, or see saddleback.simulators for tables and environments"
            raise InputError("sample", "must be a function (states, actions, rng)", type(sample).__name__, remedy)
        self._sample = sample
        self.states = state_space(states)
        self.num_signals = whole_number("num_signals", num_signals, 0, "count the reward and the constraints")
        self._num_queries, self._whole = 0, None

    _whole: GenerativeModel | None

    @property
    def num_queries(self) -> int:
        """How many samples were drawn with it, and with whatever :meth:`metered` made of it."""
        return self._num_queries

    @num_queries.setter
    def num_queries(self, number: int) -> None:
        self.count(number - self._num_queries)

    def count(self, queries: int) -> None:
        """Put so many on the meter, in whatever thread (negative: take them off)."""
        with _METERS:
            meter: GenerativeModel | None = self
            while meter is not None:
                meter._num_queries += queries
                meter = meter._whole

    def metered(self) -> GenerativeModel:
        """The same simulator with a meter of its own, for one run of several; what it counts is counted here too."""
        part = copy.copy(self)
        part._num_queries, part._whole = 0, self
        return part

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None}  # copies, and those in other processes, count for themselves

    def sample(
        self, states: States, actions: Actions, rng: np.random.Generator, key: tuple[int, ...] | None = None
    ) -> Draw:
        """Draw one next state per pair; ``key`` is the seed key that an error should name."""
        try:
            ours = getattr(self._sample, "is_ours", False)
            with calling(None if ours else lambda: self._asked(states, actions, key), len(states)):
                # Copies, since it may write into what it is given, of the types that it was promised.
                returned = self._sample(np.array(states, self.states.dtype), np.array(actions, np.int64), rng)
                self.count(len(states))
                return self._checked(returned, states, actions, key)
        except SimulatorError as error:  # an adapter that knows which of the pairs it was, but not the key
            if error.key is not None:
                raise
            raise error.at(state=self._shown(error.state), key=key) from error.__cause__
        except BaseException as error:  # the user's code: anything can happen, and the pair must be named
            late = isinstance(error, TimeUp)
            fail(error, lambda said: self._failed(said, states, actions, key, late))

    def _asked(self, states: States, actions: Actions, key: tuple[int, ...] | None) -> str:
        """What a call asks for, in words."""
        few = range(len(states)) if len(states) <= _FEW else (0, len(states) - 1)
        pairs = dict.fromkeys(f"state {self._shown(states[i])}, action {actions[i]}" for i in few)
        between = "; " if len(states) <= _FEW else " … "
        return f"the simulator (at {between.join(pairs)}" + (")" if key is None else f", seed key {key})")

    def _failed(
        self, said: str, states: States, actions: Actions, key: tuple[int, ...] | None, late: bool
    ) -> SimulatorError:
        """The error, with the pair that fails by itself: one of a batch is found by asking for parts of it again."""
        at, n = 0, len(states)
        if np.any(states != states[0]) or np.any(actions != actions[0]):

            def again(rows: slice) -> None:
                with calling(lambda: self._asked(states[rows], actions[rows], key), n):
                    some: States = np.array(states[rows], self.states.dtype)
                    self._sample(some, np.array(actions[rows], np.int64), generator(*(key or (0, 0, 0, 0))))

            found = culprit(again, n)
            at, said = (0, f"{said}, for a batch of {n} pairs from this one on") if found is None else (found, said)
        where: dict[str, Any] = {"state": self._shown(states[at]), "action": actions[at], "key": key, "index": at}
        return SimulatorError(said, **where, remedy=LATE if late else ANSWER)

    def _checked(self, returned: Any, states: States, actions: Actions, key: tuple[int, ...] | None) -> Draw:
        def refuse(problem: str, remedy: str, index: int = 0) -> NoReturn:
            state, action = self._shown(states[index]), actions[index]
            raise SimulatorError(problem, state=state, action=action, key=key, index=index, remedy=remedy)

        kind = "return integers 0, 1, 2, … for finite states, a row of floats a state for a box"

        if isinstance(returned, tuple) and len(returned) != 2:
            found = f"returned a tuple of {len(returned)} where next states, or next states and signals, are expected"
            refuse(found, EXPECTED)
        next_states, signals = returned if isinstance(returned, tuple) else (returned, None)
        try:
            next_states = received(next_states)  # a copy: the simulator may reuse its array
        except ValueError:
            refuse("returned next states of the wrong kind: they must be alike, one a pair, and none masked", kind)
        wrong = self.states.well_formed(next_states)
        if wrong:
            refuse(f"returned next states of the wrong kind: they {wrong}", kind)
        if len(next_states) != len(states):
            found = f"returned {len(next_states)} next states for {len(states)} pairs"
            refuse(found, "return one next state for each pair that is asked about")
        outside = np.flatnonzero(self.states.outside(next_states))
        if outside.size:
            i = int(outside[0])
            found = f"returned the next state {next_states[i]}, which is outside the state space, {self.states}"
            refuse(found, "mend the step that leaves it, or declare a larger space: nothing is clipped for you", i)
        next_states = self.states.cast(next_states)  # one type for all, whatever the simulator computes in
        if self.num_signals == 0:
            return Draw(next_states, None)
        if signals is None:
            remedy = "return (next_states, signals) where something is declared as observed"
            refuse(f"returned no signals although {self.num_signals} are observed", remedy)
        try:
            signals = returned_numbers(signals)
        except (TypeError, ValueError):
            refuse(f"returned signals that are not numbers: {signals!r:.80}", FINITE)
        if signals.shape != (len(states), self.num_signals):
            found = f"returned signals of shape {signals.shape} instead of {(len(states), self.num_signals)}"
            refuse(found, "return one row a pair: the reward, then each constraint")
        bad = np.argwhere(~np.isfinite(signals))
        if bad.size:
            i, j = map(int, bad[0])
            refuse(f"returned the signal {signals[i, j]} in column {j}", FINITE, i)
        return Draw(next_states, signals)

    @property
    def stand_ins(self) -> NDArray[np.int64] | None:
        """The action that each action stands for, ``(S, A)``; None where every action is allowed everywhere."""
        return self._sample.stand_ins if isinstance(self._sample, OnlyAllowed) else None

    def _shown(self, state: Any) -> Any:
        """A state as the user knows it."""
        named = isinstance(self.states, FiniteStates) and self.states.named and isinstance(state, (int, np.integer))
        return self.states.own([state])[0] if named and isinstance(self.states, FiniteStates) else state


class OnlyAllowed:
    """A simulator that is asked for the action which an action that is not allowed stands for."""

    def __init__(self, sample: SampleFunction, stand_ins: NDArray[np.int64]):
        self.sample, self.stand_ins = sample, stand_ins

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """What the allowed actions lead to."""
        return self.sample(states, self.stand_ins[states, actions], rng)


def only_allowed(model: GenerativeModel, stand_ins: NDArray[np.int64] | None) -> GenerativeModel:
    """The simulator with stand-ins ``(S, A)`` for actions that are not allowed; itself where everything is."""
    if stand_ins is None or isinstance(model._sample, OnlyAllowed):
        return model
    return GenerativeModel(OnlyAllowed(model._sample, stand_ins), model.states, model.num_signals)


class Sampler:
    """A metered tap for interactive oracles: its own stream, its calls counted apart and limited."""

    def __init__(self, model: GenerativeModel, seed: int, stream: int = Stream.INTERACTIVE, limit: int | None = None):
        self._model, self._seed, self._stream, self._limit = model, seed, stream, limit
        self._num_calls = 0
        self.num_queries = 0

    @property
    def remaining(self) -> int:
        """How many more samples may be drawn."""
        return sys.maxsize if self._limit is None else self._limit - self.num_queries

    def draw(self, states: States, actions: Actions) -> Draw:
        """One next state per pair, from the next unused block of this sampler's stream."""
        if len(states) > self.remaining:
            raise BudgetError(f"the oracle asked for {len(states)} samples where {self.remaining} are left.")
        key = (self._seed, int(self._stream), 0, self._num_calls)
        self._num_calls += 1
        self.num_queries += len(states)
        return self._model.sample(states, actions, generator(*key), key)

    def generator(self) -> np.random.Generator:
        """A fresh generator of this sampler's stream, for choices that are not simulator calls."""
        self._num_calls += 1
        return generator(self._seed, int(self._stream), 1, self._num_calls)


def place_of(rng: np.random.Generator) -> bytes:
    """How far a stream of :func:`generator` has been read."""
    state: Any = rng.bit_generator.state
    place = (state["buffer_pos"], state["has_uint32"])
    return bytes(state["state"]["counter"].tobytes() + bytes(place))


NOT_DRAWN_AGAIN = (
    "remembers what it was asked before: the same question with the same seed took random numbers when it was asked first and "
    "others, or none, when it was asked again; draw every answer anew"
)
"""What is said of a simulator that keeps its answers."""


def first_difference(one: Draw, two: Draw) -> int | None:
    """The first row in which two answers differ, in the next state or in a signal; None where there is none."""
    differs = (one.next_states != two.next_states).reshape(len(one.next_states), -1).any(axis=1)
    if one.signals is not None and two.signals is not None:
        differs = differs | (one.signals != two.signals).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None
