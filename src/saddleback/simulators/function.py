"""A plain Python function as a simulator: ``step(state, action, rng)`` looped, or ``sample(states, actions, rng)`` batched.

    def step(length, gate, rng):                      # one pair: an int, a float array or the user's own state; an action
        ...
        return next_length                            # nothing observed
        return next_length, admitted, length          # what the problem observes, the reward first, then the constraints
        return next_length, [admitted, length]
        return {"next_state": …, "reward": …, "number-in-system": …}

A batched function gets arrays ``(n,)`` or ``(n, k)`` and returns arrays, in the same forms or as a pair
``(next_states, signals (n, 1+m))``. Draw all randomness from ``rng``: a block of samples is repeated by its seed. A
function of a module, a script or a notebook, a closure or a callable object can all be sent to worker processes.

**Which of the two?** :func:`as_simulator` finds out, in this order:

1. on a named space (tuples, names) functions are given one of the user's own states;
2. ``batched=True`` or ``False``, or the annotation of the action (``int``, or an array) or of the state (``int``, ``tuple``);
3. it is called with a few pairs at once, and with twice as many. If that fails, or does not give one next state a pair, it was
   written for one pair. So it was if it drew as many numbers from ``rng`` for twice as many pairs, which shared their luck;
4. if it drew nothing, and also answers for one pair, it is looped, which is right either way.

A few calls are spent on this; they are not counted, and their random numbers are used for nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from saddleback.errors import InputError, SaddlebackError, SimulatorError, require, takes
from saddleback.problem.cmdp import CMDP
from saddleback.problem.names import Action, state_space
from saddleback.problem.spaces import Actions, FiniteStates, States, StateSpace, returned_numbers
from saddleback.simulators.generative_model import (
    EXPECTED,
    NOT_DRAWN_AGAIN,
    GenerativeModel,
    Stream,
    generator,
    only_allowed,
)
from saddleback.simulators.step_collector import Signals, Tray, signal_names

_NEXT = "next_state"
_OF_ONE = ("int", "float", "str", "tuple", "Tuple")
_OF_MANY = ("ndarray", "NDArray", "Array", "ArrayLike", "States")


def as_simulator(
    problem: CMDP, sample: GenerativeModel | Callable[..., Any], *, batched: bool | None = None
) -> GenerativeModel:
    """What answers for ``problem``: a plain function as a simulator, or a simulator as it is.

    Parameters
    ----------
    problem   says what the states are, which actions they allow, and which signals the function returns: those that the
              problem does not know (``reward=None``, ``signal=None``)
    sample    ``function(state, action, rng)`` of one pair or of arrays, or a GenerativeModel
    batched   whether the function takes arrays; None finds out (see the module)

    Actions that are not allowed never reach the function: it is asked for the action they stand for.
    """
    if not isinstance(sample, GenerativeModel):
        return _of_function(problem, sample, batched)
    _check_model(problem, sample)
    return only_allowed(sample, problem.stand_ins)


def from_function(
    function: Callable[..., Any], states: StateSpace | int, *, signals: Signals = (), batched: bool = False
) -> GenerativeModel:
    """A simulator from ``function(state, action, rng)``, or from ``function(states, actions, rng)`` with ``batched``.

    ``states`` is the space (an int n: the states 0 … n − 1). ``signals`` names what the function returns beside the next
    state, in the order reward, constraint, constraint…; None in a place means that the problem knows that signal and the
    function does not return it.
    """
    require(callable(function), "function", "must be callable", type(function).__name__, "pass the function itself")
    space = state_space(states)
    names = signal_names(signals)
    sample = Batched(function, names) if batched else Looped(function, space, names)
    return GenerativeModel(sample, space, len(names))


class Looped:
    """One call a pair; ``names`` are those of the actions."""

    def __init__(
        self,
        function: Callable[..., Any],
        space: StateSpace,
        signals: tuple[str | None, ...],
        names: tuple[str, ...] | None = None,
    ):
        self.function, self.space, self.signals = function, space, signals
        self.observed = [name for name in signals if name is not None]
        self.named = isinstance(space, FiniteStates) and space.named
        self.actions: list[Any] | None = None if names is None else [Action(a, names) for a in range(len(names))]

    def __call__(self, states: States, actions: Actions, rng: np.random.Generator) -> Any:
        """One next state per pair, and the signals if there are any."""
        tray = Tray(self.space, states, actions, len(self.signals))
        own = self.space.own(states) if isinstance(self.space, FiniteStates) and self.named else None

        def step(i: int, state: Any, action: int) -> None:
            chosen = action if self.actions is None else self.actions[action]
            returned = self.function(state if own is None else own[i], chosen, rng)
            if self.signals:
                self._keep(tray, i, returned)
            else:
                self._put(tray, i, self._bare(tray, i, returned))

        return tray.fill(step)

    def _put(self, tray: Tray, i: int, next_state: Any) -> None:
        if isinstance(self.space, FiniteStates) and self.named:
            try:
                next_state = self.space.index(next_state)
            except InputError as error:
                tray.refuse(i, f"returned the next state {next_state!r:.80}, which {error.rule}; {error.remedy}")
        tray.put(i, next_state)

    def _bare(self, tray: Tray, i: int, returned: Any) -> Any:
        if isinstance(returned, dict):
            return self._field(tray, i, returned, _NEXT)
        if tray.finite and not self.named and isinstance(returned, tuple):
            tray.refuse(
                i,
                f"returned {len(returned)} things where no signal is named; name them in `signals`, or give the problem "
                "reward=None (or a constraint's signal=None) where the simulator returns it; in a problem file that is "
                'values = "observed", with a range, in [reward] or [[constraints]]',
                "declare as observed what it returns, or return the next state alone",
            )
        return returned

    def _keep(self, tray: Tray, i: int, returned: Any) -> None:
        if isinstance(returned, dict):
            next_state = self._field(tray, i, returned, _NEXT)
            values = {name: self._field(tray, i, returned, name) for name in self.observed}
        else:
            wanted = 1 + len(self.observed)
            if isinstance(returned, tuple) and len(returned) == 2 and _lists(returned[1], wanted - 1):
                returned = (returned[0], *returned[1])
            if not isinstance(returned, tuple) or len(returned) != wanted:
                found = f"{len(returned)} things" if isinstance(returned, tuple) else type(returned).__name__
                tray.refuse(i, f"returned {found} where next state, {', '.join(self.observed)} are expected", EXPECTED)
            next_state, values = returned[0], dict(zip(self.observed, returned[1:], strict=True))
        self._put(tray, i, next_state)
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

        def refuse(problem: str) -> NoReturn:
            raise SimulatorError(problem, state=states[0], action=actions[0], remedy=EXPECTED)

        returned = self.function(states, actions, rng)
        if isinstance(returned, dict):
            missing = [name for name in (_NEXT, *self.observed) if name not in returned]
            if missing:
                refuse(f"returned a dict without {missing[0]!r}")
            returned = (returned[_NEXT], *(returned[name] for name in self.observed))
        if not self.signals or not isinstance(returned, tuple):
            return returned[0] if isinstance(returned, tuple) and len(returned) == 1 else returned
        if len(returned) == 2 and np.ndim(returned[1]) == 2:
            return returned
        if len(returned) != 1 + len(self.observed):
            refuse(f"returned {len(returned)} things where next states, {', '.join(self.observed)} are expected")
        columns = dict(zip(self.observed, returned[1:], strict=True))
        signals = np.zeros((len(states), len(self.signals)))
        for j, name in enumerate(self.signals):
            if name is not None:
                column = returned_numbers(columns[name])
                if column.shape != (len(states),):
                    refuse(f"returned the signal {name!r} of shape {column.shape} instead of {(len(states),)}")
                signals[:, j] = column
        return returned[0], signals


# ---- a function of one pair, or of many? ---------------------------------------------------------------------------------


def _of_function(problem: CMDP, function: Any, batched: bool | None) -> GenerativeModel:
    _check_function(function)
    space = problem.states
    observed = [s.name if seen else None for s, seen in zip(problem.signals, problem.observed, strict=True)]
    names = tuple(observed) if problem.observed.any() else ()
    looped, arrays = (
        only_allowed(GenerativeModel(sample, space, len(names)), problem.stand_ins)
        for sample in (Looped(function, space, names, problem.actions), Batched(function, names))
    )
    named = isinstance(space, FiniteStates) and space.named
    remedy = "write the function for one state and one action, or use the states 0 to n - 1"
    require(not (named and batched), "batched", "must be left out for states of your own", batched, remedy)
    if batched is None:
        batched = False if named else _annotated(function)
    if batched is None:
        batched = _takes_arrays(looped, arrays, *_probes(problem))
    return arrays if batched else looped


def _check_function(function: Any) -> None:
    if not callable(function):
        remedy = (
            "pass a function (state, action, rng) -> next state; tables have .simulator(), environments from_gymnasium"
        )
        raise InputError("simulator", "must be a function or a GenerativeModel", type(function).__name__, remedy)
    rule = "must be a function of a state, an action and a random generator"
    remedy = "write it as sample(state, action, rng), and draw all randomness from rng"
    require(takes(function, 3), "simulator", rule, "a function of other arguments", remedy)


def _check_model(problem: CMDP, model: GenerativeModel) -> None:
    """That the simulator is one of this problem, as far as its declarations tell."""
    ours, theirs = problem.states, model.states
    sizes = [s.num if isinstance(s, FiniteStates) else f"{s.dim} coordinates" for s in (ours, theirs)]
    rule = f"must have the problem's states, {ours}"
    require(sizes[0] == sizes[1], "simulator", rule, theirs, "make the simulator and the problem agree")
    wanted = 1 + problem.num_constraints
    if problem.observed.any() and model.num_signals != wanted:
        rule = f"must return {wanted} signals: the reward and one a constraint, where the problem observes some of them"
        remedy = f"give it num_signals={wanted}, or give the problem its rewards and costs"
        raise InputError("simulator", rule, model.num_signals, remedy)


def _annotated(function: Any) -> bool | None:
    """What the annotation of the action (or else of the state) says: arrays (True), one pair (False), or nothing."""
    try:
        state, action, *_ = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    for annotation, of_many in ((action.annotation, _OF_MANY), (state.annotation, ())):  # one point is an array too
        text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
        word = text.split("[")[0].rpartition(".")[2]
        if word in _OF_ONE or word in of_many:
            return word in of_many
    return None


def _probes(problem: CMDP) -> tuple[States, Actions]:
    """A few pairs: more than a point has coordinates, so that no array of another kind has their shape."""
    starts = np.asarray(problem.start.states)
    n = 3 + starts[0].size
    if isinstance(problem.states, FiniteStates):
        states: States = np.unique(np.linspace(0, problem.states.num - 1, n).astype(np.int64))
        states = np.resize(states, n)
    else:
        states = np.array(starts[np.arange(n) % len(starts)])
    return states, np.arange(n) % problem.num_actions


class _Watched(np.random.Generator):
    """A generator that notes how many numbers each draw gave."""

    sizes: list[int]

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in ("sizes", "bit_generator") or not callable(found):
            return found

        def drawn(*given: Any, **named: Any) -> Any:
            numbers = found(*given, **named)
            self.sizes.append(int(np.size(numbers)))
            return numbers

        return drawn


def _takes_arrays(looped: GenerativeModel, arrays: GenerativeModel, states: States, actions: Actions) -> bool:
    """Whether the function was written for arrays, by a few calls that are not counted."""
    key = (0, int(Stream.DESIGN), 5, 0)
    sizes: list[list[int]] = []
    failure = None
    for times in (1, 2):
        watched = _Watched(generator(*key).bit_generator)
        watched.sizes = []
        several = np.concatenate([states] * times), np.tile(actions, times)
        failure = failure or _failure(arrays, *several, watched)
        sizes.append(watched.sizes)
    if failure is not None and not sizes[0]:
        failure = _failure(arrays, states, actions, generator(*key))  # compiled code takes NumPy's own generator only
    if failure is None and any(sizes[0]) and not any(sizes[1]):
        raise SimulatorError(NOT_DRAWN_AGAIN, state=states[0], action=actions[0], key=key)
    shared = any(one == two > 0 for one, two in zip(*sizes, strict=False))
    if failure is None and any(sizes[0]) and not shared:
        return True
    alone = _failure(looped, states[:1], actions[:1], generator(*key))
    if failure is not None and alone is not None:
        if not isinstance(alone, SimulatorError):
            raise alone
        more = failure.problem if isinstance(failure, SimulatorError) else str(failure)
        raise SimulatorError(
            f"{alone.problem} when it is called for one pair; for {len(states)} pairs at once it {more}",
            state=alone.state,
            action=alone.action,
            key=key,
        ) from alone.__cause__
    return alone is not None


def _failure(
    model: GenerativeModel, states: States, actions: Actions, rng: np.random.Generator
) -> SaddlebackError | None:
    """What goes wrong when these pairs are asked for, and nothing else of the answer."""
    try:
        model.sample(states, actions, rng)
    except SaddlebackError as error:
        return error
    finally:
        model.num_queries = 0
    return None


def _lists(values: Any, number: int) -> bool:
    """Whether ``values`` is a list, tuple or vector of so many."""
    listed = isinstance(values, (list, tuple)) or (isinstance(values, np.ndarray) and values.ndim == 1)
    return listed and len(values) == number
