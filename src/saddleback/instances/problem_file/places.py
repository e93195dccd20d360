"""Where a problem of a file begins, which pairs a design may choose from, and its features."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback import features as maps
from saddleback.errors import InputError
from saddleback.features import FeatureFunction
from saddleback.files.json_file import short
from saddleback.instances.problem_file.code import imported
from saddleback.instances.problem_file.parts import called, numbers
from saddleback.instances.problem_file.sections import Section
from saddleback.problem.cmdp import Start
from saddleback.problem.spaces import Actions, Array, BoxStates, Features, FiniteStates, States, StateSpace
from saddleback.simulators.generative_model import Stream, generator

_DRAWS = 1000
_POOL = 2000
_MOST_POOL, _MOST_PAIRS = 10_000_000, 100_000_000
_NAMES = [name for name in maps.BY_NAME if name not in ("function", "matrix")]
_FEATURES = f"write [features] with a name ({', '.join(_NAMES)}), or with a function and its dim"


def start_of(file: Section, space: StateSpace) -> Start:
    """One state, a list of states, {states, weights}, or {sampler, number}."""
    remedy = "write start = 0, start = [0, 3], or start = {states = [0, 3], weights = [0.5, 0.5]}"
    given = file.get("start", "anything", remedy=remedy)
    key, where = "start", file
    weights: Array | None = None
    if isinstance(given, dict):
        where = file.table("start")
        where.allow("states", "weights", "sampler", "number")
        if where.has("sampler"):
            states = _drawn(where, space, _DRAWS, 0)
            return Start(states, np.full(len(states), 1 / len(states)), imported(where, "sampler"))
        key, given = "states", where.get("states", "anything", remedy=remedy)
        weights = numbers(where, "weights", where.get("weights", "a list")) if where.has("weights") else None
    states = _states(where, key, given, space)
    n = len(states)
    weights = np.full(n, 1 / n) if weights is None else weights
    if weights.shape != (n,) or np.any(weights < 0) or abs(weights.sum() - 1) > 1e-9:
        rule = f"must be {n} numbers, none negative, that sum to 1"
        raise where.fault("weights", rule, short(weights.tolist()), "one weight a start state")
    outside = np.flatnonzero(space.outside(states))
    if outside.size:
        raise where.fault(key, "must lie in the state space", f"{states[outside[0]]} ({space})", "move it inside")
    return Start(states, weights)


def pool_of(file: Section, space: StateSpace, num_actions: int, ends: bool) -> tuple[States, Actions] | None:
    """Pairs that a design may choose from: for a box, states drawn from it or by a sampler, with every action.

    With ``ends`` the last coordinate says whether all is over (0 or 1): one state in ten of the pool.
    """
    if isinstance(space, FiniteStates):
        if file.has("pool"):
            raise file.fault("pool", "must be left out for finite states", short(file.values["pool"]), "remove it")
        return None
    given = file.get("pool", "anything", _POOL)
    if isinstance(given, dict):
        where = file.table("pool")
        where.allow("sampler", "number")
        states = _drawn(where, space, _POOL, 1)
    else:
        remedy = 'write pool = 2000, or pool = {sampler = "shop:states", number = 2000}'
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= _MOST_POOL:
            raise file.fault("pool", "must be a number of states, or a table", short(given), remedy)
        if not np.all(np.isfinite(space.high - space.low)):
            raise file.fault("pool", "must have a sampler where the box is not bounded", short(given), remedy)
        states = _generator(1).uniform(space.low, space.high, (given, space.dim))
        if ends:
            states[:, -1] = states[:, -1] >= 0.9
    if len(states) * num_actions > _MOST_PAIRS:
        found = f"{len(states):,} states with {num_actions:,} actions"
        raise file.fault("pool", f"must have at most {_MOST_PAIRS:,} pairs", found, "give fewer states")
    return np.repeat(states, num_actions, axis=0), np.tile(np.arange(num_actions), len(states))


def features_of(file: Section, kind: str, space: StateSpace, num_actions: int) -> Features | None:
    """[features] is one map, [[features]] are several side by side; without any a finite problem is a table."""
    if not file.has("features"):
        if isinstance(space, BoxStates):
            raise file.fault("features", "must be given where states form a box", "nothing", _FEATURES)
        return None
    several = isinstance(file.values["features"], list)
    tables = file.tables("features", _FEATURES) if several else [file.table("features", _FEATURES)]
    if not tables:
        raise file.fault("features", "must hold at least one map", "none", _FEATURES)
    made = [_map_of(where, kind, space, num_actions) for where in tables]
    return made[0] if len(made) == 1 else maps.Stacked(made)


def _map_of(where: Section, kind: str, space: StateSpace, num_actions: int) -> Features:
    """``name`` with settings, or ``function`` with ``dim``."""
    if where.has("function"):
        where.allow("function", "dim", "kind")
        dim = where.get("dim", "a whole number", remedy="say how many numbers the function gives")
        if dim < 1:
            raise where.fault("dim", "must be at least 1", dim, "say how many numbers the function gives")
        return FeatureFunction(called(where, "function", kind), dim, num_actions)
    name = where.choice("name", _NAMES, remedy=_FEATURES)
    settings = {key: value for key, value in where.values.items() if key != "name"}
    if isinstance(settings.get("coordinates"), str):
        settings["coordinates"] = imported(where, "coordinates")
    try:
        return maps.make(name, space, num_actions, **settings)
    except InputError as error:
        at = next((key for key in (error.name, error.name.partition("[")[0]) if where.has(key)), "name")
        raise where.fault(at, error.rule, error.value, error.remedy) from None


def _drawn(where: Section, space: StateSpace, usual: int, purpose: int) -> States:
    """States from ``sampler(number, rng)``, drawn once with a fixed seed: the same file is the same problem."""
    number = where.get("number", "a whole number", usual)
    if number < 1:
        raise where.fault("number", "must be at least 1", number, f"use {usual}")
    sampler, remedy = imported(where, "sampler"), "it is called as sampler(number, rng) and returns that many states"
    try:
        states = np.asarray(sampler(number, _generator(purpose)))
    except Exception as error:  # the user's code
        raise where.fault("sampler", "must give states", f"{type(error).__name__}: {error}", remedy) from error
    wrong = space.well_formed(states)
    if wrong or not len(states):
        raise where.fault("sampler", wrong or "must give states", f"shape {states.shape}", remedy)
    outside = np.flatnonzero(space.outside(states))
    if outside.size:
        raise where.fault("sampler", "must give states of the space", f"{states[outside[0]]} ({space})", "mend it")
    return states


def _generator(purpose: int) -> np.random.Generator:
    return generator(0, Stream.DESIGN, 4, purpose)


def _states(where: Section, key: str, given: Any, space: StateSpace) -> States:
    """One state or several, as an array of the space's kind."""
    x = numbers(where, key, given)
    if isinstance(space, FiniteStates):
        if x.ndim > 1 or not x.size or not np.all(np.isfinite(x)) or np.any(x != np.floor(x)):
            raise where.fault(key, "must be whole numbers", short(given), "states are numbered from 0")
        return np.atleast_1d(x).astype(np.int64)
    x = x[None] if x.ndim == 1 else x
    if x.ndim != 2 or x.shape[1] != space.dim:
        raise where.fault(key, f"must be a list of {space.dim} numbers, or several", short(given), "match the box")
    return x
