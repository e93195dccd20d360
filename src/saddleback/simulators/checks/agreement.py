"""A batch of n is n calls of one.

For each of a few pairs the next states of single calls are compared with its rows in batches that hold all the pairs mixed, by an
exact two-sample test: a simulator may use its random numbers in another order, but the law must be the same.
"""

from __future__ import annotations

import numpy as np

from saddleback.problem.spaces import Actions, Array, States
from saddleback.simulators.checks.exact_tests import columns, one_law
from saddleback.simulators.checks.probe import Probe


def check_agreement(probe: Probe, pairs: tuple[States, Actions], number: int, level: float) -> None:
    """``number`` single calls and as many rows of mixed batches for each of the pairs; the tests of a pair at ``level``."""
    states, actions = pairs
    keys, alone = [], []
    for i in range(len(actions)):
        keys.append([probe.key() for _ in range(number)])
        draws = [probe.draw(states[i : i + 1], actions[i : i + 1], key) for key in keys[i]]
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
    draws = [probe.draw(states[order], actions[order], probe.key()) for _ in range((number + 1) // 2)]
    table = np.array([columns(*d) for d in draws])  # (batches, columns, rows)
    return [np.concatenate(list(table[:, :, order == i]), axis=1) for i in range(k)]


def _summary(values: Array) -> str:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        return f"always {distinct[0]:g}"
    return f"mean {values.mean():.3g}, most often {distinct[counts.argmax()]:g}"
