"""A plain Python function as a simulator: ``step(state, action, rng)`` looped, or ``sample(states, actions, rng)`` batched.

    def step(length, gate, rng):                      # one pair: an int (or a float array) and an int
        ...
        return next_length                            # nothing observed
        return next_length, admitted, length          # signals=("reward", "number-in-system")
        return {"next_state": …, "reward": …, "number-in-system": …}

A batched function gets arrays ``(n,)`` or ``(n, k)`` and returns arrays, in the same three forms or as a pair
``(next_states, signals (n, 1+m))``. Draw all randomness from ``rng``: a block of samples is repeated by its seed. A
function of a module, a script or a notebook, a closure or a callable object can all be sent to worker processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.errors import require
from saddleback.problem.spaces import Actions, FiniteStates, States, StateSpace
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.step_collector import Signals, Tray, signal_names

_NEXT = "next_state"


def from_function(
    function: Callable[..., Any], states: StateSpace | int, *, signals: Signals = (), batched: bool = False
) -> GenerativeModel:
    """A simulator from ``function(state, action, rng)``, or from ``function(states, actions, rng)`` with ``batched``.

    ``states`` is the space (an int n: the states 0 … n − 1). ``signals`` names what the function returns beside the next
    state, in the order reward, constraint, constraint…; None in a place means that the problem knows that signal and the
    function does not return it.
    """
    require(callable(function), "function", "must be callable", type(function).__name__, "pass the function itself")
    space = FiniteStates(states) if isinstance(states, int) else states
    names = signal_names(signals)
    sample = Batched(function, names) if batched else Looped(function, space, names)
    return GenerativeModel(sample, space, len(names))


class Looped:
    """One call a pair."""

    def __init__(self, function: Callable[..., Any], space: StateSpace, signals: tuple[str | None, ...]):
        self.function, self.space, self.signals = function, space, signals
        self.observed = [name for name in signals if name is not None]

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """One next state per pair, and the signals if there are any."""
        function = self.function
        tray = Tray(self.space, states, actions, len(self.signals))
        for i, state, action in tray.pairs():
            try:
                returned = function(state, action, rng)
            except Exception as error:  # the user's code: anything can happen
                tray.failed(i, error)
            if self.signals:
                self._keep(tray, i, returned)
            else:
                tray.put(i, self._bare(tray, i, returned))
        return tray.answer()

    def _bare(self, tray: Tray, i: int, returned: Any) -> Any:
        if isinstance(returned, dict):
            return self._field(tray, i, returned, _NEXT)
        if tray.finite and isinstance(returned, tuple):
            tray.refuse(i, f"returned {len(returned)} things where no signal is named; name them in `signals`")
        return returned

    def _keep(self, tray: Tray, i: int, returned: Any) -> None:
        if isinstance(returned, dict):
            next_state = self._field(tray, i, returned, _NEXT)
            values = {name: self._field(tray, i, returned, name) for name in self.observed}
        else:
            wanted = 1 + len(self.observed)
            if not isinstance(returned, tuple) or len(returned) != wanted:
                found = f"{len(returned)} things" if isinstance(returned, tuple) else type(returned).__name__
                tray.refuse(i, f"returned {found} where next state, {', '.join(self.observed)} are expected")
            next_state, values = returned[0], dict(zip(self.observed, returned[1:], strict=True))
        tray.put(i, next_state)
        tray.put_signals(i, [0.0 if name is None else values[name] for name in self.signals])

    def _field(self, tray: Tray, i: int, returned: dict[str, Any], name: str) -> Any:
        if name not in returned:
            tray.refuse(i, f"returned a dict without {name!r} (it has {', '.join(map(repr, returned)) or 'nothing'})")
        return returned[name]


class Batched:
    """One call for all pairs; the answer is only rearranged, :class:`GenerativeModel` checks it."""

    def __init__(self, function: Callable[..., Any], signals: tuple[str | None, ...]):
        self.function, self.signals = function, signals
        self.observed = [name for name in signals if name is not None]

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """Next states, and the signals ``(n, 1+m)`` if there are any."""
        returned = self.function(states, actions, rng)
        if isinstance(returned, dict):
            missing = [name for name in (_NEXT, *self.observed) if name not in returned]
            if missing:
                raise KeyError(f"no {missing[0]!r} in the dict that was returned")
            returned = (returned[_NEXT], *(returned[name] for name in self.observed))
        if not self.signals or not isinstance(returned, tuple):
            return returned[0] if isinstance(returned, tuple) and len(returned) == 1 else returned
        if len(returned) == 2 and np.ndim(returned[1]) == 2:
            return returned
        if len(returned) != 1 + len(self.observed):
            raise ValueError(f"{len(returned)} things where next states, {', '.join(self.observed)} are expected")
        columns = dict(zip(self.observed, returned[1:], strict=True))
        signals = np.zeros((len(states), len(self.signals)))
        for j, name in enumerate(self.signals):
            if name is not None:
                column = np.asarray(columns[name], dtype=np.float64)
                if column.shape != (len(states),):
                    raise ValueError(f"the signal {name!r} has shape {column.shape} instead of {(len(states),)}")
                signals[:, j] = column
        return returned[0], signals
