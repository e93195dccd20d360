"""Roulette rollouts: unbiased for any baseline, within their range, reproducible, and cheap."""

from __future__ import annotations

import numpy as np
import pytest

from saddleback import zoo
from saddleback.certificates.values.rollouts import Baseline, fit_baseline, roll_out, steps_per_rollout
from saddleback.designs.design import full_design
from saddleback.exact import mixture_values
from saddleback.exact.values import state_values
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.sampling.trajectories import RolloutPlan, longest
from saddleback.simulators.generative_model import Stream


def mixture(instance: zoo.Instance, seed: int = 0) -> MixturePolicy:
    rng = np.random.default_rng(np.random.SeedSequence([30, seed]))
    S, A = instance.problem.num_states, instance.problem.num_actions
    members = [
        TabularPolicy.deterministic(rng.integers(0, A, S), A),
        TabularPolicy.stochastic(rng.dirichlet(np.ones(A), S)),
    ]
    return MixturePolicy.of(members, np.array([0.3, 0.7]))


def constant(instance: zoo.Instance, value: float) -> Baseline:
    k = 1 + instance.problem.num_constraints
    V = np.full(k, value)
    return Baseline([lambda states: np.broadcast_to(V, (len(states), k))] * 2, V, V)


def wild(instance: zoo.Instance) -> Baseline:
    """As far from the truth as it may be."""
    k, H = 1 + instance.problem.num_constraints, instance.problem.horizon
    V = np.random.default_rng(31).choice([0.0, H], size=(instance.problem.num_states, k))
    return Baseline([lambda states: V[states], lambda states: V[states][:, ::-1]], np.zeros(k), np.full(k, H))


@pytest.mark.parametrize("name", ["wireless", "queue", "gridworld"])
@pytest.mark.parametrize("kind", ["zero", "half", "wild", "fitted"])
def test_unbiased_and_within_range(name: str, kind: str) -> None:
    """Mean against the exact value: within 5.3 standard errors, 1e-7 for each of the two columns and 12 cases."""
    instance = zoo.make(name)
    problem, policy = instance.problem, mixture(instance)
    if kind == "fitted":
        design = full_design(*problem.pairs())
        drawn = collect(instance.simulator, problem, design, 200, seed=32, stream=Stream.EVALUATION)
        baseline = fit_baseline(problem, cut(drawn, problem, design, 1), policy)
    else:
        baseline = (
            wild(instance) if kind == "wild" else constant(instance, 0.0 if kind == "zero" else problem.horizon / 2)
        )
    found = roll_out(problem, instance.simulator, policy, baseline, RolloutPlan.unlimited(problem.gamma, 4000), seed=33)
    z = found.values
    assert np.all(z >= found.low - 1e-9) and np.all(z <= found.high + 1e-9)
    truth = problem.unit_values_of(mixture_values(instance.table, policy))
    score = (z.mean(axis=0) - truth) / (z.std(axis=0) / np.sqrt(len(z)) + 1e-12)
    print(f"{name}, {kind}: seed 33, scores {score.round(2)}, deviations {z.std(axis=0).round(3)}")
    assert np.all(np.abs(score) < 5.3)


def test_the_range_is_attained() -> None:
    """A chain that pays at every step, its V̂ jumping between the ends, comes close to the largest sum there is."""
    gamma = 0.9
    baseline = Baseline([], np.array([2.0]), np.array([6.0]))
    from saddleback.certificates.values.rollouts import ALPHA, range_of

    low, high = range_of(gamma, baseline, longest(gamma))
    rng = np.random.default_rng(34)
    best, worst = -np.inf, np.inf
    for _ in range(3000):
        N = int(rng.integers(1, 120))
        u, V = rng.integers(0, 2, N), rng.choice([2.0, 6.0], N + 1)
        for u_used, V_used in (
            (u, V),
            (np.ones(N), np.append(np.full(N, 2.0), 6.0)),
            (np.zeros(N), np.full(N + 1, 6.0)),
        ):
            w = (gamma ** (1 - ALPHA)) ** np.arange(N)
            total = float(np.sum(w * (u_used + gamma * V_used[1:] - V_used[:-1])))
            best, worst = max(best, total), min(worst, total)
    assert low[0] <= worst and best <= high[0]
    assert best >= 0.95 * high[0]
    assert worst <= 0.5 * low[0]


@pytest.mark.slow
def test_a_fitted_baseline_lowers_the_variance() -> None:
    instance = zoo.make("queue")
    problem, policy = instance.problem, mixture(instance)
    design = full_design(*problem.pairs())
    drawn = collect(instance.simulator, problem, design, 2000, seed=35, stream=Stream.EVALUATION)
    fitted = fit_baseline(problem, cut(drawn, problem, design, 1), policy)
    spread = [
        roll_out(
            problem, instance.simulator, policy, b, RolloutPlan.unlimited(problem.gamma, 3000), seed=36
        ).values.std(axis=0)
        for b in (fitted, constant(instance, 0.0))
    ]
    assert np.all(spread[0] < 0.7 * spread[1])


@pytest.mark.slow
def test_same_seed_same_rollouts_and_cost() -> None:
    instance = zoo.make("wireless")
    problem, policy = instance.problem, mixture(instance)
    baseline = constant(instance, 1.0)
    before = instance.simulator.num_queries
    runs = [
        roll_out(problem, instance.simulator, policy, baseline, RolloutPlan.unlimited(problem.gamma, n), seed=s)
        for n, s in ((5000, 1), (5000, 1), (5000, 2), (9000, 1))
    ]
    np.testing.assert_array_equal(runs[0].gains, runs[1].gains)
    assert not np.array_equal(runs[0].gains, runs[2].gains)
    np.testing.assert_array_equal(runs[3].gains[:4096], runs[0].gains[:4096])  # whole chunks do not depend on the total
    assert sum(r.steps for r in runs) == instance.simulator.num_queries - before
    assert runs[0].steps / 5000 == pytest.approx(steps_per_rollout(problem.gamma), rel=0.05)


def test_by_start_state() -> None:
    instance = zoo.make("random-linear", states=3, dim=2, actions=2)
    problem = instance.problem
    policy = mixture(instance)
    found = roll_out(
        problem, instance.simulator, policy, constant(instance, 5.0), RolloutPlan.unlimited(problem.gamma, 6000), seed=4
    )
    for s in range(3):
        alone = found.from_start(s)
        truth = sum(
            w * problem.unit_values_of(state_values(instance.table, p)[s])
            for w, p in zip(policy.weights, policy.members, strict=True)
        )
        score = (alone.values.mean(axis=0) - truth) / (alone.values.std(axis=0) / np.sqrt(len(alone.gains)))
        assert np.all(np.abs(score) < 5.3), score
