"""A policy at work: an episode, whose member of a mixture is drawn once and plays to its end.

    k ~ w,   a_t ~ π_k(· | s_t)      with the random numbers of (seed, 0) for k and of (seed, 1 + t) for a_t

so that an episode can be repeated, or taken up at any step, on another machine, from its seed and the number of the step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from saddleback.errors import require
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Actions, States

_EPISODES = 1000  # a stream apart from those of samples


class Episode(NamedTuple):
    """A member of a mixture, drawn for one whole episode."""

    seed: int
    member: int
    weight: float
    policy: Policy

    @classmethod
    def of(cls, mixture: MixturePolicy, seed: int) -> Episode:
        """The same ``seed`` gives the same member, and the same actions at the same steps."""
        require(seed >= 0, "episode_seed", "must not be negative", seed, "use 0, 1, 2 …")
        k = mixture.draw_member(_generator(seed, 0))
        return cls(seed, k, float(mixture.weights[k]), mixture.members[k])

    def act(self, states: States, step: int = 0) -> Actions:
        """One action per state, at step number ``step`` of the episode."""
        require(step >= 0, "step", "must not be negative", step, "steps are 0, 1, 2 …")
        return self.policy.act(states, _generator(self.seed, 1 + step))


def _generator(seed: int, number: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(_EPISODES, number))))
