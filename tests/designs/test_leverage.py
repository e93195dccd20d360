"""What the optimal designs share: passes in pieces, and pruning verified on all candidates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.designs import candidates as module
from saddleback.designs.candidates import all_leverages, largest, prune, whitening
from saddleback.designs.design import orthonormalizing_map
from saddleback.designs.exchange import exchange_weights

universal = settings(derandomize=True, deadline=None, max_examples=40)


def leverages_of(features, rho):
    G = features.T @ (rho[:, None] * features)
    return np.einsum("nd,nd->n", features, np.linalg.solve(G, features.T).T)


def test_pieces_make_the_whole(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 7)
    features = np.random.default_rng(0).normal(size=(100, 3))
    rho = np.full(100, 0.01)
    white = whitening(features, rho, np.eye(3))
    assert np.allclose(all_leverages(features, white), leverages_of(features, rho), rtol=1e-13, atol=0)


def test_whitening_in_a_span():
    rng = np.random.default_rng(1)
    reduced = rng.normal(size=(50, 2))
    features, rho = reduced @ rng.normal(size=(2, 5)), rng.dirichlet(np.ones(50))
    white = whitening(features, rho, orthonormalizing_map(features))
    assert white.shape == (5, 2)
    assert np.allclose(all_leverages(features, white), leverages_of(reduced, rho), rtol=1e-11, atol=0)


def test_rows_that_do_not_span_have_no_whitening():
    assert whitening(np.eye(3)[:2], np.full(2, 0.5), np.eye(3)) is None
    assert whitening(np.array([[1.0, 1.0], [2.0, 2.0]]), np.full(2, 0.5), np.eye(2)) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(1, 40))
@universal
def test_the_largest_are_largest(values, count):
    values = np.array(values)
    chosen = largest(values, count)
    assert len(set(chosen.tolist())) == min(count, len(values))
    assert sorted(values[chosen]) == sorted(values)[-len(chosen) :]


@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(1.05, 3.0), st.sampled_from([1, 5, 4096]))
def test_pruning_is_verified_on_all_candidates(seed, d, factor, pool):
    # With a pool of one candidate the bisection goes wrong; what it proposes must not pass the verification.
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(200, d))
    weights = 0.9 * exchange_weights(features, 0.04).weights + 0.1 * rng.dirichlet(np.ones(200))
    before = leverages_of(features, weights).max()
    target = max(factor * d, before)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_POOL", pool)
        pruned, g = prune(features, weights, target)
    assert g <= target * (1 + 1e-12) and g == pytest.approx(leverages_of(features, pruned).max(), rel=1e-10)
    assert pruned.sum() == pytest.approx(1, abs=1e-12) and np.all(weights[pruned > 0] > 0)
    if target >= 1.2 * before:
        assert np.count_nonzero(pruned) < 200  # a tenth of the mass on 200 rows is mostly ballast
    dropped = weights[(weights > 0) & (pruned == 0)]
    assert dropped.max(initial=0) <= weights[pruned > 0].min()


def test_pruning_in_a_span():
    rng = np.random.default_rng(2)
    reduced = rng.normal(size=(300, 3))
    features = reduced @ rng.normal(size=(3, 6))
    weights = np.full(300, 1 / 300)
    before = leverages_of(reduced, weights).max()
    pruned, g = prune(features, weights, 1.5 * before, orthonormalizing_map(features))
    assert 3 <= np.count_nonzero(pruned) < 300
    assert g == pytest.approx(leverages_of(reduced, pruned).max(), rel=1e-9) and g <= 1.5 * before
