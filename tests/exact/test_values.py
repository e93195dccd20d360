"""Values, occupancies and unconstrained optima on a table against closed forms, brute force and each other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.random_tables import random_policy, random_table
from saddleback.errors import InputError
from saddleback.exact import best_policy, mixture_values, occupancy, policy_values, state_values, to_stationary
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.simulators.table import Table


def detour() -> Table:
    """Four states: start, two half-way houses, goal. The wrong action half-way leads back to the start.

    Always-left and always-right are both at the goal after two steps, γ²H = 8.1. Tossing a coin at every step gives
    V = γ²(H + V)/2, so 4.05/0.595.
    """
    P = np.zeros((4, 2, 4))
    P[0, 0, 1] = P[0, 1, 2] = 1
    P[1, 0, 3] = P[1, 1, 0] = 1
    P[2, 1, 3] = P[2, 0, 0] = 1
    P[3, :, 3] = 1
    reward = np.zeros((4, 2))
    reward[3] = 1
    left = np.zeros((1, 4, 2))
    left[0, :, 0] = 1
    return Table.of(P, reward, left, [0.0], gamma=0.9, rho=[1, 0, 0, 0])


def both_ways() -> MixturePolicy:
    return MixturePolicy.of([TabularPolicy.deterministic(np.full(4, a), 2) for a in (0, 1)], np.array([0.5, 0.5]))


def test_a_mixture_is_not_the_average_of_its_members_at_every_step() -> None:
    table, mixture = detour(), both_ways()
    for member in mixture.members:
        assert policy_values(table, member)[0] == pytest.approx(8.1, abs=1e-12)
    assert mixture_values(table, mixture) == pytest.approx([8.1, 5.0], abs=1e-12)
    coin = TabularPolicy.stochastic(np.full((4, 2), 0.5))
    assert policy_values(table, coin)[0] == pytest.approx(4.05 / 0.595, abs=1e-12)  # 6.81


def test_occupancies_turn_a_mixture_into_one_policy_with_its_values() -> None:
    table, mixture = detour(), both_ways()
    stationary = to_stationary(table, mixture)
    assert policy_values(table, stationary) == pytest.approx([8.1, 5.0], abs=1e-12)
    np.testing.assert_allclose(stationary.table[:3], [[0.5, 0.5], [1, 0], [0, 1]], atol=1e-15)


def test_states_that_no_member_visits_follow_the_first_member() -> None:
    table = detour()
    left = TabularPolicy.deterministic(np.zeros(4, dtype=int), 2)
    but = TabularPolicy.deterministic(np.array([0, 0, 1, 1]), 2)  # differs where `left` never is, and at the goal
    stationary = to_stationary(table, MixturePolicy.of([but, left], np.array([0.25, 0.75])))
    np.testing.assert_array_equal(stationary.table[2], [0, 1])
    np.testing.assert_allclose(stationary.table[3], [0.75, 0.25], atol=1e-15)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6), m=st.integers(1, 3), gamma=st.sampled_from([0.0, 0.5, 0.95, 0.999]))
def test_values_and_occupancies_agree(seed: int, m: int, gamma: float) -> None:
    table = random_table(seed, m=m, gamma=gamma)
    policies = [random_policy(table, seed + k) for k in range(3)]
    H, span = 1 / (1 - gamma), np.abs(table.problem().scale)
    for policy in policies:
        mu = occupancy(table, policy)
        assert mu.sum() == pytest.approx(H, rel=1e-11)
        by_occupancy = [np.sum(mu * signal) for signal in (table.reward, *table.constraints)]
        np.testing.assert_allclose(policy_values(table, policy) / span, by_occupancy / span, atol=1e-10 * H)
    mixture = MixturePolicy.of(policies, np.array([0.2, 0.5, 0.3]))
    np.testing.assert_allclose(
        policy_values(table, to_stationary(table, mixture)) / span,
        mixture_values(table, mixture) / span,
        atol=1e-10 * H,
    )


def test_values_are_the_sum_of_discounted_steps() -> None:
    table = random_table(1, m=2, gamma=0.8)
    policy = random_policy(table, 5)
    P_pi = np.einsum("sa,sat->st", policy.table, table.P.toarray().reshape(12, 3, 12))
    u = np.einsum("sa,sak->sk", policy.table, table.utilities().reshape(12, 3, 3))
    V, step = np.zeros_like(u), u
    for _ in range(200):  # 0.8^200 = 4e-20
        V, step = V + step, 0.8 * P_pi @ step
    np.testing.assert_allclose(state_values(table, policy), V, atol=1e-12)


def test_conversion_on_an_estimated_table_is_approximate_on_the_true_one() -> None:
    table = random_table(2, S=6, A=2, gamma=0.9)
    rng = np.random.default_rng(3)
    counts = np.array([rng.multinomial(100, row) for row in table.P.toarray()])
    estimated = Table.of(
        (counts / 100).reshape(6, 2, 6), table.reward, table.constraints, table.thresholds, gamma=0.9, rho=table.rho
    )
    policies = [TabularPolicy.deterministic(np.full(6, a), 2) for a in (0, 1)]
    mixture = MixturePolicy.of(policies, np.array([0.5, 0.5]))
    stationary = to_stationary(estimated, mixture)
    span = table.problem().scale[0]
    exact = (policy_values(estimated, stationary) - mixture_values(estimated, mixture))[0] / span
    true = (policy_values(table, stationary) - mixture_values(table, mixture))[0] / span
    assert abs(exact) < 1e-12
    assert 1e-6 < abs(true) < 0.1


@pytest.mark.parametrize("seed", range(5))
def test_policy_iteration_finds_the_best_of_all_policies(seed: int) -> None:
    table = random_table(seed, m=2, S=4, A=3)
    sigma = np.random.default_rng(seed).dirichlet(np.ones(3))
    policy, values = best_policy(table, sigma)
    rho = table.rho
    everything = [
        rho @ state_values(table, TabularPolicy.deterministic(np.array(actions), 3)) @ sigma
        for actions in itertools.product(range(3), repeat=4)
    ]
    assert values @ sigma == pytest.approx(max(everything), abs=1e-11)
    np.testing.assert_allclose(values, rho @ state_values(table, policy), atol=1e-12)


def test_tied_actions_go_to_the_lowest_index_wherever_the_search_starts() -> None:
    table = random_table(4)
    twice = Table.of(
        np.concatenate([table.P.toarray().reshape(12, 3, 12)] * 2, axis=1),
        np.concatenate([table.reward] * 2, axis=1),
        np.concatenate([table.constraints] * 2, axis=2),
        table.thresholds,
        gamma=table.gamma,
        rho=table.rho,
        senses=table.senses,
    )
    mixing = np.array([1.0, 0.3])
    upper = TabularPolicy.deterministic(np.full(12, 5), 6)
    for start in (None, upper):
        policy, _ = best_policy(twice, mixing, start)
        assert policy.table.max() < 3
        np.testing.assert_array_equal(policy.table, best_policy(table, mixing)[0].table)


def test_property_16_constraint_value_rises_and_dual_function_is_convex() -> None:
    for seed in range(4):
        table = random_table(seed, m=1, gamma=0.95)
        lam = np.linspace(0, 5, 41)
        values = np.array([best_policy(table, np.array([1.0, x]))[1] for x in lam])
        assert np.all(np.diff(values[:, 1]) >= -1e-9)
        assert values[-1, 1] > values[0, 1] + 0.1  # it does rise
        D = values[:, 0] + lam * values[:, 1]
        assert np.all(D[2:] - 2 * D[1:-1] + D[:-2] >= -1e-10)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    gamma=st.sampled_from([0.0, 0.5, 0.95]),
    eighths=st.lists(st.integers(0, 160), min_size=2, max_size=5, unique=True),
)
def test_property_16_at_any_multipliers(seed: int, gamma: float, eighths: list[int]) -> None:
    """V_c(λ) is a subgradient of D at λ: D(λ') ≥ D(λ) + (λ' − λ)V_c(λ) for any two. Hence D is convex and V_c rises.

    Values of utilities up to (1+λ)H are right to 1e-11 of themselves, multipliers at least 1/8 apart.
    """
    table = random_table(seed, m=1, gamma=gamma)
    lam = np.sort(np.array(eighths)) / 8
    values = np.array([best_policy(table, np.array([1.0, x]))[1] for x in lam])
    V_c, D = values[:, 1], values[:, 0] + lam * values[:, 1]
    rounding = 1e-11 * (1 + lam[-1]) / (1 - gamma)
    assert np.all(D[None, :] >= D[:, None] + (lam[None, :] - lam[:, None]) * V_c[:, None] - rounding)
    assert np.all(np.diff(V_c) >= -8 * rounding)


def test_gamma_zero_is_one_step() -> None:
    table = random_table(7, m=2, gamma=0.0)
    policy = random_policy(table, 1)
    expected = [table.rho @ (policy.table * x).sum(axis=1) for x in (table.reward, *table.constraints)]
    np.testing.assert_allclose(policy_values(table, policy), expected, rtol=1e-12)


def test_a_policy_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"`policy` must give probabilities of shape \(4, 2\), got \(4, 3\)"):
        policy_values(detour(), TabularPolicy.deterministic(np.zeros(4, dtype=int), 3))
    with pytest.raises(InputError, match=r"`mixing` must have shape \(2,\)"):
        best_policy(detour(), np.ones(3))
