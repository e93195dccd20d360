"""DataCollection and the seam ``expect``."""

import dataclasses
import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_design, random_table, sampled
from places import TESTS
from saddleback.designs.design import full_design
from saddleback.errors import InputError, SimulatorError
from saddleback.features import FeatureFunction
from saddleback.method.solvers import LSMDVI
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.policies import GreedyPolicy, soft_maximum
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.sampling.batches import ConsecutiveBatches, CountBatches, Parts, SampleBatches
from saddleback.sampling.buffer import MaxDifference, PolicyValue, SoftDifference
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import cut
from saddleback.simulators.generative_model import BLOCK, GenerativeModel, Stream

universal = settings(derandomize=True, deadline=None, max_examples=20)


def setup(seed=0, N=24, T=6):
    table = random_table(seed, S=8, d=4)
    problem = table.problem()
    return table, problem, sampled(table, problem, random_design(problem, seed), N, T, seed)


def test_batches_are_consecutive_pieces_of_each_pairs_sequence():
    table, problem, buffer = setup()
    samples = collect(table.simulator(), problem, buffer.design, 24, seed=0, stream=0)
    V = np.random.default_rng(1).random(table.num_states)
    for t in range(6):
        expected = [V[s[4 * t : 4 * t + 4]].mean() for s in samples.next_states]
        np.testing.assert_allclose(buffer.expect(t, V[buffer.support]), expected)


def as_samples(buffer, dtype):
    """The same buffer, held as samples: intp for numpy, uint32 for compiled code."""
    batches = SampleBatches(buffer.batches.index.astype(dtype), Parts(buffer.batch_sizes))
    return dataclasses.replace(buffer, batches=batches, compiled=dtype == np.uint32)


@pytest.mark.slow
@universal
@given(st.integers(0, 1000), st.booleans(), st.sampled_from([np.intp, np.uint32]))
def test_parametric_values_agree_with_arrays(seed, whole, dtype):
    """MaxDifference, SoftDifference and PolicyValue are their arrays, on the whole support or batch by batch."""
    _, problem, buffer = setup(seed)
    buffer = as_samples(buffer, dtype)
    buffer._whole = whole
    rng = np.random.default_rng(seed)
    phi = problem.features.all(buffer.support)
    for shape in ((4,), (4, 3)):
        a, b = rng.random(shape), rng.random(shape)
        policy = GreedyPolicy(problem.features, rng.random(4))
        cases = [
            (MaxDifference(a, b), (phi @ a).max(axis=1) - (phi @ b).max(axis=1)),
            (SoftDifference(a, b, 0.7, 5.0), soft_maximum(phi @ a, 5.0) - 0.7 * soft_maximum(phi @ b, 5.0)),
            (PolicyValue(policy, a), policy.mean_features(problem.features, buffer.support) @ a),
        ]
        for value, array in cases:
            for t in (0, 3):
                np.testing.assert_allclose(buffer.expect(t, value), buffer.expect(t, array), atol=1e-13)
            np.testing.assert_allclose(buffer.at_support(value), array, atol=1e-13)


def test_remembering_the_last_maximum_changes_nothing():
    _, _problem, buffer = setup()
    rng = np.random.default_rng(0)
    thetas = [rng.random(4) for _ in range(5)]
    chain = [buffer.expect(0, MaxDifference(b, a)) for a, b in itertools.pairwise(thetas)]
    for (a, b), seen in zip(itertools.pairwise(thetas), chain, strict=True):
        fresh = dataclasses.replace(buffer)
        np.testing.assert_array_equal(fresh.expect(0, MaxDifference(b, a)), seen)


def test_uneven_counts():
    table, problem, _ = setup()
    design = full_design(*problem.pairs())
    counts = np.arange(1, design.size + 1) * 2
    samples = collect(table.simulator(), problem, design, counts, seed=0, stream=0)
    buffer = cut(samples, problem, design, 2)
    V = np.random.default_rng(1).random((table.num_states, 2))
    for t in range(2):
        expected = [V[s[t * len(s) // 2 : (t + 1) * len(s) // 2]].mean(axis=0) for s in samples.next_states]
        np.testing.assert_allclose(buffer.expect(t, V[buffer.support]), expected)
    np.testing.assert_array_equal(buffer.counts, counts)


def test_empirical_model_is_the_mean_over_batches():
    _table, _, buffer = setup(N=40, T=10)
    V = np.random.default_rng(1).random(len(buffer.support))
    mean = np.mean([buffer.expect(t, V) for t in range(10)], axis=0)
    np.testing.assert_allclose(buffer.empirical_model() @ V, mean, atol=1e-14)


@pytest.mark.slow
@universal
@given(st.integers(0, 1000), st.sampled_from([4, 400]))
def test_the_average_is_the_mean_over_batches(seed, M):
    """For every kind of V, whether samples or counts are held (M of 4 and 400)."""
    _, problem, buffer = setup(seed, N=6 * M)
    rng = np.random.default_rng(seed)
    policy = GreedyPolicy(problem.features, rng.random(4))
    for columns in ((), (1,), (3,)):
        a, b = rng.random((4, *columns)), rng.random((4, *columns))
        array = rng.random((len(buffer.support), *columns))
        for value in (array, MaxDifference(a, b), SoftDifference(a, b, 0.7, 5.0), PolicyValue(policy, a)):
            mean = np.mean([buffer.expect(t, value) for t in range(6)], axis=0)
            np.testing.assert_allclose(buffer.average(value), mean, atol=1e-13)
    every = np.array([buffer.expect(t, PolicyValue(policy, np.eye(4))) for t in range(6)])
    np.testing.assert_allclose(buffer.average(PolicyValue(policy, np.eye(4))), every.mean(axis=0), atol=1e-13)


def test_the_empirical_model_is_made_once():
    _, _, buffer = setup()
    assert buffer.empirical_model() is buffer.empirical_model()


@pytest.mark.parametrize("length", [-1, 1])
def test_an_array_of_another_length_is_refused(length):
    """Compiled code would read beyond its end."""
    _, _, buffer = setup()
    with pytest.raises(InputError, match="one for each state of the support"):
        buffer.expect(0, np.zeros(len(buffer.support) + length))


@pytest.mark.slow
def test_large_buffers_are_compiled_and_give_the_same_policies(monkeypatch):
    """Samples too many, or products too many: either switches; θ is the same up to rounding."""
    table = random_table(5, S=40, d=4)
    problem = table.problem()
    design = random_design(problem, 5)
    small = sampled(table, problem, design, 24, 6)
    assert (small.compiled, small.batches.index.dtype) == (False, np.intp)
    mixing = np.array([[0.5, 0.5], [1.0, 0.0]])
    thetas = [p.theta for p in LSMDVI().solve(problem, small, mixing)]
    for name in ("COMPILED_SAMPLES", "COMPILED_PRODUCTS"):
        with monkeypatch.context() as patch:
            patch.setattr(f"saddleback.sampling.counted_buffer.{name}", 1)
            large = sampled(table, problem, design, 24, 6)
        assert (large.compiled, large.batches.index.dtype) == (True, np.uint32)
        assert large.batches.index.nbytes == 4 * large.batches.index.size
        np.testing.assert_allclose([p.theta for p in LSMDVI().solve(problem, large, mixing)], thetas, rtol=1e-13)


def test_many_samples_that_are_counted_load_no_compiler(monkeypatch):
    monkeypatch.setattr("saddleback.sampling.counted_buffer.COMPILED_SAMPLES", 1)
    _, _, buffer = setup(N=6 * 400)
    assert isinstance(buffer.batches, CountBatches)
    assert not buffer.compiled


@pytest.mark.slow
def test_small_problems_load_no_compiler():
    code = """
import sys
import numpy as np
from helpers import random_design, random_table, sampled
from saddleback.method.solvers import LSMDVI
table = random_table(0, S=8, d=4)
problem = table.problem()
LSMDVI().solve(problem, sampled(table, problem, random_design(problem, 0), 40, 10), np.array([[0.5, 0.5]]))
print("numba" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=TESTS)
    assert done.stdout.strip() == "False"


def test_same_seed_same_samples_and_streams_are_independent():
    """Property 32: bit-identical repeats, streams that differ, and a longer draw that begins with the shorter one."""
    table, problem, buffer = setup()
    design = buffer.design
    draw = [collect(table.simulator(), problem, design, 5000, seed=3, stream=s).next_states for s in (0, 0, 1)]
    assert all(np.array_equal(a, b) for a, b in zip(draw[0], draw[1], strict=True))
    assert not any(np.array_equal(a, b) for a, b in zip(draw[0], draw[2], strict=True))
    longer = collect(table.simulator(), problem, design, 2 * BLOCK, seed=3, stream=0).next_states
    np.testing.assert_array_equal(longer[0][:BLOCK], draw[0][0][:BLOCK])


def test_counts_every_call():
    table, problem, buffer = setup()
    model = table.simulator()
    samples = collect(model, problem, buffer.design, 25, seed=0, stream=0)
    assert samples.total == model.num_queries == 25 * buffer.design.size
    assert cut(samples, problem, buffer.design, 6).num_samples == samples.total


def observed_problem():
    """Reward depends on the next state, so it must be observed."""
    S = 4
    problem = CMDP(
        gamma=0.5,
        start=Start.over_all(np.full(S, 0.25)),
        num_actions=2,
        states=FiniteStates(S),
        reward=None,
        reward_range=(0.0, 3.0),
        constraints=[Constraint("a", np.tile([0.0, 1.0], (S, 1)), ">=", 0.5)],
    )

    def sample(states, actions, rng):
        after = rng.integers(0, S, len(states))
        return after, np.column_stack([after * 1.0, np.zeros(len(states))])

    return problem, GenerativeModel(sample, FiniteStates(S), 2)


def test_observed_rewards_are_averaged_into_the_regression():
    problem, model = observed_problem()
    design = full_design(*problem.pairs())
    samples = collect(model, problem, design, 6000, seed=0, stream=Stream.SOLVER)
    buffer = cut(samples, problem, design, 10)
    u = buffer.utilities(problem)
    means = [s.mean() / 3.0 for s in samples.next_states]
    np.testing.assert_allclose(u[:, 0], means)
    np.testing.assert_array_equal(u[:, 1], np.tile([0.0, 1.0], 4))


def test_observed_values_outside_the_declared_range_are_refused():
    problem, model = observed_problem()
    narrow = dataclasses.replace(problem, reward_range=(0.0, 2.0))
    with pytest.raises(InputError, match="declared range"):
        collect(model, narrow, full_design(*problem.pairs()), 100, seed=0, stream=0)
    silent = GenerativeModel(lambda s, a, rng: s, FiniteStates(4))
    design = full_design(*problem.pairs())
    with pytest.raises(InputError, match="return signals"):
        cut(collect(silent, problem, design, 4, seed=0, stream=0), problem, design, 1).utilities(problem)


def test_continuous_states():
    """A buffer over R² agrees with direct evaluation; nothing is indexed by state."""
    features = FeatureFunction(lambda s, a: np.column_stack([s, a * 1.0, np.ones(len(s))]), 4, 2)
    problem = CMDP(
        gamma=0.9,
        start=Start(np.zeros((1, 2)), np.ones(1)),
        num_actions=2,
        states=BoxStates([-9.0, -9.0], [9.0, 9.0]),
        reward=lambda s, a: np.clip(s[:, 0], 0, 1),
        reward_range=(0, 1),
        constraints=[Constraint("c", lambda s, a: a * 1.0, ">=", 1.0, range=(0, 1))],
        features=features,
        candidates=(np.random.default_rng(0).random((6, 2)), np.array([0, 1, 0, 1, 0, 1])),
    )
    model = GenerativeModel(lambda s, a, rng: np.clip(s + rng.normal(size=s.shape), -9, 9), problem.states)
    design = random_design(problem, 0)
    samples = collect(model, problem, design, 12, seed=0, stream=0)
    buffer = cut(samples, problem, design, 3)
    assert isinstance(buffer.batches, ConsecutiveBatches)
    theta, other = np.arange(4.0), np.ones(4)
    value, everywhere = MaxDifference(theta, other), []
    for t in range(3):
        expected = []
        for s in samples.next_states:
            part = s[4 * t : 4 * t + 4]
            expected.append((features.maximum(part, theta) - features.maximum(part, other)).mean())
        for compiled, whole in itertools.product((False, True), repeat=2):
            again = dataclasses.replace(buffer, compiled=compiled)
            again._whole = whole
            np.testing.assert_allclose(again.expect(t, value), expected, atol=1e-13)
        everywhere.append(expected)
    np.testing.assert_allclose(buffer.average(value), np.mean(everywhere, axis=0), atol=1e-13)
    np.testing.assert_allclose(buffer.average(buffer.at_support(value)), np.mean(everywhere, axis=0), atol=1e-13)
    np.testing.assert_array_equal(buffer.support[buffer.batches.index[1, :4]], samples.next_states[0][4:8])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_states_may_be_float32(dtype):
    """Property 33: a simulator may compute in any precision; states are float64 from the moment they are received."""

    def phi(states, actions):
        assert states.dtype == np.float64
        x = states[:, 0].astype(np.float64)
        return np.column_stack([np.ones(len(x)), x, actions, x * actions])

    box = BoxStates([0.0], [1.0])
    rng = np.random.default_rng(0)
    problem = CMDP(
        gamma=0.5,
        start=Start(np.array([[0.5]], dtype=dtype), np.ones(1)),
        num_actions=2,
        states=box,
        reward=lambda s, a: s[:, 0].astype(np.float64),
        reward_range=(0, 1),
        constraints=[Constraint("c", lambda s, a: a, ">=", 1.0, range=(0, 1))],
        features=FeatureFunction(phi, 4, 2),
        candidates=(rng.random((12, 1)).astype(dtype), np.arange(12) % 2),
    )
    model = GenerativeModel(lambda s, a, rng: (0.5 * s + 0.5 * rng.random(s.shape)).astype(dtype), box)
    design = random_design(problem, 0)
    buffer = cut(collect(model, problem, design, 40, seed=0, stream=0), problem, design, 10)
    assert buffer.support.dtype == np.float64
    (policy,) = LSMDVI().solve(problem, buffer, np.array([[0.5, 0.5]]))
    assert policy.theta.dtype == buffer.expect(0, MaxDifference(policy.theta, 0 * policy.theta)).dtype == np.float64
    assert policy.actions(np.array([[0.25]])).tolist() == [1]  # the constraint is the only difference


def test_too_few_samples_are_refused_with_the_numbers():
    table, problem, buffer = setup()
    with pytest.raises(InputError, match="at least one sample"):
        collect(table.simulator(), problem, buffer.design, 0, seed=0, stream=0)
    samples = collect(table.simulator(), problem, buffer.design, 3, seed=0, stream=0)
    with pytest.raises(InputError, match="num_batches"):
        cut(samples, problem, buffer.design, 4)


def test_simulator_faults_carry_the_seed_key():
    problem, _ = observed_problem()
    known = dataclasses.replace(problem, reward=np.zeros((4, 2)), reward_range=(0, 1))

    def sample(states, actions, rng):
        return np.where(states == 2, 99, states)

    with pytest.raises(SimulatorError, match="state 2") as caught:
        collect(GenerativeModel(sample, FiniteStates(4)), known, full_design(*known.pairs()), 9, seed=5, stream=1)
    assert caught.value.key == (5, 1, 4, 0)
