"""What a loop over single steps collects: next states and signals, copied and checked the moment they arrive.

Simulators may hand out the same array again and again, so nothing is kept by reference. A fault names the pair it belongs
to, which the caller of a batch could not know.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from saddleback.errors import InputError, SimulatorError, require
from saddleback.problem.spaces import Actions, Array, FiniteStates, States, StateSpace, returned_numbers
from saddleback.problem.user_code import TimeUp, fail
from saddleback.simulators.generative_model import ANSWER, LATE

Signals = Sequence[str | None]
"""Names of the observed signals, the reward first, then one a constraint; None where the problem knows the signal."""

_WHOLE = "return an integer 0, 1, 2, … for finite states, as int(x) makes of a float"
_BOX = "return one number a coordinate of the declared box"


class Tray:
    """Room for the answers to one batch of pairs."""

    def __init__(self, space: StateSpace, states: States, actions: Actions, num_signals: int):
        self.states, self.actions = states, actions
        self.finite = isinstance(space, FiniteStates)
        self.shape = () if isinstance(space, FiniteStates) else (space.dim,)
        n = len(states)
        self.next_states: States = np.empty((n, *self.shape), dtype=np.int64 if self.finite else np.float64)
        self.signals: Array | None = np.zeros((n, num_signals)) if num_signals else None

    def pairs(self) -> Iterator[tuple[int, Any, int]]:
        """(i, state, action) with Python numbers, or a private copy of the state that may be written to."""
        states = self.states.tolist() if self.finite else np.array(self.states)
        return zip(range(len(states)), states, self.actions.tolist(), strict=True)

    def put(self, i: int, next_state: Any) -> None:
        """The next state of pair i."""
        if self.finite:
            try:
                self.next_states[i] = operator.index(next_state)
            except (TypeError, OverflowError):
                what = "a float" if isinstance(next_state, (float, np.floating)) else "which is none"
                self.refuse(i, f"returned the next state {next_state!r}, {what} where an integer is wanted", _WHOLE)
            return
        try:
            x = returned_numbers(next_state)
        except (TypeError, ValueError):
            self.refuse(i, f"returned the next state {next_state!r}, which is not an array of numbers", _BOX)
        if x.shape != self.shape and not (x.shape == () and self.shape == (1,)):
            self.refuse(i, f"returned a next state of shape {x.shape} instead of {self.shape}", _BOX)
        self.next_states[i] = x

    def put_signals(self, i: int, values: Sequence[Any]) -> None:
        """The signals of pair i."""
        assert self.signals is not None
        try:
            self.signals[i] = returned_numbers(values)
        except (TypeError, ValueError):
            self.refuse(i, f"returned the signals {list(values)!r}, which are not {self.signals.shape[1]} numbers")

    def put_observed(self, i: int, names: Signals, reward: Any, info: dict[str, Any], where: str) -> None:
        """The signals of pair i by name: the reward, and whatever else from an environment's ``info``."""
        for name in names:
            if name not in (None, "reward", *info):
                known = ", ".join(map(repr, info)) or "nothing"
                hint = "make the environment give it, or put None into `signals` and the cost into the Constraint"
                self.refuse(i, f"gave no {name!r} in {where} (it has {known}); {hint}")
        self.put_signals(i, [0.0 if n is None else reward if n == "reward" else info[n] for n in names])

    def fill(self, step: Callable[[int, Any, int], None]) -> Any:
        """The answer after ``step(i, state, action)`` has put in that of each pair."""
        for i, state, action in self.pairs():
            try:
                step(i, state, action)
            except BaseException as error:  # the user's code: anything can happen
                self.failed(i, error)
        return self.answer()

    def refuse(self, i: int, problem: str, remedy: str = "mend the simulator") -> NoReturn:
        """Raise the error that names pair i."""
        raise self._error(i, problem, remedy)

    def failed(self, i: int, error: BaseException) -> NoReturn:
        """The simulator raised ``error`` at pair i."""
        remedy = LATE if isinstance(error, TimeUp) else ANSWER
        fail(error, lambda said: self._error(i, said, remedy))

    def _error(self, i: int, problem: str, remedy: str) -> SimulatorError:
        return SimulatorError(problem, state=self.states[i], action=self.actions[i], index=i, remedy=remedy)

    def answer(self) -> Any:
        """What :class:`saddleback.simulators.generative_model.GenerativeModel` takes."""
        return self.next_states if self.signals is None else (self.next_states, self.signals)


def signal_names(signals: Signals) -> tuple[str | None, ...]:
    """The names, checked: none at all, or the reward's and at least one constraint's."""
    rule = "must name the reward and every constraint, or nothing"
    remedy = 'give for example ("reward", "cost"), with None for what the problem knows'
    require(not isinstance(signals, str) and len(signals) != 1, "signals", rule, signals, remedy)
    names = [s for s in signals if s is not None]
    rule, remedy = "must be distinct names", "rename one"
    require(all(isinstance(s, str) for s in names) and len(set(names)) == len(names), "signals", rule, signals, remedy)
    return tuple(signals)


def check_actions(actions: Actions, listed: Sequence[Any]) -> None:
    """Refuse actions that are not on the list: Python would count negative ones from its end."""
    A = len(listed)
    for i in np.flatnonzero((actions < 0) | (actions >= A))[:1]:
        raise InputError(f"actions[{i}]", f"must be 0 to {A - 1}", actions[i], f"give the problem num_actions={A}")
