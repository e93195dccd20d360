"""Which actions each state allows, and what becomes of the others.

Every array has A actions in every state. Where a state allows fewer, an action that is not
allowed *stands for the lowest one that is*: it has the same signals, the same features and the same next states. So no value
changes, no policy gains, and every method that maximises over A actions maximises over the allowed ones. No sample is drawn
for it: the samples of its stand-in serve both (:func:`serving_pairs`), and a simulator that is asked for it all the same is
asked for its stand-in. Policies that choose it are rewritten to its stand-in before anybody sees them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import InputError, require, takes
from saddleback.problem.names import action_index
from saddleback.problem.numerics import first_largest
from saddleback.problem.policies import GreedyPolicy, Policy, TabularPolicy, as_table
from saddleback.problem.spaces import Actions, Array, Features, FiniteStates, States, StateSpace
from saddleback.problem.user_code import GuardedFeatures, calling, guarded

Mask = NDArray[np.bool_]

_ALLOWED = "give a mask of truth values (S, A), a list of actions a state, or a function state -> list of actions"


def read_allowed(given: Any, space: StateSpace, num_actions: int, names: tuple[str, ...] | None) -> Mask | None:
    """``actions_allowed`` as a mask ``(S, A)``, or None where everything is allowed everywhere.

    ``given`` is a mask of truth values, a list of actions a state, a mapping from states to lists (other states allow
    everything), or a function of one of the user's states that returns a list.
    """
    if given is None:
        return None
    if not isinstance(space, FiniteStates):
        remedy = "let the simulator treat it as an action that is allowed, or use finite states"
        raise InputError("actions_allowed", "must be left out where states form a box", type(given).__name__, remedy)
    S, A = space.num, num_actions
    if isinstance(given, np.ndarray) and given.dtype == np.bool_:
        require(given.shape == (S, A), "actions_allowed", f"must have shape {(S, A)}", given.shape, _ALLOWED)
        mask = given.copy()
    elif isinstance(given, Mapping):
        mask = np.ones((S, A), dtype=bool)
        for state, listed in given.items():
            mask[space.index(state)] = _row(listed, state, A, names)
    elif callable(given):
        mask = np.array([_row(_asked(given, s), s, A, names) for s in space.own(np.arange(S))])
    else:
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise InputError("actions_allowed", "must say which actions each state allows", f"{given!r:.80}", _ALLOWED)
        rows = list(given)
        require(len(rows) == S, "actions_allowed", f"must have a row for each of the {S} states", len(rows), _ALLOWED)
        mask = np.array([_row(row, space.state(s), A, names) for s, row in enumerate(rows)])
    stuck = np.flatnonzero(~mask.any(axis=1))
    if stuck.size:
        where = f"actions_allowed at state {space.name(int(stuck[0]))}"
        found = f"none ({stuck.size} such states)"
        raise InputError(where, "must allow an action", found, "allow one, such as waiting")
    return None if mask.all() else mask


def _asked(function: Any, state: Any) -> Any:
    require(takes(function, 1), "actions_allowed", "must be a function of one state", "other arguments", _ALLOWED)

    def failed(said: str) -> InputError:
        rule, found = "must return a list of actions", f"a function that {said} at state {state}"
        return InputError("actions_allowed", rule, found, "mend the function")

    with calling("actions_allowed", 1, failed):
        return function(state)


def _row(listed: Any, state: Any, num_actions: int, names: tuple[str, ...] | None) -> Mask:
    """One state's truth values, from truth values or from a list of actions."""
    where = f"actions_allowed at state {state}"
    if isinstance(listed, (str, bytes)) or not isinstance(listed, Iterable):
        raise InputError(where, "must be a list of actions", repr(listed), "write [0, 2] or a list of names")
    given = list(listed)
    if given and all(isinstance(x, (bool, np.bool_)) for x in given):
        require(len(given) == num_actions, where, f"must have {num_actions} truth values", len(given), _ALLOWED)
        return np.array(given, dtype=bool)
    row = np.zeros(num_actions, dtype=bool)
    for action in given:
        a = action_index(action, num_actions, names, where)
        remedy = "name it once; write a mask with True and False"
        require(not row[a], where, "must list an action at most once", repr(action), remedy)
        row[a] = True
    return row


def read_preferred(given: Any, num_actions: int, names: tuple[str, ...] | None) -> tuple[int, ...] | None:
    """``preferred``, actions by number or name, the most preferred first, as numbers; None where nothing was said."""
    if given is None:
        return None
    rule, remedy = "must be a list of actions, the most preferred first", "write [0, 2] or a list of names"
    listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
    require(listed, "preferred", rule, f"{given!r:.80}", remedy)
    order = tuple(action_index(a, num_actions, names, f"preferred[{i}]") for i, a in enumerate(given))
    require(len(set(order)) == len(order), "preferred", "must list an action at most once", list(order), remedy)
    return order


def preference_ranks(preferred: Iterable[int] | None, num_actions: int) -> NDArray[np.int64]:
    """The rank of every action ``(A,)``: those that are preferred first, the others by number."""
    order = list(preferred or ())
    order += [a for a in range(num_actions) if a not in set(order)]
    ranks = np.empty(num_actions, dtype=np.int64)
    ranks[order] = np.arange(num_actions)
    return ranks


def stand_ins_of(mask: Mask) -> NDArray[np.int64]:
    """The action that each action means, ``(S, A)``: itself where it is allowed, else the lowest that is."""
    return np.where(mask, np.arange(mask.shape[1]), mask.argmax(axis=1)[:, None])


def serving_pairs(stand_ins: NDArray[np.int64] | None, states: States, actions: Actions) -> NDArray[np.int64] | None:
    """Whose samples serve each of these pairs, ``(n,)``: its own, or those of its stand-in if that is among them.

    None where every action is allowed: each pair has its own.
    """
    if stand_ins is None:
        return None
    A, every = stand_ins.shape[1], np.arange(len(states))
    pairs, meant = states * A + actions, states * A + stand_ins[states, actions]
    order = np.argsort(pairs)
    place = order[np.minimum(np.searchsorted(pairs, meant, sorter=order), len(pairs) - 1)]
    return np.where(pairs[place] == meant, place, every)


@dataclass(frozen=True)
class RestrictedFeatures:
    """A feature map in which an action that is not allowed has the features of its stand-in."""

    features: Features
    stand_ins: NDArray[np.int64]

    @property
    def dim(self) -> int:
        """d."""
        return self.features.dim

    @property
    def num_actions(self) -> int:
        """A."""
        return self.features.num_actions

    @property
    def direct(self) -> bool:
        """As the map itself."""
        return self.features.direct

    @property
    def constant(self) -> bool:
        """Whether the map can express a constant, as far as it says."""
        return bool(getattr(self.features, "constant", False))

    def at(self, states: States, actions: Actions) -> Array:
        """φ(s, a) of the action that a stands for, ``(n, d)``."""
        return self.features.at(states, self.stand_ins[states, actions])

    def all(self, states: States) -> Array:
        """The same for every action, ``(n, A, d)``."""
        every = self.features.all(states)
        return np.take_along_axis(every, self.stand_ins[states][:, :, None], axis=1)

    def values(self, states: States, theta: Array) -> Array:
        """⟨φ, θ⟩, ``(n, A)`` or ``(n, A, k)``."""
        Q = self.features.values(states, theta)
        meant = self.stand_ins[states]
        return np.take_along_axis(Q, meant if Q.ndim == 2 else meant[:, :, None], axis=1)

    def maximum(self, states: States, theta: Array) -> Array:
        """The largest value of an allowed action, ``(n,)`` or ``(n, k)``."""
        return np.asarray(self.values(states, theta).max(axis=1))

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first allowed action with the largest value, up to rounding, ``(n,)``."""
        best = first_largest(self.values(states, theta), axis=1)
        return np.asarray(self.stand_ins[states, best])


def read_features(given: Any, num_actions: int, stand_ins: NDArray[np.int64] | None) -> Features | None:
    """A feature map that covers the actions, with stand-ins, made by the map itself (``restricted``) where it knows how."""
    if given is None:
        return None
    if not isinstance(given, Features):
        remedy = "wrap it, as in FeatureFunction(function, dim, num_actions) or FeatureMatrix(phi)"
        raise InputError("features", "must be a feature map", f"{type(given).__name__}", remedy)
    rule, remedy = f"must cover the problem's {num_actions} actions", "make the feature map and the problem agree"
    require(given.num_actions == num_actions, "features", rule, given.num_actions, remedy)
    given = guarded(given, GuardedFeatures)
    if stand_ins is None or isinstance(given, RestrictedFeatures):
        return given
    own = getattr(given, "restricted", None)
    return RestrictedFeatures(given, stand_ins) if own is None else own(stand_ins)


def permitted_policy(policy: Policy, stand_ins: NDArray[np.int64] | None) -> Policy:
    """The same policy with its stand-in in the place of every action that is not allowed."""
    if stand_ins is None:
        return policy
    S, A = stand_ins.shape
    if isinstance(policy, GreedyPolicy) and getattr(policy.features, "stand_ins", None) is not None:
        return policy  # its features choose allowed actions only
    table = as_table(policy, S)
    every = np.arange(S)
    if table.is_deterministic:
        return TabularPolicy.deterministic(stand_ins[every, table.table], A)
    moved = np.zeros((S, A))
    np.add.at(moved, (np.repeat(every, A), stand_ins.ravel()), table.table.ravel())
    return TabularPolicy.stochastic(moved)


def described_policy(policy: Policy, space: StateSpace, names: tuple[str, ...] | None) -> dict[Any, Any]:
    """A policy of a finite problem in the user's words: {state: action}, or {state: {action: probability}}."""
    if not isinstance(space, FiniteStates):
        raise InputError("policy", "must be of a finite problem to be listed", space, "ask policy.act(states, rng)")
    words = range(policy.num_actions) if names is None else names
    chosen = [
        {words[a]: float(row[a]) for a in np.flatnonzero(row)} for row in policy.probabilities(np.arange(space.num))
    ]
    single = [next(iter(row)) if len(row) == 1 else row for row in chosen]
    return dict(zip(space.own(np.arange(space.num)), single, strict=True))
