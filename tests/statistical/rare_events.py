"""Two states, two actions, and a constraint on events that happen once in a thousand steps and are only observed."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from saddleback import solve
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import FiniteStates
from saddleback.runs.settings import Method
from saddleback.simulators.generative_model import GenerativeModel

CHANCE, REACHABLE = 1e-3, 1e-2
"""Of an event at any step, and of what is reachable: H = 10, whatever is played."""


def rare_events(threshold: float) -> tuple[CMDP, GenerativeModel]:
    """Problem and simulator; ``threshold`` is on the discounted number of events."""
    problem = CMDP(
        gamma=0.9,
        start=Start.over_all([0.5, 0.5]),
        num_actions=2,
        states=FiniteStates(2),
        reward=np.array([[0.0, 1.0], [1.0, 0.0]]),
        constraints=[Constraint("events", None, ">=", threshold, range=(0, 1))],
    )

    def sample(states: NDArray[np.int64], actions: NDArray[np.int64], rng: np.random.Generator) -> object:
        following = np.where(rng.random(len(states)) < 0.5, states, actions)
        seen = np.column_stack([np.zeros(len(states)), rng.random(len(states)) < CHANCE])
        return following, seen.astype(float)

    return problem, GenerativeModel(sample, problem.states, 2)


def endings(threshold: float, calls: int, runs: int) -> Counter[str]:
    """How ``runs`` solves of ``calls`` simulator calls, and as many for the proof, end; seeds 0, 1, 2 …"""
    problem, simulator = rare_events(threshold)
    method = Method(certificate=calls)
    return Counter(
        solve(problem, simulator, samples=2 * calls, seed=seed, method=method).status.value for seed in range(runs)
    )
