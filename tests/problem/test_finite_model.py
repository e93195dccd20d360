"""Values, visits and policy iteration on arrays: direct solves against sweeps and enumeration, and what goes wrong."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import NumericalError
from saddleback.problem import finite_model
from saddleback.problem.finite_model import Resolvent, follow, policy_iteration
from saddleback.problem.spaces import Array


def random_chain(seed: int, S: int = 30) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(np.random.default_rng(seed).dirichlet(np.full(S, 0.2), size=S))


def test_a_policy_averages_the_rows_of_its_actions() -> None:
    rng = np.random.default_rng(0)
    pi, P = rng.dirichlet(np.ones(3), size=4), rng.random((12, 5))
    pi[1] = [0.0, 1.0, 0.0]
    expected = np.einsum("sa,san->sn", pi, P.reshape(4, 3, 5))
    np.testing.assert_allclose(follow(pi, scipy.sparse.csr_array(P)).toarray(), expected, rtol=1e-14)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
def test_sweeps_equal_factors(gamma: float) -> None:
    P, u, rho = random_chain(1), np.random.default_rng(2).random((30, 2)), np.full(30, 1 / 30)
    factored, swept = (Resolvent(P, gamma, factored=way) for way in (True, False))
    H = factored.horizon
    np.testing.assert_allclose(swept.values(u), factored.values(u), atol=2e-10 * H)  # twice the stated accuracy
    np.testing.assert_allclose(swept.visits(rho), factored.visits(rho), atol=2e-10 * H)
    assert factored.visits(rho).sum() == pytest.approx(H, rel=1e-12)


def test_unreachable_states_have_no_visits_at_all() -> None:
    P = scipy.sparse.csr_array(np.array([[0.5, 0.5, 0.0], [0.3, 0.7, 0.0], [0.2, 0.2, 0.6]]))
    assert Resolvent(P, 0.9).visits(np.array([1.0, 0.0, 0.0]))[2] == 0.0


def test_sweeps_that_do_not_settle_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_model, "_MOST_SWEEPS", 2)
    with pytest.raises(NumericalError, match="30 states did not settle in 2 sweeps"):
        Resolvent(random_chain(3), 0.99, factored=False).values(np.random.default_rng(3).random((30, 1)))


def test_an_inaccurate_solve_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong:
        def __init__(self, *_: object, **__: object) -> None: ...

        def solve(self, right: Array, _: str = "N") -> Array:
            return right + 1e-6

    monkeypatch.setattr(finite_model, "splu", Wrong)
    resolvent = Resolvent(random_chain(4), 0.9)
    with pytest.raises(NumericalError, match="Bellman equation"):
        resolvent.values(np.ones((30, 1)))
    with pytest.raises(NumericalError, match="flow equation"):
        resolvent.visits(np.full(30, 1 / 30))


@settings(derandomize=True, deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), tie=st.sampled_from([0.0, 1e-11]))
def test_policy_iteration_settles_on_models_full_of_ties(seed: int, tie: float) -> None:
    """Small integer rewards and two-state rows make many exact ties; rounding must not make it run in circles."""
    rng = np.random.default_rng(seed)
    S, A, gamma, every = 5, 3, 0.99, np.arange(5)
    P = 0.5 * (np.eye(S)[rng.integers(0, S, (S, A))] + np.eye(S)[rng.integers(0, S, (S, A))])
    reward = rng.integers(0, 2, (S, A)).astype(np.float64)

    def value(actions: np.ndarray) -> Array:
        return np.linalg.solve(np.eye(S) - gamma * P[every, actions], reward[every, actions])

    best = np.max([value(np.array(a)) for a in itertools.product(range(A), repeat=S)], axis=0)
    start = reward.argmax(axis=1)
    rows = scipy.sparse.csr_array(P.reshape(S * A, S))
    actions, V = policy_iteration(rows, reward.reshape(-1, 1), np.ones(1), gamma, start, tie)
    np.testing.assert_allclose(value(actions), best, atol=1e-9)  # H = 100 times 1e-11 of two solves
    np.testing.assert_allclose(V[:, 0], best, atol=1e-9)


def test_rounds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finite_model, "_MOST_ROUNDS", 1)
    P = scipy.sparse.csr_array(np.ones((2, 1)))
    with pytest.raises(NumericalError, match=r"did not settle in 1 rounds at gamma = 0\.5"):
        policy_iteration(P, np.array([[0.0], [1.0]]), np.ones(1), 0.5, np.zeros(1, dtype=np.int64), 0.0)
