"""How batches are held: the same means, frequencies and samples in every form, and the smallest form is chosen."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.sampling.batches import ConsecutiveBatches, CountBatches, Parts, SampleBatches, hold

universal = settings(derandomize=True, deadline=None, max_examples=60)
UNIT = 2.0**-53


def drawn(seed, even=True, states=(1, 40), sizes=(1, 60)):
    """(T, Σ M_x) positions; each pair has a few likely states of its own."""
    rng = np.random.default_rng(seed)
    T, c, n = int(rng.integers(1, 6)), int(rng.integers(1, 9)), int(rng.integers(*states))
    M = np.full(c, rng.integers(*sizes)) if even else rng.integers(*sizes, c)
    likely = [rng.choice(n, int(rng.integers(1, min(n, 12) + 1)), replace=False) for _ in range(c)]
    index = np.concatenate([own[rng.integers(0, len(own), (T, m))] for own, m in zip(likely, M, strict=True)], axis=1)
    return rng, index, M, n


def by_hand(index, sizes, t, V):
    ends = np.cumsum(sizes)
    return np.array([V[index[t, end - size : end]].mean(axis=0) for size, end in zip(sizes, ends, strict=True)])


@pytest.mark.slow
@universal
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([(), (1,), (3,)]), st.sampled_from([np.intp, np.uint32]))
def test_every_form_has_the_means_of_its_samples(seed, even, columns, dtype):
    """Σ n V/M and Σ V/M differ by the rounding of M + 2 operations each, at most 1e-13 of mean|V| here (M < 60)."""
    rng, index, sizes, n = drawn(seed, even)
    V = rng.normal(size=(n, *columns))
    held = hold(index.astype(dtype), sizes, n)
    for t in range(len(index)):
        expected, size = by_hand(index, sizes, t, V), by_hand(index, sizes, t, np.abs(V))
        for batches in (held, SampleBatches(index, Parts(sizes))):
            means = batches.means(t, V)
            assert means.shape == (len(sizes), *columns)
            assert np.all(np.abs(means - expected) <= 2 * 62 * UNIT * size)


@universal
@given(st.integers(0, 10_000), st.booleans())
def test_frequencies_and_samples_survive(seed, even):
    _, index, sizes, n = drawn(seed, even)
    T = len(index)
    P = np.zeros((len(sizes), n))
    for t, (x, s) in itertools.product(range(T), enumerate(np.cumsum(sizes) - sizes)):
        P[x] += np.bincount(index[t, s : s + sizes[x]], minlength=n) / (T * sizes[x])
    for held in (hold(index, sizes, n), SampleBatches(index, Parts(sizes))):
        assert held.num_batches == T
        assert held.index.size == index.size
        np.testing.assert_allclose(held.frequencies(n).toarray(), P, atol=2 * T * UNIT)
        for x, s in enumerate(np.cumsum(sizes) - sizes):
            mine = held.index[:, s : s + sizes[x]]
            np.testing.assert_array_equal(np.sort(mine, axis=1), np.sort(index[:, s : s + sizes[x]], axis=1))


def cases():
    rng = np.random.default_rng(0)
    few = rng.integers(0, 5, (3, 4 * 1000))  # 5 states, 1000 samples a pair
    wide = rng.integers(0, 5, (3, 4 * 1000)) + 5 * np.repeat(np.arange(4), 1000) * 100  # 5 states of 2,000 each
    rare = rng.integers(0, 2000, (3, 4 * 1000))
    return {"table": (few, 5), "sparse": (wide, 2000), "samples": (rare, 2000)}


def num_bytes(held):
    if isinstance(held, SampleBatches):
        return held.index.nbytes
    if isinstance(held.matrices, np.ndarray):
        return held.matrices.nbytes
    return sum(P.data.nbytes + P.indices.nbytes + P.indptr.nbytes for P in held.matrices)


@pytest.mark.parametrize(("form", "case"), cases().items())
def test_the_smallest_form_is_chosen(form, case):
    index, n = case
    held = hold(index, np.full(4, 1000), n)
    assert num_bytes(held) <= index.nbytes
    if form == "samples":
        assert isinstance(held, SampleBatches)
    else:
        assert isinstance(held, CountBatches)
        assert isinstance(held.matrices, np.ndarray) == (form == "table")
        assert num_bytes(held) < index.nbytes / 100


def test_a_thousand_times_the_samples_in_the_same_memory():
    rng = np.random.default_rng(0)
    sizes = {M: num_bytes(hold(rng.integers(0, 4, (2, 3 * M)), np.full(3, M), 4)) for M in (100, 100_000)}
    assert sizes[100] == sizes[100_000]


def test_frequencies_are_counted_a_few_pairs_at_a_time(monkeypatch):
    _, index, sizes, n = drawn(3, even=False, states=(30, 40))
    batches = SampleBatches(index, Parts(sizes))
    at_once = batches.frequencies(n).toarray()
    monkeypatch.setattr("saddleback.sampling.batches._TALLY", 1)
    np.testing.assert_array_equal(batches.frequencies(n).toarray(), at_once)


@pytest.mark.parametrize("sizes", [[2, 2, 2], [1, 3, 2]])
def test_consecutive_batches_store_nothing(sizes):
    batches = ConsecutiveBatches(4, Parts(np.array(sizes)))
    V = np.random.default_rng(0).random((24, 2))
    same = SampleBatches(np.arange(24).reshape(4, 6), Parts(np.array(sizes)))
    assert (batches.num_batches, batches.index.size) == (4, 24)
    np.testing.assert_array_equal(batches.index, same.index)
    np.testing.assert_array_equal(batches.frequencies(24).toarray(), same.frequencies(24).toarray())
    for t in range(4):
        np.testing.assert_array_equal(batches.means(t, V), same.means(t, V))
        np.testing.assert_array_equal(batches.means(t, V[:, 0]), same.means(t, V[:, 0]))
