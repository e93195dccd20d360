"""A confidence band on the frontier F(b) = max{V_r : V_c ≥ b}, for all thresholds at once.

    below   F(b) ≥ max Σ_i w_i l_r^i   s.t.   Σ_i w_i l_c^i ≥ b        l^i the lower limits of policy i, from rollouts of it alone
    above   F(b) ≤ min_k [ U(λ_k) − λ_k (b − b_0) ]                    U(λ_k) the upper bound at prices λ_k, from one fresh buffer

Every mixture of the policies keeps the lower limits of its members, so the first line is what some policy is proved to reach;
the second is weak duality at prices that were chosen before. Half of δ each, divided over policies and prices: the band holds
at every threshold together with probability 1 − δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from saddleback.buffer import collect, cut
from saddleback.certify.baselines import fit_baseline
from saddleback.certify.bound import Bound
from saddleback.certify.certifying import Guide, Request, interval_of, number_of_rollouts
from saddleback.certify.linear_bound import LinearPlan, linear_bound, plan_linear
from saddleback.certify.rollouts import roll_out
from saddleback.certify.tabular_bound import TabularPlan, plan_tabular, tabular_bound
from saddleback.columns import solve_master
from saddleback.policy import MixturePolicy, Policy
from saddleback.simulator import GenerativeModel, Stream
from saddleback.spaces import Array


@dataclass(frozen=True)
class Band:
    """Lower limits of the policies ``(k, 1+m)`` and upper bounds at the prices ``(q, m)``, in utilities."""

    low: Array
    prices: Array
    bounds: Array
    confidence: float
    samples: int
    assumes: str

    def at(self, thresholds: Array) -> tuple[float, float]:
        """Limits of F at thresholds ``(m,)`` in utilities; minus infinity below where no policy is proved feasible."""
        master = solve_master(self.low, thresholds)
        low = -np.inf if master is None else float(master.value)
        return low, float((self.bounds - self.prices @ thresholds).min())


def frontier_band(
    guide: Guide, policies: Sequence[Policy], sigmas: Sequence[Array], model: GenerativeModel, request: Request
) -> Band:
    """The band from ``request.samples`` fresh calls: half for the policies' rollouts, half for the bounds."""
    problem, before, k, q = guide.problem, model.num_queries, len(policies), len(sigmas)
    each = request.samples // 2 // k
    part = request.delta / (2 * k * (1 + problem.num_constraints))
    low = np.array([_lower_limits(guide, policy, i, each, part, model, request) for i, policy in enumerate(policies)])
    bounds = _bounds(guide, sigmas, request.samples - request.samples // 2, request.delta / (2 * q), model, request)
    prices = np.array([b.sigma[1:] / b.sigma[0] for b in bounds])
    values = np.array([b.value / b.sigma[0] for b in bounds])
    assumes = "bounded rewards" if guide.design.operator is None else "above: P linear in the features; below: nothing"
    return Band(low, prices, values, 1 - request.delta, model.num_queries - before, assumes)


def _lower_limits(
    guide: Guide, policy: Policy, index: int, samples: int, delta: float, model: GenerativeModel, request: Request
) -> Array:
    problem, alone = guide.problem, MixturePolicy.of([policy], np.ones(1))
    baseline = fit_baseline(problem, guide.earlier[-1], alone)
    count = number_of_rollouts(problem.gamma, samples)
    rollouts = roll_out(
        problem,
        model,
        alone,
        baseline,
        count,
        seed=request.seed,
        stream=Stream.ROLLOUT,
        group=1 + index,
        executor=request.executor,
    )
    columns = range(1 + problem.num_constraints)
    return np.array([interval_of(rollouts, j, delta, request.interval).low for j in columns])


def _bounds(
    guide: Guide, sigmas: Sequence[Array], samples: int, delta: float, model: GenerativeModel, request: Request
) -> list[Bound]:
    problem, design = guide.problem, guide.design
    plans: list[TabularPlan | LinearPlan] = []
    for sigma in sigmas:
        if design.operator is None:
            plans.append(plan_tabular(problem, guide.earlier[-1], sigma, samples, delta))
        else:
            plans.append(plan_linear(problem, design, list(guide.earlier), sigma, samples, delta))
    counts = np.maximum(1, np.mean([plan.counts for plan in plans], axis=0).astype(np.int64))
    drawn = collect(
        model, problem, design, counts, seed=request.seed, stream=Stream.CERTIFICATE, executor=request.executor
    )
    fresh = cut(drawn, problem, design, 1)
    return [
        tabular_bound(problem, fresh, plan, delta)
        if isinstance(plan, TabularPlan)
        else linear_bound(problem, fresh, plan, delta)
        for plan in plans
    ]
