"""§3, Alg. 1 (label alg_CMDPL): the primal-dual framework over any solver, any evaluator and any dual.

    for k = 0 … K−1:
        π_k    = MDP-Solver(r + λ_k c, B, φ)
        V̂_c^k  = PolicyEvaluation(π_k, c, B, φ)
        λ_{k+1} = Proj_[0,U] [λ_k − η (V̂_c^k(ρ) − b')]
    return the mixture of π_0 … π_{K−1}

The last line of the loop is the dual's: :mod:`saddleback.method.duals.projected_descent` is the paper's. Departures from the
paper, both optional and both listed in docs/errata.md: the solver and the evaluator may have buffers of their own, and
the solver's input (never the dual iterate) may be rounded to a grid fixed beforehand. A reward that was solved before is
not solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from saddleback.method.oracles import Dual, Step, round_to_grid, simplex_point
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer

SolveRewards = Callable[[Array], list[Policy]]
EvaluatePolicy = Callable[[Policy], Array]
Watcher = Callable[[int, Step], None]


@dataclass(frozen=True)
class Outcome:
    """The mixture π̄ with, per member, its estimated values ``(k, 1+m)``; the history; the distinct oracle calls."""

    mixture: MixturePolicy
    member_values: Array
    steps: list[Step]
    num_solver_calls: int

    @property
    def values(self) -> Array:
        """The mixture's estimated values ``(1+m,)``: averages, since the member is drawn once per episode."""
        return np.asarray(self.mixture.weights @ self.member_values)


class Oracle:
    """Solver and evaluator as one function of σ, remembering what it was asked: O(σ) = (π_σ, V̂(π_σ)).

    ``solve`` takes several points at once ``(k, 1+m)``, so that :meth:`prefetch` reads the data once for all of them.
    """

    def __init__(self, solve: SolveRewards, evaluate: EvaluatePolicy, resolution: int | None = None):
        self._solve, self._evaluate, self._resolution = solve, evaluate, resolution
        self._by_reward: dict[bytes, tuple[Policy, Array]] = {}
        self._by_policy: dict[bytes, tuple[Policy, Array]] = {}

    @property
    def num_solver_calls(self) -> int:
        """Distinct rewards solved."""
        return len(self._by_reward)

    @property
    def columns(self) -> list[tuple[Policy, Array]]:
        """Every distinct policy found so far, with its values."""
        return list(self._by_policy.values())

    @property
    def asked(self) -> Array:
        """Every point σ solved so far, ``(k, 1+m)``."""
        return np.array([np.frombuffer(key) for key in self._by_reward])

    def __call__(self, sigma: Array) -> tuple[Policy, Array]:
        """The policy for □_σ and its values; equal policies are one object and are evaluated once."""
        sigma = round_to_grid(sigma, self._resolution)
        known = self._by_reward.get(sigma.tobytes())
        return known if known is not None else self._ask(sigma[None])[0]

    def prefetch(self, sigmas: Array) -> None:
        """Solve all new points among the rows of ``sigmas`` in one call of the solver."""
        rounded = [round_to_grid(sigma, self._resolution) for sigma in sigmas]
        new = {s.tobytes(): s for s in rounded if s.tobytes() not in self._by_reward}
        if new:
            self._ask(np.array(list(new.values())))

    def _ask(self, sigmas: Array) -> list[tuple[Policy, Array]]:
        answers = []
        for sigma, policy in zip(sigmas, self._solve(sigmas), strict=True):
            known = self._by_policy.get(policy.key())
            if known is None:
                known = self._by_policy[policy.key()] = (policy, self._evaluate(policy))
            self._by_reward[sigma.tobytes()] = known
            answers.append(known)
        return answers


@dataclass(frozen=True)
class Seated:
    """Policies found beforehand, by the bytes of their point σ, in a solver's seat: nobody sees who found them."""

    policies: Mapping[bytes, Policy]

    @classmethod
    def at(cls, mixing: Array, policies: Sequence[Policy]) -> Seated:
        """One policy for each row of ``mixing``."""
        return cls({sigma.tobytes(): policy for sigma, policy in zip(mixing, policies, strict=True)})

    def solve(self, problem: CMDP, buffer: Buffer, mixing: Array) -> list[Policy]:
        """The policies of the rows of ``mixing``, whatever the buffer holds."""
        return [self.policies[sigma.tobytes()] for sigma in mixing]


def run(oracle: Oracle, dual: Dual, watch: Watcher | None = None) -> Outcome:
    """Alg. 1 until the dual is done."""
    steps: list[Step] = []
    proposal = dual.propose(steps)
    while not proposal.done:
        point = simplex_point(proposal.multipliers) if proposal.point is None else proposal.point
        policy, values = oracle(point)  # π_k and V̂^k
        steps.append(Step(proposal.multipliers, policy, values))
        if watch is not None:
            watch(len(steps), steps[-1])
        proposal = dual.propose(steps)  # λ_{k+1}
    assert proposal.weights is not None
    mixture = MixturePolicy.of([s.policy for s in steps], proposal.weights)
    by_key = {id(s.policy): s.values for s in steps}
    member_values = np.array([by_key[id(p)] for p in mixture.members])
    return Outcome(mixture, member_values, steps, oracle.num_solver_calls)
