"""§2, where it begins and ends: the start distribution ρ, by its support with weights or by a sampler; terminal states, successors and
totals as users write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, number, require, takes
from saddleback.problem.spaces import Actions, Array, FiniteStates, States, StateSpace, as_float64, unmasked
from saddleback.problem.user_code import calling, frozen, frozen_if_array, lent, received

Mask = NDArray[np.bool_]

StartSampler = Callable[[int, np.random.Generator], States]
"""``sampler(number, rng)``: so many independent start states."""

_TERMINAL = "give a list of states, a mask of truth values (S,), or a function state -> bool"
_SUCCESSORS = "give a list of states a pair, {(state, action): states}, a sparse mask (S*A, S), or a function of both"
_START = "write start=0 for one state, start={0: 0.5, 3: 0.5} for several, or one weight a state"


@dataclass(frozen=True)
class Start:
    """The start distribution ρ by its support: ``states`` with ``weights`` that sum to one.

    With a ``sampler``, :meth:`sampled`, the states are a sample of ρ that solvers look at; certificates draw another.
    """

    states: States
    weights: Array
    sampler: StartSampler | None = None

    def __post_init__(self) -> None:
        for word in ("states", "weights"):  # what the problem refuses, such as rows of several lengths, stays as it is
            object.__setattr__(self, word, frozen_if_array(getattr(self, word)))
        states, weights = self.states, self.weights
        masked = np.ma.is_masked(states) or np.ma.is_masked(weights)
        if masked or not (isinstance(states, np.ndarray) and isinstance(weights, np.ndarray)):
            return
        if states.dtype.kind in "iuf":
            states = frozen(states.astype(np.float64 if states.dtype.kind == "f" else np.int64, copy=False))
            object.__setattr__(self, "states", states)
        if states.ndim != 1 or states.dtype.kind not in "iu" or weights.shape != states.shape:
            return  # points, or what the problem will refuse
        distinct, where = np.unique(states, return_inverse=True)
        if len(distinct) < len(states):  # a state that is given twice has the sum of its weights
            object.__setattr__(self, "states", frozen(distinct))
            object.__setattr__(self, "weights", frozen(np.bincount(where, weights.astype(np.float64))))

    @classmethod
    def sampled(cls, sampler: StartSampler, number: int = 1024, seed: int = 0) -> Start:
        """From ``sampler(number, rng) -> states``."""
        require(number >= 1, "number", "must be at least 1", number, "1024 starts are usually enough")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        return cls.equally(asked(sampler, number, rng), sampler)

    @classmethod
    def equally(cls, states: States, sampler: StartSampler | None = None) -> Start:
        """Every state with the same weight; one that is given twice with twice as much."""
        return cls(states, np.full(len(states), 1.0 / len(states)), sampler)

    @classmethod
    def over_all(cls, rho: ArrayLike) -> Start:
        """From the vector ρ over a finite state space; states of probability zero are dropped."""
        rho = as_float64("rho", rho)
        bad = np.flatnonzero(~np.isfinite(rho) | (rho < 0))
        for s in bad[:1]:
            raise InputError(f"rho[{s}]", "must be finite and non-negative", rho[s], "give a probability vector")
        total, remedy = float(rho.sum()), "divide it by its sum if the weights are right"
        require(abs(total - 1) <= 1e-9, "rho", "must sum to 1", total, remedy)
        support = np.flatnonzero(rho)
        return cls(support.astype(np.int64), rho[support] / rho.sum())

    def check(self, space: StateSpace) -> None:
        """Refuse start states outside ``space``, and weights that are no distribution over them."""
        try:
            given = unmasked("start.states", self.states)
        except ValueError:
            given = np.empty(0, dtype=object)
        wrong = space.well_formed(given)
        require(wrong is None, "start.states", wrong or "", "that", "match the state space")
        outside = np.flatnonzero(space.outside(given))
        if outside.size:
            raise InputError("start.states", "must lie in the state space", given[outside[0]], "move it inside")
        w = unmasked("start.weights", self.weights)
        good = w.dtype.kind in "iuf" and w.shape == (len(given),) and bool(np.all(w >= 0))
        rule = "must be non-negative, one a start state, and sum to 1"
        require(good and abs(float(w.sum()) - 1) < 1e-9, "start.weights", rule, w, "give a probability vector")


def asked(sampler: StartSampler, number: int, rng: np.random.Generator) -> States:
    """What a user's sampler of states gives."""

    def failed(said: str) -> InputError:
        return InputError("sampler", "must give states", f"a function that {said}", "mend it: sampler(number, rng)")

    with calling("the sampler of states", number, failed):
        return received(sampler(number, rng))


def read_start(given: Any, space: StateSpace) -> Start:
    """ρ as a user wrote it: one state, {state: weight}, weights of all states, points of a box, or a :class:`Start`.

    States are the user's own. On a finite space a list or an array holds one weight a state; on a box it is one point, or
    several of equal weight, one a row.
    """
    if isinstance(given, Start):
        return given
    if isinstance(given, Mapping):
        return _weighted(given, space)
    if isinstance(given, (str, bytes)) and not (isinstance(space, FiniteStates) and space.named):
        raise InputError("start", "must be where the process begins", repr(given), _START)
    if callable(given):
        remedy = "write start=Start.sampled(sampler), or call it"
        raise InputError("start", "must be states, not a function", f"{given!r:.80}", remedy)
    if not isinstance(space, FiniteStates):
        return Start.equally(_points(given, space))
    if isinstance(given, (list, np.ndarray)) and np.ndim(given) > 0:
        weights = as_float64("start", given)
        rule = f"must have one weight for each of the {space.num} states"
        require(weights.shape == (space.num,), "start", rule, f"shape {weights.shape}", _START)
        return Start.over_all(weights)
    return Start(np.array([_place(given, space)]), np.ones(1))


def _weighted(given: Mapping[Any, Any], space: StateSpace) -> Start:
    require(len(given) > 0, "start", "must hold at least one state", "an empty dict", _START)
    weights = np.array([number(f"start[{s!r}]", w, rule="must be a weight", remedy=_START) for s, w in given.items()])
    finite = isinstance(space, FiniteStates)
    states = np.array([_place(s, space) for s in given]) if finite else np.vstack([_points(s, space) for s in given])
    return Start(states, weights)


def _place(state: Any, space: StateSpace) -> int:
    assert isinstance(space, FiniteStates)
    try:
        return space.index(state)
    except InputError as error:
        raise InputError("start", error.rule, error.value, f"{error.remedy}; {_START}") from None


def _points(given: Any, space: StateSpace) -> Array:
    points = np.atleast_1d(as_float64("start", given))
    points = points[None] if points.ndim == 1 else points
    k = int(np.size(getattr(space, "low", ())))
    require(points.ndim == 2 and points.shape[1] == k, "start", f"must be points with {k} entries", given, _START)
    return points


# ---- where it ends, what can follow, and what it adds up to (:mod:`saddleback.problem.endings`) ------------------------


class TerminalFunction:
    """A function of a box's states ``(n, k)`` to truth values ``(n,)``."""

    def __init__(self, function: Callable[..., Any]):
        require(takes(function, 1), "terminal", "must be a function of one state", "other arguments", _TERMINAL)
        self.function = function

    def __call__(self, states: States) -> Mask:
        """Which of the states are ends."""
        with calling("terminal", len(states), self._failed):
            found = received(self.function(lent(states)))
        fits = found.shape == (len(states),) and found.dtype.kind == "b"
        rule = f"must return {len(states)} truth values for {len(states)} states"
        require(fits, "terminal", rule, f"{found.dtype} {found.shape}", "vectorise it over the rows of an array (n, k)")
        return np.asarray(found, dtype=bool)

    @staticmethod
    def _failed(said: str) -> InputError:
        return InputError("terminal", "must not fail", f"a function that {said}", "mend the function")


def read_terminal(given: Any, space: StateSpace) -> Mask | TerminalFunction | None:
    """``terminal`` as a mask ``(S,)``, or as a function of a box's states; None where nothing ends."""
    if given is None or isinstance(given, TerminalFunction):
        return given
    if not isinstance(space, FiniteStates):
        rule = "must be a function of states where they form a box"
        require(
            callable(given), "terminal", rule, type(given).__name__, "write terminal=lambda states: states[:, -1] == 1"
        )
        return TerminalFunction(given)
    if isinstance(given, np.ndarray) and given.dtype == np.bool_:
        require(given.shape == (space.num,), "terminal", f"must have shape ({space.num},)", given.shape, _TERMINAL)
        mask = given.copy()
    elif callable(given):
        mask = np.array([_is_end(given, s) for s in space.own(np.arange(space.num))], dtype=bool)
    else:
        listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
        require(listed, "terminal", "must say which states are ends", f"{given!r:.80}", _TERMINAL)
        mask = np.zeros(space.num, dtype=bool)
        for state in given:
            mask[space.index(state)] = True
    require(not mask.all(), "terminal", "must leave a state to act in", "all states", "leave out those that go on")
    return frozen(mask) if mask.any() else None


def _is_end(function: Any, state: Any) -> bool:
    require(takes(function, 1), "terminal", "must be a function of one state", "other arguments", _TERMINAL)

    def failed(said: str) -> InputError:
        return InputError("terminal", "must not fail", f"a function that {said} at state {state}", "mend the function")

    with calling("terminal", 1, failed):
        found = function(state)
    rule = "must return True or False for a state"
    require(isinstance(found, (bool, np.bool_)), "terminal", rule, f"{found!r:.60} at state {state}", _TERMINAL)
    return bool(found)


def read_successors(given: Any, space: StateSpace, num_actions: int) -> scipy.sparse.csr_array | None:
    """``successors`` as a sparse matrix ``(S·A, S)`` of truth values, row s·A + a, with entries in every row."""
    if given is None:
        return None
    if not isinstance(space, FiniteStates):
        remedy = "leave it out: a box has no list of states"
        raise InputError("successors", "must be left out where states form a box", type(given).__name__, remedy)
    S, A = space.num, num_actions
    if scipy.sparse.issparse(given) or isinstance(given, np.ndarray):
        plain: Any = given.reshape(S * A, -1) if isinstance(given, np.ndarray) and given.size == S * A * S else given
        require(
            np.shape(plain) == (S * A, S), "successors", f"must have shape {(S * A, S)}", np.shape(plain), _SUCCESSORS
        )
        matrix = scipy.sparse.csr_array(plain)
    else:
        rows = [_listed(given, space, s, a) for s in range(S) for a in range(A)]
        first = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        states = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
        matrix = scipy.sparse.csr_array((np.ones(len(states)), states, first), shape=(S * A, S))
    found = scipy.sparse.csr_array(
        (np.asarray(matrix.data != 0, dtype=np.float64), matrix.indices, matrix.indptr), matrix.shape
    )
    found.eliminate_zeros()
    found.sum_duplicates()
    found.sort_indices()
    for x in np.flatnonzero(np.diff(found.indptr) == 0)[:1]:
        where = f"successors of state {space.name(int(x) // A)}, action {int(x) % A}"
        raise InputError(
            where, "must be at least one state", "none", "list the states that can follow, itself if it stays"
        )
    return found


def _listed(given: Any, space: FiniteStates, s: int, a: int) -> NDArray[np.int64]:
    """The successors of one pair, from lists, a mapping (pairs that it leaves out may lead anywhere) or a function."""
    state = space.state(s)
    where = f"successors of state {state}, action {a}"
    try:
        if isinstance(given, Mapping):
            if (state, a) not in given:
                return np.arange(space.num)
            listed = given[state, a]
        elif callable(given):
            with calling(
                "successors", 1, lambda said: InputError(where, "must be a list of states", said, _SUCCESSORS)
            ):
                listed = given(state, a)
        else:
            listed = given[s][a]
        return np.unique(np.array([space.index(t) for t in listed], dtype=np.int64))
    except (TypeError, IndexError, KeyError) as error:
        raise InputError(where, "must be a list of states", f"{type(error).__name__}: {error}", _SUCCESSORS) from None


def at_end(terminal: Mask | TerminalFunction | None, states: States) -> Mask:
    """Which of the states are terminal, ``(n,)``."""
    if terminal is None:
        return np.zeros(len(states), dtype=bool)
    return terminal[states] if isinstance(terminal, np.ndarray) else terminal(states)


def _check_successors(
    terminal: Mask | TerminalFunction | None, successors: scipy.sparse.csr_array | None, space: StateSpace
) -> None:
    """Refuse successors of a terminal state other than itself."""
    if not isinstance(terminal, np.ndarray) or successors is None or not isinstance(space, FiniteStates):
        return
    A = successors.shape[0] // successors.shape[1]
    for x in (np.flatnonzero(terminal)[:, None] * A + np.arange(A)).ravel().tolist():
        rows = successors.indices[slice(*successors.indptr[[x, x + 1]])]
        where, rule = f"successors of state {space.name(x // A)}, action {x % A}", "must be the terminal state itself"
        require(rows.tolist() == [x // A], where, rule, rows[:5].tolist(), "a terminal state has no other")


def check_ends(
    terminal: Mask | TerminalFunction | None,
    successors: scipy.sparse.csr_array | None,
    signals: Sequence[Any],
    space: StateSpace,
) -> None:
    """Refuse ends at which the range of one of the ``signals``, a known array or a list of successors says otherwise."""
    for signal in signals if terminal is not None else ():
        rule, remedy = "must have a range that holds 0, which it is after an ending", "declare a range with 0 in it"
        require(signal.low <= 0 <= signal.high, signal.name, rule, (signal.low, signal.high), remedy)
        if isinstance(terminal, np.ndarray) and isinstance(signal.values, np.ndarray):
            states, actions = np.nonzero(terminal[:, None] & (signal.values != 0))
            refuse_signal(signal.name, signal.values[states, actions], states, actions, space)
    _check_successors(terminal, successors, space)


def refuse_signal(name: str, x: Array, states: States, actions: Actions, space: StateSpace) -> None:
    """Refuse a known signal that is not zero at a terminal state."""
    for i in np.flatnonzero(x != 0)[:1]:
        shown = space.name(int(states[i])) if isinstance(space, FiniteStates) else states[i]
        remedy = "make it 0 there (pay it on the way in), or leave that state out of terminal"
        raise InputError(name, "must be 0 at a terminal state", f"{x[i]} at state {shown}, action {actions[i]}", remedy)


def foreign(successors: scipy.sparse.csr_array, pairs: NDArray[np.int64], next_states: States) -> int | None:
    """The first row whose next state is not among the declared successors of its pair s·A + a."""
    known = np.asarray(scipy.sparse.csr_matrix(successors)[pairs, next_states]).ravel()
    wrong = np.flatnonzero(known == 0)
    return int(wrong[0]) if wrong.size else None


def going_on(over: Mask, states: States, actions: Actions) -> tuple[States, Actions]:
    """As many of these pairs whose state is not terminal, some of them again; all of them where none is left."""
    alive = np.flatnonzero(~over)
    rows = np.arange(len(over)) if len(alive) in (0, len(over)) else np.resize(alive, len(over))
    return states[rows], actions[rows]
