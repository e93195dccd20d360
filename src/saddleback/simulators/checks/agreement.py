"""A batch of n is n calls of one, and samples of one pair do not hang together: tests on the same draws, exact ones.

**Agreement.** For each of a few pairs the next states of single calls are compared with its rows in batches that hold all
the pairs mixed, by a two-sample test: a simulator may use its random numbers in another order, but the law must be the same.

**Independence.** Of m calls with n rows of one pair, with a seed key each, rows are put together in disjoint pairs

    (2i, 2i+1) of one call,    (i, n−1−i) of one call,    row i of calls 2j and 2j+1

and each set is tested for independence. One random number for a whole batch, antithetic rows and a generator that is seeded
anew in every call are found in this way.
The tests are exact (:mod:`saddleback.simulators.independence`).
"""

from __future__ import annotations

import numpy as np

from saddleback.problem.spaces import Actions, Array, States
from saddleback.simulators.checks.probe import Probe
from saddleback.simulators.independence import columns, one_law, unrelated

ROWS = 32
WAYS = {
    "neighbours": "rows of one batch hang together: neighbours are alike, or unlike, too often; draw a random number for "
    "each row, as in rng.random(len(states))",
    "opposites": "rows of one batch hang together: the last mirror the first; draw a random number for each row, as in "
    "rng.random(len(states))",
    "calls": "calls with different seeds hang together: their rows come out alike too often; use the rng that is given, "
    "and make no generator of your own",
}


def check_agreement(probe: Probe, pairs: tuple[States, Actions], number: int, level: float) -> None:
    """``number`` single calls and as many rows of mixed batches for each of the pairs; the tests of a pair at ``level``."""
    states, actions = pairs
    keys, alone = [], []
    for i in range(len(actions)):
        keys.append([probe.key() for _ in range(number)])
        draws = probe.draw_many([(states[i : i + 1], actions[i : i + 1], key) for key in keys[i]])
        alone.append(np.concatenate([columns(*d) for d in draws], axis=1))
    mixed = _mixed(probe, states, actions, number)
    for i in range(len(actions)):
        for one, two in zip(alone[i], mixed[i], strict=True):
            p = one_law(one, two)
            if p <= level / len(alone[i]):
                text = (
                    "the simulator answers otherwise in a batch of many pairs than alone "
                    f"({_summary(one)} alone, {_summary(two)} in a batch, p = {p:.1g}); row i of the answer must depend "
                    "on states[i] and actions[i] only, with a random number of its own"
                )
                probe.add("batches", text, states[i], actions[i], keys[i][0])


def _mixed(probe: Probe, states: States, actions: Actions, number: int) -> list[Array]:
    """For each pair its values ``(columns, number)`` from batches that hold every pair twice.

    The order is drawn once: where one row decides for others, it is always the same row, which shows best.
    """
    k = len(actions)
    order = probe.rng(6).permutation(np.repeat(np.arange(k), 2))
    draws = probe.draw_many([(states[order], actions[order], probe.key()) for _ in range((number + 1) // 2)])
    table = np.array([columns(*d) for d in draws])  # (batches, columns, rows)
    return [np.concatenate(list(table[:, :, order == i]), axis=1) for i in range(k)]


def _summary(values: Array) -> str:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return f"always {distinct[0]:g}"
    return f"mean {values.mean():.3g}, most often {distinct[counts.argmax()]:g}"


def check_independence(probe: Probe, pairs: tuple[States, Actions], calls: int, level: float) -> None:
    """``calls`` calls (an even number) of 32 rows for each of the pairs; the tests of a pair in one way at ``level``."""
    for state, action in zip(*pairs, strict=True):
        states, actions = np.repeat(state[None], ROWS, axis=0), np.repeat(action[None], ROWS)
        keys = [probe.key() for _ in range(calls)]
        draws = probe.draw_many([(states, actions, key) for key in keys])
        tables = np.array([columns(*draw) for draw in draws])  # (m, columns, n)
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
