from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.errors import InputError
from saddleback.instances.zoo import make
from saddleback.problem.numerics import rounded


@settings(derandomize=True, deadline=None, max_examples=25)
@given(S=st.integers(2, 40), A=st.integers(1, 5), d=st.integers(1, 8), m=st.integers(1, 3), seed=st.integers(0, 10**6))
def test_the_problem_is_linear(S: int, A: int, d: int, m: int, seed: int) -> None:
    """P = Φμ, r = Φψ_r and c = Φψ_c with 1 in the span of the features, to rounding error."""
    table = make("random-linear", states=S, actions=A, dim=d, constraints=m, seed=seed).table
    assert table is not None and table.phi is not None
    Phi = table.phi.reshape(S * A, d)
    assert np.all(Phi >= 0)
    np.testing.assert_allclose(Phi @ np.ones(d), 1.0, rtol=0, atol=1e-12)
    targets = np.column_stack([table.P.toarray(), table.reward.ravel(), *(c.ravel() for c in table.constraints)])
    # the part of the targets outside the features' span; cut-off 1e-13 since corners may hardly occur
    found = np.linalg.lstsq(Phi, targets, rcond=1e-13)[0]
    np.testing.assert_allclose(Phi @ found, targets, rtol=0, atol=1e-12)
    assert np.all((table.reward >= 0) & (table.reward <= 1))


def test_measures_are_distributions() -> None:
    """With 1000 pairs and 8 features the regression finds μ itself: d distributions over the states."""
    table = make("random-linear").table
    assert table is not None and table.phi is not None
    mu = np.linalg.lstsq(table.phi.reshape(-1, 8), table.P.toarray(), rcond=None)[0]
    assert mu.min() > -1e-12
    np.testing.assert_allclose(mu.sum(axis=1), 1.0, rtol=1e-12)
    # Dirichlet(.05) on 200 states: the largest mass of a measure is far above 1/200
    assert np.all(mu.max(axis=1) > 0.05)


def test_features_reach_the_problem_and_the_threshold_is_midway() -> None:
    instance = make("random-linear", gamma=0.5, dim=3, seed=2)
    problem, table, known = instance.problem, instance.table, instance.known
    assert table is not None and problem.features is not None
    assert problem.features.dim == 3 and problem.features.num_actions == 5 and problem.num_states == 200
    states, actions = np.array([0, 199]), np.array([4, 1])
    np.testing.assert_array_equal(problem.features.at(states, actions), table.phi[states, actions])  # type: ignore[index]
    middle = rounded((known["unconstrained_c1"] + known["best_c1"]) / 2, 10)
    assert table.thresholds[0] == pytest.approx(middle, rel=1e-12)
    assert list(problem.scale) == [1.0, 1.0]  # declared in [0, 1]: the paper's units are the user's


def test_extreme_concentrations_are_survived() -> None:
    for small in (1e-4, 100.0):
        instance = make("random-linear", states=30, feature_concentration=small, measure_concentration=small)
        assert np.isfinite(list(instance.known.values())).all()


def test_without_misspecification_the_problem_is_the_product_to_the_last_bit() -> None:
    table = make("random-linear", states=20, actions=3, dim=4, seed=6).table
    assert table is not None and table.phi is not None
    rng = np.random.default_rng(np.random.SeedSequence(6))
    phi, mu = rng.dirichlet(np.full(4, 0.3), size=60), rng.dirichlet(np.full(20, 0.05), size=4)
    np.testing.assert_array_equal(table.phi.reshape(60, 4), phi)
    np.testing.assert_array_equal(table.P.toarray(), phi @ mu)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_misspecification_moves_that_share_to_one_state_a_pair(share: float) -> None:
    linear, bent = (make("random-linear", states=40, seed=3, misspecification=e) for e in (0.0, share))
    assert linear.table is not None and bent.table is not None and bent.table.phi is not None
    np.testing.assert_array_equal(bent.table.phi, linear.table.phi)  # type: ignore[arg-type]
    np.testing.assert_array_equal(bent.table.reward, linear.table.reward)
    np.testing.assert_array_equal(bent.table.constraints, linear.table.constraints)
    Q = (bent.table.P.toarray() - (1 - share) * linear.table.P.toarray()) / share
    np.testing.assert_allclose(np.sort(Q, axis=1), np.eye(40)[[-1] * 200], rtol=0, atol=1e-13)
    # the targets differ from pair to pair, also between actions of a state, and hit most states: 200 throws at 40
    targets = Q.argmax(axis=1).reshape(40, 5)
    assert len(np.unique(targets)) > 30 and np.all(np.ptp(targets, axis=1) > 0)
    Phi = bent.table.phi.reshape(200, 8)
    fitted = Phi @ np.linalg.lstsq(Phi, bent.table.P.toarray(), rcond=None)[0]
    assert np.abs(fitted - bent.table.P.toarray()).sum(axis=1).mean() / 2 > share / 2  # in total variation
    assert f"a share {share:g}" in bent.summary and "share" not in linear.summary


def test_misspecification_is_a_share() -> None:
    for wrong in (-0.1, 1.5):
        with pytest.raises(InputError, match="`misspecification` must lie in"):
            make("random-linear", states=5, misspecification=wrong)
