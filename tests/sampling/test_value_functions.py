"""Value functions evaluated at the support: what is remembered, skipped or cut into pieces changes nothing."""

import numpy as np
import pytest

import saddleback.sampling.value_functions
from saddleback.errors import InputError
from saddleback.features import FeatureFunction, FeatureMatrix
from saddleback.problem.policies import GreedyPolicy, SoftmaxPolicy, soft_maximum
from saddleback.sampling.batches import Parts
from saddleback.sampling.value_functions import MaxDifference, PolicyValue, SoftDifference, Support

n, A, d = 30, 3, 4
RNG = np.random.default_rng(0)
PHI = RNG.normal(size=(n, A, d))
FEATURES = FeatureMatrix(PHI)


def counting_features():
    """φ as a function that records how many states it was asked for."""
    asked = []

    def phi(states, actions):
        asked.append(len(states))
        return PHI[states, actions]

    return FeatureFunction(phi, d, A), asked


def cases(columns):
    a, b = RNG.normal(size=(d, *columns)), RNG.normal(size=(d, *columns))
    policy = SoftmaxPolicy(FEATURES, RNG.normal(size=d), 2.0)
    return [
        (MaxDifference(a, b), (PHI @ a).max(axis=1) - (PHI @ b).max(axis=1)),
        (MaxDifference(a, 0 * a), (PHI @ a).max(axis=1)),
        (SoftDifference(a, b, 0.7, 5.0), soft_maximum(PHI @ a, 5.0) - 0.7 * soft_maximum(PHI @ b, 5.0)),
        (SoftDifference(a, 0 * a, 0.7, 5.0), soft_maximum(PHI @ a, 5.0) - 0.7 * np.log(A) / 5.0),
        (PolicyValue(policy, a), policy.mean_features(FEATURES, np.arange(n)) @ a),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kept", [True, False])
def test_values_everywhere_and_at_some_states(columns, compiled, kept, monkeypatch):
    """φ kept or evaluated in pieces of two states, numpy or compiled: the same V."""
    if not kept:
        monkeypatch.setattr(saddleback.sampling.value_functions, "_FEATURE_BYTES", 0)
        monkeypatch.setattr(saddleback.sampling.value_functions, "_PIECE", 2 * A * d)
    parts, rows = Parts(np.array([4, 1, 3])), RNG.integers(0, n, 8)
    for value, V in cases(columns):
        support = Support(np.arange(n), FEATURES, compiled)
        np.testing.assert_allclose(support.values(value), V, atol=1e-13)
        for some in (rows, rows.astype(np.uint32), slice(5, 13)):
            np.testing.assert_allclose(support.means_at(some, parts, value), parts.means(V[some]), atol=1e-13)


def test_features_are_asked_for_once():
    features, asked = counting_features()
    support = Support(np.arange(n), features)
    for value, _ in cases(())[:4]:
        support.values(value)
    assert asked == [n * A]


def test_pieces_bound_what_is_asked_at_once(monkeypatch):
    monkeypatch.setattr(saddleback.sampling.value_functions, "_FEATURE_BYTES", 0)
    monkeypatch.setattr(saddleback.sampling.value_functions, "_PIECE", 7 * A * d)
    features, asked = counting_features()
    Support(np.arange(n), features).values(cases(())[0][0])
    assert max(asked) == 7 * A
    assert sum(asked) == 2 * n * A


def test_a_zero_theta_is_not_evaluated(monkeypatch):
    monkeypatch.setattr(saddleback.sampling.value_functions, "_FEATURE_BYTES", 0)
    features, asked = counting_features()
    support = Support(np.arange(n), features)
    theta = RNG.normal(size=d)
    support.values(MaxDifference(theta, np.zeros(d)))
    assert sum(asked) == n * A
    support.values(SoftDifference(theta, np.zeros(d), 0.5, 2.0))  # log-sum-exp of zeros is log A, not zero
    assert sum(asked) == 3 * n * A


def test_a_zero_theta_serves_several_columns():
    """Plug-in value iteration hands over one zero column for k value functions."""
    theta = RNG.normal(size=(d, 3))
    support = Support(np.arange(n), FEATURES)
    expected = (PHI @ theta).max(axis=1)
    np.testing.assert_allclose(support.values(MaxDifference(theta, np.zeros((d, 1)))), expected, atol=1e-13)


def test_the_policys_features_are_remembered_by_identity():
    policies = [GreedyPolicy(FEATURES, RNG.normal(size=d)) for _ in range(2)]
    support = Support(np.arange(n), FEATURES)
    first = support.mean_features(policies[0])
    assert support.mean_features(policies[0]) is first
    np.testing.assert_array_equal(support.mean_features(policies[1]), policies[1].mean_features(FEATURES, np.arange(n)))


def test_features_are_needed():
    with pytest.raises(InputError, match="features"):
        Support(np.arange(n), None).values(MaxDifference(np.ones(d), np.zeros(d)))
