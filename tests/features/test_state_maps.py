"""Maps of states by hand and by formula."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.features import (
    Aggregation,
    Cells,
    Fourier,
    Frame,
    MultilinearInterpolation,
    PerAction,
    Polynomial,
    RadialBasis,
    RandomFourier,
    StateFunction,
    StateMatrix,
    Tiles,
    examine,
)
from saddleback.features.basis import count, multi_indices
from saddleback.problem.spaces import BoxStates, FiniteStates

LINE, SQUARE = BoxStates([0.0], [4.0]), BoxStates([-1.0, 0.0], [1.0, 10.0])
POINTS = np.random.default_rng(0).uniform(SQUARE.low, SQUARE.high, (500, 2))
UNIT = (POINTS - SQUARE.low) / (SQUARE.high - SQUARE.low)


def test_groups():
    psi = Aggregation(np.array([1, 0, 1]))
    assert np.array_equal(psi.at(np.array([0, 1, 2])), [[0, 1], [1, 0], [0, 1]])
    assert np.array_equal(psi.product(np.array([2, 1]), np.array([[1.0, 2.0], [3.0, 4.0]])), [[3, 4], [1, 2]])


@pytest.mark.parametrize(
    ("groups", "complaint"),
    [
        ([0.0, 1.0], "whole numbers"),
        ([[0, 1]], "whole numbers"),
        ([[0], [0, 1]], "several lengths"),
        ([], "whole numbers"),
        ([0, -1], "0 or more, got -1"),
        ([0, 2], r"no state in group \[1\]"),
        ([0, 10**9], "at most 20000"),
    ],
)
def test_bad_groups_are_named(groups, complaint):
    with pytest.raises(InputError, match=complaint):
        Aggregation(groups)


def test_cells_and_their_edges():
    psi = Cells(LINE, 4)
    states = np.array([[0.0], [0.99], [1.0], [3.5], [4.0]])
    assert np.array_equal(psi.at(states).argmax(axis=1), [0, 0, 1, 3, 3])
    two = Cells(SQUARE, [2, 5])
    assert two.dim == 10
    assert np.array_equal(two.at(np.array([[-1.0, 0.0], [0.0, 10.0], [1.0, 3.0]])).argmax(axis=1), [0, 9, 6])


def test_one_tiling_is_a_grid_of_cells():
    assert np.array_equal(Tiles(SQUARE, [3, 4], 1).at(POINTS), Cells(SQUARE, [3, 4]).at(POINTS))


def test_two_tilings_by_hand():
    """On [0, 4] with two tiles: the first grid is cut at 2, the second, shifted by half a tile, at 1 and 3."""
    psi = Tiles(LINE, 2, 2)
    rows = psi.at(np.array([[0.0], [1.5], [2.5], [4.0]]))
    assert np.array_equal(rows, [[1, 0, 1, 0, 0], [1, 0, 0, 1, 0], [0, 1, 0, 1, 0], [0, 1, 0, 0, 1]])


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 9))
def test_tilings_have_one_tile_each_and_use_all(tiles, tilings):
    k = len(tiles)
    psi = Tiles(BoxStates(np.zeros(k), np.ones(k)), tiles, tilings)
    # Cuts lie at multiples of 1/(n_j T): a point inside each piece, and the corners.
    axes = [np.concatenate([[0.0], (np.arange(n * tilings) + 0.5) / (n * tilings), [1.0]]) for n in tiles]
    states = np.array(list(itertools.product(*axes)))
    if len(states) > 3000:
        states = states[np.random.default_rng(0).permutation(len(states))[:3000]]
    rows = psi.at(states)
    assert psi.dim == math.prod(tiles) + (tilings - 1) * math.prod(n + 1 for n in tiles)
    assert np.array_equal(rows.sum(axis=1), np.full(len(states), tilings))
    assert set(np.unique(rows)) <= {0.0, 1.0}
    if k < 3:
        assert rows.any(axis=0).all()
    theta = np.random.default_rng(1).random((psi.dim, 3))
    assert np.allclose(psi.product(states, theta), rows @ theta, rtol=1e-13, atol=0)


def test_interpolation_by_hand():
    psi = MultilinearInterpolation(SQUARE, [[-1, 0, 1], [0, 4, 10]])  # knots of x at −1, 0, 1 and of y at 0, 4, 10
    rows = psi.at(np.array([[0.0, 4.0], [-0.25, 1.0], [1.0, 7.0], [5.0, -5.0]]))
    expected = np.zeros((4, 9))
    expected[0, 4] = 1
    expected[1, [0, 1, 3, 4]] = 0.25 * 0.75, 0.25 * 0.25, 0.75 * 0.75, 0.75 * 0.25
    expected[2, [7, 8]] = 0.5
    expected[3, 6] = 1  # beyond the edge: on the edge
    assert np.allclose(rows, expected, rtol=0, atol=1e-15)
    assert np.array_equal(psi.at(psi.points()), np.eye(9))
    even = MultilinearInterpolation(SQUARE, [3, 2])
    assert [x.tolist() for x in even.knots] == [[-1, 0, 1], [0, 10]]
    held, theta = psi.held(POINTS), np.random.default_rng(3).standard_normal((9, 4))
    for some in (np.arange(len(POINTS)), np.array([4, 0, 4]), np.arange(0)):
        assert np.allclose(held.product(some, theta), psi.at(POINTS[some]) @ theta, rtol=1e-13, atol=1e-14)
        assert np.array_equal(held.at(some), psi.at(POINTS[some]))


def test_bumps_by_hand():
    psi = RadialBasis(LINE, grid=3, bandwidth=1.0, normalised=False)  # centres 0, 2, 4 of width 2
    rows = psi.at(np.array([[0.0], [3.0]]))
    assert np.allclose(rows, np.exp(-0.5 * np.array([[0, 1, 4], [2.25, 0.25, 0.25]])), rtol=1e-14)
    assert np.allclose(RadialBasis(LINE, grid=3).at(np.array([[3.0]])), rows[1:] / rows[1:].sum(), rtol=1e-14)


def test_a_grid_of_bumps_is_a_list_of_centres():
    centres = list(itertools.product(np.linspace(-1, 1, 4), np.linspace(0, 10, 4)))
    for normalised in (True, False):
        grid = RadialBasis(SQUARE, grid=4, bandwidth=0.9, normalised=normalised)
        given_centres = RadialBasis(SQUARE, bandwidth=0.3, normalised=normalised, centres=centres)
        assert grid.dim == given_centres.dim == 16
        assert np.allclose(grid.at(POINTS), given_centres.at(POINTS), rtol=1e-12, atol=1e-15)
    oblong = RadialBasis(SQUARE, grid=[4, 3], bandwidth=[0.9, 0.2])
    centres = list(itertools.product(np.linspace(-1, 1, 4), np.linspace(0, 10, 3)))
    same = RadialBasis(SQUARE, bandwidth=[0.3, 0.1], centres=centres)
    assert np.allclose(oblong.at(POINTS), same.at(POINTS), rtol=1e-12, atol=1e-15)


def test_normalised_bumps_sum_to_one_even_far_from_all_centres():
    for psi in (RadialBasis(SQUARE, 5), RadialBasis(SQUARE, centres=[[-1, 0], [-0.9, 0.1]], bandwidth=1e-3)):
        assert np.allclose(psi.at(POINTS).sum(axis=1), 1, rtol=1e-14)
        assert psi.constant
    bare = RadialBasis(SQUARE, centres=[[-1, 0]], bandwidth=1e-3, normalised=False)
    assert bare.at(np.array([[1.0, 10.0]])).sum() == 0
    assert not bare.constant


@pytest.mark.parametrize("degree", [None, 0, 2, 4, 9])
def test_cosines_by_formula(degree):
    psi = Fourier(SQUARE, order=4, degree=degree)
    chosen = [c for c in itertools.product(range(5), repeat=2) if degree is None or sum(c) <= degree]
    chosen.sort(key=lambda c: (sum(c), c))
    assert psi.frequencies.tolist() == [list(c) for c in chosen]
    # Up to 4 + 1 angle additions of rounding error 2^-52 each on numbers of at most 1, and the formula's own.
    assert np.allclose(psi.at(POINTS), np.cos(np.pi * UNIT @ np.array(chosen).T), rtol=0, atol=1e-14)


def test_cosines_of_three_coordinates_and_high_order():
    u = np.random.default_rng(1).random((50, 3))
    cube = BoxStates(np.zeros(3), np.ones(3))
    c = multi_indices(3, 6, 7)
    assert np.allclose(Fourier(cube, 6, 7).at(u), np.cos(np.pi * u @ c.T), rtol=0, atol=2e-14)
    line = Fourier(BoxStates([0.0], [1.0]), 500).at(u[:, :1])
    assert np.allclose(line, np.cos(np.pi * u[:, :1] * np.arange(501)), rtol=0, atol=500 * 2**-50)


def test_powers_by_hand():
    psi = Polynomial(SQUARE, degree=2, basis="power")
    z = np.array([0.5, -0.25])
    state = np.array([[0.5, 10 * (1 - 0.25) / 2]])
    assert np.array_equal(psi.at(state), [[1, z[1], z[0], z[1] ** 2, z[0] * z[1], z[0] ** 2]])


def test_polynomials_by_chebyshevs_formula_and_of_one_span():
    chebyshev, power = Polynomial(SQUARE, 5), Polynomial(SQUARE, 5, "power")
    z = 2 * UNIT - 1
    products = [np.cos(a * np.arccos(z[:, 0])) * np.cos(b * np.arccos(z[:, 1])) for a, b in chebyshev.exponents]
    assert np.allclose(chebyshev.at(POINTS), np.column_stack(products), atol=1e-12)
    both = np.hstack([chebyshev.at(POINTS), power.at(POINTS)])
    assert np.linalg.matrix_rank(both) == chebyshev.dim == power.dim == 21
    few, many = (examine(PerAction(p, 1), POINTS).condition for p in (chebyshev, power))
    assert 10 * few < many


@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 9)))
def test_multi_indices_are_counted(num, order, degree):
    found = multi_indices(num, order, degree)
    brute = [c for c in itertools.product(range(order + 1), repeat=num) if degree is None or sum(c) <= degree]
    assert sorted(map(tuple, found.tolist())) == sorted(brute)
    assert len(found) == count(num, order, degree)


def test_random_features_estimate_the_kernel():
    """A mean of d independent terms in [−2, 2]: off by more than ε with probability 2·exp(−dε²/8) at most (Hoeffding).

    20 000 terms, 100 pairs, seed 7: ε = 0.09 leaves 200·exp(−20.25) < 4e-7.
    """
    u = np.random.default_rng(3).random((100, 2, 3))
    cube = BoxStates(np.zeros(3), np.ones(3))
    kernel = np.exp(-((u[:, 0] - u[:, 1]) ** 2).sum(axis=1) / (2 * 0.5**2))
    assert np.ptp(kernel) > 0.5
    psi = RandomFourier(cube, 20_000, bandwidth=0.5, seed=7)
    inner = np.einsum("nd,nd->n", psi.at(u[:, 0]), psi.at(u[:, 1]))
    assert np.abs(inner - kernel).max() < 0.09
    wrong = RandomFourier(cube, 20_000, bandwidth=0.25, seed=7)
    assert np.abs(np.einsum("nd,nd->n", wrong.at(u[:, 0]), wrong.at(u[:, 1])) - kernel).max() > 0.09


def test_random_features_follow_from_the_seed():
    few, many, other = RandomFourier(SQUARE, 10), RandomFourier(SQUARE, 20), RandomFourier(SQUARE, 10, seed=1)
    assert np.array_equal(few.frequencies, many.frequencies[:10])
    assert np.array_equal(few.phases, many.phases[:10])
    assert not np.any(few.frequencies == other.frequencies)
    # Written down once: a stored policy must meet the same features after an upgrade.
    assert few.frequencies[0].tolist() == pytest.approx(FIRST_FREQUENCY, rel=1e-15)
    assert few.phases[0] == pytest.approx(FIRST_PHASE, rel=1e-15)


FIRST_FREQUENCY, FIRST_PHASE = [-2.6751529687967097, 1.5250642699261416], 4.2376199627889255


@pytest.mark.parametrize(
    ("build", "complaint"),
    [
        (lambda: Cells(SQUARE, [200, 200]), "at most 20000 in number, got 40000; use fewer cells"),
        (lambda: Cells(SQUARE, [2, 2, 2]), "2 numbers, one a coordinate"),
        (lambda: Cells(SQUARE, 0), "1 or more, got 0"),
        (lambda: Tiles(SQUARE, 4, 2.0), "`tilings` must be a whole number"),
        (lambda: Tiles(SQUARE, "4"), "`tiles` must be a whole number"),
        (lambda: Tiles(SQUARE, 100, 3), "use fewer tiles"),
        (lambda: MultilinearInterpolation(SQUARE, 1), "`knots` must be a whole number of 2 or more"),
        (lambda: MultilinearInterpolation(SQUARE, 10**5), "at most 20000 in number, got 10000000000; use fewer knots"),
        (lambda: MultilinearInterpolation(SQUARE, [[-1, 1]]), "`knots` must be 2 lists, got 1"),
        (lambda: MultilinearInterpolation(SQUARE, [[-1, 1], [0, 5]]), r"`knots\[1\]` must ascend from 0 to 10"),
        (lambda: MultilinearInterpolation(SQUARE, [[-1, 0, 0, 1], [0, 10]]), r"`knots\[0\]` must ascend"),
        (lambda: MultilinearInterpolation(SQUARE, [[-1, 1], 4]), r"`knots\[1\]` must ascend"),
        (lambda: RadialBasis(SQUARE, 1000), "use a coarser grid"),
        (lambda: RadialBasis(SQUARE, bandwidth=0), "positive number"),
        (lambda: RadialBasis(SQUARE, bandwidth=[1.0]), "2 numbers, one a coordinate"),
        (lambda: RadialBasis(SQUARE, bandwidth=[1.0, -1.0]), r"`bandwidth\[1\]` must be a positive number"),
        (lambda: RadialBasis(SQUARE, bandwidth=True), "positive number"),
        (lambda: RadialBasis(SQUARE, bandwidth=math.nan), "positive number"),
        (lambda: RadialBasis(SQUARE, normalised=1), "true or false"),
        (lambda: RadialBasis(SQUARE, centres=[[1, 2, 3]]), r"shape \(c, 2\)"),
        (lambda: RadialBasis(SQUARE, centres=[[1, math.inf]]), "must be finite"),
        (lambda: RadialBasis(SQUARE, centres=[["a", "b"]]), "must hold numbers"),
        (lambda: Fourier(SQUARE, -1), "`order` must be"),
        (lambda: Fourier(BoxStates(np.zeros(9), np.ones(9)), 9), "lower the order, or give a degree"),
        (lambda: Fourier(LINE, 10**9), "lower the order"),
        (lambda: Polynomial(BoxStates(np.zeros(9), np.ones(9)), 12), "lower the degree"),
        (lambda: Polynomial(SQUARE, 2, "legendre"), "chebyshev or power"),
        (lambda: RandomFourier(SQUARE, 10**6), "at most 20000"),
        (lambda: RandomFourier(SQUARE, 10, seed=-1), "`seed` must be"),
        (lambda: StateMatrix(np.zeros(3)), r"shape \(S, k\)"),
        (lambda: StateMatrix(np.zeros((3, 2), dtype=np.float32)), "float64"),
        (lambda: StateMatrix(np.array([[0.0], [np.nan]])), "at state 1"),
        (lambda: StateFunction(lambda s: s[:, :1], 2).at(POINTS), "vectorise"),
        (lambda: StateFunction(lambda s: np.full((len(s), 1), np.inf), 1).at(POINTS), "finite"),
    ],
)
def test_bad_settings_are_named(build, complaint):
    with pytest.raises(InputError, match=complaint):
        build()


def test_large_spaces_cost_nothing():
    """10^15 states seen through their three digits."""
    space = FiniteStates(10**15)
    frame = Frame.of(space, shape=[10**5] * 3)
    states = np.random.default_rng(0).integers(0, 10**15, 100)
    digits = np.stack([states // 10**10, states // 10**5 % 10**5, states % 10**5], axis=1) / (10**5 - 1)
    assert np.array_equal(Tiles(frame, 4, 2).at(states), Tiles(BoxStates(np.zeros(3), np.ones(3)), 4, 2).at(digits))
