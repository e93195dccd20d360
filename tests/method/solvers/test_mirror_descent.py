"""Entropic mirror descent: closed form, limit, and the paper's misprint."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from helpers import NoiselessBuffer, random_design, random_table, sampled
from saddleback.errors import InputError
from saddleback.features import OneHot
from saddleback.method.solvers import LSMDVI, MirrorDescent
from saddleback.problem.policies import as_table

universal = settings(derandomize=True, deadline=None, max_examples=30)


@universal
@given(st.integers(0, 10_000), st.floats(0.05, 2.0), st.floats(0.0, 2.0))
def test_closed_form_equals_direct(seed, tau, kappa):
    """V^t by log-sum-exp equals πQ − τKL + κℋ by the recursive policies (property 23); the paper's exponent does not."""
    rng = np.random.default_rng(seed)
    T, A = 6, 4
    Q = rng.random((T, A))
    alpha, beta = tau / (tau + kappa), 1 / (tau + kappa)
    pi, total = np.full(A, 1 / A), np.zeros(A)
    for t in range(T):
        new = pi**alpha * np.exp(beta * Q[t])
        new /= new.sum()
        direct = new @ Q[t] - tau * (new @ np.log(new / pi)) - kappa * (new @ np.log(new))
        before, total = total, alpha * total + Q[t]
        closed = logsumexp(beta * total) / beta - alpha * logsumexp(beta * before) / beta
        assert closed == pytest.approx(direct, abs=1e-10)
        np.testing.assert_allclose(new, np.exp(beta * total - logsumexp(beta * total)), atol=1e-10)
        if t == 3 and kappa > 0.2 and tau > 0.2:
            printed = logsumexp(beta * total) / beta - alpha * logsumexp(beta * alpha * before) / beta
            assert abs(printed - direct) > 1e-6
        pi = new


def test_solver_follows_the_closed_form():
    table = random_table(4, d=3)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, 0), 20, 5)
    sigma, tau, kappa = np.array([0.5, 0.5]), 0.3, 0.2
    alpha, beta = tau / (tau + kappa), 1 / (tau + kappa)
    box = buffer.utilities(problem) @ sigma
    phi = problem.features.all(buffer.support)
    theta, V = np.zeros(3), np.zeros(len(buffer.support))
    for t in range(5):
        before, theta = theta, alpha * theta + buffer.design.fit(box + problem.gamma * buffer.expect(t, V))
        V = (logsumexp(beta * phi @ theta, axis=1) - alpha * logsumexp(beta * phi @ before, axis=1)) / beta
    policy = MirrorDescent(tau, kappa).solve(problem, buffer, sigma[None])[0]
    np.testing.assert_allclose(policy.theta, theta, atol=1e-11)
    p = policy.probabilities(np.arange(table.num_states))
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


def test_limit_is_ls_mdvi():
    """κ = 0, τ → 0 gives LS-MDVI's actions and θ (property 23)."""
    table = random_table(5, d=4)
    problem = table.problem()
    buffer = NoiselessBuffer.of(table, problem, random_design(problem, 0), 40)
    sigma = np.array([[0.5, 0.5]])
    limit = LSMDVI().solve(problem, buffer, sigma)[0]
    errors = []
    for tau in (1e-1, 1e-3, 1e-5):
        soft = MirrorDescent(tau, 0.0).solve(problem, buffer, sigma)[0]
        errors.append(np.abs(soft.theta - limit.theta).max())
    assert errors[2] < 1e-3 < errors[0]
    states = np.arange(table.num_states)
    np.testing.assert_array_equal(soft.probabilities(states).argmax(axis=1), limit.actions(states))


@universal
@given(st.integers(0, 10_000), st.floats(-4.0, 0.0), st.integers(1, 40))
def test_distance_from_the_limit(seed, exponent, T):
    """Property 23: without noise, with κ = 0, Q̃ differs from LS-MDVI's by at most γHτ·log A, for every τ and T.

    Σ_{i≤t} V^i = τ·lse(Q̃^t/τ) − τ·log A lies within τ·log A below max Q̃^t, and Q̃^{t+1} = (t+1)□ + γP Σ_{i≤t} V^i, so a
    difference x becomes at most γ(x + τ·log A). Rounding: Q̃ of size TH, values regressed once a step.
    """
    tau = 10.0**exponent
    table = random_table(seed, d=4)
    problem = table.problem()
    buffer = NoiselessBuffer.of(table, problem, random_design(problem, seed), T)
    sigma = np.array([[0.5, 0.5]])
    soft, hard = (s.solve(problem, buffer, sigma)[0] for s in (MirrorDescent(tau, 0.0), LSMDVI()))
    difference = table.phi @ (soft.theta - hard.theta)
    bound = problem.gamma * problem.horizon * tau * np.log(table.num_actions)
    assert np.abs(difference).max() <= bound + 1e-11 * T * problem.horizon
    assert difference.max() <= 1e-11 * T * problem.horizon  # from below
    if T > 1 and tau > 1e-3:
        assert difference.min() < -1e-6  # and not the same


def test_runs_on_tables_through_one_hot_features():
    table = random_table(6)
    problem = dataclasses.replace(table.problem(), features=OneHot(table.num_states, table.num_actions))
    buffer = sampled(table, problem, random_design(problem, 0), 400, 100)
    soft = MirrorDescent(1e-4).solve(problem, buffer, np.array([[0.5, 0.5]]))[0]
    hard = LSMDVI().solve(problem, buffer, np.array([[0.5, 0.5]]))[0]
    states = np.arange(table.num_states)
    same = soft.probabilities(states).argmax(axis=1) == hard.actions(states)
    assert same.all()
    assert as_table(soft, table.num_states).probabilities(states).shape == (table.num_states, table.num_actions)


def test_refuses_no_regularisation():
    with pytest.raises(InputError, match="not both zero"):
        MirrorDescent(0.0, 0.0)
