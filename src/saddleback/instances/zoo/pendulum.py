"""A pendulum to be swung up with little energy: Gymnasium's Pendulum-v1 with a cost.

The state is the angle from upright, in [−π, π], and the angular velocity, in [−8, 8]. The action is a torque of −2, 0
or 2 N m, held for ``hold`` steps of 0.05 s. Reward: minus Gymnasium's cost θ² + 0.1 θ̇² of the angle and the velocity in which the
decision is made (its small term in the torque is left to the constraint). Constraint: torque squared, averaged over discounted
time, "≤" a budget. The torque is too small to lift the pendulum straight. Source: Gymnasium's classic control; the budget is
added here. The features interpolate on a grid of knots (:mod:`saddleback.features.multilinear`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleback.errors import at_least, discount, number
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._classic import HeldMaker, lattice
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import Actions, Array, BoxStates, States
from saddleback.simulators.gymnasium_env import from_gymnasium

TORQUES = np.array([-2.0, 0.0, 2.0])
FASTEST = 8.0


def pendulum(
    *, budget: float = 2.0, hold: int = 3, start: float = 3.141592653589793, gamma: float = 0.95, knots: int = 9
) -> Instance:
    """Swing a pendulum up and hold it with a limit on energy (needs gymnasium).

    budget: torque squared, discounted average; the threshold of the constraint is budget * H
    hold: steps of 0.05 s a decision lasts
    start: angle from upright at first, at rest
    gamma: discount factor a decision
    knots: of the interpolation along each axis; the dimension is 3 * knots^2
    """
    number("budget", budget, 0.0)
    at_least("hold", hold, 1, 100)
    number("start", start, -np.pi, np.pi)
    discount(gamma)
    at_least("knots", knots, 2, 200)
    torques = [np.array([u], dtype=np.float32) for u in TORQUES]
    maker = HeldMaker("Pendulum-v1", hold, _over)
    simulator = from_gymnasium(maker, signals=(), actions=torques, terminates=False)
    box = simulator.states
    assert isinstance(box, BoxStates)
    features, candidates = lattice(box, (knots, knots), len(TORQUES))

    def reward(states: States, actions: Actions) -> Array:
        return np.asarray(-(states[:, 0] ** 2 + 0.1 * states[:, 1] ** 2))

    def energy(states: States, actions: Actions) -> Array:
        return np.asarray(TORQUES[actions] ** 2)

    problem = CMDP(
        gamma=gamma,
        start=Start(np.array([[start, 0.0]]), np.array([1.0])),
        num_actions=len(TORQUES),
        states=box,
        reward=reward,
        constraints=[Constraint("energy", energy, "<=", budget / (1 - gamma), (0.0, 4.0))],
        features=features,
        reward_range=(-(np.pi**2 + 0.1 * FASTEST**2), 0.0),
        candidates=candidates,
        name="pendulum",
    )
    summary = f"swing a pendulum up and hold it; torque squared <= {budget:g} (N m)^2 on average"
    return Instance("pendulum", problem, simulator, None, summary, {})


def _over(state: Any) -> bool:
    return False
