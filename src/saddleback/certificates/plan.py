"""What a certificate is to be about, and how its samples are shared out before the first of them is drawn.

Baselines, prices, allocation and frozen functions come from earlier samples, whose only influence is on the widths. The
share of rollouts and of the bound follows the widths that are expected of both: a/√n_1 + b/√n_2 is least for
n_1 : n_2 = a^⅔ : b^⅔. What a certificate is expected to show costs nothing to ask (:func:`expect`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from saddleback.certificates.baselines import fit_baseline
from saddleback.certificates.bound import Bound, hidden_by_starts
from saddleback.certificates.intervals import BY_NAME as INTERVALS
from saddleback.certificates.linear_bound import LinearPlan, linear_bound, plan_linear
from saddleback.certificates.rollouts import range_of
from saddleback.certificates.tabular_bound import TabularPlan, plan_tabular, tabular_bound
from saddleback.designs.design import Design
from saddleback.errors import InputError, require
from saddleback.method.evaluators import LSTD
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.problem.rounding import first_largest, rounded
from saddleback.problem.spaces import Array
from saddleback.sampling.blocks import Executor
from saddleback.sampling.buffer import Buffer
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.trajectories import steps_per_rollout
from saddleback.simulators.generative_model import GenerativeModel, Stream

HELD_OUT = 20
"""Pairs at which linearity is tested."""

_LINEARITY_SHARE = 0.1
_DRAFT_STEPS = 4
_LEAST_PER_PAIR = 4

Plan = TabularPlan | LinearPlan


@dataclass(frozen=True)
class Guide:
    """What earlier samples suggest: buffers over one coreset, the mixture (None: nothing feasible), and the prices.

    ``sigma`` is the point of the simplex whose bound will be proved; None where there are no prices.
    """

    problem: CMDP
    design: Design
    earlier: Sequence[Buffer]
    mixture: MixturePolicy | None
    sigma: Array | None


@dataclass(frozen=True)
class Request:
    """How a certificate is to be made; ``allowance`` is the violation that counts as feasible, in utilities.

    ``executor`` draws the samples (None: here, one block after the other).
    """

    samples: int
    seed: int
    delta: float = 0.05
    allowance: float = 0.0
    interval: str = "betting"
    check_linearity: bool = True
    executor: Executor | None = None

    def __post_init__(self) -> None:
        require(
            self.samples >= 1, "samples", "must be at least 1", self.samples, "give the certificate simulator calls"
        )
        require(self.seed >= 0, "seed", "must not be negative", self.seed, "use 0, 1, 2 …")
        require(0 < self.delta < 1, "delta", "must lie in (0, 1)", self.delta, "0.05 means 95 % confidence")
        if self.interval not in INTERVALS:
            known = ", ".join(INTERVALS)
            raise InputError("interval", f"must be one of {known}", repr(self.interval), "choose one of them")


def share_of_rollouts(guide: Guide, samples: int, delta: float) -> int:
    """How many of the samples the rollouts get; all of them where there can be no bound."""
    draft = plan_bound(guide, guide.sigma, samples // 2, delta, draft=True)
    if draft is None:
        return samples
    assert guide.sigma is not None
    half = samples / 2 / steps_per_rollout(guide.problem.gamma)
    a = float(_expected_deviations(guide).max()) * math.sqrt(2 * math.log(2 / delta) / half)
    b = draft.expected_excess / max(float(guide.sigma[0]), 1e-12)
    share = a ** (2 / 3) / (a ** (2 / 3) + b ** (2 / 3)) if a + b > 0 else 0.5
    rolled = int(samples * min(0.8, max(0.25, float(rounded(share, 4)))))
    return min(rolled, samples - _LEAST_PER_PAIR * guide.design.size)  # the bound needs some of every pair


def plan_bound(guide: Guide, sigma: Array | None, samples: int, delta: float, draft: bool = False) -> Plan | None:
    """How the bound at ``sigma`` is to be proved; None where so few samples cannot prove one."""
    if sigma is None or samples < _LEAST_PER_PAIR * guide.design.size:
        return None
    if guide.design.operator is None:
        steps = {"steps": _DRAFT_STEPS} if draft else {}
        return plan_tabular(guide.problem, guide.earlier[-1], sigma, samples, delta, **steps)
    return plan_linear(guide.problem, guide.design, list(guide.earlier), sigma, samples, delta, draft)


def draw_fresh(guide: Guide, model: GenerativeModel, plans: Sequence[Plan], request: Request) -> Buffer:
    """One fresh buffer for all plans."""
    problem, design = guide.problem, guide.design
    counts = np.maximum(1, np.mean([plan.counts for plan in plans], axis=0).astype(np.int64))
    drawn = collect(
        model, problem, design, counts, seed=request.seed, stream=Stream.CERTIFICATE, executor=request.executor
    )
    return cut(drawn, problem, design, 1)


def prove_bounds(problem: CMDP, fresh: Buffer, plans: Sequence[Plan], delta: float) -> list[Bound]:
    """The bounds of all plans from one fresh buffer, each at 1 − δ."""
    return [
        tabular_bound(problem, fresh, plan, delta)
        if isinstance(plan, TabularPlan)
        else linear_bound(problem, fresh, plan, delta)
        for plan in plans
    ]


class Expected(NamedTuple):
    """What a certificate is expected to show: half-widths of the intervals ``(1+m,)`` and the gap, in utilities."""

    half_widths: Array
    gap: float


def expect(guide: Guide, samples: int, delta: float) -> Expected:
    """What a certificate of that many samples is expected to show; no sample is drawn."""
    problem, part = guide.problem, delta / (2 + guide.problem.num_constraints)
    assert guide.mixture is not None
    left = samples - samples_for_linearity(guide.design, samples)
    rolled = share_of_rollouts(guide, left, part)
    n, L = number_of_rollouts(problem.gamma, rolled), math.log(2 / part)
    low, high = range_of(problem.gamma, fit_baseline(problem, guide.earlier[-1], guide.mixture))
    w = hidden_by_starts(problem, delta)
    widths = np.asarray(_expected_deviations(guide) * math.sqrt(2 * L / n) + 0.75 * (high - low) * L / n) + w
    plan = plan_bound(guide, guide.sigma, left - rolled, part, draft=True)
    if plan is None or guide.sigma is None or guide.sigma[0] == 0:
        return Expected(widths, math.inf)
    return Expected(widths, float(widths[0]) + (plan.expected_excess + w) / float(guide.sigma[0]))


def _expected_deviations(guide: Guide) -> Array:
    """Standard deviation of one rollout ``(1+m,)``: the spread of V̂ at the pairs that the heaviest member visits."""
    problem, buffer = guide.problem, guide.earlier[-1]
    assert guide.mixture is not None
    member = guide.mixture.members[int(first_largest(guide.mixture.weights))]
    a, V = LSTD().influence_and_values(problem, buffer, member)
    _, variance = buffer.moments(V)
    gamma = problem.gamma
    noise = (buffer.signal_noise(problem) + gamma * np.sqrt(variance)) ** 2
    step = (np.abs(a) @ noise) / max(float(np.abs(a).sum()), 1e-12)
    return np.asarray(np.sqrt(step / (1 - gamma**1.5)))


def number_of_rollouts(gamma: float, steps: int) -> int:
    """As many as cost no more than ``steps``, but for a deviation of four standard errors."""
    each = steps_per_rollout(gamma)
    n = steps / each
    return max(1, int(n - 4 * math.sqrt(n)) if n > 64 else int(n / 2))


def samples_for_linearity(design: Design, samples: int) -> int:
    """A tenth; nothing where tables assume no linearity or where it would be too few to say anything."""
    share = int(_LINEARITY_SHARE * samples)
    return share if design.operator is not None and share >= 8 * (HELD_OUT + design.size) else 0
