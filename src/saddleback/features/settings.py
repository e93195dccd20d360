"""Checks of what a feature map is built with, each error naming the setting, the rule and a remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from saddleback.errors import InputError, require
from saddleback.problem.spaces import Array

RANK_TOLERANCE = 1e-10
"""Relative size below which a singular value of the features (each scaled to a largest value of 1) counts as zero."""


MOST_FEATURES = 20_000
"""Dimension above which a map is refused: a design works with d × d matrices, and this one takes 3 GB."""


def whole(name: str, value: Any, low: int) -> int:
    """``value`` if it is an integer of ``low`` or more."""
    good = isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low
    require(good, name, f"must be a whole number of {low} or more", repr(value), "write it without a decimal point")
    return int(value)


def positive(name: str, value: Any) -> float:
    """``value`` if it is a finite number above zero."""
    good = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf
    require(good, name, "must be a positive number", repr(value), "leave it out for the usual")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """``value`` if it is a truth value."""
    require(isinstance(value, bool), name, "must be true or false", repr(value), "leave it out for the usual")
    return bool(value)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """``value`` if it is one of the ``allowed`` words."""
    good = isinstance(value, str) and value in allowed
    require(good, name, f"must be {' or '.join(allowed)}", repr(value), "pick one")
    return str(value)


def wholes(name: str, value: Any, count: int, low: int) -> tuple[int, ...]:
    """One integer a coordinate, from a list of ``count`` or from one integer for all."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        require(len(value) == count, name, f"must hold {count} numbers, one a coordinate", value, "or give one for all")
        return tuple(whole(f"{name}[{j}]", x, low) for j, x in enumerate(value))
    return (whole(name, value, low),) * count


def positives(name: str, value: Any, count: int) -> tuple[float, ...]:
    """One positive number a coordinate, from a list of ``count`` or from one number for all."""
    if isinstance(value, Sequence | np.ndarray) and not isinstance(value, str):
        require(len(value) == count, name, f"must hold {count} numbers, one a coordinate", value, "or give one for all")
        return tuple(positive(f"{name}[{j}]", x) for j, x in enumerate(value))
    return (positive(name, value),) * count


def real_array(name: str, value: Any, remedy: str) -> Array:
    """``value`` as a finite float64 array."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(name, "must hold numbers", repr(value), remedy) from error
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        at = tuple(int(i) for i in bad[0])
        raise InputError(name, "must be finite", f"{array[at]} at {list(at)}" if at else array[at], remedy)
    return array


def check_dimension(dim: int, remedy: str) -> int:
    """``dim``, refused above :data:`MOST_FEATURES` before anything of that size is built."""
    require(dim <= MOST_FEATURES, "features", f"must be at most {MOST_FEATURES} in number", dim, remedy)
    return dim
