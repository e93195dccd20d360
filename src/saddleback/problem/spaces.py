"""§2, the ground everything stands on: state spaces, arrays of states and actions, and feature maps (asm_32).

States are an int array ``(n,)`` (finite spaces) or a float array ``(n, k)`` (continuous ones); actions an int array. A finite
space may have the user's own states (:mod:`saddleback.problem.names`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, plain_text, require, whole_number
from saddleback.problem.user_code import frozen, received

Array = NDArray[np.float64]
States = NDArray[Any]
Actions = NDArray[np.int64]

MOST = 1 << 62
"""States are fewer, and actions at most as many: int64 can number them."""

_NO_NUMBERS = (str, bytes, np.datetime64, np.timedelta64)  # although NumPy makes some of them
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
    """The states 0 … num − 1; ``named`` where the user's own states are something else."""

    named: ClassVar[bool] = False
    dtype: ClassVar[type] = np.int64
    num: int

    def __post_init__(self) -> None:
        num = whole_number("states", self.num, 1, "give the number of states")
        require(
            num < MOST,
            "states",
            "must be fewer than 2^62",
            f"{num:.3e}" if num < 1e300 else "more",
            "use BoxStates and features",
        )
        object.__setattr__(self, "num", num)

    def __str__(self) -> str:
        return f"states 0 to {self.num - 1}"

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
        return None if self.num > _LISTED else [plain_text(str(s), 200) for s in self.own(np.arange(self.num))]

    def outside(self, states: States) -> NDArray[np.bool_]:
        """Which of ``states`` do not belong to the space, ``(n,)``."""
        return np.asarray((states < 0) | (states >= self.num))

    def well_formed(self, states: States) -> str | None:
        """What is wrong with the array as such (dtype, shape), or None."""
        if states.ndim != 1 or states.dtype.kind not in "iu":
            return f"must be an integer array (n,), not {states.dtype} {states.shape}"
        return None

    def cast(self, states: States) -> States:
        """``states`` as int64, which every array of them is here; what is no array of states stays as it is."""
        return states.astype(np.int64, copy=False) if states.dtype.kind in "iu" else states


@dataclass(frozen=True)
class BoxStates:
    """Points of R^k between ``low`` and ``high`` (infinite bounds are fine)."""

    dtype: ClassVar[type] = np.float64
    low: Array
    high: Array

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            try:
                corner = frozen(np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64)))
            except (TypeError, ValueError):
                given = repr(getattr(self, name))
                raise InputError(f"states.{name}", "must be numbers", given, "give one bound per coordinate") from None
            object.__setattr__(self, name, corner)
        good = self.low.ndim == 1 and self.low.shape == self.high.shape and bool(np.all(self.low < self.high))
        rule, found = "must have low < high in every coordinate", f"{self.low} and {self.high}"
        require(good, "states", rule, found, "give one bound per coordinate")

    @property
    def dim(self) -> int:
        """Number of coordinates k."""
        return int(self.low.size)

    def spread(self, number: int) -> Array:
        """Points that fill a bounded box evenly, corner ``low`` first (Halton's: radical inverses in k prime bases)."""
        sides = zip(_primes(), self.low, self.high, strict=False)
        return np.column_stack([low + (high - low) * _radical_inverses(number, p) for p, low, high in sides])

    def outside(self, states: States) -> NDArray[np.bool_]:
        """Which of ``states`` do not belong to the space, ``(n,)``; NaN counts as outside."""
        return ~np.all((states >= self.low) & (states <= self.high), axis=1)

    def well_formed(self, states: States) -> str | None:
        """What is wrong with the array as such (dtype, shape), or None."""
        if states.ndim != 2 or states.shape[1] != self.dim or states.dtype.kind != "f":
            return f"must be a float array (n, {self.dim}), not {states.dtype} {states.shape}"
        if not np.array_equal(self.cast(states), states, equal_nan=True):
            return f"must be numbers that float64 can hold, which some of these {states.dtype} are not"
        return None

    def cast(self, states: States) -> States:
        """``states`` as float64, which every array of them is here; what is no array of numbers stays as it is."""
        return states.astype(np.float64, copy=False) if states.dtype.kind == "f" else states


StateSpace = FiniteStates | BoxStates


def own_states(space: StateSpace, states: NDArray[Any]) -> list[Any]:
    """An array of states one by one: the user's own, Python ints, or float arrays of their own."""
    return space.own(states) if isinstance(space, FiniteStates) else list(np.array(states))


def refuse_float32(name: str, x: NDArray[Any]) -> None:
    """Whole numbers, truth values and float64 pass."""
    rule = "must be float64 (sums over thousands of iterations lose float32's digits)"
    remedy = "convert it with .astype(numpy.float64) where it is made"
    require(x.dtype.kind in "iub" or x.dtype == np.float64, name, rule, str(x.dtype), remedy)


def returned_numbers(given: Any) -> Array:
    """A copy in float64 of what a user's function has returned; TypeError or ValueError for what NumPy would make numbers of:
    text, dates, complex numbers, and what lies under a mask."""
    x = received(given)
    text = x.dtype.kind == "O" and any(isinstance(entry, _NO_NUMBERS) for entry in x.flat)
    if x.dtype.kind not in "iubfO" or text:
        raise TypeError("no numbers")
    return x.astype(np.float64)


def unmasked(name: str, given: Any) -> NDArray[Any]:
    """An array that a user gave, which has a value everywhere."""
    remedy = "fill the gaps, as with .filled(value)"
    require(not np.ma.is_masked(given), name, "must have no masked entries", "some", remedy)
    return np.asarray(given)


def as_float64(name: str, given: Any) -> Array:
    """An array of float64; ragged lists, text and numbers that lost digits before are refused."""
    try:
        x = unmasked(name, given)
    except ValueError:
        raise InputError(name, "must have rows of one length", "rows of several", "make all rows alike") from None
    if x.dtype.kind in "OUSMmV" or x.dtype.kind == "c":
        raise InputError(name, "must be an array of numbers", f"{type(given).__name__} {x.dtype}", "give numbers only")
    refuse_float32(name, x)
    return x.astype(np.float64)


def read_pairs(name: str, given: Any, space: StateSpace) -> tuple[States, Actions]:
    """Pairs (states, actions) that a user gave, to keep: states of the space's own type, and whole numbers."""
    try:
        states, actions = (unmasked(name, x) for x in given)
    except (TypeError, ValueError):
        remedy = "give an array of states and an array of actions"
        raise InputError(name, "must be a pair (states, actions)", f"{type(given).__name__}", remedy) from None
    return frozen(space.cast(states)), frozen(actions.astype(np.int64) if actions.dtype.kind in "iu" else actions)


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
