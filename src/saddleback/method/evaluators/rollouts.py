"""Policy evaluation by playing: the interactive evaluator, for policies that no regression on a buffer can judge.

    Z = Σ_{t<L} γ^t ◇(s_t, a_t),   s_0 ~ ρ, a_t ~ π(·|s_t), s_{t+1} ~ Gen(s_t, a_t),     γ^L ≤ tail
    V̂ = mean(Z) / (1 − γ^L),        V^π(ρ) ∈ [E Z, E Z + γ^L H]

The mean of Z is that of a sum cut off after L steps; dividing makes good what was cut as if the rest were like the beginning,
which is right to γ^L·H for any policy, and exact where rewards are constant. Assumption asmp_b2 holds with
f_eva = γ^L·H + O(H/√n), whatever the states and the features are: that is what this evaluator is for. It costs n·L calls
a policy where a buffer serves all policies, so a run gives it the policies of a grid fixed beforehand, an equal share each.

What was measured is an evaluator for those policies. Others (the stationary copy of a mixture) are judged by LSTD on the
buffer at hand, without a further call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from saddleback.errors import BudgetError, InputError, require
from saddleback.method.evaluators.lstd import LSTD
from saddleback.method.oracles import Evaluator, Interval
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Actions, Array, States
from saddleback.sampling.buffer import Buffer, Tap


class Played(NamedTuple):
    """Mean and standard error of Z ``(1+m,)`` over so many rollouts, and γ^L."""

    mean: Array
    error: Array
    num_rollouts: int
    left: float


@dataclass(frozen=True)
class Rollouts:
    """``tail`` is the share of the horizon that may be cut off."""

    tail: float = 1e-3

    def __post_init__(self) -> None:
        require(0 < self.tail < 1, "tail", "must lie in (0, 1)", self.tail, "use 1e-3")

    def evaluate_interactively(self, problem: CMDP, sampler: Tap, policies: Sequence[Policy]) -> Evaluator:
        """Spend what is left of the sampler's budget on the policies, an equal share each."""
        length = self.length(problem.gamma)
        n = sampler.remaining // (len(policies) * length)
        if n < 2:
            raise BudgetError(
                f"rollouts of {length} steps for {len(policies)} policies need {2 * length * len(policies)} simulator calls "
                f"at the least, and {sampler.remaining} are left; draw more samples, or use a coarser grid of rewards."
            )
        return Measured({policy.key(): play(problem, sampler, policy, n, length) for policy in policies})

    def length(self, gamma: float) -> int:
        """L, the least number of steps with γ^L ≤ tail."""
        return 1 if gamma <= self.tail else math.ceil(math.log(self.tail) / math.log(gamma))

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """Refused: a buffer holds no rollouts."""
        raise self._refusal(buffer)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Refused: a buffer holds no rollouts."""
        raise self._refusal(buffer)

    def _refusal(self, buffer: Buffer) -> InputError:
        held = f"a buffer of {buffer.num_samples} samples"
        return InputError("evaluator", "must be given a simulator to play with", held, "use lstd on stored samples")


@dataclass(frozen=True)
class Measured:
    """What rollouts showed of some policies, by their keys."""

    played: Mapping[bytes, Played]

    def evaluate(self, problem: CMDP, buffer: Buffer, policy: Policy) -> Array:
        """V̂_r(ρ), V̂_{c_1}(ρ), … within [0, H]."""
        seen = self.played.get(policy.key())
        if seen is None:
            return LSTD().evaluate(problem, buffer, policy)
        return np.clip(seen.mean / (1 - seen.left), 0.0, problem.horizon)

    def interval(self, problem: CMDP, buffer: Buffer, policy: Policy, confidence: float) -> Interval:
        """Student's limits for E Z, and what was cut off; approximate, by the central limit theorem."""
        seen = self.played.get(policy.key())
        if seen is None:
            return LSTD().interval(problem, buffer, policy, confidence)
        half = stdtrit(seen.num_rollouts - 1, (1 + confidence) / 2) * seen.error
        H = problem.horizon
        return Interval(np.clip(seen.mean - half, 0.0, H), np.clip(seen.mean + seen.left * H + half, 0.0, H))


def play(problem: CMDP, sampler: Tap, policy: Policy, num_rollouts: int, length: int) -> Played:
    """``num_rollouts`` rollouts side by side, ``num_rollouts``·``length`` simulator calls."""
    rng, start, n = sampler.generator(), problem.start, num_rollouts
    states = start.states[rng.choice(len(start.weights), size=n, p=start.weights)]  # s_0 ~ ρ
    Z, weight = np.zeros((n, 1 + problem.num_constraints)), 1.0
    for _ in range(length):
        actions = policy.act(states, rng)
        next_states, signals = sampler.draw(states, actions)
        Z += weight * _utilities(problem, states, actions, signals)
        states, weight = next_states, weight * problem.gamma
    unseen = 0.5 * problem.observed / n  # half an event more than was seen: what was never seen may still happen
    return Played(Z.mean(axis=0), np.sqrt((Z.var(axis=0, ddof=1) + unseen) / n), n, weight)


def _utilities(problem: CMDP, states: States, actions: Actions, signals: Array | None) -> Array:
    """◇ at these pairs: known functions, or what the simulator returned."""
    u = problem.utilities(states, actions)
    if signals is not None:
        for column in np.flatnonzero(problem.observed):
            problem.signals[column].check(signals[:, column], states, actions)
            u[:, column] = problem.utilities_of(signals)[:, column]
    return u
