"""§2, the start distribution ρ: its support with weights, or a sampler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from saddleback.errors import InputError, require
from saddleback.problem.spaces import Array, States

StartSampler = Callable[[int, np.random.Generator], States]
"""``sampler(number, rng)``: so many independent start states."""


@dataclass(frozen=True)
class Start:
    """The start distribution ρ by its support: ``states`` with ``weights`` that sum to one.

    With a ``sampler``, :meth:`sampled`, the states are a sample of ρ that solvers look at; certificates draw another.
    """

    states: States
    weights: Array
    sampler: StartSampler | None = None

    def __post_init__(self) -> None:
        states, weights = np.asarray(self.states), np.asarray(self.weights)
        if states.ndim != 1 or states.dtype.kind not in "iu" or weights.shape != states.shape:
            return  # points, or what the problem will refuse
        distinct, where = np.unique(states, return_inverse=True)
        if len(distinct) < len(states):  # a state that is given twice has the sum of its weights
            object.__setattr__(self, "states", distinct)
            object.__setattr__(self, "weights", np.bincount(where, weights.astype(np.float64)))

    @classmethod
    def sampled(cls, sampler: StartSampler, number: int = 1024, seed: int = 0) -> Start:
        """From ``sampler(number, rng) -> states``."""
        require(number >= 1, "number", "must be at least 1", number, "1024 starts are usually enough")
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        return cls.equally(np.array(sampler(number, rng)), sampler)

    @classmethod
    def equally(cls, states: States, sampler: StartSampler | None = None) -> Start:
        """Every state with the same weight; one that is given twice with twice as much."""
        return cls(states, np.full(len(states), 1.0 / len(states)), sampler)

    @classmethod
    def over_all(cls, rho: ArrayLike) -> Start:
        """From the vector ρ over a finite state space; states of probability zero are dropped."""
        rho = as_float64("rho", rho)
        bad = np.flatnonzero(~np.isfinite(rho) | (rho < 0))
        if bad.size:
            raise InputError(
                f"rho[{bad[0]}]", "must be finite and non-negative", rho[bad[0]], "give a probability vector"
            )
        require(
            abs(float(rho.sum()) - 1) <= 1e-9,
            "rho",
            "must sum to 1",
            float(rho.sum()),
            "divide it by its sum if the weights are right",
        )
        support = np.flatnonzero(rho)
        return cls(support.astype(np.int64), rho[support] / rho.sum())


def refuse_float32(name: str, x: NDArray[Any]) -> None:
    """Whole numbers, truth values and float64 pass."""
    require(
        x.dtype.kind in "iub" or x.dtype == np.float64,
        name,
        "must be float64 (sums over thousands of iterations lose float32's digits)",
        str(x.dtype),
        "convert it with .astype(numpy.float64) where it is made",
    )


def as_float64(name: str, given: Any) -> Array:
    """An array of float64, unless digits were lost before."""
    x = np.asarray(given)
    refuse_float32(name, x)
    return x.astype(np.float64)
