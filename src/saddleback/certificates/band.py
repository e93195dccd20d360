"""A confidence band on the frontier F(b) = max{V_r : V_c ≥ b}, for all thresholds at once.

    below   F(b) ≥ max Σ_i w_i l_r^i   s.t.   Σ_i w_i l_c^i ≥ b        l^i the lower limits of policy i, from rollouts of it alone
    above   F(b) ≤ min_k [ U(λ_k) − λ_k b ]                            U(λ_k) ≥ max_π V_{r+λ_k c}, from one fresh buffer

Every mixture of the policies keeps the lower limits of its members, so the first line is what some policy is proved to reach;
the second is weak duality at prices that were chosen before. Half of δ each, divided over policies and prices: the band holds
at every threshold together with probability 1 − δ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from saddleback.certificates.assumptions import BOUNDED
from saddleback.certificates.bounds import BoundPlan
from saddleback.certificates.contradictions import find_contradictions
from saddleback.certificates.expected import plan_bound
from saddleback.certificates.guide import Guide, Request, with_fresh_start
from saddleback.certificates.linearity.checks import examine_linearity, samples_for_linearity
from saddleback.certificates.linearity.findings import LinearityReport, refuted
from saddleback.certificates.prove import draw_fresh
from saddleback.certificates.values.rollouts import fit_baseline, roll_out
from saddleback.errors import Remark, require
from saddleback.method.master_lp import solve_master
from saddleback.problem.policies import MixturePolicy, Policy
from saddleback.problem.spaces import Array
from saddleback.sampling.examination import examine
from saddleback.sampling.trajectories import plan_rollouts
from saddleback.simulators.generative_model import GenerativeModel


@dataclass(frozen=True)
class Band:
    """Lower limits of the policies ``(k, 1+m)`` and upper bounds at the prices ``(q, m)``, in utilities.

    The bounds are infinite where the samples refute the linearity that they would rest on, and where a policy is above one
    of them, which is a contradiction; ``top`` is what no policy exceeds.
    """

    low: Array
    prices: Array
    bounds: Array
    top: float
    confidence: float
    samples: int
    assumes: dict[str, str]
    linearity: LinearityReport | None
    contradictions: tuple[Remark, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What the band is worth, as JSON has it; its limits are with the points of the curve."""
        linearity = None if self.linearity is None else self.linearity.to_json()
        out = {"confidence": self.confidence, "samples": self.samples, "assumes": self.assumes, "linearity": linearity}
        wrong = [remark.text for remark in self.contradictions]
        return {**out, "contradictions": wrong} if wrong else out

    def at(self, thresholds: Array) -> tuple[float, float]:
        """Limits of F at thresholds ``(m,)`` in utilities; minus infinity below where no policy is proved feasible."""
        master = solve_master(self.low, thresholds)
        low = -np.inf if master is None else float(master.value)
        return low, min(self.top, float((self.bounds - self.prices @ thresholds).min()))


def frontier_band(
    guide: Guide, policies: Sequence[Policy], sigmas: Sequence[Array], model: GenerativeModel, request: Request
) -> Band:
    """The band from ``request.samples`` fresh calls: half for the policies' rollouts, half for the bounds."""
    pairs = guide.design.states, guide.design.actions
    examine(guide.problem, model, request.seed, pairs, request.executor)
    k, q, confidence = len(policies), len(sigmas), 1 - request.delta
    guide, request, w = with_fresh_start(guide, request, k * (1 + guide.problem.num_constraints) + q)
    problem, before = guide.problem, model.num_queries
    tested = samples_for_linearity(guide.design, request.samples)
    rolled = (request.samples - tested) // 2
    part = request.delta / (2 * k * (1 + problem.num_constraints))
    left, level = request.samples - tested - rolled, request.delta / (2 * q)
    plans = list[BoundPlan]()
    for sigma in sigmas:
        plan = plan_bound(guide, sigma, left, level)
        require(
            plan is not None, "samples", f"must suffice for {guide.design.size} pairs", request.samples, "draw more"
        )
        assert plan is not None
        plans.append(plan)
    low = np.array([_lower_limits(guide, p, i, rolled // k, part, model, request) for i, p in enumerate(policies)]) - w
    fresh = draw_fresh(guide, model, plans, request)
    bounds = [plan.prove(problem, fresh, level).raised(w) for plan in plans]
    report = examine_linearity(guide, model, request, tested)
    prices = np.array([b.sigma[1:] / b.sigma[0] for b in bounds])
    values = np.array([b.value / b.sigma[0] for b in bounds])
    above = [remark for b in bounds for x in low for remark in find_contradictions(problem, x, x, b, None)]
    wrong = () if refuted(report) else tuple(above[:1])
    if refuted(report) or wrong:
        values[:] = np.inf
    assumes = {"low": BOUNDED, "high": "; ".join(dict.fromkeys(b.assumes for b in bounds))}
    top = problem.horizon
    low, spent = np.maximum(low, 0.0), model.num_queries - before
    return Band(low, prices, values, top, confidence, spent, assumes, report, wrong)


def _lower_limits(
    guide: Guide, policy: Policy, index: int, samples: int, delta: float, model: GenerativeModel, request: Request
) -> Array:
    problem, alone = guide.problem, MixturePolicy.of([policy], np.ones(1))
    baseline = fit_baseline(problem, guide.earlier[-1], alone)
    plan = plan_rollouts(problem.gamma, samples)
    seed, executor = request.seed, request.executor
    rollouts = roll_out(problem, model, alone, baseline, plan, seed=seed, group=1 + index, executor=executor)
    return rollouts.limits(delta, request.interval)[0]
