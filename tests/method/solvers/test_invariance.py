"""What must not change an answer: the scale of a reward, a constant, coordinates of the features, names of states.

Rewards are drawn from continuous distributions, so ties have probability zero and equal values mean equal actions.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_design, random_table
from saddleback.designs.design import full_design, weighted_design
from saddleback.exact import solve_exactly
from saddleback.features import FeatureMatrix
from saddleback.method.evaluators import LSPE, TabularPE
from saddleback.method.solvers import LSMDVI, MirrorDescent, TabularMDVI
from saddleback.problem.policies import as_table
from saddleback.sampling.collect import Samples, collect
from saddleback.sampling.counted_buffer import cut
from saddleback.simulators.table import Table

EPS = np.finfo(np.float64).eps
S, A, D, N, T = 6, 3, 4, 60, 6
universal = settings(derandomize=True, deadline=None, max_examples=25)
seeds = st.integers(0, 10_000)
MIXING = np.array([[0.6, 0.4], [1.0, 0.0], [0.0, 1.0]])


def rounding(problem, design, extra=1.0):
    """What rounding may do to Σθ: one regression's backward error, T times over numbers of size H.

    Later regressions see it through γP̂ and W, so it grows by γ·Leb a step at most, where that exceeds one.
    """
    condition = np.linalg.cond(np.sqrt(design.weights)[:, None] * design.features)
    growth = max(1.0, problem.gamma * design.lebesgue) ** T
    return 200 * EPS * D * condition * extra * T * problem.horizon * growth


@pytest.mark.slow
@universal
@given(seeds, st.floats(0.02, 50.0), st.floats(-3.0, 3.0))
def test_scales_and_constants(seed, scale, shift):
    """Properties 9 and 10: s·□ gives s·θ̃; □ + k, by a second constraint that is 1 everywhere, gives the same policy."""
    plain = random_table(seed, d=D)
    constraints = np.concatenate([plain.constraints, np.ones((1, S, A))])
    table = Table.of(
        plain.P, plain.reward, constraints, [0.0, 0.0], gamma=plain.gamma, rho=plain.rho, phi=plain.phi,
        reward_range=(0.0, 1.0), ranges=((0.0, 1.0),) * 2,
    )  # fmt: skip
    mixing = np.array([[0.5, 0.5, 0.0], [0.5 * scale, 0.5 * scale, 0.0], [0.5, 0.5, shift]])
    problem, states = table.problem(), np.arange(S)
    design = random_design(problem, seed)
    samples = collect(table.simulator(), problem, design, N, seed=seed, stream=0)
    base, scaled, shifted = LSMDVI().solve(problem, cut(samples, problem, design, T), mixing)
    slack = rounding(problem, design)
    Q = [table.phi @ policy.theta for policy in (base, scaled, shifted)]
    np.testing.assert_allclose(Q[1], scale * Q[0], rtol=0, atol=slack * max(1, scale))
    h = (1 - problem.gamma ** np.arange(1, T + 1)) * problem.horizon  # 1 + γ + … + γ^{t−1}, what V̂^t gains per k
    np.testing.assert_allclose(Q[2] - Q[0], shift * h.sum(), rtol=0, atol=slack * (1 + abs(shift)))
    for policy in (scaled, shifted):
        np.testing.assert_array_equal(policy.actions(states), base.actions(states))
    tabular, full = dataclasses.replace(problem, features=None), full_design(*problem.pairs())
    samples = collect(table.simulator(), tabular, full, N, seed=seed, stream=0)
    base, *others = TabularMDVI().solve(tabular, cut(samples, tabular, full, T), mixing)
    for policy in others:
        np.testing.assert_array_equal(policy.table, base.table)


@pytest.mark.slow
@universal
@given(seeds, st.floats(1.0, 100.0))
def test_invertible_feature_maps_leave_policies_alone(seed, condition):
    """Property 30: φ → Mφ with an invertible M; the same samples give the same Q̃, policies and values."""
    table = random_table(seed, d=D)
    U, _, V = np.linalg.svd(np.random.default_rng(seed).normal(size=(D, D)))
    M = (U * np.geomspace(1, condition, D)) @ V
    problem, states = table.problem(), np.arange(S)
    mapped = dataclasses.replace(problem, features=FeatureMatrix(table.phi @ M.T))
    designs = [random_design(p, seed) for p in (problem, mapped)]
    np.testing.assert_array_equal(designs[0].weights, designs[1].weights)
    samples = collect(table.simulator(), problem, designs[0], N, seed=seed, stream=0)
    buffers = [cut(samples, p, d, T) for p, d in zip((problem, mapped), designs, strict=True)]
    slack = rounding(problem, designs[0], condition)
    for solver in (LSMDVI(), LSMDVI(1.0), MirrorDescent(0.1, 0.05)):
        for ours, theirs in zip(
            solver.solve(problem, buffers[0], MIXING), solver.solve(mapped, buffers[1], MIXING), strict=True
        ):
            np.testing.assert_allclose(table.phi @ M.T @ theirs.theta, table.phi @ ours.theta, rtol=0, atol=slack)
            mine, other = ours.probabilities(states), theirs.probabilities(states)
            np.testing.assert_allclose(other, mine, rtol=0, atol=20 * slack)  # softmax at β ≤ 10, Lipschitz 2β
            np.testing.assert_allclose(
                LSPE().evaluate(mapped, buffers[1], theirs), LSPE().evaluate(problem, buffers[0], ours), atol=slack
            )


def relabelled(table: Table, states: np.ndarray, actions: np.ndarray) -> Table:
    """State s becomes ``states[s]``, action a becomes ``actions[a]``."""
    s, a = np.argsort(states), np.argsort(actions)
    P = table.P.toarray().reshape(S, A, S)[s][:, a][:, :, s]
    return Table.of(
        P, table.reward[s][:, a], table.constraints[:, s][:, :, a], table.thresholds, gamma=table.gamma,
        rho=table.rho[s], phi=None if table.phi is None else table.phi[s][:, a],
        reward_range=table.reward_range, ranges=table.ranges,
    )  # fmt: skip


@pytest.mark.slow
@universal
@given(seeds)
def test_names_of_states_and_actions_do_not_matter(seed):
    """Property 30: permute states, actions and the order of the pairs; policies are permuted alike, values the same."""
    rng = np.random.default_rng(seed)
    p, q, order = rng.permutation(S), rng.permutation(A), rng.permutation(S * A)
    table = random_table(seed, d=D)
    other = relabelled(table, p, q)
    problem, renamed = table.problem(), other.problem()
    design = random_design(problem, seed)
    turned = weighted_design(
        p[design.states][order], q[design.actions][order], design.features[order], design.weights[order]
    )
    samples = collect(table.simulator(), problem, design, N, seed=seed, stream=0)
    moved = Samples([p[samples.next_states[i]] for i in order], None)
    buffers = cut(samples, problem, design, T), cut(moved, renamed, turned, T)
    slack = rounding(problem, design)
    for ours, theirs in zip(
        LSMDVI().solve(problem, buffers[0], MIXING), LSMDVI().solve(renamed, buffers[1], MIXING), strict=True
    ):
        np.testing.assert_allclose(theirs.theta, ours.theta, rtol=0, atol=slack * np.linalg.cond(design.features))
        np.testing.assert_array_equal(as_table(theirs, S).table[p], q[as_table(ours, S).table])
        np.testing.assert_allclose(
            LSPE().evaluate(renamed, buffers[1], theirs), LSPE().evaluate(problem, buffers[0], ours), atol=slack
        )


@pytest.mark.slow
@universal
@given(seeds)
def test_names_do_not_matter_to_tabular_oracles(seed):
    """Property 30 without features, and for the exact answer: V*, λ* and ζ."""
    rng = np.random.default_rng(seed)
    p, q = rng.permutation(S), rng.permutation(A)
    table = random_table(seed)
    other = relabelled(table, p, q)
    problem, renamed = table.problem(), other.problem()
    design = full_design(*problem.pairs())
    samples = collect(table.simulator(), problem, design, N, seed=seed, stream=0)
    moved = [np.empty(0)] * (S * A)
    for i, (s, a) in enumerate(zip(design.states, design.actions, strict=True)):
        moved[p[s] * A + q[a]] = p[samples.next_states[i]]
    buffers = cut(samples, problem, design, T), cut(Samples(moved, None), renamed, design, T)
    for ours, theirs in zip(
        TabularMDVI().solve(problem, buffers[0], MIXING), TabularMDVI().solve(renamed, buffers[1], MIXING), strict=True
    ):
        np.testing.assert_array_equal(theirs.table[p], q[ours.table])
        np.testing.assert_allclose(
            TabularPE().evaluate(renamed, buffers[1], theirs),
            TabularPE().evaluate(problem, buffers[0], ours),
            rtol=1e-12,
        )
    ours, theirs = solve_exactly(table), solve_exactly(other)
    assert theirs.status == ours.status
    if ours.status == "optimal":
        assert theirs.value == pytest.approx(ours.value, abs=1e-8)  # the linear program's own tolerance is 1e-9 of H
        np.testing.assert_allclose(theirs.multipliers, ours.multipliers, atol=1e-6)
    assert theirs.slater == pytest.approx(ours.slater, abs=1e-8)


def test_other_samples_are_another_answer():
    """The control: the comparisons above see the difference between two buffers."""
    table = random_table(1, d=D)
    problem = table.problem()
    design = random_design(problem, 1)
    thetas = [
        LSMDVI()
        .solve(
            problem, cut(collect(table.simulator(), problem, design, N, seed=1, stream=k), problem, design, T), MIXING
        )[0]
        .theta
        for k in (0, 1)
    ]
    assert np.abs(table.phi @ (thetas[0] - thetas[1])).max() > 1e3 * rounding(problem, design)
