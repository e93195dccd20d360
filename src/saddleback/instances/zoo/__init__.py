"""The zoo: named problems with known answers. ``make("wireless", budget=0.3)`` gives an :class:`Instance`.

A problem is one function, in a file that is imported when the problem is asked for. Its keyword parameters have defaults, simple
types with their ranges (:mod:`saddleback.instances.zoo._building`) and a line each in the docstring; :func:`make` checks and
converts what a caller or a command line gives.
"""

from __future__ import annotations

import inspect
import math
import types
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from saddleback.errors import InputError, nearest
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Range
from saddleback.problem.registry import Registry

BY_NAME: Registry[Callable[..., Instance]] = Registry(
    "problems",
    {
        "wireless": "saddleback.instances.zoo.wireless:wireless",
        "gridworld": "saddleback.instances.zoo.gridworld:gridworld",
        "queue": "saddleback.instances.zoo.queue:queue",
        "garnet": "saddleback.instances.zoo.garnet:garnet",
        "random-linear": "saddleback.instances.zoo.random_linear:random_linear",
        "hard-instance": "saddleback.instances.zoo.hard_instance:hard_instance",
        "routing": "saddleback.instances.zoo.routing:routing",
        "inventory": "saddleback.instances.zoo.inventory:inventory",
        "maintenance": "saddleback.instances.zoo.maintenance:maintenance",
        "streaming": "saddleback.instances.zoo.streaming:streaming",
        "ward": "saddleback.instances.zoo.ward:ward",
        "river-swim": "saddleback.instances.zoo.river_swim:river_swim",
        "queue-network": "saddleback.instances.zoo.queue_network:queue_network",
        "warehouse": "saddleback.instances.zoo.warehouse:warehouse",
        "frozen-lake": "saddleback.instances.zoo.toy_text:frozen_lake",
        "taxi": "saddleback.instances.zoo.toy_text:taxi",
        "cliff-walking": "saddleback.instances.zoo.toy_text:cliff_walking",
        "linear-quadratic": "saddleback.instances.zoo.linear_quadratic:linear_quadratic",
        "mountain-car": "saddleback.instances.zoo.classic_control:mountain_car",
        "pendulum": "saddleback.instances.zoo.classic_control:pendulum",
    },
)

CONTINUOUS = ("linear-quadratic", "mountain-car", "pendulum")
"""The problems with continuous states, which have no table at any size."""

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class Parameter(NamedTuple):
    """One parameter of a problem."""

    name: str
    default: Any
    doc: str


def make(name: str, /, **parameters: Any) -> Instance:
    """Build the named problem; strings are converted to the type of the parameter they are for."""
    build = _builder(name)
    kinds = get_type_hints(build, include_extras=True)
    listing = f"{name} takes " + ", ".join(f"{p.name}={p.default}" for p in describe(name))
    converted = {}
    for parameter, value in parameters.items():
        known = inspect.signature(build).parameters
        if parameter not in known:
            remedy = nearest(parameter, known, listing)
            raise InputError(parameter, f"must be a parameter of {name}", repr(value), remedy)
        converted[parameter] = _convert(parameter, value, kinds[parameter], listing)
    try:
        for parameter, value in converted.items():
            for said in get_args(kinds[parameter]):
                if isinstance(said, Range):
                    said.check(parameter, value)
        return build(**converted)
    except InputError as error:  # out of range: the same list helps
        raise InputError(error.name, error.rule, error.value, f"{error.remedy}; {listing}") from None


def describe(name: str) -> list[Parameter]:
    """The parameters of the named problem with their defaults and one line each."""
    build = _builder(name)
    lines = [line.partition(":") for line in (inspect.getdoc(build) or "").splitlines()]
    docs = {word.strip(): text.strip() for word, _, text in lines}
    return [Parameter(p.name, p.default, docs.get(p.name, "")) for p in inspect.signature(build).parameters.values()]


def _builder(name: str) -> Callable[..., Instance]:
    if name not in BY_NAME:
        remedy = nearest(name, BY_NAME, f"choose one of {', '.join(BY_NAME)}")
        raise InputError("problem", "must be a name in the zoo", repr(name), remedy)
    return BY_NAME[name]


def _convert(name: str, value: Any, kind: Any, listing: str) -> Any:
    optional = isinstance(kind, types.UnionType)  # "float | None": left out, a rule decides
    if optional and value is None:
        return None
    target = get_args(kind)[0] if optional or get_origin(kind) is Annotated else kind
    result = _parsed(value, target) if isinstance(value, str) else _cast(value, target)
    if result is None or (target is float and not math.isfinite(result)):
        raise InputError(name, f"must be {_KINDS[target]}", repr(value), listing)
    return result


def _parsed(text: str, kind: type) -> Any:
    """The value a text stands for, or None."""
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower())
    try:
        return kind(text)
    except ValueError:
        return None


def _cast(value: Any, kind: type) -> Any:
    """The value as the kind, where nothing is lost, or None; a boolean is no number."""
    if isinstance(value, bool) or kind is bool:
        return value if isinstance(value, bool) and kind is bool else None
    if kind is int:
        return int(value) if isinstance(value, Integral) else None
    return float(value) if kind is float and isinstance(value, Real) else None
