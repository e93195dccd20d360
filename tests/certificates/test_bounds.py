"""Upper bounds on max_π V_□: above the truth, close to it, and right for the reasons given."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from saddleback import zoo
from saddleback.certificates import Guide, Request, certify_guided
from saddleback.certificates.bounds import BY_NAME, Bound, BoundPlan
from saddleback.certificates.bounds.bound import ExpectedRewards
from saddleback.certificates.expected import plan_bound
from saddleback.certificates.prove import draw_fresh
from saddleback.exact.values import best_policy
from saddleback.problem.cmdp import CMDP
from saddleback.runs.settings import Method
from saddleback.sampling.buffer import Buffer
from saddleback.solving.prepare import prepare
from saddleback.solving.prepared import Prepared

DELTA = 0.05


def true_optimum(instance: zoo.Instance, sigma: np.ndarray) -> float:
    _, values = best_policy(instance.table, sigma)
    return float(sigma @ values)


def fresh_bound(instance: zoo.Instance, parts: Prepared, sigma: np.ndarray, samples: int, seed: int) -> Bound:
    guide = guide_of(parts, sigma)
    plan = plan_bound(guide, sigma, samples, DELTA)
    assert plan is not None
    fresh = draw_fresh(guide, instance.simulator, [plan], Request(samples, seed))
    return plan.prove(parts.problem, fresh, DELTA)


def guide_of(parts: Prepared, sigma: np.ndarray) -> Guide:
    earlier = [b for b in (parts.solver_buffer, parts.evaluation_buffer) if b is not None]
    return Guide(parts.problem, parts.design, earlier, None, sigma)


@cache
def prepared(name: str, samples: int) -> tuple[zoo.Instance, Prepared]:
    """A problem of the zoo and what was drawn to learn it: the same for every mixture."""
    instance = zoo.make(name)
    return instance, prepare(instance.problem, instance.simulator, samples, 3, Method())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wireless", "queue", "gridworld", "garnet", "random-linear"])
@pytest.mark.parametrize("sigma", [(1.0, 0.0), (0.6, 0.4), (0.0, 1.0)])
def test_above_the_truth_and_closer_with_more_samples(name: str, sigma: tuple[float, float]) -> None:
    point, excess = np.array(sigma), []
    for samples in (40_000, 640_000):
        instance, parts = prepared(name, samples)
        truth = true_optimum(instance, point)
        bound = fresh_bound(instance, parts, point, samples, seed=4)
        assert bound.value >= truth - 1e-12 * instance.problem.horizon
        assert bound.samples <= samples + 2 * parts.design.size
        excess.append(bound.value - truth)
    print(
        f"{name}, {sigma}: above the truth by {excess[0]:.4f} at 4e4, {excess[1]:.4f} at 6.4e5 (H = {instance.problem.horizon:.0f})"
    )
    assert excess[1] <= 0.6 * excess[0] + 1e-6
    assert excess[1] <= 0.05 * instance.problem.horizon


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wireless", "random-linear"])
def test_a_misleading_plan_costs_width_only(name: str) -> None:
    """Plans made on thirty samples a pair, so nearly nonsense, still give bounds above the truth: 20 seeds, none below.

    At δ = .05 two or more of 20 below has probability .26, so below is counted over both problems with a limit of 9
    (1e-7 at rate .05 over 40 trials).
    """
    instance = zoo.make(name)
    sigma = np.array([0.7, 0.3])
    truth, below = true_optimum(instance, sigma), 0
    for seed in range(20):
        size = (len(instance.problem.pairs()[0]) if name == "wireless" else 10) * 120
        parts = prepare(instance.problem, instance.simulator, size, seed, Method())
        below += fresh_bound(instance, parts, sigma, 20_000, seed=100 + seed).value < truth
    print(f"{name}: seeds 0..19, {below} below the truth")
    assert below < 9


def test_same_seed_same_bound() -> None:
    instance = zoo.make("garnet")
    parts = prepare(instance.problem, instance.simulator, 50_000, 3, Method())
    values = [fresh_bound(instance, parts, np.array([0.5, 0.5]), 50_000, seed).value for seed in (5, 5, 6)]
    assert values[0] == values[1] != values[2]


def test_allocation_follows_the_optimistic_policy() -> None:
    """Half the samples or more go to a quarter of the pairs, and no pair is left without."""
    instance = zoo.make("wireless")
    parts = prepare(instance.problem, instance.simulator, 300_000, 3, Method())
    plan = plan_bound(guide_of(parts, sigma := np.array([0.7, 0.3])), sigma, 300_000, DELTA)
    assert plan is not None
    ordered = np.sort(plan.counts)[::-1]
    assert ordered[: len(ordered) // 4].sum() > 0.5 * ordered.sum()
    assert ordered[-1] >= 0.05 * 300_000 / len(ordered)
    assert ordered.sum() <= 300_000


def test_weak_duality_and_infeasibility() -> None:
    problem = zoo.make("wireless").problem
    bound = Bound(np.array([0.8, 0.2]), 4.0, 3.9, "all pairs", DELTA, 10)
    assert bound.on_optimum(problem) == pytest.approx(4.0 / 0.8 - 0.25 * problem.thresholds[0])
    alone = Bound(np.array([0.0, 1.0]), 5.0, 4.9, "all pairs", DELTA, 10)
    assert alone.on_slack(problem) == pytest.approx(5.0 - problem.thresholds[0])


@pytest.mark.parametrize("name", ["wireless", "random-linear"])
def test_exactly_one_method_applies_to_a_design(name: str) -> None:
    _, parts = prepared(name, 40_000)
    guide = guide_of(parts, sigma := np.array([0.7, 0.3]))
    plans = {key: method.plan(guide, sigma, 40_000, DELTA, draft=True) for key, method in BY_NAME.items()}
    assert [key for key, plan in plans.items() if plan] == ["coreset" if name == "random-linear" else "all-pairs"]


class Trivial(BoundPlan):
    """A method and its plan, from outside: no policy exceeds H, whatever was promised."""

    def plan(
        self, guide: Guide, sigma: np.ndarray, samples: int, delta: float, *, draft: bool = False
    ) -> BoundPlan | None:
        return None if math.isnan(self.expected_excess) else self

    def prove(self, problem: CMDP, fresh: Buffer, delta: float) -> Bound:
        return Bound(self.sigma, problem.horizon, problem.horizon, "trivial", delta, fresh.num_samples, "nothing")


@pytest.mark.parametrize(("promised", "chosen"), [(0.0, True), (math.inf, False), (math.nan, False)])
def test_a_new_method_is_used_where_its_plan_promises_more(
    promised: float, chosen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One entry in ``BY_NAME`` is all that it takes; the certificate says what was proved and what it rests on."""
    instance, parts = prepared("wireless", 40_000)
    guide = guide_of(parts, sigma := np.array([0.0, 1.0]))
    method = Trivial(sigma, np.full(parts.design.size, 5), 1.0, promised)
    monkeypatch.setitem(BY_NAME, "trivial", method)
    certificate = certify_guided(guide, instance.simulator, Request(40_000, 5))
    assert certificate.evidence.bound is not None
    assert (certificate.evidence.bound.kind == "trivial") == chosen
    assert (certificate.assumes["infeasible"] == "nothing") == chosen
    room = instance.problem.horizon - float(instance.problem.thresholds[0])
    assert certificate.slack_bound == pytest.approx(room) or not chosen


def test_pairs_without_samples_have_no_part_in_what_is_expected_of_others() -> None:
    """Of pairs that differ by chance alone each is drawn to the mean of all that were sampled, whatever stands at the others."""
    problem = SimpleNamespace(observed=np.array([True]))
    means, noise, counts = np.array([[0.5], [0.51], [0.49]]), np.full((3, 1), 0.5), np.full(3, 100)

    def buffer(means: Any, noise: Any, counts: Any, unsampled: Any) -> Any:
        return SimpleNamespace(
            utilities=lambda _: means, signal_noise=lambda _: noise, counts=counts, unsampled=unsampled
        )

    alone = ExpectedRewards.of(cast(Any, problem), buffer(means, noise, counts, None))
    more = [np.concatenate([x, np.full((2, *x.shape[1:]), y)]) for x, y in ((means, 0.0), (noise, 9.0), (counts, 1))]
    with_others = ExpectedRewards.of(cast(Any, problem), buffer(*more, np.array([False] * 3 + [True] * 2)))
    assert with_others.means[:3] == pytest.approx(alone.means) and alone.means == pytest.approx(0.5)
    assert with_others.noise[:3] == pytest.approx(alone.noise)
