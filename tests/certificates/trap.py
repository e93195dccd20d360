"""A problem with a narrow trap at its start: one state of many keeps to itself, and the features cannot see it."""

from __future__ import annotations

import numpy as np

from saddleback.simulators.table import Table


def trap_table(stay: float = 0.95, num_states: int = 300, gamma: float = 0.9) -> Table:
    """Every pair leads anywhere, but for the start, which is worth 0.95 a step and mostly leads to itself.

    All rewards are linear in the features (an intercept and the worth of the state for each of two actions), and so are all
    transitions but those of the start. With ``stay`` = 0 there is no trap.
    """
    worth = np.linspace(0.0, 1.0, num_states)
    start = int(0.95 * (num_states - 1))
    rows = np.full((num_states, 2, num_states), 1 / num_states)
    rows[start] = (1 - stay) / num_states
    rows[start, :, start] += stay
    phi = np.zeros((num_states, 2, 4))
    for a in range(2):
        phi[:, a, 2 * a], phi[:, a, 2 * a + 1] = 1.0, worth
    reward = np.stack([0.6 * worth, worth], axis=1)
    saved = np.tile([1.0, 0.0], (num_states, 1))
    rho = np.eye(num_states)[start]
    limits = ((0.0, 1.0),)
    return Table.of(
        rows,
        reward,
        saved[None],
        np.array([0.2 / (1 - gamma)]),
        gamma=gamma,
        rho=rho,
        phi=phi,
        reward_range=(0.0, 1.0),
        ranges=limits,
    )
