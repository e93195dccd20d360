"""§2, the ground everything stands on: state spaces, arrays of states and actions, and feature maps (asm_32).

States are an int array ``(n,)`` (finite spaces) or a float array ``(n, k)`` (continuous ones); actions an int array. A finite
space may have the user's own states: a declared list, or the product of ranges and lists.

    ListedStates(["new", "worn", "broken"])              any hashable states, in this order
    ProductStates((10, range(1, 6), ["day", "night"]))   tuples (0, 1, "day"), (0, 1, "night"), …, the last factor fastest

Inside, a state is its place; ``index`` and ``own`` map between the two. Functions are given, and return, the user's own states.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, nearest, require, whole_number

Array = NDArray[np.float64]
States = NDArray[Any]
Actions = NDArray[np.int64]


_SPELLINGS = (
    "give a number of states, a list of their names, a tuple of ranges such as (range(10), range(5)), "
    "ProductStates, or BoxStates(low, high)"
)
_SHOWN = 6  # states in a message
_LISTED = 100_000  # states whose names are listed for reports


@runtime_checkable
class Features(Protocol):
    """A feature map φ: S × A → R^d, vectorised over states.

    ``all`` gives every action at once; where there are too many (or a closed form is cheaper) ``direct`` is true and
    ``maximum`` / ``argmax`` are the only way through the actions. ``theta`` is ``(d,)`` or ``(d, k)``; ties go to the
    lowest action index.
    """

    @property
    def dim(self) -> int:
        """d."""
        ...

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def direct(self) -> bool:
        """Whether ``maximum`` and ``argmax`` must be used instead of ``all``."""
        ...

    def at(self, states: States, actions: Actions) -> Array:
        """φ(s, a), ``(n, d)``."""
        ...

    def all(self, states: States) -> Array:
        """φ(s, ·), ``(n, A, d)``."""
        ...

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ(s, ·), θ⟩, ``(n, A)`` or ``(n, A, k)``."""
        ...

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩, ``(n,)`` or ``(n, k)``."""
        ...

    def argmax(self, states: States, theta: Array) -> Actions:
        """The maximising action, ``(n,)``; ``theta`` is ``(d,)``."""
        ...


@dataclass(frozen=True)
class FiniteStates:
    """The states 0 … num − 1."""

    num: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "num", whole_number("states", self.num, 1, "give the number of states"))

    @property
    def named(self) -> bool:
        """Whether the user's states are something else than 0 … num − 1."""
        return False

    def index(self, state: Any) -> int:
        """The place of one of the user's states, or an :class:`InputError`."""
        i = whole_number("state", state, 0, f"the states are 0 to {self.num - 1}")
        require(i < self.num, "state", "must lie in the state space", i, f"the states are 0 to {self.num - 1}")
        return i

    def own(self, indices: ArrayLike) -> list[Any]:
        """The user's states at these places."""
        return list(np.asarray(indices).tolist())

    def state(self, i: int) -> Any:
        """The user's state at place ``i``."""
        return self.own([i])[0]

    def name(self, i: int) -> str:
        """The same, as text."""
        return str(self.state(i))

    def names(self) -> list[str] | None:
        """All of them, for reports; None where they are too many to list."""
        return None if self.num > _LISTED else [str(s) for s in self.own(np.arange(self.num))]

    def outside(self, states: States) -> NDArray[np.bool_]:
        """Which of ``states`` do not belong to the space, ``(n,)``."""
        return np.asarray((states < 0) | (states >= self.num))

    def well_formed(self, states: States) -> str | None:
        """What is wrong with the array as such (dtype, shape), or None."""
        if states.ndim != 1 or states.dtype.kind not in "iu":
            return f"must be an integer array (n,), not {states.dtype} {states.shape}"
        return None


@dataclass(frozen=True)
class BoxStates:
    """Points of R^k between ``low`` and ``high`` (infinite bounds are fine)."""

    low: Array
    high: Array

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            try:
                corner = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            except (TypeError, ValueError):
                given = repr(getattr(self, name))
                raise InputError(f"states.{name}", "must be numbers", given, "give one bound per coordinate") from None
            object.__setattr__(self, name, corner)
        require(
            self.low.ndim == 1 and self.low.shape == self.high.shape and bool(np.all(self.low < self.high)),
            "states",
            "must have low < high in every coordinate",
            f"{self.low} and {self.high}",
            "give one bound per coordinate",
        )

    @property
    def dim(self) -> int:
        """Number of coordinates k."""
        return int(self.low.size)

    def spread(self, number: int) -> Array:
        """Points that fill a bounded box evenly, corner ``low`` first (Halton's: radical inverses in k prime bases)."""
        return np.column_stack(
            [
                low + (high - low) * _radical_inverses(number, p)
                for p, low, high in zip(_primes(), self.low, self.high, strict=False)
            ]
        )

    def outside(self, states: States) -> NDArray[np.bool_]:
        """Which of ``states`` do not belong to the space, ``(n,)``; NaN counts as outside."""
        return ~np.all((states >= self.low) & (states <= self.high), axis=1)

    def well_formed(self, states: States) -> str | None:
        """What is wrong with the array as such (dtype, shape), or None."""
        if states.ndim != 2 or states.shape[1] != self.dim or states.dtype.kind != "f":
            return f"must be a float array (n, {self.dim}), not {states.dtype} {states.shape}"
        return None


@dataclass(frozen=True, init=False)
class ListedStates(FiniteStates):
    """The states of a list, in its order.

    Parameters: ``states``, distinct and hashable (names, tuples, numbers).
    """

    states: tuple[Any, ...]
    _places: dict[Any, int] = field(compare=False, repr=False)

    def __init__(self, states: Iterable[Hashable]):
        listed = tuple(_plain(s) for s in states)
        require(len(listed) > 0, "states", "must hold at least one state", "an empty list", _SPELLINGS)
        places: dict[Any, int] = {}
        for i, state in enumerate(listed):
            try:
                first = places.setdefault(state, i)
            except TypeError:
                rule = "must be hashable: names, numbers or tuples of them"
                raise InputError(f"states[{i}]", rule, repr(state), "write lists as tuples") from None
            require(first == i, f"states[{i}]", "must differ from the other states", repr(state), "rename one")
        super().__init__(len(listed))
        object.__setattr__(self, "states", listed)
        object.__setattr__(self, "_places", places)

    @property
    def named(self) -> bool:
        """Always: functions are given the states of the list."""
        return True

    def index(self, state: Any) -> int:
        """The place of one of the user's states, or an :class:`InputError`."""
        try:
            return self._places[_plain(state)]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self.states[:_SHOWN])) + (", …" if self.num > _SHOWN else "")
            remedy = nearest(state, self.states[:1000], f"the states are {shown}")
            raise InputError("state", "must be one of the declared states", repr(state), remedy) from None

    def own(self, indices: ArrayLike) -> list[Any]:
        """The user's states at these places."""
        return [self.states[i] for i in np.asarray(indices).tolist()]

    def __repr__(self) -> str:
        return (
            f"{{{', '.join(map(str, self.states[:_SHOWN]))}{', …' if self.num > _SHOWN else ''}}} ({self.num} states)"
        )


@dataclass(frozen=True, init=False)
class ProductStates(FiniteStates):
    """All tuples with one entry of each factor, the last factor fastest.

    Parameters: ``factors``, each a number n (0 … n − 1), a range, or a list of distinct names.
    """

    factors: tuple[range | ListedStates, ...]

    def __init__(self, factors: Sequence[Any]):
        if isinstance(factors, (str, range)) or not isinstance(factors, (Sequence, np.ndarray)):
            raise InputError("states", "must be a product of ranges", repr(factors), "write ProductStates((10, 5))")
        read = tuple(_factor(i, f) for i, f in enumerate(factors))
        require(len(read) > 0, "states", "must have at least one factor", "none", "write ProductStates((10, 5))")
        num = math.prod(len(f) if isinstance(f, range) else f.num for f in read)
        require(num < 1 << 62, "states", "must have fewer than 2^62 states", num, "use BoxStates and features")
        super().__init__(num)
        object.__setattr__(self, "factors", read)

    @property
    def named(self) -> bool:
        """Always: functions are given tuples."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """How many values each entry of a tuple has."""
        return tuple(len(f) if isinstance(f, range) else f.num for f in self.factors)

    def index(self, state: Any) -> int:
        """The place of a tuple, or an :class:`InputError`."""
        entries = _plain(state)
        place = 0
        try:
            if not isinstance(entries, tuple) or len(entries) != len(self.factors):
                raise ValueError
            for entry, factor, size in zip(entries, self.factors, self.shape, strict=True):
                at = factor.index(operator.index(entry)) if isinstance(factor, range) else factor.index(entry)
                place = place * size + at
        except (TypeError, ValueError, InputError):
            rule = f"must be a tuple of {len(self.factors)} entries from {self}"
            raise InputError("state", rule, repr(state), "keep every entry within its range") from None
        return place

    def own(self, indices: ArrayLike) -> list[Any]:
        """The tuples at these places."""
        columns = np.unravel_index(np.asarray(indices, dtype=np.int64), self.shape)
        entries = [
            (np.asarray(c) * f.step + f.start).tolist() if isinstance(f, range) else f.own(c)
            for c, f in zip(columns, self.factors, strict=True)
        ]
        return list(zip(*entries, strict=True))

    def __repr__(self) -> str:
        words = [f"{f[0]}..{f[-1]}" if isinstance(f, range) and f.step == 1 else repr(f) for f in self.factors]
        return f"{' × '.join(words)} ({self.num} states)"


StateSpace = FiniteStates | BoxStates


def state_space(given: Any) -> StateSpace:
    """The space that a user wrote: a whole number, a list of states, ranges, or a space as it is."""
    if isinstance(given, (FiniteStates, BoxStates)):
        return given
    if isinstance(given, (str, bytes, dict, set, frozenset)) or given is None or callable(given):
        raise InputError("states", "must be a state space", f"{given!r:.80}", _SPELLINGS)
    if isinstance(given, Iterable) and not (isinstance(given, np.ndarray) and given.ndim == 0):
        return _listed(given)
    return FiniteStates(whole_number("states", given, 1, _SPELLINGS))


def _listed(given: Iterable[Any]) -> StateSpace:
    """A range or a list: the states 0 … n − 1 where that is what it says, else a product or a declared list."""
    if isinstance(given, range):
        require(len(given) > 0, "states", "must hold at least one state", given, _SPELLINGS)
        return FiniteStates(len(given)) if (given.start, given.step) == (0, 1) else ListedStates(given)
    listed = list(given)
    if listed and any(isinstance(entry, range) for entry in listed):
        return ProductStates(listed)
    if listed and all(type(_plain(s)) is int for s in listed) and [int(s) for s in listed] == list(range(len(listed))):
        return FiniteStates(len(listed))
    return ListedStates(listed)


def _factor(i: int, given: Any) -> range | ListedStates:
    if isinstance(given, range):
        require(len(given) > 0, f"states[{i}]", "must hold at least one value", given, "begin before the end")
        return given
    if isinstance(given, (list, tuple)):
        return ListedStates(given)
    return range(whole_number(f"states[{i}]", given, 1, "each factor is a number, a range or a list of names"))


def _plain(state: Any) -> Any:
    """NumPy's numbers and arrays, and lists, as Python's numbers and tuples."""
    if isinstance(state, np.ndarray):
        state = state.tolist()
    if isinstance(state, np.generic):
        return state.item()
    return tuple(map(_plain, state)) if isinstance(state, (list, tuple)) else state


def own_states(space: StateSpace, states: NDArray[Any]) -> list[Any]:
    """An array of states one by one: the user's own, Python ints, or float arrays of their own."""
    return space.own(states) if isinstance(space, FiniteStates) else list(np.array(states))


def _radical_inverses(number: int, base: int) -> Array:
    """0 … number − 1, their digits mirrored at the point: 0.1, 0.01, 0.11 … in base 2."""
    left, scale, out = np.arange(number), 1.0 / base, np.zeros(number)
    while np.any(left):
        out += scale * (left % base)
        left, scale = left // base, scale / base
    return out


def _primes() -> Iterator[int]:
    found: list[int] = []
    for n in count(2):
        if all(n % p for p in found):
            found.append(n)
            yield n
