"""A sweep: many pairs, each asked once, and the states they lead to; :mod:`~saddleback.simulators.checks.probe` looks at every answer."""

from __future__ import annotations

import numpy as np

from saddleback.simulators.checks.probe import Probe

_BATCH = 256


def check_conformance(probe: Probe, number: int) -> bool:
    """Whether the simulator answers about ``number`` pairs as declared; half of them reached from the start by chance."""
    with probe.noting("conformance"):
        states, actions = probe.pairs(max(1, number // 2), 0)
        for first in range(0, len(states), _BATCH):
            rows = slice(first, first + _BATCH)
            probe.draw(states[rows], actions[rows], probe.key())
        probe.draw(states[:1], actions[:1], probe.key())
        # From the start on, wherever chance leads: a pool may miss what is reached.
        rng, walkers = probe.rng(1), min(32, max(1, number // 32))
        starts = np.asarray(probe.problem.start.states)
        at = starts[rng.integers(0, len(starts), walkers)]
        for _ in range(max(1, number // 2 // walkers)):
            at = probe.draw(at, rng.integers(0, probe.problem.num_actions, walkers), probe.key()).next_states
    return not any(f.check == "conformance" for f in probe.report.findings)
