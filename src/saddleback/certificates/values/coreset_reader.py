"""What the rollouts' steps add up to beside the coreset's fresh samples; :mod:`.linear` says what for."""

from __future__ import annotations

import numpy as np

from saddleback.certificates.values.linear_plan import ValuePlan, around, chunks, enumerable, pair_limits, variances
from saddleback.certificates.values.rollouts import Step
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.spaces import Array
from saddleback.sampling.buffer import Buffer, PolicyValue, counted


class CoresetReader:
    """Sums over the rollouts' steps: Σ w_t û, Σ w_t Σ_x|φᵀB_x|q_x and γ·span(V̂_k)Σ w_t(1 + λ) of each ``(n, 1+m)``, and Σ_i y_i of each member.

    It observes :func:`~saddleback.certificates.values.rollouts.roll_out`; made by :func:`read_coreset`.
    """

    def __init__(self, problem: CMDP, mixture: MixturePolicy, fresh: Buffer, plan: ValuePlan):
        B, gamma = fresh.design.operator, problem.gamma
        assert B is not None
        self.problem, self.mixture, self.fresh, self.plan = problem, mixture, fresh, plan
        self.features, self.operator = problem.required_features(), B
        V = [self.at_support(k) for k in range(len(plan.omegas))]
        self.xi = [gamma * (B @ fresh.average(v)) - o for v, o in zip(V, plan.omegas, strict=True)]  # û = ◇ + ⟨φ,ξ⟩
        variance = np.array([variances(fresh, v) for v in V])
        self.q = gamma * pair_limits(variance, plan.high - plan.low, fresh.counts, plan.levels.pairs)  # (K, c, 1+m)
        self.sums, self.slack, self.bent = np.zeros((3, plan.num_rollouts, self.q.shape[2]))
        self.lebesgue = fresh.design.lebesgue
        self.visits = np.zeros(self.q.shape[:2])
        self.pair = np.repeat(
            np.arange(fresh.design.size), np.diff(counted(fresh).empirical_model().indptr)
        )  # of every entry

    def __call__(self, step: Step) -> None:
        """Add one step, of the rollouts that were planned beforehand."""
        if step.rollouts[0] >= len(self.sums):
            return
        gamma = self.problem.gamma
        for k in np.unique(step.members):
            mine = step.members == k
            phi, rows = self.features.at(step.states[mine], step.actions[mine]), step.rollouts[mine]
            y = phi @ self.operator
            self.sums[rows] += step.weight * (step.utilities[mine] + phi @ self.xi[k])
            self.slack[rows] += step.weight * (np.abs(y) @ self.q[k])
            reach = step.weight * gamma * (1 + np.abs(y).sum(axis=1))
            self.bent[rows] += reach[:, None] * (self.plan.high[k] - self.plan.low[k])
            self.visits[k] += step.weight * y.sum(axis=0)

    def at_support(self, k: int) -> Array:
        """V̂_k on the fresh support, ``(n, 1+m)``."""
        return self.fresh.at_support(PolicyValue(self.mixture.members[k], self.plan.omegas[k]))

    def at_start(self) -> Array:
        """Σ_k w_k V̂_k(ρ), ``(1+m,)``."""
        start, out = self.problem.start, np.zeros(self.q.shape[2])
        for w, p, omega in zip(self.mixture.weights, self.mixture.members, self.plan.omegas, strict=True):
            out += w * (start.weights @ (p.mean_features(self.features, start.states) @ omega))
        return out

    def residual_range(self) -> tuple[Array, Array]:
        """Limits of u over all pairs and members, ``(1+m,)``; and Λ, if the design's is not the largest."""
        problem, design = self.problem, self.fresh.design
        seen = problem.observed  # their ◇ may be anything in [0, 1]
        lows, highs = [], []
        if not enumerable(problem):
            u = np.where(seen, 0.0, problem.utilities(design.states, design.actions))
            assert design.features is not None
            for xi, q in zip(self.xi, self.q, strict=True):
                low, high = around(design, design.features @ xi + u)
                lows.append(low - design.lebesgue * q.max(axis=0))
                highs.append(high + design.lebesgue * q.max(axis=0))
            return np.min(lows, axis=0), np.max(highs, axis=0) + seen
        A = problem.num_actions
        for states in chunks(problem, max(self.operator.shape)):
            s, a = np.repeat(states, A, axis=0), np.tile(np.arange(A), len(states))
            u, phi = np.where(seen, 0.0, problem.utilities(s, a)), self.features.at(s, a)
            y = np.abs(phi @ self.operator)
            self.lebesgue = max(self.lebesgue, float(y.sum(axis=1).max()))
            for xi, q in zip(self.xi, self.q, strict=True):
                residual, width = u + phi @ xi, y @ q
                lows.append((residual - width).min(axis=0))
                highs.append((residual + width).max(axis=0))
        return np.min(lows, axis=0), np.max(highs, axis=0) + seen
