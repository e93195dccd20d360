"""Rewards, constraints and features of one state and one action, called for each of many (``kind = "step"``).

A state is handed over as a Python int (finite spaces) or as a float64 array ``(k,)`` of its own; an action as an int.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback.errors import InputError
from saddleback.problem.spaces import Actions, Array, States


@dataclass(frozen=True)
class LoopedMap:
    """``function(state, action)``, a number or a vector, as a function of arrays ``(n,)`` or ``(n, d)``."""

    function: Callable[..., Any]

    def __call__(self, states: States, actions: Actions) -> Array:
        """One call a pair."""
        given = [self.function(s, a) for s, a in zip(_ones(states), actions.tolist(), strict=True)]
        values = _stacked("values", given)
        return values.astype(np.float64) if values.dtype.kind in "iub" else values


def _ones(states: States) -> list[Any]:
    return states.tolist() if states.ndim == 1 else list(states)


def _stacked(name: str, values: list[Any]) -> Any:
    try:
        return np.array(values)
    except ValueError:
        lengths = sorted({np.size(v) for v in values})
        remedy = "return the same number of them at every pair"
        raise InputError(name, "must have one shape at all pairs", f"lengths {lengths}", remedy) from None
