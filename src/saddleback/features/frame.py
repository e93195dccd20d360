"""Where a state lies: its coordinates, scaled so that the box [low, high] becomes the unit cube.

    u(s) = clip((x(s) − low) / (high − low), 0, 1)

x(s) is the state itself in a box. On a finite space it is what ``coordinates`` says, a function of an array of states or an
array ``(S, k)``; or, with ``shape``, the digits of the state's number (the last one runs fastest, as in ``numpy.ravel``);
or else the number itself. With a function or a shape nothing takes memory in proportion to the number of states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from saddleback.errors import InputError, require, whole
from saddleback.features.base import failed
from saddleback.features.program import NoProgramError, Writer
from saddleback.problem.spaces import Array, BoxStates, States, StateSpace
from saddleback.problem.user_code import calling, lent

Coordinates = Callable[[States], Array] | Array
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class Frame:
    """``low`` and ``high`` ``(k,)`` of the coordinates; ``coordinates`` is None where a state is its own."""

    low: Any
    high: Any
    coordinates: Coordinates | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            bound = real_array(name, getattr(self, name), "give finite `low` and `high`, one number a coordinate")
            object.__setattr__(self, name, np.atleast_1d(bound))
        good = self.low.ndim == 1 and self.low.shape == self.high.shape and bool(np.all(self.low < self.high))
        bounds = f"{self.low} and {self.high}"
        require(good, "low, high", "must have low < high in every coordinate", bounds, "give one number a coordinate")
        if self.coordinates is not None and not callable(self.coordinates):
            table = _table(self.coordinates)
            object.__setattr__(self, "coordinates", table)
            _check_width(table, self.num)

    @classmethod
    def of(
        cls, space: StateSpace, low: Any = None, high: Any = None, coordinates: Any = None, shape: Any = None
    ) -> Frame:
        """The frame of a state space; ``low`` and ``high`` default to what the space or the coordinates' array says."""
        if shape is not None:
            if isinstance(space, BoxStates) or coordinates is not None:
                remedy = "it splits a state's number"
                raise InputError("shape", "must come with a finite space and no coordinates", shape, remedy)
            coordinates, top = _digits(space.num, shape)
            return cls(0.0 * top if low is None else low, top if high is None else high, coordinates)
        if coordinates is None:
            if isinstance(space, BoxStates):
                return cls(space.low if low is None else low, space.high if high is None else high)
            return cls(0.0 if low is None else low, space.num - 1.0 if high is None else high, _number)
        if not callable(coordinates):
            coordinates = _table(coordinates)
            low = coordinates.min(axis=0) if low is None else low
            high = coordinates.max(axis=0) if high is None else high
        for name, bound in (("low", low), ("high", high)):
            rule = "must be given where the coordinates are a function"
            require(bound is not None, name, rule, None, "give one number a coordinate")
        return cls(low, high, coordinates)

    @property
    def num(self) -> int:
        """k, the number of coordinates."""
        return len(self.low)

    def unit(self, states: States) -> Array:
        """u(s), ``(n, k)``."""
        u = self.to_unit(self._coordinates_of(states))
        return np.clip(u, 0.0, 1.0, out=u)

    def inside(self, states: States) -> Array:
        """x(s), moved to the edge where it lies beyond, ``(n, k)``."""
        return np.clip(self._coordinates_of(states), self.low, self.high)

    def to_unit(self, points: Array) -> Array:
        """Points ``(c, k)`` in the user's coordinates as points of the scaled space, not clipped."""
        return np.asarray((points - self.low) / (self.high - self.low))

    def write_unit(self, writer: Writer) -> str:
        """:meth:`unit` as steps of a program."""
        x = writer.do("Sub", self.write_coordinates(writer), self.low)
        return writer.clipped(writer.do("Div", x, self.high - self.low), 0.0, 1.0)

    def write_inside(self, writer: Writer) -> str:
        """:meth:`inside` as steps of a program."""
        return writer.clipped(self.write_coordinates(writer), self.low, self.high)

    def write_coordinates(self, writer: Writer) -> str:
        """A state that is its own coordinates; where they are looked up there is no program."""
        if self.coordinates is not None:
            raise NoProgramError
        return "x"

    def _coordinates_of(self, states: States) -> Array:
        given: Any = states
        if self.coordinates is not None:
            with calling("the coordinates of states", len(states), failed):
                given = self.coordinates(lent(states)) if callable(self.coordinates) else self.coordinates[states]
        x = np.asarray(given, dtype=np.float64)
        x = x[:, None] if x.ndim == 1 and self.coordinates is not None else x
        _check_width(x, self.num)
        lost = np.isnan(x)
        if lost.any():
            state = states[int(lost.any(axis=1).argmax())]
            raise InputError("states", "must have coordinates that are numbers", state, "mend what gives the state")
        return x


def as_frame(frame: Frame | StateSpace) -> Frame:
    """A frame, or that of a state space."""
    return frame if isinstance(frame, Frame) else Frame.of(frame)


def one_each(name: str, value: Any, count: int, check: Callable[[str, Any], Value]) -> tuple[Value, ...]:
    """One value a coordinate, from a list of ``count`` or from one for all; ``check`` takes a name and refuses what is bad."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        require(len(value) == count, name, f"must hold {count} numbers, one a coordinate", value, "or give one for all")
        return tuple(check(f"{name}[{j}]", x) for j, x in enumerate(value))
    return (check(name, value),) * count


def real_array(name: str, value: Any, remedy: str) -> Array:
    """``value`` as a finite float64 array."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, "must hold numbers", repr(value), remedy) from error
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        at = tuple(int(i) for i in bad[0])
        raise InputError(name, "must be finite", f"{array[at]} at {list(at)}" if at else array[at], remedy)
    return array


def _number(states: States) -> Array:
    return np.asarray(states, dtype=np.float64)


def _digits(num_states: int, shape: Any) -> tuple[Callable[[States], Array], Array]:
    """The digits of a state's number to the bases ``shape``, and the largest of them."""
    good = isinstance(shape, list | tuple | np.ndarray) and len(shape) > 0
    require(good, "shape", "must be a list of whole numbers", shape, "one number of values a coordinate")
    bases = tuple(whole(f"shape[{j}]", x, 2) for j, x in enumerate(shape))
    remedy = "give the number of values of each coordinate"
    require(math.prod(bases) == num_states, "shape", f"must multiply to the {num_states} states", bases, remedy)

    def digits(states: States) -> Array:
        return np.stack(np.unravel_index(states, bases), axis=1).astype(np.float64)

    return digits, np.array(bases, dtype=np.float64) - 1


def _table(coordinates: Any) -> Array:
    table = real_array("coordinates", coordinates, "give an array (S, k) or a function of the states")
    good = table.ndim in (1, 2) and table.size > 0
    require(good, "coordinates", "must have shape (S, k)", table.shape, "give one row a state, or a function")
    return table[:, None] if table.ndim == 1 else table


def _check_width(x: Array, k: int) -> None:
    good = x.ndim == 2 and x.shape[1] == k
    require(good, "states", f"must have {k} coordinates", f"an array {x.shape}", "match the bounds `low` and `high`")
