"""Decisions that do not depend on the processor: the last bits of a sum are forgotten before anything is decided by them.

The same product summed by another BLAS kernel, on two threads or with fused multiply-adds differs in its last bits. Where
such a number is an answer, nobody minds. Where it decides how many samples a pair gets, which of two equal actions a
policy takes or which of two equal columns enters a mixture, the answer itself would change. So such a decision is made

    from rounded numbers       rounded(x):  x to a few significant digits, far above rounding error, far below any noise
    with ties by index         first_largest(x):  the first entry within a relative 10⁻⁹ of the largest

Two processors still part ways where a number falls within its rounding error of the edge between two roundings: with
errors of 10⁻¹⁴ and six digits that is a chance of 10⁻⁸ each. What is reported is never rounded.

Random numbers come from one Philox stream per (seed, stream, pair, block of consecutive samples of a pair), so a sample's value
depends on which sample it is and never on who drew it (:func:`generator`).

Loops that numba compiles are the same wherever they run (:func:`compiled`). Their machine code is kept beside the source or in
the user's home, and where neither may be written to, the disk is full or what is kept is damaged, numba gives up; here it then
compiles anew, which takes seconds, and nothing else is different.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array

F = TypeVar("F", bound=Callable[..., Any])

TIE = 1e-9
"""Relative to the largest absolute value: entries that are this close count as equal."""

PLAN_DIGITS = 6
"""Significant digits of weights and shares that become numbers of samples."""

VALUE_DIGITS = 9
"""Significant digits of estimated values that a master program compares."""

PRICE_DIGITS = 12
"""Significant digits of multipliers: whether a price was asked about before is a question of equality."""

RANK_TOLERANCE = 1e-10
"""Relative size below which a singular value of the features (each scaled to a largest value of 1) counts as zero."""


def rounded(values: Any, digits: int = PLAN_DIGITS) -> Array:
    """Every entry to so many significant digits of its own; zeros, infinities, NaN and what is all but zero stay."""
    x = np.asarray(values, dtype=np.float64)
    size = np.abs(x)
    plain = (size > 1e-280) & np.isfinite(size)  # smaller ones have no unit in float64
    exponent = np.floor(np.log10(np.where(plain, size, 1.0)))
    unit = 10.0 ** (digits - 1 - exponent)
    return np.where(plain, np.round(x * unit) / unit, x)


def on_grid(values: Any, digits: int = VALUE_DIGITS) -> Array:
    """All entries to the same unit, so many digits below the power of ten of the largest: equal values stay equal."""
    x = np.asarray(values, dtype=np.float64)
    top = float(np.abs(x).max(initial=0.0))
    if not 0.0 < top < np.inf:
        return x
    unit = 10.0 ** (digits - 1 - np.floor(np.log10(top)))
    return np.asarray(np.round(x * unit) / unit)


def first_largest(values: Array, axis: int = -1, tie: float = TIE) -> NDArray[np.int64]:
    """The first index along ``axis`` whose entry is the largest, up to ``tie`` of the largest absolute value there."""
    top = values.max(axis=axis, keepdims=True)
    size = np.maximum(np.abs(top), np.abs(values.min(axis=axis, keepdims=True)))
    return np.asarray((values >= top - tie * size).argmax(axis=axis), dtype=np.int64)


def falling_order(values: Array) -> NDArray[np.int64]:
    """Indices from the largest value to the smallest, equal ones (up to rounding error) by index."""
    return np.argsort(-on_grid(values), kind="stable")


class Stream(IntEnum):
    """Who the samples are for: streams never overlap, so buffers are independent."""

    SOLVER = 0
    EVALUATION = 1
    CERTIFICATE = 2
    INTERACTIVE = 3
    PERTURBATION = 4
    DESIGN = 5
    ROLLOUT = 6
    START = 7
    MEASUREMENT = 8
    EXAMINATION = 9
    AVERAGE = 10


def generator(seed: int, stream: int, pair: int, block: int) -> np.random.Generator:
    """The random stream of one block of one pair."""
    sequence = np.random.SeedSequence(seed, spawn_key=(stream, pair, block))
    return np.random.Generator(np.random.Philox(sequence))


def compiled(**options: Any) -> Callable[[F], F]:
    """``numba.njit`` with these options, without the interpreter's lock, and with a cache that may fail."""

    import numba  # which takes a while, and not everybody who rounds needs it

    def decorate(function: F) -> F:
        try:
            made = numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # "no locator available": there is no place for a cache
            return numba.njit(nogil=True, **options)(function)
        cache = getattr(made, "_cache", None)  # none where compiling is turned off
        for name in ("load_overload", "save_overload"):
            if hasattr(cache, name):
                setattr(cache, name, _optional(getattr(cache, name)))
        return made

    return decorate


def _optional(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step of the cache; where it fails, there is nothing in it."""

    def tried(*arguments: Any) -> Any:
        with suppress(Exception):
            return step(*arguments)
        return None

    return tried
