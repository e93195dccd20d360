"""InitializeDesign: where the literal form breaks (errata 13, property 24), and that the symmetric one does not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.designs.frank_wolfe import _extended, literal, symmetric
from saddleback.errors import InputError

universal = settings(derandomize=True, deadline=None, max_examples=60)


def constant(j, differences):
    return np.ones(differences.shape[1])


def rank_of_support(features, rho):
    return np.linalg.matrix_rank(features[rho > 0])


@universal
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from(["gaussian", "simplex", "one-hot", "binary"]))
def test_symmetric_form_chooses_d_spanning_pairs_of_equal_weight(seed, d, kind):
    rng = np.random.default_rng(seed)
    features = {
        "gaussian": lambda: rng.normal(size=(4 * d, d)),
        "simplex": lambda: rng.dirichlet(np.full(d, 0.3), size=10 * d),
        "one-hot": lambda: np.eye(d),
        "binary": lambda: np.vstack([rng.integers(0, 2, size=(2 * d, d)), np.eye(d)]),
    }[kind]()
    rho = symmetric(features, rng)
    assert np.count_nonzero(rho) == d == rank_of_support(features, rho)
    assert np.allclose(rho[rho > 0], 1 / d)


@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.sampled_from(["gaussian", "simplex", "one-hot"]))
def test_literal_form_spans_when_its_directions_are_random(seed, d, kind):
    # On a hyperplane the last direction is its normal, whose differences are rounding noise; d − 1 differences and a
    # point off the origin span all the same.
    rng = np.random.default_rng(seed)
    features = {
        "gaussian": lambda: rng.normal(size=(4 * d, d)),
        "simplex": lambda: rng.dirichlet(np.full(d, 0.3), size=10 * d),
        "one-hot": lambda: np.eye(d),
    }[kind]()
    rho = literal(features, rng)
    assert rank_of_support(features, rho) == d
    assert d <= np.count_nonzero(rho) <= 2 * d
    assert rho.sum() == pytest.approx(1) and np.unique(rho[rho > 0]).size == 1


def test_an_admissible_constant_direction_breaks_the_literal_form():
    d = 6
    rho = literal(np.eye(d), np.random.default_rng(0), constant)
    assert np.count_nonzero(rho) == 1  # one point, rank 1: argmax and argmin of a constant are the same pair
    simplex = np.random.default_rng(0).dirichlet(np.full(d, 0.3), size=500)
    spread = np.ptp(simplex @ np.ones(d))
    assert spread < 1e-14  # so what the literal form picks here is decided by rounding
    assert rank_of_support(simplex, literal(simplex, np.random.default_rng(0), constant)) < d


def test_inadmissible_directions_are_refused():
    features = np.random.default_rng(1).normal(size=(50, 3))
    with pytest.raises(InputError, match=r"`choose\(1\)` must be orthogonal to the differences so far"):
        literal(features, np.random.default_rng(0), constant)
    with pytest.raises(InputError, match=r"`choose\(0\)` must return a nonzero vector of 3 numbers"):
        literal(features, np.random.default_rng(0), lambda j, x: np.zeros(3))


def test_a_given_orthogonal_choice_is_followed():
    features = np.vstack([np.eye(3), -2 * np.eye(3)])
    rho = literal(features, np.random.default_rng(0), lambda j, x: np.eye(3)[j])
    assert np.allclose(rho, 1 / 6)
    rho = literal(features[:5], np.random.default_rng(0), lambda j, x: np.eye(3)[j])
    assert np.allclose(rho, 1 / 5)  # distinct points only: in the third step argmin is a pair met before


def test_dependent_features_stop_the_symmetric_form_at_their_rank():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 7))
    rho = symmetric(features, rng)
    assert np.count_nonzero(rho) == 3 == rank_of_support(features, rho)


def test_orthogonality_survives_nearly_dependent_features():
    d = 7
    basis = np.empty((0, d))
    for row in np.linalg.inv(np.add.outer(np.arange(d), np.arange(d)) + np.eye(d) * 1e-7):
        basis = _extended(basis, row)
    assert np.abs(basis @ basis.T - np.eye(len(basis))).max() < 1e-14


def test_the_seed_decides():
    features = np.random.default_rng(3).normal(size=(200, 5))
    first, again, other = (symmetric(features, np.random.default_rng(s)) for s in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
