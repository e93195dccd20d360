"""Mountain car with little fuel: Gymnasium's MountainCar-v0 with a cost.

A car in a valley, too weak to climb straight to the flag, gains height by swinging. The state is position and velocity, the
actions are to push left, to coast and to push right, each held for ``hold`` steps of the environment. Reward: −1 for each decision
until the flag (position 0.5) is reached, and nothing from then on. Constraint: fuel, 1 for each decision to push, a discounted
total "≤" a budget. A free swing costs nothing, so a patient driver gets there with less. The car starts at rest at a position that
is uniform around ``start``, as in Gymnasium's own reset. Source: A. Moore, Efficient memory-based learning for robot control, PhD
thesis, University of Cambridge, 1990, as in Gymnasium's classic control; the fuel is added here.

The features interpolate on a grid of knots (:mod:`saddleback.features.multilinear`), which blurs the state at every decision: the longer
decisions last, the fewer blurs there are on the way to the flag. With 20 steps a decision and γ = 0.9, H is the 200 steps of
Gymnasium's own limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback.errors import at_least, discount, number
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._classic import HeldMaker, lattice
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import Actions, Array, BoxStates, States
from saddleback.simulators.gymnasium_env import from_gymnasium

FLAG, COAST = 0.5, 1


def mountain_car(
    *,
    budget: float = 3.5,
    hold: int = 20,
    start: float = -0.5,
    spread: float = 0.1,
    gamma: float = 0.9,
    knots: int = 9,
    speeds: int = 7,
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
    number("budget", budget, 0.0)
    at_least("hold", hold, 1, 100)
    number("start", start, -1.2, 0.4)
    number("spread", spread, 0.0, min(start + 1.2, 0.6 - start))
    discount(gamma)
    at_least("knots", knots, 2, 200)
    at_least("speeds", speeds, 2, 200)
    simulator = from_gymnasium(HeldMaker("MountainCar-v0", hold, _over), signals=(), terminates=False)
    box = simulator.states
    assert isinstance(box, BoxStates)
    features, candidates = lattice(box, (knots, speeds), 3)

    def reward(states: States, actions: Actions) -> Array:
        return np.where(_there(states), 0.0, -1.0)

    def fuel(states: States, actions: Actions) -> Array:
        return np.where(_there(states) | (actions == COAST), 0.0, 1.0)

    still = Start(np.array([[start, 0.0]]), np.array([1.0]))
    problem = CMDP(
        gamma=gamma,
        start=Start.sampled(Standing(start, spread)) if spread else still,
        num_actions=3,
        states=box,
        reward=reward,
        constraints=[Constraint("fuel", fuel, "<=", budget, (0.0, 1.0))],
        features=features,
        reward_range=(-1.0, 0.0),
        candidates=candidates,
        name="mountain-car",
    )
    summary = f"drive out of a valley soon; fuel <= {budget:g} pushes, discounted"
    return Instance("mountain-car", problem, simulator, None, summary, {})


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


def _over(state: Any) -> bool:
    return bool(state[0] >= FLAG)
