"""The design on its own: any matrix in, rows with weights and a certificate out."""

import numpy as np
import pytest

from saddleback.designs import optimal_design
from saddleback.errors import InputError


@pytest.mark.parametrize("method", ["exchange", "frank-wolfe"])
def test_the_certificate_is_honest(method):
    features = np.random.default_rng(0).normal(size=(2000, 6))
    design = optimal_design(features, 0.05, method)
    assert np.all(np.diff(design.support) > 0) and np.all(design.weights > 0)
    assert design.weights.sum() == pytest.approx(1, abs=1e-12)
    chosen = features[design.support]
    G = chosen.T @ (design.weights[:, None] * chosen)
    nu = np.einsum("nd,dn->n", features, np.linalg.solve(G, features.T))
    assert nu.max() == pytest.approx(design.leverage_bound, rel=1e-11)
    assert np.allclose(design.leverage(features), nu, rtol=1e-11, atol=0)
    assert design.leverage([[0.0] * 6]) == [0.0]
    assert design.rank == 6 and 0 <= design.gap <= 0.05 and design.gap == pytest.approx(nu.max() / 6 - 1, abs=1e-10)
    assert design.iterations > 0


@pytest.mark.parametrize("method", ["exchange", "frank-wolfe"])
def test_dependent_features_and_single_columns(method):
    rng = np.random.default_rng(1)
    reduced = rng.normal(size=(300, 3))
    design = optimal_design(reduced @ rng.normal(size=(3, 7)), 0.1, method)
    chosen = reduced[design.support]
    G = chosen.T @ (design.weights[:, None] * chosen)
    nu = np.einsum("nd,dn->n", reduced, np.linalg.solve(G, reduced.T))
    assert design.rank == 3 and nu.max() == pytest.approx(design.leverage_bound, rel=1e-9)
    assert design.whitening.shape == (7, 3)
    column = optimal_design([[0.5], [-3.0], [2.0]], method=method)
    assert (column.support.tolist(), column.weights.tolist(), column.gap) == ([1], [1.0], 0.0)


def test_the_seed_is_passed_on():
    features = np.random.default_rng(2).normal(size=(400, 4))
    for method in ("exchange", "frank-wolfe"):
        first, again, other = (optimal_design(features, 0.05, method, seed) for seed in (0, 0, 1))
        assert first.weights.tobytes() == again.weights.tobytes()
        assert not np.array_equal(first.weights, other.weights)


@pytest.mark.parametrize(
    ("features", "options", "name"),
    [
        (np.eye(3), {"method": "newton"}, "method"),
        (np.eye(3), {"method": ["exchange"]}, "method"),
        (np.eye(3), {"tolerance": -0.1}, "tolerance"),
        (np.eye(3), {"tolerance": None}, "tolerance"),
        (np.eye(3), {"seed": -1, "method": "frank-wolfe"}, "seed"),
        (np.eye(3), {"seed": 0.5}, "seed"),
        (np.eye(3, dtype=np.int64), {}, "features"),
        (np.eye(3, dtype=np.float32), {}, "features"),
        (np.ones(3), {}, "features"),
        (np.empty((0, 3)), {}, "features"),
        (np.zeros((4, 3)), {}, "features"),
        ([[1.0, 2.0], [3.0, "x"]], {}, "features"),
        ([[1.0, 2.0], [3.0]], {}, "features"),
        (np.array([[1.0, np.inf]]), {}, r"features\[0, 1\]"),
    ],
)
def test_bad_input_is_named(features, options, name):
    with pytest.raises(InputError, match=f"`{name}` must"):
        optimal_design(features, **options)


@pytest.mark.parametrize("rows", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [["a", "b", "c"]], [[1.0], [2.0, 3.0]]])
def test_leverage_of_other_rows_is_refused(rows):
    with pytest.raises(InputError, match="`features` must be"):
        optimal_design(np.eye(3)).leverage(rows)
