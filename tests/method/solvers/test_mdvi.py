"""LS-MDVI and Tabular-MDVI: the identities of Algs. 2 and 6."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import NoiselessBuffer, chain_under, random_design, random_table, sampled, tabular_buffer
from saddleback.errors import InputError
from saddleback.exact import best_policy, state_values
from saddleback.features import FeatureMatrix, OneHot
from saddleback.method.evaluators import LSPE
from saddleback.method.solvers import LSMDVI, TabularMDVI
from saddleback.problem.policies import as_table
from saddleback.sampling.buffer import MaxDifference
from saddleback.simulators.table import Table

universal = settings(derandomize=True, deadline=None, max_examples=25)
seeds = st.integers(0, 10_000)


def replay(problem, buffer, sigma):
    """Alg. 2 written out once more, keeping every iterate."""
    box = buffer.utilities(problem) @ sigma
    d = problem.features.dim
    thetas, values = [np.zeros(d)], [np.zeros(len(buffer.support))]
    for t in range(buffer.num_batches):
        thetas.append(buffer.design.fit(box + problem.gamma * buffer.expect(t, values[-1])))
        total, before = np.sum(thetas, axis=0), np.sum(thetas[:-1], axis=0)
        values.append(buffer.at_support(MaxDifference(total, before)))
    return np.sum(thetas, axis=0), values


@universal
@given(seeds)
def test_values_telescope(seed):
    """Σ_{i≤T} V̂^i = max_a Q̃^T (property 1), and the solver's θ is the replayed sum."""
    table = random_table(seed, d=4)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, seed), 60, 15, seed)
    sigma = np.array([0.3, 0.7])
    theta, values = replay(problem, buffer, sigma)
    top = problem.features.maximum(buffer.support, theta)
    np.testing.assert_allclose(np.sum(values, axis=0), top, rtol=1e-12, atol=1e-12)
    policy = LSMDVI().solve(problem, buffer, sigma[None])[0]
    np.testing.assert_allclose(policy.theta, theta, rtol=1e-12)


@universal
@given(seeds)
def test_average_identity(seed):
    """V̄ − V^{π_T} = (I − γP_π)⁻¹ [π e + γP(V⁰ − V̂^T)/T], V⁰ = 0 (property 3)."""
    table = random_table(seed, d=4, S=5)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, seed), 40, 10, seed)
    if len(buffer.support) < table.num_states:
        return
    sigma, gamma, T = np.array([0.6, 0.4]), problem.gamma, buffer.num_batches
    _theta, values = replay(problem, buffer, sigma)
    P = table.P.toarray()
    states, actions = problem.pairs()
    rows = buffer.design.states * table.num_actions + buffer.design.actions
    noise = sum(buffer.expect(i, values[i]) - P[rows] @ values[i] for i in range(T)) * gamma / T
    e = problem.features.at(states, actions) @ buffer.design.fit(noise)
    pi = as_table(LSMDVI().solve(problem, buffer, sigma[None])[0], table.num_states).probabilities(np.arange(5))
    P_pi = chain_under(table, pi)
    V = state_values(table, as_table(LSMDVI().solve(problem, buffer, sigma[None])[0], 5)) @ sigma
    average = np.mean(values[1:], axis=0)
    pi_e = (pi * e.reshape(5, -1)).sum(axis=1)
    right = np.linalg.solve(np.eye(5) - gamma * P_pi, pi_e - gamma * P_pi @ values[T] / T)
    np.testing.assert_allclose(average - V, right, atol=1e-10)


def every_value(table, problem, buffer, solver, sigma):
    """V̂⁰ … V̂ⁿ on all states, the noise Σ(P̂_i − P)V̂^i/n on the coreset, and θ̃, from the solver's own V⁰."""
    box, states = buffer.utilities(problem) @ sigma, np.arange(table.num_states)
    value, first = solver._start(problem, buffer, box)
    P = table.P.toarray()[buffer.design.states * table.num_actions + buffer.design.actions]
    theta, noise, n = np.zeros(problem.features.dim), np.zeros(buffer.design.size), buffer.num_batches - first

    def everywhere(value):
        if isinstance(value, MaxDifference):
            return problem.features.maximum(states, value[0]) - problem.features.maximum(states, value[1])
        return np.zeros(table.num_states)

    values = [everywhere(value)]
    for t in range(first, buffer.num_batches):
        means = buffer.expect(t, value)
        noise += (means - P @ values[-1]) / n
        before, theta = theta, theta + buffer.design.fit(box + problem.gamma * means)
        value = MaxDifference(theta, before)
        values.append(everywhere(value))
    return np.array(values), noise, theta


@universal
@given(seeds, st.sampled_from([0.0, 0.3, 2.0]), st.booleans())
def test_average_identity_and_gap_from_any_start(seed, burn_in, noiseless):
    """Properties 3, 12 and 15 at every state, V⁰ being zero or what the burn-in ends with; linear features.

    V̄ − V^{π_T} = (I − γP_π)⁻¹[πe + γP_π(V⁰ − V̂^T)/T] and V* − V^{π_T} ≤ H[γ·span(V̂^T − V⁰)/T + span(e)]; e = 0 without
    noise. Numbers of size H = 5 through regressions of condition up to about 10⁴: rounding stays below 1e-10.
    """
    table = random_table(seed, d=4, S=5)
    problem, sigma, states = table.problem(), np.array([0.6, 0.4]), np.arange(5)
    design = random_design(problem, seed)
    buffer = (
        NoiselessBuffer.of(table, problem, design, 12) if noiseless else sampled(table, problem, design, 24, 12, seed)
    )
    solver = LSMDVI(burn_in)
    values, noise, theta = every_value(table, problem, buffer, solver, sigma)
    n, gamma, H = len(values) - 1, problem.gamma, problem.horizon
    assert (np.ptp(values[0]) > 0) == (burn_in > 0)
    policy = solver.solve(problem, buffer, sigma[None])[0]
    np.testing.assert_allclose(policy.theta, theta, rtol=1e-12, atol=1e-12)
    e = gamma * (table.phi @ design.fit(noise))
    if noiseless:
        assert np.abs(e).max() < 1e-12
    pi = policy.probabilities(states)
    P_pi, V = chain_under(table, pi), state_values(table, as_table(policy, 5)) @ sigma
    change = (values[0] - values[-1]) / n
    right = np.linalg.solve(np.eye(5) - gamma * P_pi, (pi * e).sum(axis=1) + gamma * P_pi @ change)
    np.testing.assert_allclose(values[1:].mean(axis=0) - V, right, atol=1e-10)
    best = state_values(table, best_policy(table, sigma)[0]) @ sigma
    assert np.all(best - V <= H * (gamma * np.ptp(change) + np.ptp(e)) + 1e-10)


@universal
@given(seeds)
def test_one_hot_equals_tabular(seed):
    """One-hot LS-MDVI is Tabular-MDVI for any positive weights: policy, V and θ̄ = Q̃ (property 6)."""
    table = random_table(seed)
    S, A = table.num_states, table.num_actions
    tabular, full = tabular_buffer(table, 40, 10, seed)
    eye = FeatureMatrix(np.eye(S * A).reshape(S, A, S * A))
    problem = dataclasses.replace(tabular, features=eye)
    weighted = sampled(table, problem, random_design(problem, seed), 40, 10, seed)
    mixing = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    ours = LSMDVI().solve(problem, weighted, mixing)
    theirs = TabularMDVI().solve(tabular, full, mixing)
    for linear, table_policy, sigma in zip(ours, theirs, mixing, strict=True):
        np.testing.assert_array_equal(as_table(linear, S).table, table_policy.table)
        Q = np.zeros((S, A))
        V, top = np.zeros(S), np.zeros(S)
        box = (full.utilities(tabular) @ sigma).reshape(S, A)
        for t in range(full.num_batches):
            Q += box + tabular.gamma * full.expect(t, V[full.support]).reshape(S, A)
            V, top = Q.max(axis=1) - top, Q.max(axis=1)
        np.testing.assert_allclose(linear.theta.reshape(S, A), Q, atol=1e-10)


def test_one_hot_class_equals_matrix():
    table = random_table(3)
    problem, _ = tabular_buffer(table, 8, 2)
    S, A = table.num_states, table.num_actions
    one_hot = dataclasses.replace(problem, features=OneHot(S, A))
    matrix = dataclasses.replace(problem, features=FeatureMatrix(np.eye(S * A).reshape(S, A, S * A)))
    sigma = np.array([[0.5, 0.5]])
    policies = []
    for p in (one_hot, matrix):
        buffer = sampled(table, p, random_design(p, 1), 80, 20, 5)
        policies.append(LSMDVI().solve(p, buffer, sigma)[0].theta)
    np.testing.assert_allclose(policies[0], policies[1], atol=1e-12)


@universal
@given(seeds)
def test_one_action_is_evaluation(seed):
    """With one action LS-MDVI is LS-PE (property 8): Q̃^T/T at ρ is LS-PE's value."""
    table = random_table(seed, A=1, d=3)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, seed), 60, 12, seed)
    policy = LSMDVI().solve(problem, buffer, np.array([[0.25, 0.75]]))[0]
    start = problem.start.weights @ problem.features.maximum(problem.start.states, policy.theta)
    values = LSPE().evaluate(problem, buffer, policy)
    assert start / buffer.num_batches == pytest.approx(values @ [0.25, 0.75], abs=1e-10)


@universal
@given(seeds, st.floats(0.1, 50.0), st.floats(-3.0, 3.0))
def test_scale_and_shift(seed, scale, shift):
    """θ scales with □ (property 9); adding a constant leaves the policy alone when 1 ∈ span φ (property 10)."""
    table = random_table(seed, d=4)
    problem = table.problem()
    design = random_design(problem, seed)
    other = Table.of(
        table.P,
        scale * table.reward + shift,
        table.constraints,
        table.thresholds,
        gamma=table.gamma,
        rho=table.rho,
        phi=table.phi,
        reward_range=(shift, scale + shift),
        ranges=table.ranges,
    ).problem()
    buffer = sampled(table, problem, design, 60, 15, seed)
    sigma = np.array([[0.5, 0.5]])
    base, mapped = (LSMDVI().solve(p, buffer, sigma)[0] for p in (problem, other))
    np.testing.assert_allclose(base.theta, mapped.theta, rtol=1e-6, atol=1e-7)  # the edge undoes the affine map
    # By hand, without the map: W is linear and W(1) = 1_φ, so θ(s·□ + k) has the argmax of θ(□).
    box = buffer.utilities(problem) @ sigma[0]
    thetas = [_run(problem, buffer, x) for x in (box, scale * box, box + shift)]
    np.testing.assert_allclose(thetas[1], scale * thetas[0], rtol=1e-9, atol=1e-9 * scale)
    gaps = [table.phi @ theta for theta in thetas]
    gaps = [g - g.max(axis=1, keepdims=True) for g in gaps]
    np.testing.assert_allclose(gaps[2], gaps[0], atol=1e-8 * (1 + abs(shift)))


def _run(problem, buffer, box):
    theta_sum = np.zeros(problem.features.dim)
    value = np.zeros(len(buffer.support))
    for t in range(buffer.num_batches):
        previous, theta_sum = theta_sum, theta_sum + buffer.design.fit(box + problem.gamma * buffer.expect(t, value))
        value = buffer.at_support(MaxDifference(theta_sum, previous))
    return theta_sum


@pytest.mark.slow
@universal
@given(seeds)
def test_noiseless_gap(seed):
    """P̂ = P: the gap is at most γH·span(V̂^T − V⁰)/T, and zero for T large (property 12)."""
    table = random_table(seed, d=4)
    problem = table.problem()
    design = random_design(problem, seed)
    sigma = np.array([0.5, 0.5])
    best = best_policy(table, sigma)[1] @ sigma
    gaps = []
    for T in (20, 2000):
        buffer = NoiselessBuffer.of(table, problem, design, T)
        _theta, values = replay(problem, buffer, sigma) if T == 20 else (None, None)
        policy = as_table(LSMDVI().solve(problem, buffer, sigma[None])[0], table.num_states)
        gap = best - problem.start.weights @ (state_values(table, policy) @ sigma)[problem.start.states]
        if values is not None:
            assert gap <= problem.gamma * problem.horizon * np.ptp(values[T]) / T + 1e-10
        gaps.append(gap)
    assert gaps[1] <= 1e-9 + 0.05 * gaps[0]


@universal
@given(seeds)
def test_tabular_range(seed):
    """0 ≤ V̂ ≤ H surely in the tabular case (property 14); gap ≤ H[γ span(V̂^T)/T + span(e)] (property 15)."""
    table = random_table(seed)
    problem, buffer = tabular_buffer(table, 24, 8, seed)
    S, A = table.num_states, table.num_actions
    P = table.P.toarray()
    sigma = np.array([0.5, 0.5])
    box = (buffer.utilities(problem) @ sigma).reshape(S, A)
    Q, V, top, noise = np.zeros((S, A)), np.zeros(S), np.zeros(S), np.zeros(S * A)
    for t in range(buffer.num_batches):
        means = buffer.expect(t, V[buffer.support])
        noise += problem.gamma / buffer.num_batches * (means - P @ V)
        Q += box + problem.gamma * means.reshape(S, A)
        V, top = Q.max(axis=1) - top, Q.max(axis=1)
        assert V.min() >= -1e-12
        assert V.max() <= problem.horizon + 1e-12
    policy = TabularMDVI().solve(problem, buffer, sigma[None])[0]
    gap = (
        best_policy(table, sigma)[1] @ sigma
        - problem.start.weights @ ((state_values(table, policy) @ sigma)[problem.start.states])
    )
    bound = problem.horizon * (problem.gamma * np.ptp(V) / buffer.num_batches + np.ptp(noise))
    assert gap <= bound + 1e-10


def test_several_rewards_at_once_equal_one_by_one():
    table = random_table(1, d=4, m=2)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, 0), 60, 15)
    mixing = np.random.default_rng(0).dirichlet(np.ones(3), 4)
    for burn_in in (0.0, 2.0):
        together = LSMDVI(burn_in).solve(problem, buffer, mixing)
        for policy, sigma in zip(together, mixing, strict=True):
            alone = LSMDVI(burn_in).solve(problem, buffer, sigma[None])[0]
            np.testing.assert_allclose(policy.theta, alone.theta, rtol=1e-12)


def delayed_chain(length: int, gamma: float) -> Table:
    """Two actions: walk right to a reward of 1 that is kept, or take .4·γ^length now and then."""
    S = length + 1
    P = np.zeros((S, 2, S))
    for s in range(S):
        P[s, 0, min(s + 1, length)] = 1.0
        P[s, 1, 0] = 1.0
    reward = np.zeros((S, 2))
    reward[length, 0] = 1.0
    reward[:, 1] = 0.25
    rho = np.zeros(S)
    rho[0] = 1.0
    return Table.of(P, reward, reward[None], [0.0], gamma=gamma, rho=rho, reward_range=(0, 1), ranges=((0, 1),))


def test_burn_in_removes_the_averaging_lag():
    """A delayed reward: the literal average needs more iterations than the one that starts from plain value iteration."""
    table = delayed_chain(10, 0.9)
    problem = dataclasses.replace(table.problem(), features=OneHot(table.num_states, 2))
    design = random_design(problem, 0)
    best = best_policy(table, np.array([1.0, 0.0]))[1][0]

    def first_optimal(burn_in):
        for T in range(3, 400):
            buffer = NoiselessBuffer.of(table, problem, design, T)
            policy = as_table(LSMDVI(burn_in).solve(problem, buffer, np.array([[1.0, 0.0]]))[0], table.num_states)
            if abs(state_values(table, policy)[0, 0] - best) < 1e-9:
                return T
        return 400

    assert first_optimal(2.0) < first_optimal(0.0) < 400


def test_refusals():
    table = random_table(0)
    problem, buffer = tabular_buffer(table, 4, 2)
    with pytest.raises(InputError, match="features"):
        LSMDVI().solve(problem, buffer, np.array([[1.0, 0.0]]))
    with pytest.raises(InputError, match="burn_in"):
        LSMDVI(-1.0)
    linear = random_table(0, d=3)
    p = linear.problem()
    with pytest.raises(InputError, match="design"):
        TabularMDVI().solve(p, sampled(linear, p, random_design(p, 0), 4, 2), np.array([[1.0, 0.0]]))
