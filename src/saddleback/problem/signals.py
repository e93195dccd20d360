"""§2, reward and constraint signals x(s, a) in the user's units: arrays, functions of arrays, or functions of one pair.

A function is called with arrays first. Where that fails, or does not give one number a pair, it is called for one pair; if that
works it was written for one state and one action and is called for each of many from then on. On a named space (tuples, names)
a function is always called for one pair, with the user's own state. Rewards are numbers that do not change, so what is known
of a finite space is kept and never asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, SaddlebackError, checked_arguments, nearest, number, require, takes
from saddleback.problem.criteria import Unit, UnitName
from saddleback.problem.names import Action, check_name
from saddleback.problem.spaces import (
    Actions,
    Array,
    FiniteStates,
    States,
    StateSpace,
    as_float64,
    own_states,
    refuse_float32,
)
from saddleback.problem.user_code import calling, fail, frozen, lent, received

SignalFunction = Callable[[States, Actions], Array]
Sense = Literal[">=", "<="]

_RANGE_SLACK = 1e-9  # of the span: how far a value may lie outside its declared range before it is refused
_CONSTRAINT = 'write constraints=[Constraint("energy", cost, "<=", 12.0)]'
MOST_CONSTRAINTS = 1000
_MOST_KEPT = 1 << 22  # pairs of a finite space whose values are kept


@dataclass(frozen=True)
class Constraint:
    """One constraint in the user's words: ``Constraint("energy", cost, "<=", 12.0)``.

    Parameters
    ----------
    name        what it is called in answers and reports
    signal      an array ``(S, A)`` or ``(S,)``; a function of arrays ``(states, actions) -> (n,)`` or of one pair
                ``(state, action) -> number``; None when the simulator returns it with the next state
    sense       ">=" or "<="
    threshold   a discounted total, or a discounted average per step with ``units="per-step"``
    range       the smallest and largest value of the signal; may be left out for arrays
    units       "discounted" (default) or "per-step": what the threshold is given in and all values are shown in
    """

    name: str
    signal: Any
    sense: Sense
    threshold: float
    range: tuple[float, float] | None = None
    units: UnitName = "discounted"

    def unit(self, horizon: float) -> Unit:
        """The unit it was given in, for a problem with this horizon."""
        return Unit(self.units, horizon)


Constraint.__init__ = checked_arguments(Constraint.__init__)  # type: ignore[method-assign]


@dataclass(frozen=True)
class LoopedMap:
    """``function(state, action)``, a number or a vector, as a function of arrays ``(n,)`` or ``(n, d)``.

    A state is handed over as a Python int (finite spaces) or as a float64 array ``(k,)`` of its own, an action as an int.
    """

    function: Callable[..., Any]

    def __call__(self, states: States, actions: Actions) -> Array:
        """One call a pair."""
        ones = states.tolist() if states.ndim == 1 else list(lent(states))
        pairs = zip(ones, actions.tolist(), strict=True)
        values = _stacked("values", [self._at(s, a) for s, a in pairs])
        return values.astype(np.float64) if values.dtype.kind in "iub" else values

    def _at(self, state: Any, action: int) -> Any:
        try:
            return self.function(state, action)
        except BaseException as error:  # the user's code: anything can happen
            name = getattr(self.function, "path", getattr(self.function, "__name__", "values"))
            fail(error, lambda said: _failed(name, said, f"at state {state}, action {action}"))


class PairFunction:
    """A user's function of pairs as a function of arrays, whichever way it was written.

    ``space`` and ``names`` (of the actions) say what it is given when it is called for one pair.
    """

    def __init__(self, name: str, function: Callable[..., Any], space: StateSpace, names: tuple[str, ...] | None):
        rule, remedy = "must be a function of a state and an action", "write it as function(state, action)"
        require(takes(function, 2), name, rule, "a function of other arguments", remedy)
        self.name, self.function, self.space = name, function, space
        self.actions = None if names is None else [Action(a, names) for a in range(len(names))]
        self.named = isinstance(space, FiniteStates) and space.named
        self._for_one: bool | None = True if self.named else None
        self._kept: dict[tuple[int, int], float] = {}

    def __call__(self, states: States, actions: Actions) -> NDArray[Any]:
        """One value a pair, ``(n,)``."""
        if self._for_one is None and len(states):
            self._for_one = self._written_for_one(states, actions)
        if self._for_one:
            return self._one_by_one(states, actions)
        with calling(self.name, len(states), lambda said: self._failed(said, f"for {len(states)} pairs")):
            x = received(self.function(lent(states), lent(actions)))
        rule, remedy = (
            f"must return an array ({len(states)},) for {len(states)} pairs",
            "vectorise it over states and actions",
        )
        require(x.shape == (len(states),), self.name, rule, f"shape {x.shape}", remedy)
        return x

    def _written_for_one(self, states: States, actions: Actions) -> bool:
        rows = np.arange(3 + states[0].size) % len(states)  # never as many as a point has coordinates
        try:
            with calling(self.name, 1, lambda said: self._failed(said, "")):
                x = np.asarray(self.function(states[rows], actions[rows]))
            if x.shape == rows.shape:
                return False
        except SaddlebackError:  # tried again below, one by one
            pass
        try:
            with calling(self.name, 1, lambda said: self._failed(said, "")):
                return np.ndim(self._call(own_states(self.space, states[:1])[0], int(actions[0]))) == 0
        except SaddlebackError:
            return False  # the error of the call with arrays is the one to show

    def _call(self, state: Any, action: int) -> Any:
        return self.function(state, action if self.actions is None else self.actions[action])

    def _one_by_one(self, states: States, actions: Actions) -> NDArray[Any]:
        finite = isinstance(self.space, FiniteStates)
        keys: list[Any] = list(zip(states.tolist(), actions.tolist(), strict=True)) if finite else []
        new = [i for i in range(len(states)) if not finite or keys[i] not in self._kept]
        pairs = zip(own_states(self.space, states[new]), actions[new].tolist(), strict=True)
        with calling(self.name, len(new)):
            found = [self._number(s, a) for s, a in pairs]
        if not finite:
            return _stacked(self.name, found)
        if len(self._kept) + len(new) > _MOST_KEPT:
            self._kept.clear()
        known = dict(zip([keys[i] for i in new], found, strict=True))
        values = np.array([known[k] if k in known else self._kept[k] for k in keys])
        self._kept.update(known)
        return values

    def _number(self, state: Any, action: int) -> Any:
        shown = action if self.actions is None else self.actions[action]
        try:
            x = self._call(state, action)
        except BaseException as error:
            fail(error, lambda said: self._failed(said, f"at state {state}, action {shown}"))
        if np.ndim(x) != 0 or np.asarray(x).dtype.kind not in "iubf" or x is np.ma.masked:
            where = f"{x!r:.80} at state {state}, action {shown}"
            raise InputError(self.name, "must return a number for a pair", where, "return reward or cost only")
        return x

    def _failed(self, said: str, where: str) -> InputError:
        return _failed(self.name, said, where)


def _failed(name: str, said: str, where: str) -> InputError:
    rule = "must not fail for a pair of the problem"
    return InputError(name, rule, f"a function that {said} ({where})", "mend the function")


@dataclass(frozen=True)
class Signal:
    """A reward or constraint signal with its checked range ``[low, high]``; ``values`` is None where it is observed."""

    name: str
    values: Array | SignalFunction | None
    low: float
    high: float

    def at(self, states: States, actions: Actions) -> Array:
        """Signal at pairs, ``(n,)``, in the user's units and within its range."""
        assert self.values is not None
        if callable(self.values):
            x = self.values(states, actions)
            refuse_float32(self.name, x)
            self.check(x, states, actions)
            return x.astype(np.float64)
        return np.asarray(self.values[states, actions], dtype=np.float64)

    def check(self, x: Array, states: States, actions: Actions, key: tuple[int, ...] | None = None) -> None:
        """Refuse values that are not finite or lie outside the declared range, naming the pair.

        ``key`` is the seed key of observed values.
        """
        slack = _RANGE_SLACK * (self.high - self.low)
        bad = np.flatnonzero(~np.isfinite(x) | (x < self.low - slack) | (x > self.high + slack))
        if bad.size:
            i = bad[0]
            seed = "" if key is None else f", sample {i}, seed key (seed, stream, pair, block) = {key}"
            finite = x[np.isfinite(x)]
            low, high = min(self.low, finite.min(initial=self.low)), max(self.high, finite.max(initial=self.high))
            rule = f"must be finite and within its declared range [{self.low:g}, {self.high:g}]"
            remedy = (
                f"declare the true range, at least ({low:g}, {high:g}), from which x is rescaled to "
                "(x - low) / (high - low); it is never clipped, since every bound depends on the range"
            )
            if not np.isfinite(x[i]):
                remedy = "mend what gives it: no range holds that"
            raise InputError(self.name, rule, f"{x[i]} at state {states[i]}, action {actions[i]}{seed}", remedy)


def read_signal(
    name: str,
    given: Any,
    declared: Any,
    space: StateSpace,
    num_actions: int,
    names: tuple[str, ...] | None = None,
    stand_ins: NDArray[np.int64] | None = None,
) -> Signal:
    """A signal as a user wrote it: an array ``(S, A)`` or ``(S,)``, a function, or None where the simulator returns it.

    ``declared`` is its range (low, high), which only arrays can do without. Entries of pairs that are not allowed
    (``stand_ins``) are not looked at.
    """
    span = None if declared is None else _span_of(name, declared)
    if given is None or callable(given):
        if span is None:
            rule = "must declare its range when it is a function or observed"
            raise InputError(name, rule, None, "pass range=(low, high)")
        return Signal(name, given and PairFunction(name, given, space, names), *span)
    values = _array(name, given, space, num_actions)
    if stand_ins is not None:
        values = np.take_along_axis(values, stand_ins, axis=1)
    bad = np.argwhere(~np.isfinite(values))
    if bad.size:
        s, a = bad[0]
        raise InputError(f"{name}[{s}, {a}]", "must be finite", values[s, a], "remove NaN and infinities")
    low, high = span or (float(values.min()), float(values.max()))
    if span is None and low == high:
        high = low + 1.0  # a constant signal: any span does
    require(low < high < np.inf, name, "must have a finite range with low < high", (low, high), "rescale it")
    signal = Signal(name, frozen(values), low, high)
    s, a = np.divmod(np.arange(values.size), num_actions)
    signal.check(values.ravel(), s, a)
    return signal


def _array(name: str, given: Any, space: StateSpace, num_actions: int) -> Array:
    if not isinstance(space, FiniteStates):
        remedy = "give a function of (states, actions), and its range"
        raise InputError(name, "must be a function where states form a box", type(given).__name__, remedy)
    values, expected = as_float64(name, given), (space.num, num_actions)
    if values.shape == (space.num,):
        return np.repeat(values[:, None], num_actions, axis=1)
    require(values.shape == expected, name, f"must have shape {expected}", values.shape, "give one value a pair")
    return values


def _stacked(name: str, values: list[Any]) -> Any:
    try:
        return received(values)
    except ValueError:
        lengths = sorted({np.size(v) for v in values})
        remedy = "return the same number of them at every pair"
        raise InputError(name, "must have one shape at all pairs", f"lengths {lengths}", remedy) from None


def read_constraints(given: Any) -> Sequence[Constraint]:
    """The list of constraints, each with a name of its own, a sense, units and a finite threshold."""
    if isinstance(given, (str, bytes, Mapping, Constraint)) or not isinstance(given, Sequence):
        rule = "must be a list of Constraint"
        raise InputError("constraints", rule, f"{type(given).__name__} {given!r:.60}", _CONSTRAINT)
    remedy = "each is another multiplier and another interval: leave some out, or put several into one signal"
    require(len(given) <= MOST_CONSTRAINTS, "constraints", f"must be at most {MOST_CONSTRAINTS:,}", len(given), remedy)
    for i, c in enumerate(given):
        if not isinstance(c, Constraint):
            raise InputError(f"constraints[{i}]", "must be a Constraint", f"{c!r:.60}", _CONSTRAINT)
        check_name(f"constraints[{i}].name", c.name, _CONSTRAINT)
        _check_constraint(c)
    require(len(given) >= 1, "constraints", "must hold at least one constraint", 0, "add a Constraint")
    names = [c.name for c in given]
    require(len(set(names)) == len(names), "constraints", "must have distinct names", names, "rename one")
    return given


def with_limits(constraints: Sequence[Constraint], limits: Mapping[str, float]) -> tuple[Constraint, ...]:
    """The constraints with other limits, by name; each in the unit in which the limit was given."""
    names = [c.name for c in constraints]
    for name, value in limits.items():
        known = f"the constraints are {', '.join(names)}"
        rule, remedy = "must name a constraint of the problem", nearest(name, names, known)
        require(name in names, "limit", rule, f"{name!r:.80}", remedy)
        number(f"limit of {name}", value, rule="must be a finite number", remedy="give a number")
    return tuple(replace(c, threshold=float(limits.get(c.name, c.threshold))) for c in constraints)


def total_of(constraint: Constraint, limit: float, horizon: float) -> float:
    """A ``limit`` in the constraint's own unit as a discounted total."""
    return limit * (horizon if constraint.units == "per-step" else 1.0)


def _check_constraint(c: Constraint) -> None:
    for word, known in (("sense", (">=", "<=")), ("units", ("discounted", "per-step"))):
        value = getattr(c, word)
        fits = isinstance(value, str) and value in known
        require(fits, c.name, f"must have {word} '{known[0]}' or '{known[1]}'", repr(value), "use one of the two")
    number(c.name, c.threshold, rule="must have a finite threshold", remedy="give a number")


def _span_of(name: str, given: Any) -> tuple[float, float]:
    """A declared range ``(low, high)``: two finite numbers, the smaller first."""
    rule, remedy = "must have a finite range with low < high", "declare the range (low, high)"
    try:
        low, high = given
    except (TypeError, ValueError):
        raise InputError(name, rule, repr(given), remedy) from None
    low, high = (number(name, end, rule=rule, remedy=remedy) for end in (low, high))
    require(low < high, name, rule, (low, high), remedy)
    return low, high
