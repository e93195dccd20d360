"""GSS at a fixed number of samples: the regression, the plug-in fixed point, DataCollection-GSS, and its consistency."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_design, random_table, sampled
from saddleback.designs import FrankWolfe
from saddleback.designs.design import full_design, weighted_design
from saddleback.errors import InputError, NumericalError
from saddleback.exact.values import best_policy, unit_policy_values
from saddleback.features import FeatureMatrix, OneHot
from saddleback.instances.zoo import make
from saddleback.method.oracles import Solver
from saddleback.method.solvers.gss import GSS, ridge
from saddleback.problem.policies import as_table
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.simulators.generative_model import Stream, generator
from saddleback.simulators.table import Table

universal = settings(derandomize=True, deadline=None, max_examples=25)
seeds = st.integers(0, 10_000)
MIXING = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])


def gss_buffer(instance, design, total, seed):
    """DataCollection-GSS: one batch of i.i.d. pairs."""
    own, counts = GSS().allocate(design, total, generator(seed, Stream.DESIGN, 0, 0))
    samples = collect(instance.simulator, instance.problem, own, counts, seed=seed, stream=Stream.SOLVER)
    return cut(samples, instance.problem, own, 1)


@universal
@given(seeds, st.sampled_from([1e-6, 1e-2, 1.0, 50.0]))
def test_ridge_solves_the_normal_equations(seed, regularization):
    rng = np.random.default_rng(seed)
    phi, n, z = rng.normal(size=(7, 4)), rng.integers(1, 40, 7), rng.normal(size=(7, 2))
    phi /= np.abs(phi).max()  # largest value 1, where the scaling is the identity
    theta = ridge(phi, n, regularization) @ z
    normal = (phi.T * n) @ phi + regularization * np.eye(4)
    # Backward stable: the residual of the normal equations is rounding of their terms, here at most about 7·40·50.
    np.testing.assert_allclose(normal @ theta, (phi.T * n) @ z, atol=1e-10)


@universal
@given(seeds)
def test_the_unit_of_the_features_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    phi, n, z = rng.normal(size=(6, 3)), rng.integers(1, 9, 6), rng.normal(size=6)
    for unit in (1e-5, 1e4):
        theta, scaled = ridge(phi, n, 0.1) @ z, ridge(phi * unit, n, 0.1) @ z
        np.testing.assert_allclose(scaled * unit, theta, atol=1e-12)


def test_directions_without_samples_stay_at_zero():
    fit = ridge(np.array([[1.0, 0.0], [0.5, 0.0]]), np.array([3, 2]), 1e-6)
    np.testing.assert_array_equal(fit[1], 0.0)


@pytest.mark.slow
@universal
@given(seeds, st.integers(1, 4))
def test_theta_is_the_plug_in_fixed_point(seed, T):
    """θ = Λ⁻¹ Σ n_x φ_x (□ + γ P̂ max_a⟨φ, θ⟩) with P̂ the mean over all batches, for all rows at once."""
    table = random_table(seed, d=3, gamma=0.6)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, seed), 8, T, seed)
    gss = GSS(tolerance=1e-12)
    theta = gss.parameters(problem, buffer, MIXING)
    V = problem.features.maximum(buffer.support, theta)
    mean = np.mean([buffer.expect(t, V) for t in range(T)], axis=0)
    z = buffer.utilities(problem) @ MIXING.T + problem.gamma * mean
    phi = problem.features.at(buffer.design.states, buffer.design.actions)
    # The last change of z was at most 1e-12; θ follows z with the norm of the regression, here below 1e3.
    np.testing.assert_allclose(ridge(phi, buffer.counts, gss.regularization) @ z, theta, atol=1e-9)
    for row, column in zip(MIXING, theta.T, strict=True):
        np.testing.assert_allclose(gss.parameters(problem, buffer, row[None])[:, 0], column, atol=1e-9)
    assert [p.key() for p in gss.solve(problem, buffer, MIXING)] == [
        b"greedy" + np.ascontiguousarray(c).tobytes() for c in theta.T
    ]


@pytest.mark.slow
@universal
@given(seeds)
def test_one_hot_gss_plans_in_the_empirical_model(seed):
    """With one-hot features and λ_reg → 0 the fixed point is Q* of (P̂, □), found here by policy iteration."""
    table = random_table(seed, S=5, A=2, gamma=0.7)
    problem = dataclasses.replace(table.problem(), features=OneHot(5, 2))
    buffer = sampled(table, problem, full_design(*problem.pairs()), 6, 1, seed)
    policy = GSS(1e-12, 1e-12).solve(problem, buffer, MIXING[1:2])[0]
    model = np.zeros((10, 5))
    model[:, buffer.support] = buffer.empirical_model().toarray()
    estimated = dataclasses.replace(table, P=type(table.P)(model))
    best, optimum = best_policy(estimated, MIXING[1])
    values = [MIXING[1] @ unit_policy_values(estimated, p) for p in (policy, as_table(policy, 5))]
    np.testing.assert_allclose(values, optimum @ MIXING[1], atol=1e-9)
    np.testing.assert_array_equal(as_table(policy, 5).table, best.table)


def test_the_counts_are_a_multinomial_of_the_design():
    instance = make("random-linear", states=30, dim=4)
    design = FrankWolfe().design(instance.problem)
    own, counts = GSS().allocate(design, 100_000, np.random.default_rng(0))
    assert own is design and counts.sum() == 100_000
    # Per pair a binomial: 6 standard deviations have a two-sided tail of 2e-9.
    sd = np.sqrt(100_000 * design.weights * (1 - design.weights))
    assert np.all(np.abs(counts - 100_000 * design.weights) < 6 * sd + 1)
    other = GSS().allocate(design, 100_000, np.random.default_rng(1))[1]
    assert not np.array_equal(counts, other)
    same = GSS().allocate(design, 100_000, np.random.default_rng(0))[1]
    np.testing.assert_array_equal(counts, same)


def test_pairs_that_drew_nothing_are_dropped():
    instance = make("random-linear", states=30, dim=6, gamma=0.5, feature_concentration=0.01)  # nearly corners
    design = FrankWolfe().design(instance.problem)
    own, counts = GSS().allocate(design, 3, np.random.default_rng(0))
    assert own.size == len(counts) <= 3 and counts.sum() == 3 and counts.min() >= 1
    assert not own.complete
    buffer = gss_buffer(instance, design, 3, 0)
    assert buffer.num_samples == 3
    assert len(GSS().solve(instance.problem, buffer, MIXING[:1])) == 1  # the ridge holds what was not sampled at zero
    tabular = full_design(*instance.problem.pairs())
    with pytest.raises(InputError, match="`samples` must reach each of the 150 pairs"):
        GSS().allocate(tabular, 10, np.random.default_rng(0))
    with pytest.raises(InputError, match="`samples` must be at least 1, got 0"):
        GSS().allocate(design, 0, np.random.default_rng(0))


def errors(total, num_seeds):
    """True gaps on random-linear, d = 10, H = 20."""
    gaps = []
    for seed in range(num_seeds):
        instance = make("random-linear", dim=10, gamma=0.95, seed=seed)
        buffer = gss_buffer(instance, FrankWolfe().design(instance.problem), total, seed)
        for sigma, policy in zip(MIXING, GSS().solve(instance.problem, buffer, MIXING), strict=True):
            best = best_policy(instance.table, sigma)[1]
            gaps.append(sigma @ (best - unit_policy_values(instance.table, policy)))
    return np.array(gaps)


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [6, pytest.param(40, marks=pytest.mark.study)])
def test_more_samples_give_better_policies(num_seeds):
    few, many = np.median(errors(1_000, num_seeds)), np.median(errors(100_000, num_seeds))
    assert few > 1e-5, "there must be an error to reduce"
    assert many <= few / 5


@pytest.mark.slow
def test_a_small_ridge_is_better_than_the_customary_one():
    """The reason for the default 1e-6: shrinkage by λ_reg = 1 costs more than noise does."""
    gaps = {}
    for regularization in (1e-6, 1.0):
        found = []
        for seed in range(6):
            instance = make("random-linear", dim=10, gamma=0.95, seed=seed)
            buffer = gss_buffer(instance, FrankWolfe().design(instance.problem), 300, seed)
            policy = GSS(regularization).solve(instance.problem, buffer, MIXING[:1])[0]
            best = best_policy(instance.table, MIXING[0])[1]
            found.append(best[0] - unit_policy_values(instance.table, policy)[0])
        gaps[regularization] = np.median(found)
    assert gaps[1e-6] < gaps[1.0] / 5


def expanding(gamma):
    """One sampled pair with φ = 1 that leads to a state with φ = 3: θ ← r + 3γθ, which grows when γ > 1/3."""
    table = Table.of(
        np.array([[[0.0, 1.0]], [[0.0, 1.0]]]),
        np.ones((2, 1)),
        np.ones((1, 2, 1)),
        0.0,
        gamma=gamma,
        rho=[1.0, 0.0],
        reward_range=(0.0, 1.0),
        ranges=((0.0, 1.0),),
    )
    problem = dataclasses.replace(table.problem(), features=FeatureMatrix(np.array([[[1.0]], [[3.0]]])))
    design = weighted_design(np.array([0]), np.array([0]), np.array([[1.0]]), np.ones(1))
    return problem, sampled(table, problem, design, 5, 1)


def test_blow_up_is_an_error_with_its_numbers():
    problem, buffer = expanding(0.5)
    with pytest.raises(NumericalError, match=r"grew to .* sweeps.* 5 samples of 1 pairs.*use more samples"):
        GSS().solve(problem, buffer, MIXING)
    problem, buffer = expanding(0.25)  # the same with 3γ < 1: θ = r/(1 − 3γ), up to the ridge (2e-7) and the tolerance
    np.testing.assert_allclose(GSS().parameters(problem, buffer, MIXING[:1]), 4.0, atol=1e-5)


def test_too_few_sweeps_are_an_error_with_their_numbers():
    table = random_table(0, d=3)
    buffer = sampled(table, table.problem(), random_design(table.problem(), 0), 8, 1)
    with pytest.raises(NumericalError, match=r"still moved by .* after 3 sweeps.*raise max_sweeps"):
        GSS(max_sweeps=3).solve(table.problem(), buffer, MIXING)


def test_a_table_without_features_is_refused():
    table = random_table(0)
    buffer = sampled(table, table.problem(), full_design(*table.problem().pairs()), 2, 1)
    with pytest.raises(InputError, match="`features` must be given"):
        GSS().solve(table.problem(), buffer, MIXING)


@pytest.mark.parametrize("bad", [{"regularization": 0.0}, {"tolerance": -1.0}, {"max_sweeps": 0}])
def test_bad_parameters_are_named(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        GSS(**bad)


def test_it_is_a_solver():
    assert isinstance(GSS(), Solver)
