"""Two buffers as one: the same means, variances and signals as a buffer cut from all samples at once."""

import dataclasses

import numpy as np
import pytest

from saddleback import zoo
from saddleback.problem.policies import GreedyPolicy
from saddleback.runs.settings import Method
from saddleback.sampling.buffer import MaxDifference, PolicyValue, Samples
from saddleback.sampling.collect import collect
from saddleback.sampling.counted_buffer import CountedBuffer, cut
from saddleback.sampling.pooled_buffer import PooledBuffer, pooled
from saddleback.simulators.generative_model import Stream
from saddleback.solving.prepared import parts_of


def drawn(name, counts=(5, 12), **settings):
    instance = zoo.make(name, **settings)
    chosen = parts_of(instance.problem, Method())
    design = chosen.designer.design(chosen.problem)
    both = [
        collect(instance.simulator, chosen.problem, design, n + np.arange(design.size) % 3, seed=1, stream=stream)
        for n, stream in zip(counts, (Stream.SOLVER, Stream.EVALUATION), strict=True)
    ]
    joined = Samples([np.concatenate(pair) for pair in zip(*(s.next_states for s in both), strict=True)], None)
    return chosen.problem, design, both, joined


@pytest.mark.parametrize(
    ("name", "kind"), [("garnet", CountedBuffer), ("random-linear", PooledBuffer), ("warehouse", PooledBuffer)]
)
def test_means_and_moments_are_those_of_all_samples(name, kind):
    problem, design, both, joined = drawn(name)
    parts, whole = [cut(s, problem, design, 1) for s in both], cut(joined, problem, design, 1)
    pool = pooled(problem, *parts)
    assert isinstance(pool, kind)
    np.testing.assert_array_equal(pool.counts, whole.counts)
    assert pool.num_samples == joined.total
    rng = np.random.default_rng(2)
    theta = rng.standard_normal((problem.features.dim, 3))
    policy = GreedyPolicy(problem.features, theta[:, 0].copy())
    for value in (MaxDifference(theta, np.zeros_like(theta)), PolicyValue(policy, theta)):
        np.testing.assert_allclose(pool.average(value), whole.average(value), rtol=1e-12, atol=1e-12)
        mean, variance = pool.moments(pool.at_support(value))
        expected = whole.moments(whole.at_support(value))
        np.testing.assert_allclose(mean, expected[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(variance, expected[1], rtol=1e-9, atol=1e-11)
        alone = [b.average(value) for b in parts]
        assert np.abs(np.mean(alone, axis=0) - pool.average(value)).max() > 1e-6  # weights matter


def test_signals_are_weighed_by_samples():
    problem, design, both, _ = drawn("garnet")
    rng = np.random.default_rng(3)
    seen = [[rng.random((len(s), 2)) for s in part.next_states] for part in both]
    parts = []
    for part, signals in zip(both, seen, strict=True):
        means = np.array([x.mean(axis=0) for x in signals])
        variances = np.array([x.var(axis=0) for x in signals])
        parts.append(cut(dataclasses.replace(part, signal_means=means, signal_variances=variances), problem, design, 1))
    together = [np.concatenate(pair) for pair in zip(*seen, strict=True)]
    for pool in (pooled(problem, *parts), PooledBuffer(*parts)):
        np.testing.assert_allclose(pool.signal_means, [x.mean(axis=0) for x in together], rtol=1e-12)
        np.testing.assert_allclose(pool.signal_variances, [x.var(axis=0) for x in together], rtol=1e-9)


def test_states_that_one_half_has_not_reached():
    problem, design, both, _ = drawn("garnet")
    missing = np.zeros(design.size, dtype=bool)
    missing[:8], nothing = True, np.empty(0, dtype=np.int64)

    def without(samples, where):
        states = [nothing if no else s for s, no in zip(samples.next_states, where, strict=True)]
        return cut(dataclasses.replace(samples, next_states=states, unsampled=where), problem, design, 1)

    half = missing & (np.arange(design.size) < 4)
    pool = pooled(problem, without(both[0], missing), without(both[1], half))
    np.testing.assert_array_equal(pool.unsampled, half)
    P = pool.empirical_model()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    only = cut(both[1], problem, design, 1)
    V = np.random.default_rng(4).random(problem.num_states)
    np.testing.assert_allclose(pool.average(V[pool.support])[4:8], only.average(V[only.support])[4:8], rtol=1e-12)
    np.testing.assert_allclose(pool.average(V[pool.support])[:4], V[design.states[:4]])  # they stay where they are
