"""The lower-bound instance: its closed forms, its exact range, its oracle, its design and its samples."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import optimum
from saddleback.designs.design import weighted_design
from saddleback.errors import InputError
from saddleback.instances.zoo import Instance, make
from saddleback.instances.zoo.hard_instance import S0, S1, HardFeatures, HardModel, O, Z, candidates, signs
from saddleback.problem.policies import GreedyPolicy, TabularPolicy

fractions = st.floats(0, 1)


def drawn(gamma: float, zeta_share: float, delta_share: float, b_share: float, dim: int, seed: int) -> Instance:
    """An instance inside the valid range, its ends included."""
    zeta = zeta_share * gamma / (1 - gamma) / 2
    delta = delta_share * min(gamma, 1 - gamma)
    top = min(gamma / (1 - gamma) - zeta, zeta + gamma / (1 - gamma**2 - gamma * delta))
    b = zeta + b_share * (top - zeta)
    return make("hard-instance", gamma=gamma, threshold=b, zeta=zeta, delta=delta, dim=dim, seed=seed)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    gamma=st.floats(0.3, 0.95),
    zeta_share=st.floats(0.02, 1),
    delta_share=fractions,
    b_share=fractions,
    dim=st.integers(6, 8),
    seed=st.integers(0, 100),
)
def test_closed_forms_against_the_lp(
    gamma: float, zeta_share: float, delta_share: float, b_share: float, dim: int, seed: int
) -> None:
    """V*, ζ and λ* = V*/ζ ≤ H/ζ to 1e-9 of their size (LP tolerances are 1e-10)."""
    instance = drawn(gamma, zeta_share, delta_share, b_share, dim, seed)
    table, known = instance.table, instance.known
    assert table is not None
    np.testing.assert_allclose(table.P.sum(axis=1), 1.0, rtol=0, atol=1e-15)
    answer = optimum(table)
    delta, zeta = delta_share * min(gamma, 1 - gamma), known["zeta"]
    assert answer.value == pytest.approx(gamma / (2 * (1 - gamma**2 - gamma * delta)), rel=1e-9)
    assert answer.value == pytest.approx(known["value"], rel=1e-9)
    most = optimum(table, table.constraints[0], constrained=False).value
    assert most - table.thresholds[0] == pytest.approx(zeta, rel=1e-9, abs=1e-9)
    assert answer.multipliers[0] == pytest.approx(known["multiplier"], rel=1e-9)
    assert answer.multipliers[0] <= 1 / (1 - gamma) / zeta * (1 + 1e-9)
    free = optimum(table, constrained=False)
    assert free.value == pytest.approx(known["unconstrained_value"], rel=1e-9)


def test_defaults_to_nine_digits() -> None:
    instance = make("hard-instance")
    assert instance.table is not None
    answer = optimum(instance.table)
    assert abs(answer.value - 0.9 / (2 * (1 - 0.81 - 0.9 * 0.02))) < 1e-9
    assert abs(optimum(instance.table, instance.table.constraints[0], constrained=False).value - 4 - 0.5) < 1e-9
    assert instance.known["u"] == pytest.approx(0.172 / 0.9 * 3.5)
    assert instance.known["safe"] == pytest.approx(0.5)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=400)
@given(gamma=st.floats(0.05, 0.99), b_share=fractions, zeta_share=fractions, delta=st.floats(0, 1))
def test_the_constructor_accepts_exactly_the_valid_instances(
    gamma: float, b_share: float, zeta_share: float, delta: float
) -> None:
    """r, c ∈ [0, 1] and P a probability, written out, decide; parameters at a hair's breadth of an end are left out."""
    H = 1 / (1 - gamma)
    b, zeta = b_share * H, zeta_share * H / 2 + 1e-6
    delta = delta * 2 * min(gamma, 1 - gamma)
    u = (1 - gamma**2 - gamma * delta) / gamma * (b - zeta)
    safe = (b + zeta) * (1 - gamma) / gamma
    room = np.array([u, 1 - u, safe, 1 - safe, gamma - delta, 1 - gamma - delta])
    assume(np.abs(room).min() > 1e-9)
    if np.all(room > 0):
        HardModel(gamma, b, zeta, delta, 6, 0)
    else:
        with pytest.raises(InputError) as caught:
            HardModel(gamma, b, zeta, delta, 6, 0)
        assert caught.value.name in ("zeta", "delta", "threshold")


@pytest.mark.parametrize(
    ("b", "zeta", "delta"),
    [
        (5.0, 0.02, 0.001),  # b = H/2, inside the theorem's box: u = 1.046
        (8.9, 0.2, 0.02),  # c(z) = 1.011
        (0.4, 0.5, 0.02),  # b < ζ: u < 0
    ],
)
def test_rewards_above_one_are_refused(b: float, zeta: float, delta: float) -> None:
    with pytest.raises(InputError, match="`threshold` must lie in"):
        make("hard-instance", threshold=b, zeta=zeta, delta=delta)


# ---- the argmax oracle ----------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=40)
@given(dim=st.integers(6, 12), seed=st.integers(0, 10**6))
def test_oracle_against_every_action(dim: int, seed: int) -> None:
    features = HardFeatures(dim)
    theta = np.random.default_rng(seed).normal(size=dim)
    states = np.array([O, S0, S1, Z, S0])
    Q = features.all(states) @ theta
    np.testing.assert_allclose(features.values(states, theta), Q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(features.maximum(states, theta), Q.max(axis=1), rtol=0, atol=1e-12)
    chosen = features.argmax(states, theta)
    np.testing.assert_allclose(Q[np.arange(5), chosen], Q.max(axis=1), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(chosen[[0, 2, 3]], Q.argmax(axis=1)[[0, 2, 3]])
    many = np.random.default_rng(seed + 1).normal(size=(dim, 3))
    columns = np.column_stack([features.maximum(states, many[:, j]) for j in range(3)])
    np.testing.assert_allclose(features.maximum(states, many), columns, rtol=0, atol=1e-12)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(dim=st.sampled_from([6, 9]), data=st.data())
def test_ties_go_to_the_lowest_action(dim: int, data: st.DataObject) -> None:
    """With d − 5 ∈ {1, 4} and small whole θ every product is exact, so ties are ties."""
    theta = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=dim, max_size=dim)), dtype=np.float64)
    features, states = HardFeatures(dim), np.array([O, S0, S1, Z])
    np.testing.assert_array_equal(features.argmax(states, theta), (features.all(states) @ theta).argmax(axis=1))


@pytest.mark.parametrize("dim", [40, 66])
def test_large_dimensions_take_little_memory(dim: int) -> None:
    tracemalloc.start()
    try:
        instance = make("hard-instance", dim=dim)
        features = instance.problem.features
        assert features is not None
        rng = np.random.default_rng(0)
        theta = rng.normal(size=dim)
        policy = GreedyPolicy(features, theta)
        states = np.array([O, S0, S1, Z])
        actions = policy.actions(states)
        np.testing.assert_allclose(features.at(states, actions) @ theta, features.maximum(states, theta), atol=1e-12)
        instance.simulator.sample(np.full(4096, S0), np.full(4096, actions[1]), rng)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert instance.table is None and instance.problem.num_actions == 2 ** (dim - 4)
    assert np.all((actions >= 0) & (actions < 2 ** (dim - 4)))
    assert peak < 2e6
    with pytest.raises(InputError, match=f"{2 ** (dim - 4)} actions"):
        features.all(states)


# ---- the design -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [6, 7, 8, 10, 12, 40, 66])
def test_the_orthogonal_array_is_g_optimal_over_all_actions(dim: int) -> None:
    states, actions = candidates(dim)
    assert len({*zip(states.tolist(), actions.tolist(), strict=True)}) == len(states) <= 2 * dim - 6
    features = HardFeatures(dim)
    Phi = features.at(states, actions)
    at_s0 = states == S0
    weights = np.where(at_s0, (dim - 4) / dim / at_s0.sum(), 1 / dim)
    design = weighted_design(states, actions, Phi, weights)
    assert design.rank == dim
    rng = np.random.default_rng(5)
    every = np.arange(2 ** (dim - 4)) if dim <= 12 else rng.integers(0, 2 ** (dim - 4), size=2000)
    for state in (O, S0, S1, Z):
        rows = features.at(np.full(len(every), state), every)
        np.testing.assert_allclose(design.leverage(rows), dim, rtol=1e-12)
    even = weighted_design(states, actions, Phi, np.full(len(states), 1 / len(states)))
    everywhere = features.at(np.full(len(every), S0), every)
    assert even.leverage_bound == pytest.approx(len(states))
    assert even.leverage(everywhere).max() <= dim * (1 + 1e-12)


def test_an_unbalanced_array_is_not() -> None:
    """The control: without one of its rows the array no longer treats all vertices alike."""
    states, actions = candidates(10)
    features = HardFeatures(10)
    keep = np.arange(len(states)) != len(states) - 1
    Phi = features.at(states[keep], actions[keep])
    design = weighted_design(states[keep], actions[keep], Phi, np.full(keep.sum(), 1 / keep.sum()))
    every = np.arange(2**6)
    leverage = design.leverage(features.at(np.full(len(every), S0), every))
    assert leverage.max() > 1.5 * leverage.min()


# ---- true values and samples ----------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=40)
@given(dim=st.integers(6, 10), seed=st.integers(0, 10**6), stochastic=st.booleans())
def test_true_values_equal_policy_evaluation(dim: int, seed: int, stochastic: bool) -> None:
    instance = make("hard-instance", dim=dim, seed=seed)
    table = instance.table
    assert table is not None and instance.true_values is not None
    rng = np.random.default_rng(seed)
    A = table.num_actions
    if stochastic:
        policy = TabularPolicy.stochastic(rng.dirichlet(np.full(A, 0.2), size=4))
    else:
        policy = TabularPolicy.deterministic(rng.integers(0, A, size=4), A)
    pi = policy.probabilities(np.arange(4))
    P_pi = np.einsum("sa,sat->st", pi, table.P.toarray().reshape(4, A, 4))
    signals = np.stack([table.reward, table.constraints[0]], axis=2)
    V = np.linalg.solve(np.eye(4) - table.gamma * P_pi, np.einsum("sa,sak->sk", pi, signals))
    np.testing.assert_allclose(instance.true_values(policy), V[O], rtol=1e-12, atol=1e-12)


def test_the_optimal_mixture_at_dimension_40() -> None:
    """Half of the episodes to s₀ with the hidden action, half to z: V* and b exactly."""
    seed, dim = 3, 40
    instance = make("hard-instance", dim=dim, seed=seed)
    features, truth = instance.problem.features, instance.true_values
    assert features is not None and truth is not None
    beta = int(np.random.default_rng(np.random.SeedSequence(seed)).integers(0, 1 << (dim - 5)))
    theta = np.zeros(dim)
    theta[5:] = signs(np.array([beta << 1]), dim - 5)[0]
    to_z = truth(GreedyPolicy(features, theta))
    theta[2] = 1.0
    to_s0 = truth(GreedyPolicy(features, theta))
    known = instance.known
    np.testing.assert_allclose((to_z + to_s0) / 2, [known["value"], 4.0], rtol=1e-12)
    theta[5:] *= -1  # the worst action at s₀
    assert truth(GreedyPolicy(features, theta))[0] == pytest.approx(0.9 / (1 - 0.81 + 0.9 * 0.02), rel=1e-12)


def test_samples_at_dimension_40() -> None:
    """400,000 draws at s₀ with an action of overlap 1 − 2·7/35 = 0.6: within 5.5 standard errors (4e-8), and no other."""
    gamma, delta, dim, n = 0.9, 0.1, 40, 400_000
    model = HardModel(gamma, 4.0, 0.5, delta, dim, beta=(1 << 35) - 1)
    action = ((1 << 28) - 1) << 1  # 28 signs agree, 7 differ
    rng = np.random.default_rng(np.random.SeedSequence(8))
    following = model.sample(np.full(n, S0), np.full(n, action), rng)
    assert set(np.unique(following)) <= {S0, S1}
    stay = gamma + delta * 0.6
    error = abs(np.mean(following == S0) - stay) / np.sqrt(stay * (1 - stay) / n)
    assert error < 5.5
    assert abs(np.mean(following == S0) - (gamma + delta * 0.55)) / np.sqrt(stay * (1 - stay) / n) > 5.5
