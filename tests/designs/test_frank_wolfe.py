"""Frank-Wolfe: properties 24, 25, 30, 31 and 33 of docs/properties.md, and what errata 14 says of the threshold rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from saddleback.designs.design import weighted_design
from saddleback.designs.frank_wolfe import (
    INITIALIZATIONS,
    elimination_threshold,
    optimal_weights,
    prune,
    rank_one_update,
    step_size,
)
from saddleback.errors import InputError

universal = settings(derandomize=True, deadline=None, max_examples=40)


def leverages_of(features, rho):
    G = features.T @ (rho[:, None] * features)
    return np.einsum("nd,nd->n", features, np.linalg.solve(G, features.T).T), G


def drawn(kind, n, d, rng):
    return {
        "gaussian": lambda: rng.normal(size=(n, d)),
        "simplex": lambda: rng.dirichlet(np.full(d, 0.3), size=n),
        "one-hot": lambda: np.eye(d)[rng.permutation(np.arange(n) % d)],
        "polynomial": lambda: np.polynomial.chebyshev.chebvander(rng.uniform(-1, 1, n), d - 1),
    }[kind]()


kinds = st.sampled_from(["gaussian", "simplex", "one-hot", "polynomial"])


@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), kinds)
def test_a_step_is_the_exact_line_search(seed, d, kind):  # property 25
    rng = np.random.default_rng(seed)
    features = drawn(kind, 60, d, rng)
    rho = rng.dirichlet(np.ones(60))
    nu, G = leverages_of(features, rho)
    x = int(nu.argmax())
    eta = step_size(nu[x], d)

    def loss(share):  # −log det along the segment to x, by the share η/(1+η) that x receives
        return -np.linalg.slogdet((1 - share) * G + share * np.outer(features[x], features[x]))[1]

    best = minimize_scalar(loss, bounds=(0, 0.999), method="bounded", options={"xatol": 1e-10})
    # A minimum is found from function values to about the square root of their rounding error.
    assert eta / (1 + eta) == pytest.approx(best.x, abs=1e-5)
    assert loss(eta / (1 + eta)) <= best.fun + 1e-10
    after = rho.copy()
    after[x] += eta
    after /= 1 + eta
    assert after.sum() == pytest.approx(1, abs=1e-14)
    nu_after = leverages_of(features, after)[0]
    assert nu_after[x] == pytest.approx(d, rel=1e-9)
    updated_inverse, updated = rank_one_update(features, np.linalg.inv(G), nu, x, eta)  # property 31
    assert np.allclose(updated, nu_after, rtol=1e-9, atol=1e-9)
    assert np.allclose(
        features @ updated_inverse @ features[x],
        features @ np.linalg.inv(leverages_of(features, after)[1]) @ features[x],
        atol=1e-7,
    )


def test_a_hundred_updates_drift_by_less_than_1e_9():
    features = np.linalg.qr(np.random.default_rng(0).normal(size=(3000, 30)))[0]
    rho = np.full(3000, 1 / 3000)
    nu, G = leverages_of(features, rho)
    inverse = np.linalg.inv(G)
    for _ in range(100):
        x = int(nu.argmax())
        eta = step_size(nu[x], 30)
        inverse, nu = rank_one_update(features, inverse, nu, x, eta)
        rho[x] += eta
        rho /= 1 + eta
    assert np.abs(nu - leverages_of(features, rho)[0]).max() < 1e-9


@universal
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    kinds,
    st.sampled_from([1.0, 0.2, 0.05]),
    st.sampled_from(["symmetric", "literal"]),
)
def test_the_tolerance_is_reached(seed, d, kind, tolerance, initialization):  # property 24: hyperplanes and d = 1 too
    features = drawn(kind, 80, d, np.random.default_rng(seed))
    weights, g, _ = optimal_weights(features, tolerance, initialization, seed=seed)
    assert np.all(weights >= 0) and weights.sum() == pytest.approx(1, abs=1e-12)
    nu = leverages_of(features, weights)[0]
    assert nu.max() == pytest.approx(g, rel=1e-8)  # the g returned is that of the weights returned
    assert d * (1 - 1e-9) <= g <= (1 + tolerance) * d * (1 + 1e-12)


def test_one_dimension_puts_all_mass_on_the_largest_feature():
    features = np.array([[0.5], [-3.0], [2.0]])
    weights, g, steps = optimal_weights(features, 1e-9)
    assert weights.tolist() == [0.0, 1.0, 0.0] and g == 1.0 and steps == 0
    with pytest.raises(ZeroDivisionError):
        step_size(2.0, 1)  # what the paper's step would do
    rank_one = features @ np.array([[1.0, -2.0, 4.0]])
    assert np.array_equal(optimal_weights(rank_one).weights, weights)


def test_rank_deficient_features_are_designed_in_their_span():
    rng = np.random.default_rng(5)
    reduced = rng.normal(size=(400, 4))
    features = reduced @ rng.normal(size=(4, 9))
    weights, g, _ = optimal_weights(features, 0.1)
    assert 4 <= g <= 4.4
    assert leverages_of(reduced, weights)[0].max() == pytest.approx(g, rel=1e-9)


def test_known_optimum_on_an_interval():
    # Quadratic regression on [−1, 1]: a third of the mass on each of −1, 0, 1, and g = 3.
    t = np.linspace(-1, 1, 201)
    weights, g, _ = optimal_weights(np.vander(t, 3), 1e-4)
    assert g == pytest.approx(3, abs=3e-4)
    for centre in (-1, 0, 1):
        assert weights[np.abs(t - centre) < 0.05].sum() == pytest.approx(1 / 3, abs=0.01)


def test_one_hot_optimum_is_uniform_without_a_step():
    weights, g, steps = optimal_weights(np.eye(12), 1e-6)
    assert np.allclose(weights, 1 / 12, atol=1e-15) and g == pytest.approx(12) and steps == 0


@pytest.mark.parametrize("initialization", ["symmetric", "literal"])
def test_coordinates_do_not_change_the_design(initialization):  # property 30
    rng = np.random.default_rng(6)
    features = rng.normal(size=(500, 7))
    A = rng.normal(size=(7, 7))
    weights, g, steps = optimal_weights(features, 0.1, initialization)
    mapped = optimal_weights(features @ A, 0.1, initialization)
    assert np.allclose(mapped.weights, weights, rtol=1e-8, atol=0) and mapped.iterations == steps
    assert mapped.leverage_bound == pytest.approx(g, rel=1e-9)


@pytest.mark.parametrize(("d", "seed"), [(d, seed) for d in (10, 30) for seed in range(5)])
def test_support_is_small_where_the_threshold_rule_keeps_everything(d, seed):  # errata 14
    features = np.random.default_rng(seed).normal(size=(3000, d))
    weights, g, _ = optimal_weights(features)
    assert d <= np.count_nonzero(weights) <= 2 * d and g <= 2 * d
    nu = leverages_of(features, weights)[0]
    kept = nu >= elimination_threshold((g - d) / d, d)
    assert kept.mean() > 0.9


def test_threshold_is_an_elimination_test_and_no_coreset():
    # What it is: the pairs below it at a rough design carry (nearly) nothing in a refined one.
    features = np.random.default_rng(0).normal(size=(3000, 10))
    refined, g_refined, _ = optimal_weights(features, 0.002)
    rough, g, _ = optimal_weights(features, 0.05)
    below = leverages_of(features, rough)[0] < elimination_threshold(g / 10 - 1, 10)
    assert below.mean() > 0.3 and refined[below].sum() < 1e-12
    # What it is not: at a small δ it drops pairs that carry weight.
    nu = leverages_of(features, refined)[0]
    dropped = (refined > 0) & (nu < elimination_threshold(g_refined / 10 - 1, 10))
    assert refined[dropped].sum() > 1e-3
    left = np.where(dropped, 0.0, refined)
    assert leverages_of(features, left / left.sum())[0].max() > 10.02 >= g_refined  # 0.002 was asked for
    assert elimination_threshold(0.0, 7) == 7.0
    assert elimination_threshold(1.0, 10) == pytest.approx(10 * (6 - np.sqrt(34)))


@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.floats(1.1, 4.0))
def test_pruning_keeps_the_target(seed, d, factor):  # property 24
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(100, d))
    weights = 0.9 * optimal_weights(features, 0.05).weights + 0.1 * rng.dirichlet(np.ones(100))
    before = leverages_of(features, weights)[0].max()
    pruned, g = prune(features, weights, max(factor * d, before))
    assert g <= max(factor * d, before) * (1 + 1e-12)
    assert pruned.sum() == pytest.approx(1, abs=1e-12)
    assert leverages_of(features, pruned)[0].max() == pytest.approx(g, rel=1e-9)  # computed after, not before
    assert np.count_nonzero(pruned) >= d and np.all(weights[pruned > 0] > 0)
    if factor >= 2:
        assert np.count_nonzero(pruned) < 100


def test_pruning_what_misses_the_target_says_so():
    weights = np.full(3, 1 / 3)
    kept, g = prune(np.eye(3), weights, 1.0)
    assert np.array_equal(kept, weights) and g == pytest.approx(3)
    assert prune(np.eye(3), np.array([0.5, 0.5, 0.0]), 9.0)[1] == np.inf


def test_the_bound_of_a_design_is_that_of_its_support():
    features = np.random.default_rng(8).normal(size=(1000, 6))
    weights, g, _ = optimal_weights(features, 0.1)
    C = np.flatnonzero(weights)
    design = weighted_design(C, C, features[C], weights[C], features)
    assert design.leverage_bound == pytest.approx(g, rel=1e-10)
    assert design.lebesgue <= np.sqrt(g)


@pytest.mark.parametrize("error", [0.9, 1.001])
def test_errors_of_the_updates_are_not_part_of_the_answer(monkeypatch, error):
    def wrong(*arguments):
        inverse, nu = rank_one_update(*arguments)
        return inverse, error * nu

    monkeypatch.setattr("saddleback.designs.frank_wolfe.rank_one_update", wrong)
    features = np.random.default_rng(0).normal(size=(500, 5))
    weights, g, _ = optimal_weights(features, 0.1, max_iterations=2000)
    assert g <= 5.5 and leverages_of(features, weights)[0].max() == pytest.approx(g, rel=1e-12)


def test_long_runs_pass_the_recomputations():
    features = np.random.default_rng(0).normal(size=(500, 5))
    weights, g, steps = optimal_weights(features, 0.003)
    assert steps > 300 and g <= 5.015
    assert leverages_of(features, weights)[0].max() == pytest.approx(g, rel=1e-12)


def test_an_iteration_cap_is_an_error_that_says_how_far_it_got():
    features = np.random.default_rng(0).normal(size=(500, 5))
    with pytest.raises(
        InputError, match=r"`max_iterations` must be enough to reach g ≤ 1.001·5, got 3, which reached g = \d"
    ):
        optimal_weights(features, 0.001, max_iterations=3)
    assert optimal_weights(features, 1e6, max_iterations=0).iterations == 0
    needed = optimal_weights(features, 0.1).iterations
    assert optimal_weights(features, 0.1, max_iterations=needed).iterations == needed
    with pytest.raises(InputError, match="max_iterations"):
        optimal_weights(features, 0.1, max_iterations=needed - 1)


def test_an_initial_design_that_does_not_span_is_an_error(monkeypatch):
    monkeypatch.setitem(INITIALIZATIONS, "literal", lambda X, rng: np.eye(1, len(X))[0])
    with pytest.raises(InputError, match="`initialization` must find pairs whose features span all 4 dimensions"):
        optimal_weights(np.eye(4), initialization="literal")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"initialization": "uniform"}, "initialization"),
        ({"max_iterations": -1}, "max_iterations"),
    ],
)
def test_bad_options_are_named(options, name):
    with pytest.raises(InputError, match=f"`{name}` must"):
        optimal_weights(np.eye(3), **options)


def test_float32_and_nan_are_refused():  # property 33, features
    with pytest.raises(InputError, match="`features` must be float64, got float32"):
        optimal_weights(np.eye(3, dtype=np.float32))
    with pytest.raises(InputError, match=r"`features\[2, 1\]` must be finite, got nan"):
        optimal_weights(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, np.nan]]))
