"""States and actions in the user's own words: a declared list, or the product of ranges and lists; and names of actions.

    ListedStates(["new", "worn", "broken"])              any hashable states, in this order
    ProductStates((10, range(1, 6), ["day", "night"]))   tuples (0, 1, "day"), (0, 1, "night"), …, the last factor fastest

Inside, a state is its place. ``index`` and ``own`` map between the two; a user's function is given, and returns, the user's
own states.

``actions=["wait", "repair"]`` are the actions 0 and 1 with names. Functions of one state and one action are given an
:class:`Action`: a whole number that is also equal to its name, so ``action == 1`` and ``action == "repair"`` both work.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from saddleback.errors import InputError, nearest, plain_text, require, whole_number
from saddleback.problem.spaces import MOST, BoxStates, FiniteStates, StateSpace

_SPELLINGS = (
    "give a number of states, a list of their names, a tuple of ranges such as (range(10), range(5)), "
    "ProductStates, or BoxStates(low, high)"
)
_ACTIONS = 'give a number of actions, or a list of their names such as ["wait", "repair"]'
_SHOWN = 6  # states in a message

LONGEST_NAME = 200


def check_name(where: str, name: Any, remedy: str) -> None:
    """Refuse what cannot be shown as it is in a terminal, a table or a page."""
    good = isinstance(name, str) and bool(name) and plain_text(name, LONGEST_NAME) == name
    rule = f"must be text to be shown: 1 to {LONGEST_NAME} printable characters"
    require(good, where, rule, plain_text(repr(name), 80), remedy)


def file_name(path: str | os.PathLike[str]) -> str:
    """What a problem is called that has no other name than its file's, which may hold any bytes."""
    return plain_text(Path(path).stem, LONGEST_NAME)


@dataclass(frozen=True, init=False)
class ListedStates(FiniteStates):
    """The states of a list, in its order.

    Parameters: ``states``, distinct and hashable (names, tuples, numbers).
    """

    named: ClassVar[bool] = True
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

    named: ClassVar[bool] = True
    factors: tuple[range | ListedStates, ...]

    def __init__(self, factors: Sequence[Any]):
        if isinstance(factors, (str, range)) or not isinstance(factors, (Sequence, np.ndarray)):
            raise InputError("states", "must be a product of ranges", repr(factors), "write ProductStates((10, 5))")
        read = tuple(_factor(i, f) for i, f in enumerate(factors))
        require(len(read) > 0, "states", "must have at least one factor", "none", "write ProductStates((10, 5))")
        num = math.prod(len(f) if isinstance(f, range) else f.num for f in read)
        super().__init__(num)
        object.__setattr__(self, "factors", read)

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
        _check_range("states", given)
        return FiniteStates(len(given)) if (given.start, given.step) == (0, 1) else ListedStates(given)
    listed = list(given)
    if listed and any(isinstance(entry, range) for entry in listed):
        return ProductStates(listed)
    if listed and all(type(_plain(s)) is int for s in listed) and [int(s) for s in listed] == list(range(len(listed))):
        return FiniteStates(len(listed))
    return ListedStates(listed)


def _factor(i: int, given: Any) -> range | ListedStates:
    if isinstance(given, range):
        _check_range(f"states[{i}]", given)
        return given
    if isinstance(given, (list, tuple)):
        return ListedStates(given)
    return _factor(
        i, range(whole_number(f"states[{i}]", given, 1, "each factor is a number, a range or a list of names"))
    )


def _check_range(where: str, given: range) -> None:
    """``len`` itself fails beyond int64."""
    size = (given[-1] - given[0]) // given.step + 1 if given else 0
    require(0 < size < MOST, where, "must hold at least one value, and fewer than 2^62", given, "mend its ends")


def _plain(state: Any) -> Any:
    """NumPy's numbers and arrays, and lists, as Python's numbers and tuples."""
    if isinstance(state, np.ndarray):
        state = state.tolist()
    if isinstance(state, np.generic):
        return state.item()
    return tuple(map(_plain, state)) if isinstance(state, (list, tuple)) else state


# ---- actions ---------------------------------------------------------------------------------------------------------------


class Action(int):
    """An action's number that also answers to its name; a name that no action has is an error, not a silent no."""

    name: str
    names: tuple[str, ...]

    def __new__(cls, number: int, names: tuple[str, ...]) -> Action:
        """Action ``number`` of those with these ``names``."""
        action = super().__new__(cls, number)
        action.name, action.names = names[number], names
        return action

    def __getnewargs__(self) -> tuple[int, tuple[str, ...]]:  # type: ignore[override]
        return int(self), self.names

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            if other not in self.names:
                remedy = nearest(other, self.names, f"the actions are {', '.join(self.names)}")
                raise InputError("action", "must be compared with the name of an action", repr(other), remedy)
            return self.name == other
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(int(self))

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{int(self)} ({self.name})"


def read_actions(actions: Any, num_actions: Any) -> tuple[int, tuple[str, ...] | None]:
    """How many actions there are, and their names if they were given any.

    ``actions`` is a number or a list of names, ``num_actions`` a number; both may be given where they agree.
    """
    require(actions is not None or num_actions is not None, "actions", "must be given", "nothing", _ACTIONS)
    if actions is None:
        return whole_number("num_actions", num_actions, 1, "give one action or more"), None
    if isinstance(actions, range) and (actions.start, actions.step) == (0, 1):
        actions = len(actions)
    names: tuple[str, ...] | None = None
    if isinstance(actions, (str, bytes, Mapping, set, frozenset)) or callable(actions):
        rule = "must be how many there are, or a list of their names"
        raise InputError("actions", rule, f"{actions!r:.80}", _ACTIONS)
    if isinstance(actions, Iterable) and not (isinstance(actions, np.ndarray) and actions.ndim == 0):
        names, seen = tuple(actions), set[str]()
        for i, name in enumerate(names):
            check_name(f"actions[{i}]", name, _ACTIONS)
            require(name not in seen, f"actions[{i}]", "must differ from the other names", repr(name), "rename one")
            seen.add(name)
        require(len(names) > 0, "actions", "must hold at least one action", "an empty list", _ACTIONS)
    number = len(names) if names is not None else whole_number("actions", actions, 1, _ACTIONS)
    if num_actions not in (None, number):
        raise InputError("num_actions", f"must be the number of actions, {number}", num_actions, "leave it out")
    return number, names


def action_index(action: Any, num_actions: int, names: tuple[str, ...] | None, where: str = "action") -> int:
    """The number of an action given by number or name."""
    if isinstance(action, str):
        if names is None or action not in names:
            known = f"the actions are {', '.join(names)}" if names else f"the actions are 0 to {num_actions - 1}"
            raise InputError(where, "must be a known action", repr(action), nearest(action, names or (), known))
        return names.index(action)
    remedy = f"the actions are 0 to {num_actions - 1}"
    a = whole_number(where, action, 0, remedy)
    require(a < num_actions, where, "must be a known action", a, remedy)
    return a


def check_words(name: Any, minimise: Any, state_names: Any, num_states: int | None) -> None:
    """What a problem says of itself: its name, whether it minimises, and a name for each state, if any."""
    check_name("name", name, 'write name="shop"')
    true_or_false = isinstance(minimise, (bool, np.bool_))
    require(true_or_false, "minimise", "must be True or False", repr(minimise), "write minimise=True for costs")
    if state_names is not None:
        listed = isinstance(state_names, (Sequence, np.ndarray)) and not isinstance(state_names, str)
        rule, remedy = "must be a list with one name a state", "leave it out, or give every state a name"
        if not listed:
            raise InputError("state_names", rule, f"{state_names!r:.80}", remedy)
        fits = len(state_names) == num_states
        require(fits, "state_names", rule, f"{len(state_names)} names", remedy)
        for i, state in enumerate(state_names):
            check_name(f"state_names[{i}]", state, "rename it")
