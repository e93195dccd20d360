"""A wrapper that plays a policy: the actions of its episodes, and the states as the adapter reads them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddleback import GreedyPolicy, InputError, MixturePolicy, TabularPolicy
from saddleback.features import make
from saddleback.problem.episodes import Episode
from saddleback.simulators import from_gymnasium, play

gymnasium = pytest.importorskip("gymnasium")


def mixture(num_states: int, num_actions: int) -> MixturePolicy:
    rng = np.random.default_rng(0)
    members = [TabularPolicy.stochastic(rng.dirichlet(np.ones(num_actions), num_states)) for _ in range(3)]
    return MixturePolicy(tuple(members), np.array([0.2, 0.3, 0.5]))


def played(env: Any, seed: int, steps: int) -> list[tuple[Any, int, int]]:
    _, info = env.reset(seed=seed)
    found, member = [], info["member"]
    for _ in range(steps):
        state = env.state()
        _, _, terminated, truncated, info = env.step()
        found.append((state, info["action"], member))
        assert info["member"] == member
        if terminated or truncated:
            break
    return found


def test_numbered_states_are_played_as_act_plays_them() -> None:
    made = gymnasium.make("FrozenLake-v1", is_slippery=True)
    policy = mixture(17, 4)
    env = play(made, policy)
    for seed in (0, 3, 8):
        episode, rows = Episode.of(policy, seed), played(env, seed, 20)
        assert rows and {member for *_, member in rows} == {episode.member}
        for step, (state, action, _) in enumerate(rows):
            assert state.shape == (1,) and action == episode.act(state, step)[0]
    assert {played(env, seed, 1)[0][2] for seed in range(60)} == {0, 1, 2}
    assert isinstance(env, gymnasium.Wrapper)


def test_points_have_the_coordinates_of_the_adapter() -> None:
    """With *done*, and in full precision, not as they are observed."""
    space: Any = from_gymnasium("MountainCar-v0", signals=()).states
    features = make("fourier", space, 3, order=1)
    policy = GreedyPolicy(features, np.random.default_rng(1).standard_normal(features.dim))
    env = play(gymnasium.make("MountainCar-v0"), policy)
    env.reset(seed=1)
    for _ in range(5):
        state = env.state()
        assert state.shape == (1, 3) and state[0, 2] == 0.0 and not space.outside(state)[0]
        assert env.step()[4]["action"] == policy.actions(state)[0]
    assert env.step(2)[4]["action"] is None, "an action of the caller's"


def test_listed_actions_and_no_endings() -> None:
    space: Any = from_gymnasium("Pendulum-v1", signals=(), actions=5).states
    features = make("polynomial", space, 5, degree=1)
    policy = GreedyPolicy(features, np.zeros(features.dim))
    env = play(gymnasium.make("Pendulum-v1"), policy, actions=5)
    env.reset(seed=0)
    assert env.state().shape == (1, 2) and env.step()[4]["action"] == 0
    with pytest.raises(InputError, match="must have the policy's 5 actions"):
        play(gymnasium.make("Pendulum-v1"), policy, actions=3)


def test_a_step_needs_a_reset() -> None:
    with pytest.raises(InputError, match="must be reset before the first step"):
        play(gymnasium.make("FrozenLake-v1"), mixture(17, 4)).step()
