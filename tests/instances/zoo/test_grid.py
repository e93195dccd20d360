from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.designs import Exchange
from saddleback.instances.zoo import make
from saddleback.instances.zoo._building import Grid, Outcomes, product


@settings(derandomize=True, deadline=None, max_examples=20)
@given(
    top=st.integers(3, 40),
    knots=st.integers(2, 6),
    axes=st.integers(1, 3),
    bend=st.floats(0.5, 2.0),
    seed=st.integers(0, 10**6),
)
def test_interpolates(top: int, knots: int, axes: int, bend: float, seed: int) -> None:
    """Non-negative, sum one, identity at the nodes, exact for multilinear functions, fast forms equal to the dense one."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    grid = Grid(top, axes)
    features, (states, actions) = grid.interpolation(knots, 2, bend)
    np.testing.assert_array_equal(features.at(states, actions), np.eye(features.dim))
    s = rng.integers(0, grid.num_states, 50)
    phi = features.all(s)
    assert np.all(phi >= 0)
    np.testing.assert_allclose(phi.sum(axis=2), 1.0, rtol=1e-12)
    a = rng.random((2, axes + 1))

    def multilinear(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        x = np.column_stack([np.ones(len(states)), grid.split(states) / top])
        return np.prod(x + a[actions], axis=1)

    theta = multilinear(states, actions)
    expected = np.column_stack([multilinear(s, np.full(50, action)) for action in (0, 1)])
    np.testing.assert_allclose(features.values(s, theta), expected, rtol=1e-11)
    many = rng.standard_normal((features.dim, 3))
    np.testing.assert_allclose(features.values(s, many), phi @ many, atol=1e-12)
    np.testing.assert_allclose(features.maximum(s, many), (phi @ many).max(axis=1), atol=1e-12)
    np.testing.assert_array_equal(features.argmax(s, many[:, 0]), features.values(s, many[:, 0]).argmax(axis=1))


def test_knots_are_an_optimal_design_for_every_pair() -> None:
    """The design on the knots has g = d over all 3 · 256 pairs, knots or not: the least possible."""
    problem = make("queue-network").problem
    design = Exchange().design(problem)
    assert problem.features is not None
    np.testing.assert_allclose(design.weights, 1 / problem.features.dim, rtol=1e-6)
    states, actions = np.repeat(np.arange(256), 3), np.tile(np.arange(3), 256)
    phi = problem.features.at(states, actions)
    G = problem.features.at(design.states, design.actions)
    G = G.T @ (design.weights[:, None] * G)
    leverage = np.einsum("nd,nd->n", phi, np.linalg.solve(G, phi.T).T)
    assert leverage.max() <= problem.features.dim * (1 + 1e-6)


def test_outcomes_give_their_table() -> None:
    """s' = s + k mod 5 for action 0, else s: rows by hand, equal outcomes added up, samples where the rows are positive."""
    chances, which = product(np.array([0.25, 0.75]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(chances, [0.125, 0.125, 0.375, 0.375])
    model = Outcomes(5, 2, chances, lambda s, a, k: np.where(a == 0, (s + which[k].sum(axis=1)) % 5, s))
    P = model.matrix().toarray().reshape(5, 2, 5)
    np.testing.assert_allclose(P[3, 0], [0.375, 0, 0, 0.125, 0.5])
    np.testing.assert_allclose(P[3, 1], [0, 0, 0, 1, 0])
    drawn = model.simulator().sample(np.full(1000, 3), np.zeros(1000, dtype=int), np.random.default_rng(1)).next_states
    assert set(drawn) == {0, 3, 4}
