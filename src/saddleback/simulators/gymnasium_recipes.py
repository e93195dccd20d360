"""How to put Gymnasium's own environments into a state and read it back: all of the state, in full precision.

Observations will not do. MountainCar and CartPole show float32 of a float64 state, Pendulum and Acrobot show cosines and
sines, and all of them remember more than they show:

    environment              state                                  coordinates           besides
    CartPole                 x, ẋ, θ, θ̇                             any                   its memory of having ended is cleared
    MountainCar              position, velocity                     as observed
    MountainCarContinuous    position, velocity                     as observed           float32 once under way, and so here
    Pendulum                 θ, θ̇                                   [−π, π] × [−8, 8]     θ is wrapped; never ends
    Acrobot                  θ₁, θ₂, θ̇₁, θ̇₂                         angles in [−π, π]
    FrozenLake, CliffWalking, Taxi    number of the state           Discrete              a fickle passenger is refused
    MuJoCo                   qpos, qvel                             any                   solver's warm start is cleared

A recipe is looked up by the class of ``env.unwrapped``. Bounds of float32 spaces are taken as float32: 0.07 as float32 lies
above 0.07, and MountainCarContinuous does reach it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from saddleback.errors import optional_package, require
from saddleback.problem.spaces import BoxStates, FiniteStates, StateSpace

SetState = Callable[[Any, Any], object]
GetState = Callable[[Any], Any]


class Recipe(NamedTuple):
    """Ways in and out of an environment, its states, and whether episodes may end."""

    set_state: SetState
    get_state: GetState
    states: StateSpace
    terminates: bool = True


def recipe_for(env: Any) -> Recipe | None:
    """The recipe for an environment, None if there is none."""
    bare = env.unwrapped
    kinds = [k.__name__ for k in type(bare).__mro__ if k.__module__.startswith("gymnasium.envs.")]
    for kind in kinds:
        if kind in _RECIPES:
            return _RECIPES[kind](bare)
    return None


# ---- classic control ---------------------------------------------------------------------------------------------------


def _set_plain(env: Any, state: Any) -> None:
    env.unwrapped.state = state


def _set_floats(env: Any, state: Any) -> None:
    env.unwrapped.state = state.tolist()  # Python's floats: the environment reckons with math, which is quicker so


def _set_float32(env: Any, state: Any) -> None:
    env.unwrapped.state = state.astype(np.float32)


def _set_cart_pole(env: Any, state: Any) -> None:
    bare = env.unwrapped
    bare.state, bare.steps_beyond_terminated = state, None


def _get_plain(env: Any) -> Any:
    return env.unwrapped.state


def _get_pendulum(env: Any) -> Any:
    angle, speed = env.unwrapped.state
    return math.remainder(angle, 2 * math.pi), speed


def _cart_pole(bare: Any) -> Recipe:
    return Recipe(_set_cart_pole, _get_plain, BoxStates(np.full(4, -np.inf), np.full(4, np.inf)))


def _mountain_car(bare: Any) -> Recipe:
    box = bare.observation_space
    return Recipe(_set_floats, _get_plain, BoxStates(box.low.astype(np.float64), box.high.astype(np.float64)))


def _continuous_mountain_car(bare: Any) -> Recipe:
    return _mountain_car(bare)._replace(set_state=_set_float32)


def _pendulum(bare: Any) -> Recipe:
    high = np.array([math.pi, bare.max_speed])
    return Recipe(_set_plain, _get_pendulum, BoxStates(-high, high), terminates=False)


def _acrobot(bare: Any) -> Recipe:
    high = np.array([math.pi, math.pi, bare.MAX_VEL_1, bare.MAX_VEL_2])
    return Recipe(_set_plain, _get_plain, BoxStates(-high, high))


# ---- toy text ----------------------------------------------------------------------------------------------------------


def _set_number(env: Any, state: Any) -> None:
    env.unwrapped.s = state


def _get_number(env: Any) -> Any:
    return env.unwrapped.s


def _toy_text(bare: Any) -> Recipe:
    rule, remedy = "must be off: it is a memory that the state does not hold", "make the environment without it"
    require(not getattr(bare, "fickle_passenger", False), "fickle_passenger", rule, True, remedy)
    return Recipe(_set_number, _get_number, FiniteStates(int(bare.observation_space.n)))


# ---- MuJoCo ------------------------------------------------------------------------------------------------------------


def _set_mujoco(env: Any, state: Any) -> None:
    bare = env.unwrapped
    # Clears time, controls and the solver's warm start, which would make a step depend on the one before.
    optional_package("mujoco", "mujoco", "this adapter").mj_resetData(bare.model, bare.data)
    bare.set_state(state[: bare.model.nq], state[bare.model.nq :])


def _get_mujoco(env: Any) -> Any:
    return env.unwrapped.state_vector()


def _mujoco(bare: Any) -> Recipe:
    k = bare.model.nq + bare.model.nv
    return Recipe(_set_mujoco, _get_mujoco, BoxStates(np.full(k, -np.inf), np.full(k, np.inf)))


_RECIPES: dict[str, Callable[[Any], Recipe]] = {
    "CartPoleEnv": _cart_pole,
    "MountainCarEnv": _mountain_car,
    "Continuous_MountainCarEnv": _continuous_mountain_car,
    "PendulumEnv": _pendulum,
    "AcrobotEnv": _acrobot,
    "FrozenLakeEnv": _toy_text,
    "CliffWalkingEnv": _toy_text,
    "TaxiEnv": _toy_text,
    "MujocoEnv": _mujoco,
}
