"""Observed signals kept with the next states that they came with: for whoever needs both as one variable.

A buffer keeps mean and variance of what the simulator shows, and forgets which next state it was shown with. A bound on
□ + γV(s') needs both. So these samples are kept as they were drawn, 8(1 + k)n bytes for k signals, and weighed once the weights are known:

    O = Σ_j σ_j u_j,        of each pair the distinct (s', O) with their counts.

**Few values.** Where a next state of a pair came with more than 512 distinct values, they are put on 256 cells of equal width between their
limits: a value a + θh in [a, a + h] becomes a with the weight 1 − θ and a + h with θ, and of all values of one cell together the weight of
a + h is rounded up to a whole number. Every concave falling function of O has a sum that is no larger after than before: each spread
lowers it by concavity, and the rounding since it falls. Means are kept but for the rounding, h a cell at the most, and never lowered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from saddleback.problem.spaces import Array, States
from saddleback.sampling.buffer import JointSamples

CELLS = 256
"""Of the values that one next state of a pair came with, where there are more than twice as many."""


class Weighed(NamedTuple):
    """Entries ``first[x]`` to ``first[x+1]`` are of pair x: next state, O and how often these came together."""

    first: NDArray[np.int64]
    next_states: NDArray[np.int64]
    values: Array
    counts: NDArray[np.int64]


def weighed(samples: JointSamples, sigma: Array) -> Weighed:
    """Distinct (s', O) of each pair, in order, for the weights σ ``(1+m,)``."""
    weights, found = sigma[samples.columns].tolist(), []
    for states, u in zip(samples.next_states, samples.utilities, strict=True):
        mixed = np.zeros(len(states))  # O
        for j, weight in enumerate(weights):  # no product of matrices: its rounding is the processor's
            mixed += weight * u[:, j]
        found.append(_distinct(states, mixed))
    first = np.concatenate([[0], np.cumsum([len(counts) for _, _, counts in found])]).astype(np.int64)
    return Weighed(first, *(np.concatenate(parts) for parts in zip(*found, strict=True)))


def joint_bytes(samples: float, entries: float, num_signals: int) -> tuple[float, float]:
    """What these samples keep, and how many distinct (s', O) there can be with so many ``entries`` of P̂."""
    return 8.0 * (1 + num_signals) * samples, min(samples, 2 * CELLS * entries)


def _distinct(states: States, values: Array) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """One pair's next states, values and counts, sorted by both."""
    order = np.lexsort((values, states))
    s, v = states[order].astype(np.int64), values[order]
    new = np.flatnonzero(np.concatenate([[True], (s[1:] != s[:-1]) | (v[1:] != v[:-1])]))
    s, v, counts = s[new], v[new], np.diff(np.append(new, len(s)))
    if len(s) <= 2 * CELLS:
        return s, v, counts
    edges = np.concatenate([[0], np.flatnonzero(s[1:] != s[:-1]) + 1, [len(s)]])
    parts = []
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        at, many = (v[low:high], counts[low:high]), high - low > 2 * CELLS
        at = _spread(*at) if many else at
        parts.append((np.full(len(at[0]), s[low]), *at))
    s, v, counts = (np.concatenate(x) for x in zip(*parts, strict=True))
    return s, v, counts


def _spread(values: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """The same number of samples on the cells' edges; see the module's first lines."""
    grid = np.linspace(values[0], values[-1], CELLS + 1)
    cell = np.clip(np.searchsorted(grid, values, side="right") - 1, 0, CELLS - 1)
    theta = np.clip((values - grid[cell]) / np.diff(grid)[cell], 0.0, 1.0)
    mass = np.bincount(cell, counts, CELLS)
    raised = np.minimum(mass, np.ceil(np.bincount(cell, counts * theta, CELLS) * (1 + 1e-12)))
    on_edges = np.zeros(CELLS + 1)
    on_edges[:-1] += mass - raised
    on_edges[1:] += raised
    some = on_edges > 0
    return grid[some], on_edges[some].astype(np.int64)
