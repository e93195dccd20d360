"""The parts of a problem file: what each key may say, and what is made of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.files.json_file import short
from saddleback.instances import zoo
from saddleback.instances.instance import Instance
from saddleback.instances.problem_file.code import imported
from saddleback.instances.problem_file.sections import Section
from saddleback.problem.cmdp import Constraint, SignalFunction
from saddleback.problem.signals import LoopedMap
from saddleback.problem.spaces import Array, BoxStates, FiniteStates, StateSpace

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
        try:
            return BoxStates(low, high)
        except (InputError, ValueError):
            rule = "must have low < high in every coordinate"
            raise file.fault("states", rule, f"{low} and {high}", "one number a coordinate") from None
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
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
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
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
