from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saddleback.zoo import make


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
    assert table.thresholds[0] == pytest.approx((known["unconstrained_c1"] + known["best_c1"]) / 2, rel=1e-12)
    assert list(problem.scale) == [1.0, 1.0]  # declared in [0, 1]: the paper's units are the user's


def test_extreme_concentrations_are_survived() -> None:
    for small in (1e-4, 100.0):
        instance = make("random-linear", states=30, feature_concentration=small, measure_concentration=small)
        assert np.isfinite(list(instance.known.values())).all()
