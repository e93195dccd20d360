"""§2, the start distribution ρ: its support with weights, or a sampler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from saddleback.errors import InputError, number, require
from saddleback.problem.spaces import Array, FiniteStates, States, StateSpace, as_float64, unmasked
from saddleback.problem.user_code import calling, frozen, frozen_if_array, received

StartSampler = Callable[[int, np.random.Generator], States]
"""``sampler(number, rng)``: so many independent start states."""

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
