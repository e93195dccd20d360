"""Gymnasium's classic control with decisions that last: an action is held for several steps of the environment.

Short steps move the state by less than the features can tell apart; a decision held for a while does not. An environment that has
ended stays where it is, so that no further coordinate is needed to say so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from saddleback.features import Frame, MultilinearInterpolation, PerAction
from saddleback.instances.zoo._grid import with_all_actions
from saddleback.problem.spaces import Actions, BoxStates, States
from saddleback.simulators.gymnasium_env import Maker


class Held:
    """An environment whose ``step`` repeats its action ``hold`` times, or until ``over`` its state."""

    def __init__(self, env: Any, hold: int, over: Callable[[Any], bool]):
        self.env, self.hold, self.over = env, hold, over
        self.action_space = env.action_space

    @property
    def unwrapped(self) -> Any:
        """The environment itself, which has the state."""
        return self.env.unwrapped

    def reset(self, **how: Any) -> Any:
        """As the environment does."""
        return self.env.reset(**how)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Observation and reward of the last step taken; an ending is a place to stay, not an ending."""
        observation, reward = None, 0.0
        for _ in range(self.hold):
            if self.over(self.unwrapped.state):
                break
            observation, reward, *_ = self.env.step(action)
        return observation, reward, False, False, {}


@dataclass(frozen=True)
class HeldMaker:
    """Makes a :class:`Held` environment, in any process."""

    name: str
    hold: int
    over: Callable[[Any], bool]

    def __call__(self) -> Held:
        """A new one."""
        return Held(Maker(self.name, {})().unwrapped, self.hold, self.over)


def lattice(box: BoxStates, num_knots: Sequence[int], num_actions: int) -> tuple[PerAction, tuple[States, Actions]]:
    """Interpolation on evenly spaced knots of a box, so many along each axis, and the knots with all actions as candidates."""
    psi = MultilinearInterpolation(Frame.of(box), num_knots)
    return PerAction(psi, num_actions, direct=True), with_all_actions(psi.points(), num_actions)
