"""Feature maps φ: S × A → R^d, and maps of states ψ: S → R^k from which :class:`PerAction` makes them.

:func:`make` builds one from a name and plain settings, as a problem file has them, :func:`examine` reports on one. docs/features.md
says which to choose.

    make("tiles", BoxStates([-1.2, -0.07], [0.6, 0.07]), 3, tiles=8, tilings=4)

Maps of states are placed on the space's coordinates (settings ``low``, ``high``, ``coordinates``, ``shape``: see
:mod:`saddleback.features.frame`), get the constant 1 where it is not in their span (``constant = false`` leaves them alone)
and a copy for each action. So are those of other packages, by entry points in the group ``saddleback.features``: a class or
function of a frame and of settings by name, which gives a map of states (:class:`saddleback.features.StateFeatures`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from saddleback.errors import InputError, flag, require, whole
from saddleback.features.base import (
    FeatureFunction,
    FeatureMap,
    FeatureMatrix,
    StateFeatures,
    StateFunction,
    StateMap,
    StateMatrix,
)
from saddleback.features.basis import Fourier, Polynomial
from saddleback.features.binary import Aggregation, Cells, Tiles
from saddleback.features.frame import Frame
from saddleback.features.multilinear import MultilinearInterpolation
from saddleback.features.one_hot import OneHot
from saddleback.features.per_action import PerAction
from saddleback.features.radial_basis import RadialBasis
from saddleback.features.random_fourier import RandomFourier
from saddleback.features.report import FeatureReport, examine
from saddleback.features.stacked import Constant, Joined, Stacked, WithConstant, with_constant
from saddleback.problem.registry import Registry
from saddleback.problem.spaces import Features, FiniteStates, StateSpace

__all__ = [
    "BY_NAME",
    "Aggregation",
    "Cells",
    "Constant",
    "FeatureFunction",
    "FeatureMap",
    "FeatureMatrix",
    "FeatureReport",
    "Fourier",
    "Frame",
    "Joined",
    "MultilinearInterpolation",
    "OneHot",
    "PerAction",
    "Polynomial",
    "RadialBasis",
    "RandomFourier",
    "Stacked",
    "StateFeatures",
    "StateFunction",
    "StateMap",
    "StateMatrix",
    "Tiles",
    "WithConstant",
    "examine",
    "make",
    "make_stacked",
    "settings_of",
    "with_constant",
]

BY_NAME: Registry[Callable[..., Any]] = Registry(
    "features",
    {
        "one-hot": OneHot,
        "matrix": FeatureMatrix,
        "function": FeatureFunction,
        "aggregation": Aggregation,
        "cells": Cells,
        "tiles": Tiles,
        "multilinear": MultilinearInterpolation,
        "radial-basis": RadialBasis,
        "fourier": Fourier,
        "polynomial": Polynomial,
        "random-fourier": RandomFourier,
    },
)

IN_CODE = ("matrix", "function")
"""Maps that no settings can make: they hold arrays and functions."""

PLACE = ("low", "high", "coordinates", "shape")
"""Settings of every map that looks at coordinates."""


def make(name: str, space: StateSpace, num_actions: int, /, **settings: Any) -> Features:
    """The named feature map for the problem's states and actions; a wrong name or setting is refused with a list."""
    kind = _kind(name)
    whole("num_actions", num_actions, 1)
    allowed = settings_of(name)
    unknown = [key for key in settings if key not in allowed]
    if unknown:
        listing = f"{name} takes {', '.join(allowed) or 'no settings'}"
        raise InputError(unknown[0], f"must be a setting of {name}", repr(settings[unknown[0]]), listing)
    if kind is OneHot:
        return OneHot(_finite(name, space).num, num_actions)
    constant, direct = (flag(key, settings.pop(key, usual)) for key, usual in (("constant", True), ("direct", False)))
    psi = _state_map(kind, name, space, settings)
    return PerAction(with_constant(psi) if constant else psi, num_actions, direct=direct)


def make_stacked(parts: Sequence[Mapping[str, Any]], space: StateSpace, num_actions: int) -> Features:
    """Several maps side by side, each a mapping with a ``name`` and its settings; one alone is that map."""
    remedy = 'write name = "tiles" or another map'
    require(len(parts) > 0, "features", "must name a map at least", "none", remedy)
    made = []
    for i, part in enumerate(parts):
        require("name" in part, f"features[{i}]", "must have a name", dict(part), remedy)
        rest = {key: value for key, value in part.items() if key != "name"}
        made.append(make(part["name"], space, num_actions, **rest))
    return made[0] if len(made) == 1 else Stacked(made)


def settings_of(name: str) -> tuple[str, ...]:
    """The settings the named map takes."""
    kind = _kind(name)
    if kind is OneHot:
        return ()
    if kind is Aggregation:
        return ("groups", "direct", "constant")
    _, *own = inspect.signature(kind).parameters  # the frame comes first
    return (*own, *PLACE, "constant", "direct")


def _kind(name: str) -> Callable[..., Any]:
    known = isinstance(name, str) and name in BY_NAME
    listing = f"known are {', '.join(k for k in BY_NAME if k not in IN_CODE)}"
    require(known, "features", "must name a feature map", repr(name), listing)
    require(name not in IN_CODE, "features", "must be made of settings", name, "build it in Python, or pick another")
    return BY_NAME[name]


def _state_map(kind: Callable[..., Any], name: str, space: StateSpace, settings: dict[str, Any]) -> StateFeatures:
    if kind is Aggregation:
        S = _finite(name, space).num
        require("groups" in settings, "groups", f"must be given for {name}", None, "give the group of each state")
        psi = Aggregation(settings["groups"])
        rule = f"must hold one group for each of the {S} states"
        require(len(psi.groups) == S, "groups", rule, f"{len(psi.groups)} groups", "give a number for every state")
        return psi
    place = {key: settings.pop(key) for key in PLACE if key in settings}
    return kind(Frame.of(space, **place), **settings)


def _finite(name: str, space: StateSpace) -> FiniteStates:
    if not isinstance(space, FiniteStates):
        remedy = "use cells, tiles or another map of coordinates"
        raise InputError("features", "must suit a box of states", name, remedy)
    return space
