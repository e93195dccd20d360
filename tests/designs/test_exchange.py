"""Pairwise exchange: properties 24, 25, 30, 31 and 33 (docs/properties.md), known optima, and how fast they are met."""

import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import legendre
from scipy.optimize import minimize_scalar

from saddleback.designs import exchange as module
from saddleback.designs.design import orthonormalizing_map
from saddleback.designs.exchange import Active, Exchange, exchange_step, exchange_weights, spanning_rows
from saddleback.designs.frank_wolfe import optimal_weights
from saddleback.errors import InputError, NumericalError

universal = settings(derandomize=True, deadline=None, max_examples=40)
EPS = np.finfo(float).eps


def leverages_of(features, rho):
    G = features.T @ (rho[:, None] * features)
    return np.einsum("nd,nd->n", features, np.linalg.solve(G, features.T).T), G


def log_det(features, rho):
    return np.linalg.slogdet(features.T @ (rho[:, None] * features))[1]


def radial(n, d, rng):
    points, centres = rng.random((n, 2)), rng.random((d, 2))
    distances = np.linalg.norm(points[:, None] - centres, axis=2)
    return np.exp(-(distances**2) * d / 2)


def drawn(kind, n, d, rng):
    return {
        "gaussian": lambda: rng.normal(size=(n, d)),
        "simplex": lambda: rng.dirichlet(np.full(d, 0.3), size=n),
        "one-hot": lambda: np.eye(d)[rng.permutation(np.arange(n) % d)],
        "polynomial": lambda: np.polynomial.chebyshev.chebvander(rng.uniform(-1, 1, n), d - 1),
        "radial": lambda: radial(n, d, rng),
        "copies": lambda: np.repeat(rng.normal(size=(-(-n // 10), d)), 10, axis=0)[:n],
    }[kind]()


kinds = st.sampled_from(["gaussian", "simplex", "one-hot", "polynomial", "radial", "copies"])


@universal
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from(["gaussian", "simplex", "polynomial"]))
def test_a_step_is_the_exact_line_search(seed, d, kind):
    rng = np.random.default_rng(seed)
    features = drawn(kind, 30, d, rng)
    rho = rng.dirichlet(np.ones(30))
    nu, G = leverages_of(features, rho)
    k, j = rng.permutation(30)[:2]
    nu_kj = features[k] @ np.linalg.solve(G, features[j])
    alpha, gain = exchange_step(nu[k], nu[j], nu_kj, rho[k], rho[j])
    assert -rho[j] <= alpha <= rho[k] and gain >= 0

    def loss(a):
        return -np.linalg.slogdet(G + a * (np.outer(features[j], features[j]) - np.outer(features[k], features[k])))[1]

    # The determinant is a parabola in α: no value in the interval does better, the ends included.
    rounding = 100 * EPS * d * np.linalg.cond(G)
    best = minimize_scalar(loss, bounds=(-rho[j], rho[k]), method="bounded", options={"xatol": 1e-12})
    assert loss(alpha) <= min(best.fun, loss(-rho[j]), loss(rho[k]), loss(0.0)) + rounding
    assert loss(0.0) - loss(alpha) == pytest.approx(np.log1p(gain), abs=rounding)


def test_mass_moves_towards_the_larger_leverage_as_far_as_there_is_any():
    assert exchange_step(1.0, 3.0, 0.0, 0.9, 0.1)[0] == pytest.approx(2 / 6)  # the top of the parabola
    assert exchange_step(3.0, 1.0, 0.0, 0.1, 0.9)[0] == pytest.approx(-2 / 6)
    assert exchange_step(1.0, 3.0, 0.0, 0.2, 0.1)[0] == 0.2  # all that k has
    assert exchange_step(3.0, 1.0, 0.0, 0.1, 0.2)[0] == -0.2  # all that j has


def test_parallel_rows_give_everything_to_the_longer():
    # φ_j = 2 φ_k: ν_kν_j = ν_kj², the denominator is 0 up to rounding.
    for nu in (1e-3, 0.7, 2.5):  # ρ̃ν ≤ 1 always
        for error in (0.0, 1e-16, -1e-16):
            alpha, gain = exchange_step(nu, 4 * nu, 2 * nu * (1 + error), 0.25, 0.1)
            assert alpha == 0.25 and gain == pytest.approx(0.25 * 3 * nu, rel=1e-12)
            assert exchange_step(4 * nu, nu, 2 * nu * (1 + error), 0.1, 0.25)[0] == -0.25
    alpha, gain = exchange_step(2.0, 2.0, 2.0, 0.25, 0.1)  # a row and its copy, or itself
    assert alpha == 0 and gain == 0


@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 9))
def test_the_update_equals_recomputation(seed, d):  # property 31
    rng = np.random.default_rng(seed)
    X = np.linalg.qr(rng.normal(size=(60, d)))[0]
    active = Active(X.copy(), rng.dirichlet(np.ones(60)))
    k, j = rng.permutation(60)[:2]
    v = active.inverse @ X[k]
    alpha, gain = exchange_step(active.nu[k], active.nu[j], X[j] @ v, active.rho[k], active.rho[j])
    before = log_det(X, active.rho)
    active.update(k, j, float(alpha), v, X @ v)
    nu, G = leverages_of(X, active.rho)
    assert np.abs(active.nu / nu - 1).max() < 1e-13 * np.linalg.cond(G)
    assert np.allclose(active.inverse @ G, np.eye(d), rtol=0, atol=1e-13 * np.linalg.cond(G))
    assert log_det(X, active.rho) - before == pytest.approx(np.log1p(gain), abs=1e-12)


def test_rank_one_in_numbers():  # property 31, where nothing is ill-conditioned
    X = np.vstack([np.eye(4), -np.eye(4), np.full((1, 4), 0.5)])
    active = Active(X, np.full(9, 1 / 9))
    v = active.inverse @ X[0]
    active.update(0, 8, 0.05, v, X @ v)
    assert np.abs(active.nu - leverages_of(X, active.rho)[0]).max() < 1e-13
    assert active.rho[0] == 1 / 9 - 0.05 and active.rho[8] == 1 / 9 + 0.05


@universal
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), kinds)
def test_exchanges_never_decrease_the_determinant(seed, d, kind):
    rng = np.random.default_rng(seed)
    features = drawn(kind, 80, d, rng)
    X = features @ orthonormalizing_map(features)
    rho = np.zeros(len(X))
    rho[spanning_rows(X, np.eye(X.shape[1]), rng)] = 1.0
    active = Active(X, rho / rho.sum())
    before = start = log_det(X, active.rho)
    for k in rng.integers(0, len(X), 60):
        active.exchange(int(k))
        after = log_det(X, active.rho)
        assert after >= before - 1e-9  # of rounding; the determinant may start at 1e-30
        before = after
        assert np.all(active.rho >= 0) and active.rho.sum() == pytest.approx(1, abs=1e-13)
    assert before >= start


def test_a_row_that_gives_all_its_mass_leaves_the_support():
    X = np.vstack([np.eye(3), 0.1 * np.eye(3)])
    active = Active(X, np.full(6, 1 / 6))
    for k in (3, 4, 5):
        active.exchange(k)
    assert np.array_equal(active.rho[3:], np.zeros(3)) and np.allclose(active.rho[:3], 1 / 3)


def test_hundreds_of_updates_drift_by_less_than_1e_9(monkeypatch):
    monkeypatch.setattr(module, "_MOST_GROWTH", np.inf)
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.normal(size=(600, 20)))[0]
    active = Active(X, np.full(600, 1 / 600))
    for k in rng.permutation(600):
        active.exchange(int(k))
    assert np.count_nonzero(active.rho) < 400  # it did something
    assert np.abs(active.nu - leverages_of(X, active.rho)[0]).max() < 1e-9


def test_a_large_step_is_recomputed():
    # A start that hardly spans: the new row multiplies det G by 1e11, and the update cancels as many digits.
    X = np.vstack([np.eye(2), [[1.0, 1e-6]], [[0.5, 0.5]]])
    active = Active(X, np.array([0.5, 0.0, 0.5, 0.0]))
    active.exchange(2)
    assert active.growth == 1.0
    assert np.abs(active.nu / leverages_of(X, active.rho)[0] - 1).max() < 1e-12


@universal
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), kinds, st.sampled_from([0.05, 0.01, 1e-4]))
def test_the_tolerance_is_reached(seed, d, kind, tolerance):  # properties 24 and 25: REX reaches g ≤ 1.01 d
    features = drawn(kind, 100, d, np.random.default_rng(seed))
    weights, g, _ = exchange_weights(features, tolerance, seed)
    assert np.all(weights >= 0) and weights.sum() == pytest.approx(1, abs=1e-12)
    nu, G = leverages_of(features, weights)
    slack = 100 * EPS * d * np.linalg.cond(G)
    assert nu.max() == pytest.approx(g, rel=max(1e-9, slack))  # the g returned is that of the weights returned
    assert d * (1 - 1e-9) <= g <= (1 + tolerance) * d * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "d", "rex", "frank_wolfe"),
    [("gaussian", 10, 41, 669), ("gaussian", 30, 173, 1933), ("radial", 20, 42, 1488)],
)
def test_few_rounds_and_small_supports(
    kind, d, rex, frank_wolfe
):  # one earlier draw each: 7, 6 and 13 rounds, supports of `rex`
    rounds, sizes = [], []
    for seed in range(5):
        weights, g, iterations = exchange_weights(drawn(kind, 3000, d, np.random.default_rng(seed)), 0.01, seed)
        assert g <= 1.01 * d
        rounds.append(iterations)
        sizes.append(np.count_nonzero(weights))
    assert max(rounds) <= 13 and np.median(sizes) <= 1.1 * rex  # other candidates, drawn alike
    assert max(rounds) < frank_wolfe / 50


@pytest.mark.slow
@universal
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from(["gaussian", "simplex", "polynomial"]))
def test_frank_wolfe_finds_the_same_determinant(seed, d, kind):
    features = drawn(kind, 200, d, np.random.default_rng(seed))
    slow, g, _ = optimal_weights(features, 0.01)
    fast = exchange_weights(features, 1e-7).weights
    difference = log_det(features, fast) - log_det(features, slow)
    # Each is within d log(g/d) of the largest: so much may the rough one miss, the refined one nearly nothing.
    assert -d * 1e-7 - 1e-12 <= difference <= d * np.log(g / d) + 1e-12


def test_known_optimum_of_quadratic_regression():
    # On [−1, 1]: a third of the mass on each of −1, 0, 1, and g = 3.
    t = np.linspace(-1, 1, 201)
    weights, g, _ = exchange_weights(np.vander(t, 3), 1e-10)
    assert t[np.flatnonzero(weights)] == pytest.approx([-1, 0, 1], abs=1e-15)
    assert weights[weights > 0] == pytest.approx(np.full(3, 1 / 3), abs=1e-6) and g == pytest.approx(3, abs=1e-9)


@pytest.mark.parametrize("degree", [3, 5, 8])
def test_known_optimum_of_polynomial_regression(degree):
    # Equal mass on the roots of (1 − t²) P'(t), P the Legendre polynomial of that degree.
    inner = legendre.Legendre.basis(degree).deriv().roots()
    optimum = np.sort(np.concatenate([[-1, 1], inner.real]))
    t = np.sort(np.concatenate([optimum, np.linspace(-1, 1, 1001)[1:-1]]))
    weights = exchange_weights(np.vander(t, degree + 1), 1e-9).weights
    heavy = weights > 1e-3
    assert t[heavy] == pytest.approx(optimum, abs=1e-12)
    assert weights[heavy] == pytest.approx(np.full(degree + 1, 1 / (degree + 1)), abs=1e-4)


def test_known_optimum_on_a_simplex():
    rng = np.random.default_rng(1)
    features = rng.permutation(np.vstack([np.eye(6), rng.dirichlet(np.ones(6), size=500)]))
    weights, g, _ = exchange_weights(features, 1e-8)
    vertices = features.max(axis=1) == 1
    assert weights[vertices] == pytest.approx(np.full(6, 1 / 6), abs=1e-7)
    assert not np.any(weights[~vertices]) and g == pytest.approx(6, abs=1e-7)


@pytest.mark.parametrize("corners", [3, 8, 101, 1000])
def test_known_optimum_on_a_circle(corners):
    # Any design with G = I/2 is optimal for a regular polygon, and nothing else is.
    angle = 2 * np.pi * np.arange(corners) / corners
    features = np.column_stack([np.cos(angle), np.sin(angle)])
    weights, g, _ = exchange_weights(features, 1e-10)
    assert g == pytest.approx(2, abs=1e-9)
    assert np.allclose(leverages_of(features, weights)[1], np.eye(2) / 2, rtol=0, atol=1e-8)


def test_known_optimum_on_a_cube():
    # First-order model on [−1, 1]³: G = I, supported on the corners.
    rng = np.random.default_rng(2)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    points = np.vstack([rng.uniform(-1, 1, size=(1000, 3)), corners])
    features = np.column_stack([np.ones(len(points)), points])
    weights, g, _ = exchange_weights(features, 1e-10)
    assert not np.any(weights[:1000]) and g == pytest.approx(4, abs=1e-9)
    assert np.allclose(leverages_of(features, weights)[1], np.eye(4), rtol=0, atol=1e-8)


def test_small_and_degenerate_matrices():
    for features, rank in [
        (np.array([[-2.0]]), 1),
        (np.array([[0.5], [-3.0], [2.0]]), 1),
        (np.array([[0.5], [-3.0], [2.0]]) @ np.array([[1.0, -2.0, 4.0]]), 1),
        (np.random.default_rng(0).normal(size=(6, 6)), 6),
        (np.random.default_rng(0).normal(size=(4, 9)), 4),
        (np.vstack([np.zeros((50, 3)), np.eye(3), np.zeros((50, 3))]), 3),
    ]:
        weights, g, _ = exchange_weights(features, 1e-9)
        assert np.count_nonzero(weights) == rank and g == pytest.approx(rank, abs=1e-9)
        assert weights[weights > 0] == pytest.approx(np.full(rank, 1 / rank), abs=1e-9)
    assert exchange_weights(np.array([[0.5], [-3.0], [2.0]])).weights.tolist() == [0.0, 1.0, 0.0]


def test_rank_deficient_features_are_designed_in_their_span():
    rng = np.random.default_rng(5)
    reduced = rng.normal(size=(400, 4))
    features = reduced @ rng.normal(size=(4, 9))
    weights, g, _ = exchange_weights(features, 0.01)
    assert 4 <= g <= 4.04
    assert leverages_of(reduced, weights)[0].max() == pytest.approx(g, rel=1e-9)


def test_copies_of_the_best_rows_do_not_hide_the_others():
    # Twenty points, 5,000 copies each: the rows of largest leverage are all copies of one or two.
    points = np.random.default_rng(6).normal(size=(20, 4))
    weights, g, rounds = exchange_weights(np.repeat(points, 5000, axis=0), 1e-6)
    assert g <= 4 * (1 + 1e-6) and rounds <= 15
    merged = weights.reshape(20, 5000).sum(axis=1)
    assert leverages_of(points, merged)[0].max() == pytest.approx(g, rel=1e-10)


def test_coordinates_do_not_change_the_design():  # property 30
    rng = np.random.default_rng(6)
    features = rng.normal(size=(500, 7))
    weights, g, rounds = exchange_weights(features, 0.01)
    mapped = exchange_weights(features @ rng.normal(size=(7, 7)), 0.01)
    assert mapped.iterations == rounds and mapped.leverage_bound == pytest.approx(g, rel=1e-9)
    assert np.allclose(mapped.weights, weights, rtol=1e-6, atol=0)
    scaled = exchange_weights(features * np.geomspace(1e-12, 1e12, 7), 0.01)  # bytes or terabytes
    assert np.allclose(scaled.weights, weights, rtol=1e-6, atol=0)


def test_the_seed_decides():
    features = np.random.default_rng(3).normal(size=(500, 5))
    first, again, other = (exchange_weights(features, 0.05, seed) for seed in (0, 0, 1))
    assert first.weights.tobytes() == again.weights.tobytes()
    assert not np.array_equal(first.weights, other.weights) and other.leverage_bound <= 5.25
    assert Exchange() == Exchange(0.05, 0, 200)


@pytest.mark.parametrize("kind", ["one-hot", "simplex", "radial", "copies"])
def test_the_start_spans(kind):
    features = drawn(kind, 20000, 12, np.random.default_rng(0))
    M = orthonormalizing_map(features)
    rows = spanning_rows(features, M, np.random.default_rng(1))
    assert np.linalg.matrix_rank(features[rows] @ M, tol=1e-6) == 12 and len(rows) <= 4 * 12


def test_the_start_finds_rows_no_sample_meets():
    features = np.vstack([np.eye(20)[np.zeros(50000, dtype=int)], np.eye(20)])  # all but one of 20 classes are rare
    rows = spanning_rows(features, orthonormalizing_map(features), np.random.default_rng(0))
    assert np.linalg.matrix_rank(features[rows]) == 20
    weights, g, _ = exchange_weights(features, 1e-9)
    assert g == pytest.approx(20) and np.count_nonzero(weights) == 20


@pytest.mark.slow
def test_features_are_never_copied():
    features = np.random.default_rng(0).normal(size=(200_000, 20))
    tracemalloc.start()
    exchange_weights(features, 0.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * features.nbytes


@pytest.mark.parametrize("error", [0.99, 1.01])
def test_errors_of_the_updates_are_not_part_of_the_answer(monkeypatch, error):
    def wrong(self, *arguments):
        update(self, *arguments)
        self.nu *= error

    update = Active.update
    monkeypatch.setattr(Active, "update", wrong)
    features = np.random.default_rng(0).normal(size=(500, 5))
    weights, g, _ = exchange_weights(features, 0.1)
    assert g <= 5.5 and leverages_of(features, weights)[0].max() == pytest.approx(g, rel=1e-12)


def test_a_cap_on_the_rounds_is_an_error_that_says_how_far_it_got():
    features = np.random.default_rng(0).normal(size=(500, 5))
    with pytest.raises(
        InputError, match=r"`max_rounds` must be enough to reach g/5 − 1 ≤ 0.01, got 1, which reached 0\.\d"
    ):
        exchange_weights(features, 0.01, max_rounds=1)
    assert exchange_weights(features, 1e6, max_rounds=0).iterations == 0
    needed = exchange_weights(features, 0.01).iterations
    assert exchange_weights(features, 0.01, max_rounds=needed).iterations == needed
    with pytest.raises(InputError, match="max_rounds"):
        exchange_weights(features, 0.01, max_rounds=needed - 1)


@pytest.mark.slow
def test_a_tolerance_below_rounding_ends_with_an_error():
    """Where rounding does not happen to give g = d exactly, as it does for some matrices with some BLAS kernels."""
    message = r"reach g/5 − 1 ≤ 1e-18, got 20, which reached [\d.]+e-1\d; raise max_rounds or"
    said = []
    for seed in range(20):
        try:
            exchange_weights(np.random.default_rng(seed).normal(size=(100, 5)), 1e-18, max_rounds=20)
        except InputError as error:
            said.append(str(error))
    assert said and all(re.search(message, text) for text in said)


def test_a_start_that_does_not_span_is_an_error(monkeypatch):
    monkeypatch.setattr(module, "spanning_rows", lambda *_: np.arange(3))
    with pytest.raises(NumericalError, match="3 rows found to span their 4 dimensions do not"):
        exchange_weights(np.eye(4))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"tolerance": "small"}, "tolerance"),
        ({"max_rounds": -1}, "max_rounds"),
        ({"max_rounds": 1.5}, "max_rounds"),
        ({"seed": -1}, "seed"),
        ({"seed": None}, "seed"),
    ],
)
def test_bad_options_are_named(options, name):
    with pytest.raises(InputError, match=f"`{name}` must"):
        exchange_weights(np.eye(3), **options)


def test_float32_and_nan_are_refused():  # property 33, features
    with pytest.raises(InputError, match="`features` must be float64, got float32"):
        exchange_weights(np.eye(3, dtype=np.float32))
    with pytest.raises(InputError, match=r"`features\[2, 1\]` must be finite, got nan"):
        exchange_weights(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, np.nan]]))
