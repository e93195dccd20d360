"""The perturbed model-based solver: optimal in the empirical model, by enumeration; and honest about float64."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_design, random_table, sampled, tabular_buffer
from saddleback.errors import InputError
from saddleback.exact.values import best_policy, unit_policy_values
from saddleback.method.oracles import Solver
from saddleback.method.solvers.perturbed_model import PerturbedModel
from saddleback.problem.cmdp import Start
from saddleback.problem.spaces import BoxStates
from saddleback.simulators.generative_model import Stream, generator
from saddleback.simulators.table import Table

universal = settings(derandomize=True, deadline=None, max_examples=30)
seeds = st.integers(0, 10_000)
MIXING = np.array([[1.0, 0.0], [0.3, 0.7], [0.0, 1.0]])


def frequencies(problem, buffer):
    """P̂ ``(S, A, S)`` counted sample by sample."""
    S, A = problem.num_states, problem.num_actions
    P, M = np.zeros((S * A, S)), int(buffer.batch_sizes[0])
    for batch in buffer.batches.index:
        for x in range(S * A):
            for i in batch[x * M : (x + 1) * M]:
                P[x, buffer.support[i]] += 1
    return (P / buffer.counts[:, None]).reshape(S, A, S)


def enumerated(P, reward, gamma):
    """max_π V^π state by state over all A^S deterministic policies, by dense solves."""
    S, A = reward.shape
    every, best = np.arange(S), np.full(S, -np.inf)
    for actions in itertools.product(range(A), repeat=S):
        best = np.maximum(best, value(P, reward, gamma, np.array(actions), every))
    return best


def value(P, reward, gamma, actions, every):
    return np.linalg.solve(np.eye(len(every)) - gamma * P[every, actions], reward[every, actions])


@universal
@given(seeds, st.sampled_from([0.0, 0.5, 0.9]), st.integers(1, 3))
def test_it_is_optimal_in_the_empirical_model(seed, gamma, T):
    table = random_table(seed, S=4, A=3, gamma=gamma)
    problem, buffer = tabular_buffer(table, 6, T, seed)
    P = frequencies(problem, buffer)
    np.testing.assert_allclose(P.sum(axis=-1), 1.0)
    solver = PerturbedModel(epsilon=0.1, seed=seed)
    xi = solver.resolution(problem).size
    for sigma, policy in zip(MIXING, solver.solve(problem, buffer, MIXING), strict=True):
        reward = (table.utilities() @ sigma).reshape(4, 3)
        ours = value(P, reward, gamma, policy.table, np.arange(4))
        # The shake is at most ξ a step, so the policy is 2ξH-optimal without it; 1e-12 is for two linear solves.
        np.testing.assert_allclose(ours, enumerated(P, reward, gamma), atol=2 * xi * problem.horizon + 1e-12)


def test_the_perturbation_is_that_of_its_stream_and_is_planned_for():
    """Forced to ξ ~ 1, the shake changes the policy, which is optimal for □ + ζ."""
    table = random_table(3, S=4, A=3, gamma=0.8)
    problem, buffer = tabular_buffer(table, 50, 1)
    plain = PerturbedModel(epsilon=0.1).solve(problem, buffer, MIXING[:1])[0]
    forced = PerturbedModel(epsilon=0.1, perturbation_constant=12.0**5 / 0.02, seed=5)
    assert forced.resolution(problem).size == pytest.approx(1.0, rel=1e-12)
    noise = generator(5, Stream.PERTURBATION, 0, 0).uniform(0, forced.resolution(problem).size, 12).reshape(4, 3)
    reward = table.utilities()[:, 0].reshape(4, 3) + noise
    P = frequencies(problem, buffer)
    policy = forced.solve(problem, buffer, MIXING[:1])[0]
    ours = value(P, reward, 0.8, policy.table, np.arange(4))
    np.testing.assert_allclose(ours, enumerated(P, reward, 0.8), atol=1e-12)
    assert policy.key() != plain.key()


def test_the_same_seed_gives_the_same_policy():
    table = random_table(3, S=6, A=4, gamma=0.8)
    problem, buffer = tabular_buffer(table, 20, 1)

    def keys(seed):
        solver = PerturbedModel(epsilon=0.1, perturbation_constant=1e10, seed=seed)
        return [p.key() for p in solver.solve(problem, buffer, MIXING)]

    assert keys(1) == keys(1)
    assert keys(1) != keys(2)
    # One row at a time or all at once: ζ belongs to the pairs.
    solver = PerturbedModel(epsilon=0.1, perturbation_constant=1e10, seed=1)
    assert [solver.solve(problem, buffer, row[None])[0].key() for row in MIXING] == keys(1)


@pytest.mark.parametrize(("S", "A", "gamma"), [(2, 2, 0.5), (7, 3, 0.9), (100, 10, 0.9)])
def test_size_follows_the_formula(S, A, gamma):
    problem = random_table(0, S=S, A=A, gamma=gamma).problem()
    perturbation = PerturbedModel(epsilon=0.2, perturbation_constant=3.0).resolution(problem)
    assert perturbation.size == pytest.approx(3.0 * (1 - gamma) * 0.2 / (S * A) ** 5, rel=1e-12)


def test_it_says_so_below_the_resolution_of_float64():
    large = random_table(0, S=100, A=10, gamma=0.9).problem()
    size, resolved, message = PerturbedModel(epsilon=0.1).resolution(large)
    assert not resolved and size == pytest.approx(1e-17)
    assert PerturbedModel(epsilon=0.1).remarks(large) == [message]
    assert "xi = 1.0e-17" in message and "below float64's resolution" in message and "lowest action index" in message
    assert large.horizon + size == large.horizon, "values of that size do not see it"
    small = random_table(0, S=4, A=3, gamma=0.9).problem()
    assert PerturbedModel(epsilon=0.1).resolution(small).resolved
    assert PerturbedModel(epsilon=0.1).remarks(small) == []
    assert small.horizon + PerturbedModel(epsilon=0.1).resolution(small).size > small.horizon


def test_ties_go_to_the_lowest_action():
    """Identical actions have identical rows and rewards; the unresolved shake is all that could tell them apart."""
    S, A = 100, 10
    rng = np.random.default_rng(0)
    one = rng.integers(0, S, (S, 1)).repeat(A, axis=1)  # deterministic, the same for all actions
    reward = 0.5 + 0.5 * rng.random((S, 1)).repeat(A, axis=1)
    table = Table.of(
        np.eye(S)[one],
        reward,
        reward[None],
        0.0,
        gamma=0.9,
        rho=np.full(S, 0.01),
        reward_range=(0, 1),
        ranges=((0, 1),),
    )
    problem, buffer = tabular_buffer(table, 1, 1)
    np.testing.assert_array_equal(PerturbedModel().solve(problem, buffer, MIXING[:1])[0].table, 0)
    # A shake that float64 resolves picks one of them at random: on 100 states it cannot be the first everywhere (10⁻¹⁰⁰).
    resolved = PerturbedModel(perturbation_constant=1e12)
    assert resolved.resolution(problem).resolved
    assert np.any(resolved.solve(problem, buffer, MIXING[:1])[0].table != 0)


def test_states_nobody_was_sent_to_have_policies_too():
    """Action 0 leads to state 1, action 1 to state 2, which alone pays; state 0 is only a start."""
    P = np.zeros((3, 2, 3))
    P[:, 0, 1] = P[:, 1, 2] = 1.0
    reward = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    table = Table.of(P, reward, reward[None], 0.0, gamma=0.5, rho=[0.2, 0.3, 0.5])
    problem, buffer = tabular_buffer(table, 2, 1)
    np.testing.assert_array_equal(buffer.support, [1, 2])
    np.testing.assert_array_equal(PerturbedModel().solve(problem, buffer, MIXING[:1])[0].table, 1)


def test_errors_fall_with_samples():
    """Median true gap at 1000 samples a pair at most a fifth of that at 10, on 12 tables."""
    medians = []
    for N in (10, 1000):
        gaps = []
        for seed in range(12):
            table = random_table(seed, S=10, A=4, gamma=0.9)
            problem, buffer = tabular_buffer(table, N, 1, seed)
            policy = PerturbedModel().solve(problem, buffer, MIXING[:1])[0]
            gaps.append(best_policy(table, MIXING[0])[1][0] - unit_policy_values(table, policy)[0])
        medians.append(np.median(gaps))
    assert medians[0] > 1e-3 and medians[1] <= medians[0] / 5


def test_other_designs_and_spaces_are_refused():
    table = random_table(0, d=3)
    problem = table.problem()
    buffer = sampled(table, problem, random_design(problem, 0), 2, 1)
    with pytest.raises(InputError, match="`design` must be 'full'"):
        PerturbedModel().solve(problem, buffer, MIXING)
    box = dataclasses.replace(
        problem,
        states=BoxStates(np.zeros(1), np.ones(1)),
        start=Start(np.zeros((1, 1)), np.ones(1)),
        features=None,
        reward=lambda s, a: np.zeros(len(s)),
        constraints=[dataclasses.replace(c, signal=lambda s, a: np.zeros(len(s))) for c in problem.constraints],
    )
    with pytest.raises(InputError, match="`states` must be finite"):
        PerturbedModel().resolution(box)


@pytest.mark.parametrize("bad", [{"epsilon": 0.0}, {"perturbation_constant": -1.0}])
def test_bad_parameters_are_named(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        PerturbedModel(**bad)


def test_it_is_a_solver():
    assert isinstance(PerturbedModel(), Solver)
