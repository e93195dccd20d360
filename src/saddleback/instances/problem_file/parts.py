"""The parts of a problem file: what each key may say, and what is made of it; where the problem begins, which pairs a design may
choose from, and its features.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from saddleback import features as maps
from saddleback.errors import InputError
from saddleback.features import FeatureFunction
from saddleback.files.json_file import short
from saddleback.files.memory import require_room
from saddleback.instances import zoo
from saddleback.instances.instance import Instance
from saddleback.instances.problem_file.code import imported
from saddleback.instances.problem_file.sections import Section
from saddleback.problem.cmdp import Constraint, SignalFunction, Start
from saddleback.problem.signals import LoopedMap
from saddleback.problem.spaces import MOST, Actions, Array, BoxStates, Features, FiniteStates, States, StateSpace
from saddleback.problem.start import asked
from saddleback.simulators.generative_model import Stream, generator

KINDS = ("step", "batch")
_LIMIT = re.compile(r"\s*(<=|>=)\s*([-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")


def states_of(file: Section) -> StateSpace:
    """``states = 11``, or ``states = {low = [...], high = [...]}``."""
    remedy = "write states = 11 for the states 0 to 10, or states = {low = [0.0], high = [1.0]}"
    given = file.get("states", "anything", remedy=remedy)
    if isinstance(given, dict):
        box = file.table("states")
        box.allow("low", "high")
        low, high = (numbers(box, key, box.get(key, "anything", remedy=remedy)) for key in ("low", "high"))
        if low.size > _MOST_COORDINATES:
            rule = f"must have at most {_MOST_COORDINATES:,} coordinates"
            raise file.fault("states", rule, low.size, "let the simulator keep what features do not need")
        try:
            return BoxStates(low, high)
        except (InputError, ValueError):
            rule = "must have low < high in every coordinate"
            found = short([low.tolist(), high.tolist()])
            raise file.fault("states", rule, found, "one number a coordinate") from None
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given < MOST:
        raise file.fault("states", "must be how many there are, or a box", short(given), remedy)
    return FiniteStates(given)


def actions_of(file: Section) -> int:
    """``actions = 2``, or their names, which are for the reader."""
    remedy = 'write actions = 2, or actions = ["wait", "repair"]: the simulator gets 0, 1, ...'
    given = file.get("actions", "anything", remedy=remedy)
    if isinstance(given, list) and given and all(isinstance(name, str) for name in given):
        if len(set(given)) < len(given):
            raise file.fault("actions", "must have distinct names", short(given), "rename one")
        return len(given)
    if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given < MOST:
        raise file.fault("actions", "must be how many there are, or their names", short(given), remedy)
    return given


def action_names(file: Section) -> tuple[str, ...] | None:
    """The names of the actions, where the file lists them."""
    given = file.values.get("actions")
    return tuple(given) if isinstance(given, list) else None


def signal_of(where: Section, kind: str, shape: tuple[int | None, int]) -> Array | SignalFunction | None:
    """The ``values`` of a reward or constraint: "observed", "module:callable", or numbers per state or per pair."""
    remedy = 'write values = "shop:cost", values = "observed", or one list of numbers a state'
    given = where.get("values", "anything", remedy=remedy)
    if given == "observed":
        return None
    if isinstance(given, str):
        return called(where, "values", kind)
    x = numbers(where, "values", given) if isinstance(given, list) else None
    if x is not None and x.ndim == 1 and x.shape == shape[:1]:
        x = np.repeat(x[:, None], shape[1], axis=1)
    if x is None or x.shape != shape:
        found = short(given) if x is None else f"shape {x.shape}"
        raise where.fault("values", f"must be a number a state, or {shape[1]} a state, one an action", found, remedy)
    return x


def called(where: Section, key: str, kind: str) -> Callable[..., Any]:
    """The function that a key names, vectorised; ``kind`` is the file's unless the table has its own."""
    function = imported(where, key)
    return LoopedMap(function) if kind_of(where, kind) == "step" else function


def kind_of(where: Section, default: str) -> str:
    """step: functions of one state and one action; batch: functions of arrays."""
    remedy = "step for functions of one state and one action, batch for functions of arrays"
    return where.choice("kind", KINDS, default, remedy)


def range_of(where: Section, values: Any) -> tuple[float, float] | None:
    """``range = [low, high]``, which only arrays can do without."""
    if not where.has("range"):
        if isinstance(values, np.ndarray):
            return None
        remedy = "give the smallest and the largest value, as in range = [0, 1]: every bound depends on it"
        raise where.fault("range", "must be given for functions and what is observed", "nothing", remedy)
    x = numbers(where, "range", where.get("range", "a list"))
    if x.shape != (2,) or not x[0] < x[1]:
        raise where.fault("range", "must be [low, high] with low < high", short(where.values["range"]), "swap them?")
    return float(x[0]), float(x[1])


def constraint_of(where: Section, kind: str, shape: tuple[int | None, int], known: dict[str, Constraint]) -> Constraint:
    """One of [[constraints]]; without values it gives the zoo problem's constraint of that name another limit."""
    where.allow("name", "values", "limit", "units", "range", "kind")
    name = where.get("name", "text", remedy='give it a name, such as name = "energy"')
    example = 'write limit = "<= 5" for a budget, limit = ">= 5" for a floor'
    limit = where.get("limit", "text", remedy=example)
    found = _LIMIT.fullmatch(limit)
    if not found:
        raise where.fault("limit", "must be <= or >= and a number", short(limit), example)
    remedy = "per-step for an average a step, discounted for a discounted total"
    units = where.choice("units", ("per-step", "discounted"), remedy=f"write units = ..., {remedy}")
    if known and not where.has("values"):
        if name not in known:
            raise where.fault("name", f"must be one of {', '.join(known)}", short(name), "or give it values")
        signal: Any = known[name].signal
        span = range_of(where, signal) if where.has("range") else known[name].range
    else:
        signal = signal_of(where, kind, shape)
        span = range_of(where, signal)
    return Constraint(name, signal, found[1], float(found[2]), span, units)  # type: ignore[arg-type]


def constraints_of(
    tables: Sequence[Section], kind: str, shape: tuple[int | None, int], known: dict[str, Constraint]
) -> list[Constraint]:
    """All of [[constraints]]; a name that comes again is a fault of the table where it does."""
    found: list[Constraint] = []
    for where in tables:
        constraint = constraint_of(where, kind, shape, known)
        if constraint.name in [c.name for c in found]:
            rule = "must differ from the names of the constraints before it"
            raise where.fault("name", rule, short(constraint.name), "rename one of the two")
        found.append(constraint)
    return found


def gamma_of(file: Section) -> float:
    """``gamma = 0.95``."""
    gamma = file.get("gamma", "a number", remedy="write gamma = 0.95: a reward t steps ahead counts 0.95^t")
    if not 0 <= gamma < 1:
        raise file.fault("gamma", "must lie in [0, 1)", gamma, "for a horizon of H steps use gamma = 1 - 1/H")
    return float(gamma)


def zoo_of(where: Section) -> Instance:
    """``zoo = "queue"`` with ``settings``."""
    where.allow("zoo", "settings")
    name = where.choice("zoo", list(zoo.BY_NAME), remedy="run `saddleback zoo` for the list")
    settings = where.get("settings", "a table", {})
    try:
        return zoo.make(name, **settings)
    except InputError as error:
        inner = where.table("settings") if settings else where
        known = error.name if inner.has(error.name) else None
        raise inner.fault(known, error.rule, error.value, error.remedy) from None


def numbers(where: Section, key: str, given: Any) -> Array:
    """Numbers, or lists of them, as an array."""
    try:
        x = np.array(given)
    except ValueError:
        raise where.fault(key, "must have rows of one length", short(given), "make all rows alike") from None
    if x.dtype.kind not in "iuf" or np.any(np.isnan(x)):
        raise where.fault(key, "must hold numbers only", short(given), "remove the rest")
    return x.astype(np.float64)


_DRAWS = 1000
_POOL = 2000
_MOST_POOL, _MOST_PAIRS = 1_000_000, 10_000_000
_MOST_COORDINATES = 1000
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
        _check_pool(file, _number_of(where, _POOL), space, num_actions)
        states = _drawn(where, space, _POOL, 1)
    else:
        remedy = 'write pool = 2000, or pool = {sampler = "shop:states", number = 2000}'
        if not isinstance(given, int) or isinstance(given, bool) or not 1 <= given <= _MOST_POOL:
            raise file.fault("pool", "must be a number of states, or a table", short(given), remedy)
        if not np.all(np.isfinite(space.high - space.low)):
            raise file.fault("pool", "must have a sampler where the box is not bounded", short(given), remedy)
        _check_pool(file, given, space, num_actions)
        states = _generator(1).uniform(space.low, space.high, (given, space.dim))
        if ends:
            states[:, -1] = states[:, -1] >= 0.9
    return np.repeat(states, num_actions, axis=0), np.tile(np.arange(num_actions), len(states))


def _check_pool(file: Section, number: int, space: BoxStates, num_actions: int) -> None:
    """Before any of them is drawn."""
    if number * num_actions > _MOST_PAIRS:
        found = f"{number:,} states with {num_actions:,} actions"
        raise file.fault("pool", f"must have at most {_MOST_PAIRS:,} pairs", found, "give fewer states")
    require_room(8 * number * space.dim * (1 + num_actions), "the pool of pairs", "give fewer states")


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
    number = _number_of(where, usual)
    sampler, remedy = imported(where, "sampler"), "it is called as sampler(number, rng) and returns that many states"
    try:
        states = asked(sampler, number, _generator(purpose))
    except InputError as error:
        raise where.fault("sampler", error.rule, error.value, remedy) from error
    wrong = space.well_formed(states)
    if wrong or not len(states):
        raise where.fault("sampler", wrong or "must give states", f"shape {states.shape}", remedy)
    outside = np.flatnonzero(space.outside(states))
    if outside.size:
        raise where.fault("sampler", "must give states of the space", f"{states[outside[0]]} ({space})", "mend it")
    return states


def _number_of(where: Section, usual: int) -> int:
    number = where.get("number", "a whole number", usual)
    if not 1 <= number <= _MOST_POOL:
        raise where.fault("number", f"must lie between 1 and {_MOST_POOL:,}", short(number), f"use {usual}")
    return int(number)


def _generator(purpose: int) -> np.random.Generator:
    return generator(0, Stream.DESIGN, 4, purpose)


def _states(where: Section, key: str, given: Any, space: StateSpace) -> States:
    """One state or several, as an array of the space's kind."""
    x = numbers(where, key, given)
    if isinstance(space, FiniteStates):
        whole = x.ndim <= 1 and x.size > 0 and bool(np.all(np.abs(x) < 2**53)) and bool(np.all(x == np.floor(x)))
        if not whole:
            raise where.fault(key, "must be whole numbers", short(given), "states are numbered from 0")
        return np.atleast_1d(x).astype(np.int64)
    x = x[None] if x.ndim == 1 else x
    if x.ndim != 2 or x.shape[1] != space.dim:
        raise where.fault(key, f"must be a list of {space.dim} numbers, or several", short(given), "match the box")
    return x
