"""Does a simulator repeat itself? Two answers to the same question with the same seed, row by row."""

from __future__ import annotations

import numpy as np

from saddleback.simulators.generative_model import Draw


def first_difference(one: Draw, two: Draw) -> int | None:
    """The first row in which two answers differ, in the next state or in a signal; None where there is none."""
    differs = (one.next_states != two.next_states).reshape(len(one.next_states), -1).any(axis=1)
    if one.signals is not None and two.signals is not None:
        differs = differs | (one.signals != two.signals).any(axis=1)
    return int(np.argmax(differs)) if differs.any() else None
