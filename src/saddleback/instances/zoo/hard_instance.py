"""§4.5 and App. "Lower Bound" (label sec_LB): the instance behind the lower bound, 2^(d−4) actions in four states.

    a = (ā, a') ∈ {±1/√(d−5)}^(d−5) × {0, 1},      β ∈ {±1/√(d−5)}^(d−5) hidden
    φ(s₀,a) = (1,0,0,0,0,ā)      φ(s₁,a) = e₂      φ(o,a) = (0,0,a',1−a',0,…)      φ(z,a) = e₄ + e₅
    P(s₀|s₀,a) = γ + Δ βᵀā       P(s₁|s₀,a) = 1 − γ − Δ βᵀā       P(s₀|o,a) = a'      P(z|o,a) = 1 − a'
    r(s₀,a) = 1,    c(s₀,a) = u = (1−γ²−γΔ)(b−ζ)/γ,    c(z,a) = (b+ζ)(1−γ)/γ,    zero elsewhere;  s₁, z absorbing

From o the agent goes to s₀, which pays but breaks the constraint by ζ, or to z, which keeps it with ζ to spare. With
p = P(a'=1|o) and x = E[βᵀā|s₀] a stationary policy has

    V_r = γp/(1−γ²−γΔx),     V_c = u V_r + (1−p)(b+ζ);     the best is x = 1, p = ½:  V* = γ/(2(1−γ²−γΔ)),  λ* = V*/ζ

The instance is a CMDP with r, c ∈ [0, 1] and P a probability exactly where 0 ≤ Δ ≤ min(γ, 1−γ) and
ζ ≤ b ≤ min(γH − ζ, ζ + γ/(1−γ²−γΔ)): b ≥ ζ is u ≥ 0, the two upper ends are c(z) ≤ 1 and u ≤ 1. The theorem's box
b ∈ [H/2, H] lies almost wholly outside, and the figure's c(z) with 1+γ is a slip for 1−γ (docs/errata.md).

An action is an int64: bit 0 is a', bit j the sign of ā_j (1 is +). No array of all actions is ever formed for large d.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from saddleback.errors import number, require
from saddleback.features import FeatureMap
from saddleback.instances.instance import Instance
from saddleback.instances.zoo._building import Range, Seed, limited_table
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.numerics import TIE
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Actions, Array, FiniteStates, States
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table

O, S0, S1, Z = range(4)  # noqa: E741 - the paper's names
STATE_NAMES = ("o", "s0", "s1", "z")
_ALL_ACTIONS_DIM = 12  # up to this d the 2^(d−4) actions are listed: 256 of them


@dataclass(frozen=True)
class HardFeatures(FeatureMap):
    """φ with its argmax oracle: max_ā⟨θ, ā⟩ = ‖θ‖₁/√(d−5) at ā = sign(θ)/√(d−5)."""

    dim: int
    direct: bool = field(default=True, init=False)

    @property
    def num_actions(self) -> int:
        """A = 2^(d−4)."""
        return 1 << (self.dim - 4)

    def at(self, states: States, actions: Actions) -> Array:
        """Rows ``(n, d)``."""
        k = self.dim - 5
        a = np.asarray(actions, dtype=np.int64)
        phi = np.zeros((len(states), self.dim))
        phi[states == S0, 0] = 1.0
        phi[states == S0, 5:] = signs(a[states == S0], k) / np.sqrt(k)
        phi[states == S1, 1] = 1.0
        phi[states == O, 2] = a[states == O] & 1
        phi[states == O, 3] = 1 - (a[states == O] & 1)
        phi[states == Z, 3:5] = 1.0
        return phi

    def all(self, states: States) -> Array:
        """Rows ``(n, A, d)``; refused where there are too many actions."""
        rule = f"must be at most {_ALL_ACTIONS_DIM} where every action is listed (a softmax, a table)"
        remedy = "use an oracle that asks for the maximum only, such as ls-mdvi"
        found = f"{self.dim}, that is {self.num_actions} actions"
        require(self.dim <= _ALL_ACTIONS_DIM, "dim", rule, found, remedy)
        return super().all(states)

    def maximum(self, states: States, theta: Array) -> Array:
        """max_a ⟨φ(s, a), θ⟩."""
        top = np.empty((4, *theta.shape[1:]))
        top[O] = np.maximum(theta[2], theta[3])
        top[S0] = theta[0] + np.abs(theta[5:]).sum(axis=0) / np.sqrt(self.dim - 5)
        top[S1] = theta[1]
        top[Z] = theta[3] + theta[4]
        return np.asarray(top[states])

    def argmax(self, states: States, theta: Array) -> Actions:
        """The first maximiser: a sign is + only where θ is positive, and a' = 1 only where that is better."""
        best = np.zeros(4, dtype=np.int64)
        tie = TIE * float(np.abs(theta).max())
        best[O] = int(theta[2] > theta[3] + tie)
        best[S0] = np.sum((theta[5:] > tie).astype(np.int64) << np.arange(1, self.dim - 4))
        return np.asarray(best[states])


@dataclass(frozen=True)
class HardModel:
    """The true model: β as the bits of an action, and everything the agent does not know follows."""

    gamma: float
    threshold: float
    zeta: float
    delta: float
    dim: int
    beta: int

    def __post_init__(self) -> None:
        g, b, zeta, Delta = self.gamma, self.threshold, self.zeta, self.delta
        number("zeta", zeta, 0.0, g / (1 - g) / 2, open_low=True)  # above γH/2 no b is left
        remedy = "with Δ ≤ 0.2(1−γ) the theorem's condition holds too"
        _within("delta", Delta, 0.0, min(g, 1 - g), "min(γ, 1−γ)", remedy)
        top = min(g / (1 - g) - zeta, zeta + g / (1 - g**2 - g * Delta))
        remedy = "0.4H is inside for γ ≥ 0.8, Δ ≤ 0.2(1−γ), small ζ"
        _within("threshold", b, zeta, top, "min(γH−ζ, ζ+γ/(1−γ²−γΔ))", remedy)
        assert -1e-9 <= self.u <= 1 + 1e-9 and 0 <= self.safe <= 1 + 1e-9  # what the range above is for

    @property
    def u(self) -> float:
        """c(s₀, ·)."""
        g = self.gamma
        return (1 - g**2 - g * self.delta) * (self.threshold - self.zeta) / g

    @property
    def safe(self) -> float:
        """c(z, ·)."""
        return (self.threshold + self.zeta) * (1 - self.gamma) / self.gamma

    def overlap(self, actions: Actions) -> Array:
        """βᵀā = 1 − 2·(number of differing signs)/(d−5)."""
        differing = np.bitwise_count((np.asarray(actions, dtype=np.int64) >> 1) ^ self.beta)
        return np.asarray(1 - 2 * differing.astype(np.float64) / (self.dim - 5))

    def sample(self, states: States, actions: Actions, rng: np.random.Generator) -> States:
        """One next state per pair."""
        following = np.array([Z, S1, S1, Z])[states]
        to_s0 = np.where(states == O, actions & 1, 0.0)
        stay = self.gamma + self.delta * self.overlap(actions)
        to_s0 = np.where(states == S0, stay, to_s0)
        return np.asarray(np.where(rng.random(len(states)) < to_s0, S0, following))

    def reward(self, states: States, actions: Actions) -> Array:
        """r."""
        return np.array([0.0, 1.0, 0.0, 0.0])[states]

    def constraint(self, states: States, actions: Actions) -> Array:
        """c, clipped by the rounding error that an end of the range may leave."""
        return np.clip(np.array([0.0, self.u, 0.0, self.safe]), 0.0, 1.0)[states]

    def values(self, policy: Policy) -> Array:
        """V_r(o), V_c(o) of any stationary policy, from its mean features at o and s₀ alone: exact for every d."""
        at_o, at_s0 = policy.mean_features(HardFeatures(self.dim), np.array([O, S0]))
        k, g = self.dim - 5, self.gamma
        beta = signs(np.array([self.beta << 1]), k)[0] / np.sqrt(k)
        p, x = at_o[2], beta @ at_s0[5:]
        V_r = g * p / (1 - g**2 - g * self.delta * x)
        return np.array([V_r, self.u * V_r + (1 - p) * (self.threshold + self.zeta)])

    def table(self) -> Table:
        """Every action written out."""
        A = 1 << (self.dim - 4)
        a = np.arange(A)
        stay = self.gamma + self.delta * self.overlap(a)
        rows = np.concatenate([O * A + a, S0 * A + a, S0 * A + a, S1 * A + a, Z * A + a])
        columns = np.concatenate(
            [np.where(a & 1, S0, Z), np.full(A, S0), np.full(A, S1), np.full(A, S1), np.full(A, Z)]
        )
        chance = np.concatenate([np.ones(A), stay, 1 - stay, np.ones(A), np.ones(A)])
        states, actions = np.repeat(np.arange(4), A), np.tile(a, 4)
        P = scipy.sparse.csr_array((chance, (rows, columns)), shape=(4 * A, 4))
        reward, cost = (f(states, actions).reshape(4, A) for f in (self.reward, self.constraint))
        limit = Constraint("c", cost, ">=", self.threshold, (0.0, 1.0))
        more = {"reward_range": (0.0, 1.0), "state_names": STATE_NAMES}
        return limited_table("hard-instance", P, reward, limit, gamma=self.gamma, **more)


def hard_instance(
    *,
    gamma: float = 0.9,
    threshold: float | None = None,
    zeta: float = 0.5,
    delta: float | None = None,
    dim: Annotated[int, Range(6, 66)] = 8,  # 2^62 actions still fit an int64
    seed: Seed = 0,
) -> Instance:
    """The lower-bound instance: four states, 2^(d-4) actions, one of which is hidden.

    gamma: discount factor
    threshold: b, a discounted total; left out, it is 0.4 H
    zeta: Slater constant, the room max V_c leaves above b
    delta: how much the hidden direction matters; left out, it is 0.2 (1 - gamma)
    dim: dimension d of the features, from 6 to 66
    seed: of the hidden direction beta
    """
    require(0 < gamma < 1, "gamma", "must lie in (0, 1)", gamma, "use 0.8 or more")
    b = 0.4 / (1 - gamma) if threshold is None else threshold
    Delta = 0.2 * (1 - gamma) if delta is None else delta
    beta = int(np.random.default_rng(np.random.SeedSequence(seed)).integers(0, 1 << (dim - 5)))
    model = HardModel(gamma, b, zeta, Delta, dim, beta)
    problem = CMDP(
        gamma=gamma,
        start=Start(np.array([O]), np.array([1.0])),
        num_actions=1 << (dim - 4),
        states=FiniteStates(4),
        reward=model.reward,
        constraints=[Constraint("c", model.constraint, ">=", b, range=(0.0, 1.0))],
        features=HardFeatures(dim),
        reward_range=(0.0, 1.0),
        candidates=candidates(dim),
        name="hard-instance",
        state_names=STATE_NAMES,
    )
    best = gamma / (2 * (1 - gamma**2 - gamma * Delta))
    known = {"value": best, "multiplier": best / zeta, "zeta": zeta, "unconstrained_value": 2 * best}
    known |= {"unconstrained_c": b - zeta, "best_c": b + zeta, "u": model.u, "safe": model.safe}
    table = model.table() if dim <= _ALL_ACTIONS_DIM else None
    summary = f"the lower-bound instance: 4 states, 2^{dim - 4} actions, dimension {dim}, Slater constant {zeta:g}"
    simulator = GenerativeModel(model.sample, FiniteStates(4))
    return Instance("hard-instance", problem, simulator, table, summary, known, model.values)


def candidates(dim: int) -> tuple[States, Actions]:
    """Pairs that carry a G-optimal design: both a' at o, one action at s₁ and z, an orthogonal array of signs at s₀.

    Let n be the least power of two above k = d−5 and H_ij = (−1)^|i∧j| the Sylvester matrix. Its columns 1..k are balanced
    (orthogonal to the column 0 of ones) and orthogonal to one another, so for the rows h_i of these columns
    (1/n) Σ_i (1, h_i/√k)(1, h_i/√k)ᵀ = diag(1, I/k), and under equal weights w/n at s₀ each of the 2^k vertices, in the
    array or not, has the leverage (1 + k‖ā‖²)/w = (d−4)/w. The other four features are a basis of what is left, so with
    w = (d−4)/d and 1/d on each of them g = d, the least possible: the design is G-optimal over all 2^(d−4) actions. With
    equal weights on all n + 4 pairs g = n + 4 ≤ 2d − 6, again over all actions. For unequal weights within the array
    (Frank-Wolfe's) g over the candidates says nothing about the other vertices.
    The rows differ, since the columns 1, 2, 4, …, n/2 ≤ k spell out i.
    """
    k = dim - 5
    n = 1 << k.bit_length()
    rows, columns = np.arange(n), np.arange(1, k + 1)
    positive = np.bitwise_count(rows[:, None] & columns) % 2 == 0
    vertices = np.sum(positive.astype(np.int64) << columns, axis=1)  # column j is the sign of ā_j, bit j
    states = np.concatenate([[O, O, S1, Z], np.full(n, S0)])
    return states, np.concatenate([[0, 1, 0, 0], vertices]).astype(np.int64)


def signs(actions: Actions, num: int) -> NDArray[np.float64]:
    """Bits 1..num as ±1, ``(n, num)``."""
    return np.where((actions[:, None] >> np.arange(1, num + 1)) & 1, 1.0, -1.0)


def _within(name: str, value: float, low: float, high: float, meaning: str, remedy: str) -> None:
    slack = 1e-12 * max(1.0, abs(high))  # an end of the range typed in decimals is inside
    rule = f"must lie in [{low:g}, {high:g}], the upper end being {meaning}"
    require(low - slack <= value <= high + slack, name, rule, value, remedy)
