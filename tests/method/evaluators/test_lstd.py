"""LSTD on the coreset and on tables: exactness, its error identity, its rigorous width."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import NoiselessBuffer, random_design, random_table, sampled, tabular_buffer
from saddleback.designs.design import full_design
from saddleback.exact import state_values
from saddleback.features import FeatureMatrix
from saddleback.method.evaluators import LSPE, LSTD, lstd
from saddleback.problem.policies import TabularPolicy
from saddleback.simulators.table import Table

universal = settings(derandomize=True, deadline=None, max_examples=25)
seeds = st.integers(0, 10_000)


def random_policy(table: Table, seed: int) -> TabularPolicy:
    rng = np.random.default_rng(seed)
    return TabularPolicy.stochastic(rng.dirichlet(np.ones(table.num_actions), table.num_states))


def truth_of(table, problem, policy):
    return problem.start.weights @ state_values(table, policy)[problem.start.states]


@pytest.mark.slow
@universal
@given(seeds)
def test_error_is_exactly_the_influence_of_the_noise(seed):
    """V̂(ρ) − V(ρ) = γ Σ_x a_x ((P̂ − P)V^π)(x), on coresets and on tables."""
    for d in (4, None):
        table = random_table(seed, d=d)
        problem = table.problem()
        if d is None:
            problem, buffer = tabular_buffer(table, 50, 5, seed)
        else:
            buffer = sampled(table, problem, random_design(problem, seed), 50, 5, seed)
        policy = random_policy(table, seed)
        V = state_values(table, policy)
        rows = buffer.design.states * table.num_actions + buffer.design.actions
        noise = buffer.average(V[buffer.support]) - table.P.toarray()[rows] @ V
        solved = LSTD()._solve(problem, buffer, policy, True)
        error = solved.at_start - truth_of(table, problem, policy)
        np.testing.assert_allclose(error, problem.gamma * (solved.influence @ noise), atol=1e-9)


@universal
@given(seeds)
def test_exact_without_noise(seed):
    table = random_table(seed, d=4)
    problem = table.problem()
    buffer = NoiselessBuffer.of(table, problem, random_design(problem, seed), 1)
    policy = random_policy(table, seed)
    np.testing.assert_allclose(LSTD().evaluate(problem, buffer, policy), truth_of(table, problem, policy), atol=1e-9)


def test_one_hot_features_give_the_tables_answer():
    table = random_table(3)
    S, A = table.num_states, table.num_actions
    problem, full = tabular_buffer(table, 40, 10)
    linear = dataclasses.replace(problem, features=FeatureMatrix(np.eye(S * A).reshape(S, A, S * A)))
    weighted = sampled(table, linear, random_design(linear, 1), 40, 10)
    policy = random_policy(table, 2)
    np.testing.assert_allclose(
        LSTD().evaluate(problem, full, policy), LSTD().evaluate(linear, weighted, policy), atol=1e-10
    )
    for confidence in (0.5, 0.99):
        ours = LSTD().interval(problem, full, policy, confidence)
        theirs = LSTD().interval(linear, weighted, policy, confidence)
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_large_chains_are_solved_by_sweeps_to_the_same_values(monkeypatch):
    table = random_table(4, S=40)
    problem, buffer = tabular_buffer(table, 60, 10)
    policy = random_policy(table, 0)
    factored = LSTD()._solve(problem, buffer, policy, True)
    monkeypatch.setattr(lstd, "_FACTORED_STATES", 0)
    swept = LSTD()._solve(problem, buffer, policy, True)
    np.testing.assert_allclose(swept.at_support, factored.at_support, atol=1e-8)
    np.testing.assert_allclose(swept.influence, factored.influence, atol=1e-8)


@pytest.mark.slow
def test_rigorous_width_is_never_missed():
    """At δ = .05 the width holds in all of 200 runs (chance of one miss at most 200·.05 only if it were tight; it is not)."""
    table = random_table(5, d=4)
    problem = table.problem()
    design, policy = random_design(problem, 0), random_policy(table, 1)
    truth = truth_of(table, problem, policy)
    worst = 0.0
    for seed in range(200):
        buffer = sampled(table, problem, design, 100, 1, seed)
        error = np.abs(LSTD().evaluate(problem, buffer, policy) - truth).max()
        worst = max(worst, error / LSTD().width(problem, buffer, policy, 0.05, 2))
    print(f"seeds 0..199: worst error over width {worst:.3f}")
    assert 0.01 < worst < 1.0


def test_width_shrinks_with_samples_and_grows_with_confidence():
    table = random_table(5, d=4)
    problem = table.problem()
    design, policy = random_design(problem, 0), random_policy(table, 1)
    few, many = (sampled(table, problem, design, n, 1) for n in (100, 10_000))
    assert LSTD().width(problem, many, policy, 0.05) < 0.15 * LSTD().width(problem, few, policy, 0.05)
    assert LSTD().width(problem, few, policy, 0.01) > LSTD().width(problem, few, policy, 0.05)


def test_burn_in_removes_most_of_the_bias():
    """LS-PE from zero is off by about γH·V/T; a burn-in of two horizons leaves a small part of that."""
    table = random_table(6, d=4, gamma=0.95)
    problem = table.problem()
    policy = random_policy(table, 0)
    truth = truth_of(table, problem, policy)
    buffer = NoiselessBuffer.of(table, problem, random_design(problem, 0), 240)
    literal = np.abs(LSPE().evaluate(problem, buffer, policy) - truth)
    warm = np.abs(LSPE(burn_in=2.0).evaluate(problem, buffer, policy) - truth)
    assert np.all(warm < 0.25 * literal)


@pytest.mark.parametrize("allocation", ["equal", "uneven"])
def test_uneven_counts(allocation):
    from saddleback.sampling.collect import collect
    from saddleback.sampling.counted_buffer import cut

    table = random_table(7, d=4)
    problem = table.problem()
    design = random_design(problem, 0)
    counts = (
        np.full(design.size, 400) if allocation == "equal" else (design.weights * 400 * design.size).astype(int) + 1
    )
    samples = collect(table.simulator(), problem, design, counts, seed=0, stream=0)
    policy = random_policy(table, 0)
    truth = truth_of(table, problem, policy)
    low, high = LSTD().interval(problem, cut(samples, problem, design, 1), policy, 0.9999)
    assert np.all((low <= truth) & (truth <= high))


def test_full_design_on_features_uses_the_features():
    """`full_design` is for one-hot only: a table's influence is the discounted visits, which sum to H."""
    table = random_table(8)
    problem = table.problem()
    buffer = sampled(table, problem, full_design(*problem.pairs()), 20, 2)
    a, _ = LSTD().influence_and_values(problem, buffer, random_policy(table, 0))
    assert a.sum() == pytest.approx(problem.horizon)
