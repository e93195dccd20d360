"""The compiled gather-and-mean against its readable original, to the rounding that both sums may have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.sampling.batches import Parts, SampleBatches
from saddleback.sampling.kernels import gather_means

universal = settings(derandomize=True, deadline=None, max_examples=60)
UNIT = 2.0**-53


def tolerance(V, index, parts):
    """A sum of M terms and a division, each way: 2(M + 1) roundings of at most mean|V|."""
    bound = 2 * (parts.sizes + 1) * UNIT
    return bound.reshape(-1, *[1] * (V.ndim - 1)) * parts.means(np.abs(V).take(index, axis=0))


@universal
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([(), (1,), (2,), (3,), (16,)]))
def test_agrees_with_the_original(seed, even, columns):
    rng = np.random.default_rng(seed)
    n, c = int(rng.integers(1, 200)), int(rng.integers(1, 30))
    sizes = np.full(c, rng.integers(1, 40)) if even else rng.integers(1, 40, c)
    parts = Parts(sizes)
    index = rng.integers(0, n, (2, sizes.sum()))
    V = rng.normal(size=(n, *columns)) * 10.0 ** rng.integers(-3, 4, (n, *columns))
    readable, compiled = SampleBatches(index, parts), SampleBatches(index.astype(np.uint32), parts)
    assert compiled.compiled
    assert not readable.compiled
    for t in range(2):
        seen, expected = compiled.means(t, V), readable.means(t, V)
        assert seen.shape == expected.shape == (c, *columns)
        assert np.all(np.abs(seen - expected) <= tolerance(V, index[t], parts))


def test_long_batches_and_arrays_of_any_layout():
    rng = np.random.default_rng(0)
    parts = Parts(np.array([50_000, 1, 7]))
    index = rng.integers(0, 90, 50_008)
    V = np.asfortranarray(rng.normal(size=(90, 4)))
    expected = parts.means(V.take(index, axis=0))
    seen = gather_means(index.astype(np.uint32), parts.offsets, V)
    assert np.all(np.abs(seen - expected) <= tolerance(V, index, parts))
    strided = gather_means(index.astype(np.uint32), parts.offsets, V[:, 2])
    assert np.all(np.abs(strided - expected[:, 2]) <= tolerance(V[:, 2], index, parts))


def test_infinities_and_nan_pass_through():
    index, parts = np.array([0, 1, 0, 2, 3, 3], dtype=np.uint32), Parts(np.array([2, 2, 2]))
    V = np.array([1.0, np.inf, np.nan, -np.inf])
    np.testing.assert_array_equal(gather_means(index, parts.offsets, V), [np.inf, np.nan, -np.inf])


def test_the_tolerance_would_see_a_lost_sample():
    rng = np.random.default_rng(1)
    parts, index, V = Parts(np.array([5])), rng.integers(0, 9, 5), rng.random(9)
    short = V[index[:4]].sum() / 5
    assert abs(short - V[index].mean()) > tolerance(V, index, parts)[0]


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_number_types_are_converted(dtype):
    index, parts = np.array([0, 1, 2, 2], dtype=np.uint32), Parts(np.array([2, 2]))
    means = gather_means(index, parts.offsets, np.array([1, 2, 5], dtype=dtype))
    assert means.dtype == np.float64
    np.testing.assert_array_equal(means, [1.5, 5.0])
