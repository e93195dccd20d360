"""The compiled maxima against their readable originals, to the rounding that both sums may have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.sampling.batches import Parts
from saddleback.sampling.kernels import fused_maximum, gathered_maximum_means

universal = settings(derandomize=True, deadline=None, max_examples=60)
columns = st.sampled_from([(), (1,), (2,), (5,), (17,)])
UNIT = 2.0**-53


def original(phi, theta):
    return (phi @ theta).max(axis=1)


def tolerance(phi, theta):
    """A maximum moves by at most the largest error of what it is taken over: d roundings of Σ_j|φ_j θ_j| each way."""
    return 2 * phi.shape[2] * UNIT * (np.abs(phi) @ np.abs(theta)).max(axis=1)


def instance(seed, columns):
    rng = np.random.default_rng(seed)
    n, A, d = (int(rng.integers(1, high)) for high in (300, 9, 30))
    return rng, rng.normal(size=(n, A, d)), rng.normal(size=(d, *columns)) * 10.0 ** rng.integers(-2, 3)


@universal
@given(st.integers(0, 10_000), columns)
def test_fused_maximum_agrees_with_the_original(seed, columns):
    _, phi, theta = instance(seed, columns)
    seen, expected = fused_maximum(phi, theta), original(phi, theta)
    assert seen.shape == expected.shape
    assert np.all(np.abs(seen - expected) <= tolerance(phi, theta))


@pytest.mark.parametrize("shape", [(3, 1000, 2), (1, 1, 1), (700, 1, 3), (513, 2, 4)])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_shapes_around_the_size_of_a_block(shape, columns):
    rng = np.random.default_rng(0)
    phi, theta = rng.normal(size=shape), rng.normal(size=(shape[2], *columns))
    assert np.all(np.abs(fused_maximum(phi, theta) - original(phi, theta)) <= tolerance(phi, theta))


@pytest.mark.slow
@universal
@given(st.integers(0, 10_000), columns.filter(bool), st.booleans())
def test_gathered_means_agree_with_the_original(seed, columns, unsigned):
    rng, phi, theta = instance(seed, columns)
    parts = Parts(rng.integers(1, 200, int(rng.integers(1, 6))))
    index = rng.integers(0, len(phi), parts.sizes.sum())
    V = original(phi, theta)[index]
    expected = parts.means(V)
    seen = gathered_maximum_means(phi, index.astype(np.uint32) if unsigned else index, parts.offsets, theta)
    slack = parts.means(tolerance(phi, theta)[index]) + 2 * (parts.sizes[:, None] + 1) * UNIT * parts.means(np.abs(V))
    assert np.all(np.abs(seen - expected) <= slack)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_broken_theta_gives_what_numpy_gives(columns):
    phi = np.array([[[1.0, 0.0], [2.0, 1.0]], [[0.5, 3.0], [1.0, 1.0]]])
    for bad in (np.nan, np.inf, -np.inf):
        theta = np.ones((2, *columns))
        theta[1] = bad
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(fused_maximum(phi, theta), original(phi, theta))
            if columns:
                parts = Parts(np.array([1, 2]))
                means = gathered_maximum_means(phi, np.array([0, 1, 1]), parts.offsets, theta)
                assert not np.isfinite(means).any()


def test_a_theta_of_another_layout():
    rng = np.random.default_rng(2)
    phi, theta = rng.normal(size=(40, 3, 5)), np.asfortranarray(rng.normal(size=(5, 6)))
    assert np.all(np.abs(fused_maximum(phi, theta) - original(phi, theta)) <= tolerance(phi, theta))
    one = theta.T[2]
    assert np.all(np.abs(fused_maximum(phi, one) - original(phi, one)) <= tolerance(phi, one))


def test_the_tolerance_would_see_a_lost_action():
    rng = np.random.default_rng(3)
    phi, theta = rng.normal(size=(50, 4, 6)), rng.normal(size=6)
    lost = original(phi[:, :3], theta)
    assert np.any(np.abs(lost - original(phi, theta)) > tolerance(phi, theta))
