"""GSS with its stopping rule: the deviations hold, the certificate is true for every V, and what stops is ε-optimal."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleback.method.solvers.gss_stopping as module
from helpers import random_table, sampled
from saddleback.designs import FrankWolfe
from saddleback.designs.design import full_design
from saddleback.errors import BudgetError, InputError
from saddleback.exact.values import best_policy, unit_policy_values
from saddleback.features import FeatureFunction, OneHot
from saddleback.instances.zoo import make
from saddleback.method.oracles import InteractiveSolver
from saddleback.method.solvers.gss_stopping import GSSStopping, Probes, certify, deviations
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import GreedyPolicy
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.simulators.generative_model import GenerativeModel, Sampler
from saddleback.simulators.table import Table, TableSampler

universal = settings(derandomize=True, deadline=None, max_examples=40)
seeds = st.integers(0, 10_000)
MIXING = np.array([[1.0, 0.0], [0.5, 0.5]])


def true_gap(table, sigma, policy):
    return float(sigma @ (best_policy(table, sigma)[1] - unit_policy_values(table, policy)))


def stop(instance, seed, mixing=MIXING, **parameters):
    design = FrankWolfe().design(instance.problem)
    return GSSStopping(**parameters).run(instance.problem, design, Sampler(instance.simulator, seed), mixing)


# ---- deviations ------------------------------------------------------------------------------------------------------


def exceedances(level, repetitions, probability):
    """How often |Σ_x b_x(ȳ − q)(x)| > D on two-valued V(s') with P(V = 1) = ``probability``; and how often D was Bernstein's."""
    rng = np.random.default_rng(7)
    b, n = rng.normal(size=(30, 4)), np.array([40, 200, 1_000, 5_000])
    beyond, bernstein = 0, 0
    for _ in range(repetitions):
        mean = rng.binomial(n, probability) / n
        std = np.sqrt(mean * (1 - mean) * n / (n - 1))[:, None]
        D = deviations(b, n, std, np.ones(1), level)[:, 0]
        hoeffding = np.sqrt(level / 2 * (b**2 / n).sum(axis=1))
        beyond += int(np.any(np.abs(b @ (mean - probability)) > D))
        bernstein += int(np.any(hoeffding > D))
    return beyond, bernstein


@pytest.mark.parametrize("probability", [0.5, 0.02])
def test_deviations_hold(probability):
    # 4 sides for each of 30 rows and 4 variances a repetition: all 400 together fail with probability at most 1e-6.
    level = math.log((4 * 30 + 4) * 400 / 1e-6)
    beyond, bernstein = exceedances(level, 400, probability)
    assert beyond == 0
    assert (bernstein > 0) == (probability < 0.1), "both inequalities must be exercised"
    beyond, _ = exceedances(0.1, 400, probability)
    assert beyond > 200, "negative control: a level without a union bound must fail"


def test_one_sample_and_constant_values():
    b, n = np.ones((1, 1)), np.array([1])
    assert deviations(b, n, np.zeros((1, 1)), np.ones(1), 2.0)[0, 0] == 1.0  # Hoeffding: √(2/2 · 1)
    assert deviations(b, n, np.zeros((1, 1)), np.zeros(1), 2.0)[0, 0] == 0.0  # V constant: nothing deviates


def test_threshold_spends_delta_over_rounds_pairs_and_rewards():
    """β_j = log((4p + |C|)·k·j(j+1)/δ), here with p = 60 pairs and k = 2 rewards, in the rounds of a run."""
    instance = make("random-linear", states=20, actions=3, dim=3, gamma=0.9)
    result = stop(instance, 0, epsilon=0.1, delta=0.05, max_samples=10_000)
    size = FrankWolfe().design(instance.problem).size
    assert len(result.rounds) >= 7
    for j, (_, beta, _) in enumerate(result.rounds, start=1):
        assert beta == pytest.approx(math.log((4 * 60 + size) * 2 * j * (j + 1) / 0.05), rel=1e-12)


# ---- the certificate -------------------------------------------------------------------------------------------------


def deterministic_table(seed, S=5, A=3, gamma=0.7):
    """Every pair has one next state, so one sample of it is P."""
    rng = np.random.default_rng(seed)
    P = np.eye(S)[rng.integers(0, S, (S, A))]
    return Table.of(
        P,
        rng.random((S, A)),
        rng.random((1, S, A)),
        0.0,
        gamma=gamma,
        rho=rng.dirichlet(np.ones(S)),
        reward_range=(0.0, 1.0),
        ranges=((0.0, 1.0),),
    )


def certified(seed, theta, enumerated, level=1e-30):
    """(certified gap, true gap, the first term alone) of the greedy policies of ŵ, with P̂ = P and no allowance for noise."""
    table = deterministic_table(seed)
    problem = dataclasses.replace(table.problem(), features=OneHot(5, 3))
    design = full_design(*problem.pairs())
    probes = dataclasses.replace(Probes.of(problem, design), enumerated=enumerated)
    buffer = sampled(table, problem, design, 1, 1)
    w, gap = certify(problem, probes, buffer, theta, MIXING, level)
    policies = [GreedyPolicy(problem.features, column) for column in w.T]
    return gap, np.array([true_gap(table, s, p) for s, p in zip(MIXING, policies, strict=True)])


@pytest.mark.slow
@universal
@given(seeds, st.booleans())
def test_the_certificate_is_true_for_every_value_function(seed, enumerated):
    theta = np.random.default_rng(seed + 1).normal(1.0, 2.0, size=(15, 2))
    gap, truth = certified(seed, theta, enumerated)
    assert np.all(gap >= truth - 1e-9)


def test_the_certificate_needs_its_residual_term():
    """Negative control: without noise ρ(up − low) is zero, which is no bound on the gap."""
    gaps = [certified(seed, np.random.default_rng(seed + 1).normal(1.0, 2.0, (15, 2)), True)[1] for seed in range(20)]
    assert np.max(gaps) > 0.05


def test_the_certificate_vanishes_at_the_optimum():
    table = deterministic_table(3)
    u = table.utilities() @ MIXING.T
    Q = np.zeros((15, 2))
    for _ in range(200):  # γ^200 is below 1e-30
        Q = u + table.gamma * (table.P @ Q.reshape(5, 3, 2).max(axis=1))
    for enumerated in (True, False):
        gap, truth = certified(3, Q, enumerated)
        # What is left is the noise term at level 1e-30: √level·(span of V)·(2 + 4γH).
        assert np.all(gap < 1e-12) and np.all(truth < 1e-12)


# ---- the rule --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("num_seeds", [10, pytest.param(50, marks=pytest.mark.study)])
def test_it_stops_early_and_is_epsilon_optimal(num_seeds):
    """random-linear, γ = .5, d = 3, ε = .5. δ = 1e-7 a seed, so a failure in 10 has probability at most 1e-6."""
    worst = []
    for seed in range(num_seeds):
        instance = make("random-linear", gamma=0.5, dim=3, seed=seed)
        result = stop(instance, seed, epsilon=0.5, delta=1e-7)
        assert result.reached and result.guaranteed
        assert result.rounds[-1].num_samples < 10_000
        for sigma, policy, gap in zip(MIXING, result.policies, result.rounds[-1].gap, strict=True):
            assert true_gap(instance.table, sigma, policy) <= gap <= 0.5
            worst.append(sigma @ (best_policy(instance.table, sigma)[1] - best_policy(instance.table, -sigma)[1]))
    assert np.mean(np.array(worst) > 0.5) > 0.4, "negative control: the worst policies are not ε-optimal"


def test_a_smaller_epsilon_takes_more_samples_and_is_kept():
    instance = make("random-linear", gamma=0.5, dim=3, seed=4)
    samples = []
    for epsilon in (0.5, 0.1, 0.02):
        result = stop(instance, 4, epsilon=epsilon, delta=1e-7)
        samples.append(result.rounds[-1].num_samples)
        assert all(true_gap(instance.table, s, p) <= epsilon for s, p in zip(MIXING, result.policies, strict=True))
    assert samples[0] < samples[1] < samples[2] < 10**6


def test_rounds_double_and_every_sample_is_counted():
    instance = make("random-linear", gamma=0.8, dim=4, seed=1)
    sampler = Sampler(instance.simulator, 1)
    design = FrankWolfe().design(instance.problem)
    result = GSSStopping(epsilon=0.5, first_round=64).run(instance.problem, design, sampler, MIXING)
    assert [r.num_samples for r in result.rounds] == [64 * 2**j for j in range(len(result.rounds))]
    assert len(result.rounds) > 2 and sampler.num_queries == result.rounds[-1].num_samples
    again = stop(instance, 1, epsilon=0.5, first_round=64)
    assert [p.key() for p in again.policies] == [p.key() for p in result.policies]
    other = stop(instance, 2, epsilon=0.5, first_round=64)
    assert [p.key() for p in other.policies] != [p.key() for p in result.policies]


def test_too_few_samples_are_said_so():
    instance = make("random-linear", gamma=0.9, seed=0)
    design = FrankWolfe().design(instance.problem)
    solver = GSSStopping(epsilon=0.01, max_samples=1000)
    result = solver.run(instance.problem, design, Sampler(instance.simulator, 0), MIXING)
    assert not result.reached and result.rounds[-1].num_samples == 1000
    with pytest.raises(BudgetError, match=r"did not stop within 1000 samples: the certified gap is .*raise the number"):
        solver.solve_interactively(instance.problem, design, Sampler(instance.simulator, 0), MIXING)


def test_a_first_round_that_does_not_span_is_survived():
    instance = make("random-linear", gamma=0.5, dim=6, seed=0)
    result = stop(instance, 0, epsilon=0.5, first_round=2)
    assert np.all(np.isinf(result.rounds[0].gap)) and result.reached


def test_blocks_of_rewards_change_nothing(monkeypatch):
    instance = make("random-linear", states=30, gamma=0.5, dim=3, seed=2)
    mixing = np.column_stack([1 - np.linspace(0, 1, 7), np.linspace(0, 1, 7)])
    whole = stop(instance, 0, mixing, epsilon=0.2)
    monkeypatch.setattr(module, "_COLUMNS", 2 * 30 * 5)
    parts = stop(instance, 0, mixing, epsilon=0.2)
    assert [r.num_samples for r in parts.rounds] == [r.num_samples for r in whole.rounds]
    # Products of other widths round differently, and θ is settled to 1e-8: the gap moves by at most (2 + 4γH)·1e-8.
    np.testing.assert_allclose(parts.rounds[-1].gap, whole.rounds[-1].gap, atol=1e-7)


def test_simulator_calls_are_split(monkeypatch):
    instance = make("random-linear", states=30, gamma=0.5, dim=3, seed=2)
    sizes = []
    sampler = Sampler(instance.simulator, 0)
    draw = sampler.draw
    monkeypatch.setattr(sampler, "draw", lambda s, a: (sizes.append(len(s)), draw(s, a))[1])
    monkeypatch.setattr(module, "_CALL", 100)
    design = FrankWolfe().design(instance.problem)
    result = GSSStopping(epsilon=0.2).run(instance.problem, design, sampler, MIXING)
    assert max(sizes) == 100 and sum(sizes) == result.rounds[-1].num_samples and result.reached


# ---- other problems --------------------------------------------------------------------------------------------------


def test_the_coreset_bound_serves_where_pairs_cannot_be_listed(monkeypatch):
    """The same problem with and without going through S × A: both are kept, the coreset bound is the wider."""
    instance = make("random-linear", gamma=0.5, dim=3, seed=7)
    listed = stop(instance, 0, epsilon=0.2, delta=1e-7)
    monkeypatch.setattr(module, "_ENUMERABLE", 0)
    bounded = stop(instance, 0, epsilon=0.2, delta=1e-7)
    assert bounded.guaranteed and listed.rounds[-1].num_samples <= bounded.rounds[-1].num_samples < 10**6
    for sigma, policy, gap in zip(MIXING, bounded.policies, bounded.rounds[-1].gap, strict=True):
        assert true_gap(instance.table, sigma, policy) <= gap <= 0.2


def test_one_hot_features_on_the_full_design():
    table = random_table(5, S=4, A=2, gamma=0.5)
    problem = dataclasses.replace(table.problem(), features=OneHot(4, 2))
    sampler = Sampler(table.simulator(), 0)
    result = GSSStopping(epsilon=0.2, delta=1e-7).run(problem, full_design(*problem.pairs()), sampler, MIXING)
    assert result.reached and result.guaranteed
    assert all(true_gap(table, s, p) <= 0.2 for s, p in zip(MIXING, result.policies, strict=True))


def test_observed_rewards_are_regressed_and_cost_samples():
    """Coin-toss rewards with the table's means: ε-optimal all the same, after more samples than with known ones."""
    table = random_table(11, S=8, A=3, gamma=0.5, d=3)
    means = np.stack([table.reward, table.constraints[0]], axis=-1)
    transitions = TableSampler(table.P, 3)

    def sample(states, actions, rng):
        following = transitions(states, actions, rng)
        return following, (rng.random((len(states), 2)) < means[states, actions]).astype(np.float64)

    known = table.problem()
    observed = CMDP(
        gamma=0.5,
        start=known.start,
        num_actions=3,
        states=FiniteStates(8),
        reward=None,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", None, ">=", 0.0, (0.0, 1.0))],
        features=known.features,
    )
    design = FrankWolfe().design(known)
    solver = GSSStopping(epsilon=0.2, delta=1e-7)
    result = solver.run(observed, design, Sampler(GenerativeModel(sample, FiniteStates(8), 2), 0), MIXING)
    easier = solver.run(known, design, Sampler(table.simulator(), 0), MIXING)
    assert result.reached and result.rounds[-1].num_samples > easier.rounds[-1].num_samples
    for sigma, policy, gap in zip(MIXING, result.policies, result.rounds[-1].gap, strict=True):
        assert true_gap(table, sigma, policy) <= gap <= 0.2


def test_the_noise_of_observed_rewards_is_in_the_gap():
    """Two arms and γ = 0: the gap is up − low ≥ 2√(β/(2n)) with n ≤ 4000 draws of an arm; with known rewards it is 0."""
    table = Table.of(
        np.ones((1, 2, 1)),
        np.array([[0.3, 0.6]]),
        np.zeros((1, 1, 2)),
        0.0,
        gamma=0.0,
        rho=[1.0],
        reward_range=(0.0, 1.0),
        ranges=((0.0, 1.0),),
    )
    known = dataclasses.replace(table.problem(), features=OneHot(1, 2))

    def sample(states, actions, rng):
        coins = rng.random(len(states)) < table.reward[states, actions]
        return np.zeros(len(states), dtype=np.int64), np.column_stack([coins, np.zeros(len(states))])

    observed = dataclasses.replace(known, reward=None)
    solver, design = GSSStopping(epsilon=1e-9, first_round=4000, max_samples=4000), full_design(*known.pairs())
    model = GenerativeModel(sample, FiniteStates(1), 2)
    last = solver.run(observed, design, Sampler(model, 0), MIXING[:1]).rounds[-1]
    assert 2 * math.sqrt(last.threshold / 2 / 4000) < last.gap[0] < 4 * math.sqrt(last.threshold / 2 / 1000)
    assert solver.run(known, design, Sampler(table.simulator(), 0), MIXING[:1]).rounds[-1].gap[0] == 0.0


def test_continuous_states_with_a_pool():
    """φ = (1−x, x), x = s for action 0 and 1−s for action 1; P = φ₁·U[0,½] + φ₂·U[½,1]; r = ⟨φ, (.2, .9)⟩: choose the larger x."""

    def phi(states, actions):
        x = np.where(actions == 0, states[:, 0], 1 - states[:, 0])
        return np.column_stack([1 - x, x])

    def sample(states, actions, rng):
        upper = rng.random(len(states)) < phi(states, actions)[:, 1]
        return 0.5 * (rng.random((len(states), 1)) + upper[:, None])

    box = BoxStates(np.zeros(1), np.ones(1))
    pool = np.repeat(np.linspace(0, 1, 11), 2)[:, None], np.tile([0, 1], 11)
    problem = CMDP(
        gamma=0.5,
        start=Start(np.array([[0.1]]), np.ones(1)),
        num_actions=2,
        states=box,
        reward=lambda s, a: phi(s, a) @ np.array([0.2, 0.9]),
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", lambda s, a: phi(s, a)[:, 0], ">=", 0.0, (0.0, 1.0))],
        features=FeatureFunction(phi, 2, 2),
        candidates=pool,
    )
    design = FrankWolfe().design(problem)
    sampler = Sampler(GenerativeModel(sample, box), 0)
    result = GSSStopping(epsilon=0.5, delta=1e-7).run(problem, design, sampler, MIXING[:1])
    assert result.reached and not result.guaranteed, "g on a pool proves nothing about the other pairs"
    # The other policy loses .7·.8 at the start and γH·.7·.5 after it: .91, so ε-optimal means the larger x.
    states = np.linspace(0.01, 0.99, 50)[:, None]
    np.testing.assert_array_equal(result.policies[0].act(states, np.random.default_rng(0)), states[:, 0] < 0.5)


def test_a_design_that_misses_a_direction_is_refused():
    table = random_table(0, S=6, A=2, d=3, gamma=0.5)
    problem = table.problem()
    pool = dataclasses.replace(problem, candidates=(np.array([0, 0]), np.array([0, 1])))
    with pytest.raises(InputError, match="`design` must span the features of all pairs"):
        GSSStopping().run(problem, FrankWolfe().design(pool), Sampler(table.simulator(), 0), MIXING)


def test_a_table_without_features_is_refused():
    table = random_table(0)
    with pytest.raises(InputError, match="`features` must be given"):
        GSSStopping().run(table.problem(), full_design(*table.problem().pairs()), Sampler(table.simulator(), 0), MIXING)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"delta": 1.0}, {"first_round": 0}, {"max_samples": 0}])
def test_bad_parameters_are_named(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        GSSStopping(**bad)


def test_it_is_an_interactive_solver():
    assert isinstance(GSSStopping(), InteractiveSolver)
