"""A policy at work in a Gymnasium environment: a wrapper whose ``step()`` takes the policy's own action.

    env = play(gymnasium.make("CliffWalking-v1"), saddleback.load_policy("run"))
    observation, info = env.reset(seed=7)                                  # a member of the mixture is drawn for the episode
    while not done:
        observation, reward, terminated, truncated, info = env.step()      # info["action"], info["member"]

The state is read as :func:`~saddleback.simulators.gymnasium_env.from_gymnasium` reads it: by the recipe of the environment, by
``get_state``, or as it is observed; a vector gets the coordinate *done*, which is 0 as long as there is something to decide.
Episodes are those of ``saddleback act``: the same seed gives the same member, and the same action in the same state at the same
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from saddleback.errors import optional_package, require
from saddleback.problem.episodes import Episode
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Array, States
from saddleback.simulators.gymnasium_env import action_list
from saddleback.simulators.gymnasium_recipes import GetState, recipe_for

_MOST_SEED = 1 << 32


def play(
    env: Any,
    policy: Policy | MixturePolicy,
    *,
    actions: int | Sequence[Any] | Array | None = None,
    get_state: GetState | None = None,
    terminates: bool | None = None,
) -> Any:
    """The environment with a policy that plays it, as a ``gymnasium.Wrapper``.

    Parameters
    ----------
    env          a ``gymnasium.Env``, wrapped or not
    policy       a policy or a mixture, such as ``load_policy(run, features=problem.features)``
    actions, get_state, terminates   as they were given to ``from_gymnasium``

    ``reset(seed=…)`` seeds environment and episode; without a seed the episode has one by chance. ``step()`` takes the policy's
    action, ``step(action)`` another of the environment's.
    """
    mixture = policy if isinstance(policy, MixturePolicy) else MixturePolicy((policy,), np.ones(1))
    recipe = recipe_for(env) if get_state is None else None
    get = get_state if recipe is None else recipe.get_state
    ends = (True if recipe is None else recipe.terminates) if terminates is None else terminates
    chosen = action_list(env.action_space, actions)
    rule, remedy = f"must have the policy's {mixture.num_actions} actions", "give actions= as to from_gymnasium"
    require(len(chosen) == mixture.num_actions, "env", rule, len(chosen), remedy)
    return _player()(env, mixture, chosen, get, ends)


@cache
def _player() -> Any:
    """The class, made when Gymnasium is there."""
    gymnasium = optional_package("gymnasium", "gymnasium", "this wrapper")

    class PolicyPlayer(gymnasium.Wrapper):  # type: ignore[misc,name-defined]
        """An environment that a policy plays."""

        def __init__(self, env: Any, mixture: MixturePolicy, actions: list[Any], get: GetState | None, ends: bool):
            super().__init__(env)
            self.mixture, self.actions = mixture, actions
            self._get, self._ends = get, ends
            self.episode, self.steps = Episode.of(mixture, 0), 0
            self._observation: Any = None

        def reset(
            self, *, seed: int | None = None, options: dict[str, Any] | None = None
        ) -> tuple[Any, dict[str, Any]]:
            """Begin an episode, and draw the member that plays it."""
            self._observation, info = self.env.reset(seed=seed, options=options)
            chance = int(np.random.default_rng().integers(_MOST_SEED)) if seed is None else seed
            self.episode, self.steps = Episode.of(self.mixture, chance), 0
            return self._observation, {**info, "member": self.episode.member, "episode_seed": self.episode.seed}

        def state(self) -> States:
            """The state as the policy knows it, ``(1,)`` or ``(1, k)``."""
            found = np.asarray(self._observation if self._get is None else self._get(self.env))
            if found.ndim == 0 and found.dtype.kind in "iu":
                return found.astype(np.int64)[None]
            point = np.asarray(found, dtype=np.float64).ravel()
            return np.append(point, 0.0)[None] if self._ends else point[None]

        def step(self, action: Any = None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
            """The policy's action, or the one that is given."""
            rule, remedy = "must be reset before the first step", "call reset() first"
            require(self._observation is not None, "env", rule, "a step", remedy)
            number = None
            if action is None:
                number = int(self.episode.act(self.state(), self.steps)[0])
                action = self.actions[number]
            self._observation, reward, terminated, truncated, info = self.env.step(action)
            self.steps += 1
            return (
                self._observation,
                reward,
                terminated,
                truncated,
                {**info, "action": number, "member": self.episode.member},
            )

    return PolicyPlayer
