"""The regression a design carries: properties 2, 4, 5, 7, 30 and the features' part of 33 (docs/properties.md).

Tolerances follow the backward error of QR: a few d·eps times the condition number of √ρ̃ Φ_C.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.designs.design import full_design, leverages, regression, spanning_basis, weighted_design
from saddleback.errors import InputError

EPS = np.finfo(np.float64).eps
universal = settings(derandomize=True, deadline=None, max_examples=60)


@st.composite
def weighted_features(draw):
    """(rng, Φ (n, d), ρ̃ (n,)): Gaussian, simplex, binary or polynomial rows that span R^d, some weights zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 8))
    n = draw(st.integers(2 * d, 40))
    kind = draw(st.sampled_from(["gaussian", "simplex", "binary", "polynomial"]))
    if kind == "gaussian":
        Phi = rng.normal(size=(n, d))
    elif kind == "simplex":
        Phi = rng.dirichlet(np.full(d, 0.5), size=n)
    elif kind == "binary":
        Phi = rng.integers(0, 2, size=(n, d)).astype(float)
    else:
        Phi = np.vander(rng.uniform(-1, 1, size=n), d)
    Phi[:d] += 2 * d * np.eye(d)  # diagonally dominant: the first d rows span, whatever was drawn
    weights = rng.dirichlet(np.ones(n))
    weights[d:][rng.random(n - d) < 0.3] = 0.0
    return rng, Phi, weights / weights.sum()


def design_of(Phi, weights, **more):
    pairs = np.arange(len(Phi))
    return weighted_design(pairs, np.zeros(len(Phi), dtype=np.int64), Phi, weights, Phi, **more)


def condition(design):
    return np.linalg.cond(np.sqrt(design.weights)[:, None] * design.features)


@universal
@given(weighted_features())
def test_regression_recovers_what_is_linear(case):  # property 2: W(φθ) = θ
    rng, Phi, weights = case
    design = design_of(Phi, weights)
    theta = rng.normal(size=(Phi.shape[1], 3))
    error = np.abs(design.fit(design.features @ theta) - theta).max()
    assert error <= 50 * EPS * len(theta) * condition(design) * np.abs(theta).max()


@universal
@given(weighted_features())
def test_leverages_average_to_the_dimension(case):  # property 4: Σ ρ̃ν = d, hence g ≥ d
    _, Phi, weights = case
    design, d = design_of(Phi, weights), Phi.shape[1]
    slack = 50 * EPS * d * condition(design)
    assert design.weights @ design.leverage(design.features) == pytest.approx(d, rel=slack)
    assert design.leverage_bound >= d * (1 - slack)
    assert design.leverage_bound == pytest.approx(leverages(Phi, design.whitening).max(), rel=1e-12)


@universal
@given(weighted_features())
def test_lebesgue_constant_bounds_predictions(case):  # property 5: |⟨φ,W(z)⟩| ≤ Leb‖z‖∞ ≤ √g‖z‖∞
    rng, Phi, weights = case
    design = design_of(Phi, weights)
    slack = 1 + 50 * EPS * Phi.shape[1] * condition(design)
    z = rng.uniform(-1, 1, size=(design.size, 20))
    predictions = np.abs(Phi @ design.fit(z)).max(axis=0)
    assert np.all(predictions <= design.lebesgue * np.abs(z).max(axis=0) * slack)
    assert design.lebesgue <= np.sqrt(design.leverage_bound) * slack
    worst = np.sign(Phi @ design.operator)  # the targets that reach the constant: the bound is not merely safe
    attained = np.abs(np.einsum("nd,nd->n", Phi, design.fit(worst.T).T)).max()
    assert attained == pytest.approx(design.lebesgue, rel=1e-9)


@universal
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_one_hot_regression_is_the_identity(seed, n):  # property 7: Leb = 1 for any positive weights
    rng = np.random.default_rng(seed)
    design = design_of(np.eye(n), rng.dirichlet(np.ones(n)) + 1e-6)
    table = full_design(np.arange(n), np.zeros(n, dtype=np.int64))
    z = rng.normal(size=n)
    assert design.lebesgue == pytest.approx(1, abs=1e-12)
    assert np.allclose(design.fit(z), table.fit(z), rtol=0, atol=1e-12)
    assert (table.lebesgue, table.leverage_bound, table.rank, table.size) == (1.0, n, n, n)


@universal
@given(weighted_features())
def test_fit_is_the_weighted_least_squares_solution(case):
    rng, Phi, weights = case
    design = design_of(Phi, weights)
    z = rng.normal(size=design.size)
    root = np.sqrt(design.weights)
    expected = np.linalg.lstsq(root[:, None] * design.features, root * z, rcond=None)[0]
    kappa = condition(design)  # with a residual the condition number enters squared
    assert np.abs(design.fit(z) - expected).max() <= max(1e-10, 50 * EPS * kappa**2 * np.abs(z).max())


@universal
@given(weighted_features())
def test_invertible_feature_maps_change_nothing(case):  # property 30
    rng, Phi, weights = case
    d = Phi.shape[1]
    U, _, V = np.linalg.svd(rng.normal(size=(d, d)))
    A = (U * np.geomspace(1, 100, d)) @ V
    design, mapped = design_of(Phi, weights), design_of(Phi @ A.T, weights)
    slack = 200 * EPS * d * condition(design) * 100
    assert np.allclose(mapped.leverage(Phi @ A.T), design.leverage(Phi), rtol=slack, atol=0)
    assert mapped.lebesgue == pytest.approx(design.lebesgue, rel=slack)
    z = rng.uniform(-1, 1, size=design.size)
    scale = design.lebesgue
    assert np.allclose(Phi @ A.T @ mapped.fit(z), Phi @ design.fit(z), rtol=0, atol=slack * scale)


@universal
@given(weighted_features())
def test_the_order_of_the_pairs_does_not_matter(case):  # property 30
    rng, Phi, weights = case
    order = rng.permutation(len(Phi))
    design, shuffled = design_of(Phi, weights), design_of(Phi[order], weights[order])
    slack = 50 * EPS * Phi.shape[1] * condition(design)
    assert shuffled.leverage_bound == pytest.approx(design.leverage_bound, rel=slack)
    assert shuffled.lebesgue == pytest.approx(design.lebesgue, rel=slack)
    assert np.allclose(shuffled.leverage(Phi), design.leverage(Phi), rtol=slack, atol=0)


@universal
@given(weighted_features(), st.integers(1, 3))
def test_dependent_features_predict_as_the_independent_ones(case, extra):
    rng, Phi, weights = case
    redundant = np.hstack([Phi, Phi @ rng.normal(size=(Phi.shape[1], extra)), np.zeros((len(Phi), 1))])
    design, reduced = design_of(redundant, weights), design_of(Phi, weights)
    assert design.rank == reduced.rank == Phi.shape[1]
    slack = 1e3 * EPS * redundant.shape[1] * np.linalg.cond(Phi) * condition(reduced)
    z = rng.uniform(-1, 1, size=design.size)
    predictions = redundant @ design.fit(z)
    assert np.allclose(predictions, Phi @ reduced.fit(z), rtol=0, atol=slack * reduced.lebesgue)
    assert design.leverage_bound == pytest.approx(reduced.leverage_bound, rel=slack)


def test_rank_does_not_depend_on_units():
    x = np.linspace(0, 1, 50)
    for factor in (1e-12, 1.0, 1e12):  # bytes or terabytes
        line = design_of(np.column_stack([np.ones(50), factor * x]), np.full(50, 0.02))
        assert line.rank == 2 and np.array_equal(spanning_basis(line.features), np.eye(2))
        assert np.allclose(line.fit(3 - 2 * x), [3, -2 / factor], rtol=1e-12)
        Phi = np.column_stack([np.ones(50), factor * x, 2 * factor * x, factor * x**2])
        design = design_of(Phi, np.full(50, 0.02))
        assert design.rank == 3
        truth = 3 - 2 * x + 5 * x**2
        assert np.allclose(Phi @ design.fit(truth), truth, rtol=0, atol=1e-10)


def test_least_norm_among_equal_columns():
    x = np.linspace(-1, 1, 9)
    design = design_of(np.column_stack([x, x]), np.full(9, 1 / 9))
    assert np.allclose(design.fit(3 * x), [1.5, 1.5], atol=1e-12)


def test_pairs_without_weight_leave_the_coreset_and_g_is_of_what_remains():
    Phi = np.vstack([np.eye(3), np.full((1, 3), 0.5), [[2.0, 0.0, 0.0]]])
    design = design_of(Phi, np.array([1.0, 1.0, 2.0, 0.0, 0.0]), complete=False)
    assert design.size == 3 and not design.complete
    assert design.weights.tolist() == [0.25, 0.25, 0.5]
    assert design.leverage_bound == pytest.approx(16)  # of the last row, which is a candidate but not in C


def test_large_coresets_are_scanned_in_pieces(monkeypatch):
    Phi = np.random.default_rng(3).normal(size=(300, 4))
    whole = design_of(Phi, np.full(300, 1 / 300))
    monkeypatch.setattr("saddleback.designs.design._CHUNK_ENTRIES", 2000)
    pieces = design_of(Phi, np.full(300, 1 / 300))
    assert pieces.lebesgue == pytest.approx(whole.lebesgue, rel=1e-14)
    assert pieces.leverage_bound == pytest.approx(whole.leverage_bound, rel=1e-14)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (np.ones((3, 2), dtype=np.float32), r"`features` must be float64, got float32"),
        (np.ones((3, 2), dtype=np.int64), r"`features` must be float64, got int64"),
        (np.array([[1.0, 2.0], [3.0, np.nan]]), r"`features\[1, 1\]` must be finite, got nan"),
        (np.array([[1.0, np.inf], [3.0, 1.0]]), r"`features\[0, 1\]` must be finite, got inf"),
        (np.zeros((3, 2)), r"`features` must not all be zero"),
        (np.ones(3), r"`features` must be a matrix"),
        (np.array([[1.0, 1e200], [2.0, 3e200]]), r"`features\[:, 1\]` must have a largest value in .*, got 3e\+200"),
    ],
)
def test_bad_features_are_named(features, message):  # property 33, features
    with pytest.raises(InputError, match=message):
        design_of(features, np.full(len(features), 1 / len(features)))


def test_the_coreset_is_checked_as_well_as_the_candidates():
    with pytest.raises(InputError, match="must be float64, got float32"):
        weighted_design(np.arange(3), np.zeros(3, dtype=np.int64), np.eye(3, dtype=np.float32), np.ones(3), np.eye(3))


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0], [np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(InputError, match="`weights` must be 3 non-negative numbers"):
        design_of(np.eye(3), np.array(weights))


def test_a_coreset_that_does_not_span_is_refused():
    with pytest.raises(InputError, match="must span the 3 dimensions"):
        design_of(np.eye(3), np.array([0.5, 0.5, 0.0]))
    with pytest.raises(InputError, match="must span the 2 dimensions"):
        regression(np.array([[1.0, 1.0], [2.0, 2.0]]), np.array([0.5, 0.5]), np.eye(2))


def test_tabular_design_has_no_matrix_leverage():
    with pytest.raises(InputError, match="must have features"):
        full_design(np.arange(2), np.zeros(2, dtype=np.int64)).leverage(np.eye(2))
