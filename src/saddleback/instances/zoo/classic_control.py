"""Gymnasium's classic control with a cost each, and with decisions that last: an action is held for several steps of the
environment. Short steps move the state by less than the features can tell apart; a decision held for a while does not. An
environment that has ended stays where it is, so that no further coordinate is needed to say so. The features interpolate on a
grid of knots (:mod:`saddleback.features.multilinear`).

**Mountain car.** A car in a valley, too weak to climb straight to the flag, gains height by swinging. The state is position and
velocity, the actions are to push left, to coast and to push right. Reward: −1 for each decision until the flag (position 0.5) is
reached, and nothing from then on. Constraint: fuel, 1 for each decision to push, a discounted total "≤" a budget. A free swing costs
nothing, so a patient driver gets there with less. The car starts at rest at a position that is uniform around ``start``, as in
Gymnasium's own reset. Interpolation blurs the state at every decision: the longer decisions last, the fewer blurs there are on the
way to the flag. With 20 steps a decision and γ = 0.9, H is the 200 steps of Gymnasium's own limit. Source: A. Moore, Efficient
memory-based learning for robot control, PhD thesis, University of Cambridge, 1990; the fuel is added here.

**Pendulum.** To be swung up with little energy. The state is the angle from upright, in [−π, π], and the angular velocity, in
[−8, 8]. The action is a torque of −2, 0 or 2 N m, held for ``hold`` steps of 0.05 s. Reward: minus Gymnasium's cost θ² + 0.1 θ̇² of the
angle and the velocity in which the decision is made (its small term in the torque is left to the constraint). Constraint: torque
squared, averaged over discounted time, "≤" a budget, added here. The torque is too small to lift the pendulum straight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from saddleback.errors import number
from saddleback.features import Frame, MultilinearInterpolation, PerAction
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Amount, Discount, Knots, Range, with_all_actions
from saddleback.problem.cmdp import CMDP, Constraint, SignalFunction, Start
from saddleback.problem.spaces import Actions, Array, BoxStates, States
from saddleback.simulators.gymnasium_env import Maker, from_gymnasium

FLAG, COAST = 0.5, 1
TORQUES = np.array([-2.0, 0.0, 2.0])
FASTEST = 8.0
Hold = Annotated[int, Range(1, 100)]


def mountain_car(
    *,
    budget: Amount = 3.5,
    hold: Hold = 20,
    start: Annotated[float, Range(-1.2, 0.4)] = -0.5,
    spread: float = 0.1,
    gamma: Discount = 0.9,
    knots: Knots = 9,
    speeds: Knots = 7,
) -> Instance:
    """Drive a weak car out of a valley with a limit on fuel (needs gymnasium).

    budget: decisions to push, discounted total
    hold: steps of the environment a decision lasts
    start: position where the car stands at first, on average
    spread: the first position is uniform within plus and minus this; 0 for one position
    gamma: discount factor a decision
    knots: positions of the interpolation
    speeds: velocities of the interpolation; the dimension is 3 * knots * speeds
    """
    number("spread", spread, 0.0, min(start + 1.2, 0.6 - start))

    def reward(states: States, actions: Actions) -> Array:
        return np.where(_there(states), 0.0, -1.0)

    def fuel(states: States, actions: Actions) -> Array:
        return np.where(_there(states) | (actions == COAST), 0.0, 1.0)

    still = Start(np.array([[start, 0.0]]), np.array([1.0]))
    begin = Start.sampled(Standing(start, spread)) if spread else still
    limit = Constraint("fuel", fuel, "<=", budget, (0.0, 1.0))
    summary = f"drive out of a valley soon; fuel <= {budget:g} pushes, discounted"
    maker = HeldMaker("MountainCar-v0", hold, _at_flag)
    return _instance("mountain-car", maker, None, gamma, begin, reward, (-1.0, 0.0), limit, (knots, speeds), summary)


def pendulum(
    *,
    budget: Amount = 2.0,
    hold: Hold = 3,
    start: Annotated[float, Range(-np.pi, np.pi)] = 3.141592653589793,
    gamma: Discount = 0.95,
    knots: Knots = 9,
) -> Instance:
    """Swing a pendulum up and hold it with a limit on energy (needs gymnasium).

    budget: torque squared, discounted average; the threshold of the constraint is budget * H
    hold: steps of 0.05 s a decision lasts
    start: angle from upright at first, at rest
    gamma: discount factor a decision
    knots: of the interpolation along each axis; the dimension is 3 * knots^2
    """

    def reward(states: States, actions: Actions) -> Array:
        return np.asarray(-(states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2))

    def energy(states: States, actions: Actions) -> Array:
        return np.asarray(TORQUES[actions] ** 2)

    torques = [np.array([u], dtype=np.float32) for u in TORQUES]
    begin, span = Start(np.array([[start, 0.0]]), np.array([1.0])), (-(np.pi**2 + 0.1 * FASTEST**2), 0.0)
    limit = Constraint("energy", energy, "<=", budget / (1 - gamma), (0.0, 4.0))
    summary = f"swing a pendulum up and hold it; torque squared <= {budget:g} (N m)^2 on average"
    maker = HeldMaker("Pendulum-v1", hold, _never)
    return _instance("pendulum", maker, torques, gamma, begin, reward, span, limit, (knots, knots), summary)


def _instance(
    name: str,
    maker: HeldMaker,
    actions: list[Any] | None,
    gamma: float,
    start: Start,
    reward: SignalFunction,
    reward_range: tuple[float, float],
    limit: Constraint,
    num_knots: Sequence[int],
    summary: str,
) -> Instance:
    """The problem of an environment with three actions: interpolation on so many knots along each axis, which are the candidates."""
    simulator = from_gymnasium(maker, signals=(), actions=actions, terminates=False)
    box = simulator.states
    assert isinstance(box, BoxStates)
    psi = MultilinearInterpolation(Frame.of(box), num_knots)
    problem = CMDP(
        gamma=gamma,
        start=start,
        num_actions=3,
        states=box,
        reward=reward,
        constraints=[limit],
        features=PerAction(psi, 3, direct=True),
        reward_range=reward_range,
        candidates=with_all_actions(psi.points(), 3),
        name=name,
    )
    return Instance(name, problem, simulator, None, summary, {})


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


@dataclass(frozen=True)
class Standing:
    """Start states at rest, positions uniform around ``middle``."""

    middle: float
    spread: float

    def __call__(self, number: int, rng: np.random.Generator) -> States:
        """So many of them."""
        positions = rng.uniform(self.middle - self.spread, self.middle + self.spread, size=number)
        return np.column_stack([positions, np.zeros(number)])


def _there(states: States) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Where the flag is reached; the car stays there."""
    return np.asarray(states[:, 0] >= FLAG)


def _at_flag(state: Any) -> bool:
    return bool(state[0] >= FLAG)


def _never(state: Any) -> bool:
    return False
