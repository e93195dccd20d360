"""Regulate a disturbed state with few motions: linear dynamics, quadratic signals, an answer in closed form.

The state x ∈ [−L, L] is to be kept near zero. The action chooses one of A feedback gains k_a, evenly spaced from 0 to ``gain``:

    x' = f_a x + w,      f_a = drift − k_a,      w ~ uniform on [−``noise``, ``noise``], so E[w] = 0, E[w²] = σ² = noise²/3

L = noise/(1 − max|f_a|) is where the state can never leave from, so nothing is clipped. Reward: −(k_a x)², minus the energy of the
motion. Constraint: the second moment x², averaged over discounted time, "≤" a limit. Features: 1, and x²/L² for each action.

Known answer. For a multiplier λ try V(x) = p x² + q:

    Q_a(x) = −(k_a² + λ)x² + γ(p(f_a² x² + σ²) + q) = (γ f_a² p − k_a² − λ)·x² + a number that does not depend on a

The best action is the same for all x, V is again of this form (with p = max_a −(k_a² + λ)/(1 − γf_a²), a contraction's fixed
point), and so the features carry the optimum of every λ exactly and the optimal policies are constant gains. Under gain a

    M_a = Σ_t γᵗ E[x_t²] = (x_0² + γHσ²)/(1 − γf_a²),          V_r = −k_a² M_a,     V_c = M_a

and the constrained optimum is the best mixture of constant gains: the upper envelope of A points at the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from saddleback.errors import number, require
from saddleback.features import FeatureMap
from saddleback.features.program import Writer
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Discount, Range
from saddleback.method.master_lp import solve_master
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import Actions, Array, BoxStates, States
from saddleback.simulators.generative_model import GenerativeModel

_POOL = 21  # states of the candidate pool, evenly spaced: zero and the ends, which carry the optimal design, among them


@dataclass(frozen=True)
class QuadraticFeatures(FeatureMap):
    """φ(x, a) = (1, x²/L² in the place of action a)."""

    half_width: float
    num_actions: int

    @property
    def dim(self) -> int:
        """1 + A."""
        return 1 + self.num_actions

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        phi = np.zeros((len(states), self.dim))
        phi[:, 0] = 1.0
        phi[np.arange(len(states)), 1 + actions] = (states[:, 0] / self.half_width) ** 2
        return phi

    def write(self, writer: Writer) -> tuple[str, NDArray[np.int64]]:
        """The same as steps of a program (:mod:`saddleback.features.program`)."""
        x = writer.do("Div", "x", self.half_width)
        places = np.stack([np.zeros(self.num_actions, dtype=np.int64), 1 + np.arange(self.num_actions)])
        return writer.do("Concat", writer.ones(), writer.do("Mul", x, x)), places


def linear_quadratic(
    *,
    actions: Annotated[int, Range(2, 1000)] = 5,  # each is a feature too
    drift: Annotated[float, Range(0.0, 0.999)] = 0.8,
    gain: float = 0.6,
    noise: Annotated[float, Range(1e-100, 1e100)] = 0.2,
    start: float = 1.0,
    limit: Annotated[float, Range(0.0, 1e250)] = 0.08,
    gamma: Discount = 0.95,
) -> Instance:
    """Keep a disturbed state near zero with little control energy; the optimum is known in closed form.

    actions: number of gains, from 0 to gain
    drift: factor by which the state goes on uncontrolled
    gain: the largest gain
    noise: the disturbance is uniform within plus and minus this
    start: where the state starts
    limit: second moment of the state, discounted average; the threshold of the constraint is limit * H
    gamma: discount factor a step
    """
    number("gain", gain, 0.0, 1.0 + drift, open_low=True)
    k = np.linspace(0.0, gain, actions)
    f = drift - k
    fastest = float(np.abs(f).max())
    require(fastest < 1, "gain", f"must be below 1 + drift = {1 + drift:g}", gain, "or the state runs away")
    L = noise / (1 - fastest)
    remedy = "there the state can never leave the box"
    require(abs(start) <= L, "start", f"must lie within {L:g} of zero", start, remedy)

    def sample(states: States, chosen: Actions, rng: np.random.Generator) -> States:
        w = rng.uniform(-noise, noise, size=len(states))
        return np.clip(f[chosen] * states[:, 0] + w, -L, L)[:, None]  # rounding at the very end of the box only

    box, H = BoxStates(np.array([-L]), np.array([L])), 1 / (1 - gamma)
    pool = np.linspace(-L, L, _POOL)
    problem = CMDP(
        gamma=gamma,
        start=Start(np.array([[start]]), np.array([1.0])),
        num_actions=actions,
        states=box,
        reward=lambda states, chosen: -((k[chosen] * states[:, 0]) ** 2),
        constraints=[Constraint("second-moment", lambda s, a: s[:, 0] ** 2, "<=", limit * H, (0.0, L * L))],
        features=QuadraticFeatures(L, actions),
        reward_range=(-((gain * L) ** 2), 0.0),
        candidates=(np.repeat(pool, actions)[:, None], np.tile(np.arange(actions), _POOL)),
        name="linear-quadratic",
    )
    M = (start**2 + gamma * H * noise**2 / 3) / (1 - gamma * f**2)
    mixture = solve_master(np.column_stack([-(k**2) * M, -M]), np.array([-limit * H]))
    known = {
        "value": math.nan if mixture is None else mixture.value,
        "multiplier": math.nan if mixture is None else float(mixture.multipliers[0]),
        "unconstrained_value": 0.0,
        "unconstrained_second-moment": float(M[0]),
        "best_second-moment": float(M.min()),
        "zeta": limit * H - float(M.min()),
    }
    summary = f"keep a disturbed state near zero with little energy; its second moment <= {limit:g}"
    return Instance("linear-quadratic", problem, GenerativeModel(sample, box), None, summary, known)
