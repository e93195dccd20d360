"""Samples of one pair do not hang together: neighbours in a batch, opposite ends of it, the same row of successive calls.

Of m calls with n rows of one pair, with a seed key each, rows are put together in disjoint pairs

    (2i, 2i+1) of one call,    (i, n−1−i) of one call,    row i of calls 2j and 2j+1

and each set is tested for independence (:func:`~saddleback.simulators.checks.exact_tests.unrelated`). One random number for a whole batch,
antithetic rows and a generator that is seeded anew in every call are found in this way.
"""

from __future__ import annotations

import numpy as np

from saddleback.problem.spaces import Actions, Array, States
from saddleback.simulators.checks.exact_tests import columns, unrelated
from saddleback.simulators.checks.probe import Probe

ROWS = 32
WAYS = {
    "neighbours": "rows of one batch hang together: neighbours are alike, or unlike, too often; draw a random number for "
    "each row, as in rng.random(len(states))",
    "opposites": "rows of one batch hang together: the last mirror the first; draw a random number for each row, as in "
    "rng.random(len(states))",
    "calls": "calls with different seeds hang together: their rows come out alike too often; use the rng that is given, "
    "and make no generator of your own",
}


def check_independence(probe: Probe, pairs: tuple[States, Actions], calls: int, level: float) -> None:
    """``calls`` calls (an even number) of 32 rows for each of the pairs; the tests of a pair in one way at ``level``."""
    for state, action in zip(*pairs, strict=True):
        states, actions = np.repeat(state[None], ROWS, axis=0), np.repeat(action[None], ROWS)
        keys = [probe.key() for _ in range(calls)]
        tables = np.array([columns(*probe.draw(states, actions, key)) for key in keys])  # (m, columns, n)
        for x in tables.transpose(1, 0, 2):
            for way, (one, two) in _ways(x).items():
                p = unrelated(one.ravel(), two.ravel())
                if p <= level / tables.shape[1]:
                    probe.add("independence", f"{WAYS[way]} (p = {p:.1g})", state, action, keys[0])


def _ways(x: Array) -> dict[str, tuple[Array, Array]]:
    """Values ``(m, n)`` in disjoint pairs, in each of the ways."""
    half = x.shape[1] // 2
    return {
        "neighbours": (x[:, 0::2], x[:, 1::2]),
        "opposites": (x[:, :half], x[:, : half - 1 : -1]),
        "calls": (x[0::2], x[1::2]),
    }
