"""Policies and mixtures."""

import inspect

import numpy as np
import pytest

from saddleback.errors import InputError
from saddleback.features import FeatureMatrix
from saddleback.problem.policies import (
    GreedyPolicy,
    MixturePolicy,
    SoftmaxPolicy,
    TabularPolicy,
    as_table,
    maximum_over_actions,
    soft_maximum,
)

RNG = np.random.default_rng(0)
PHI = FeatureMatrix(RNG.random((5, 3, 4)))
THETA = RNG.random(4)
STATES = np.arange(5)


def test_greedy_breaks_ties_downwards():
    tied = GreedyPolicy(FeatureMatrix(np.ones((2, 3, 1))), np.ones(1))
    assert tied.actions(np.array([0, 1])).tolist() == [0, 0]


def test_mean_features_is_the_policy_as_an_operator():
    greedy, soft = GreedyPolicy(PHI, THETA), SoftmaxPolicy(PHI, THETA, 3.0)
    omega = RNG.random(4)
    for policy in (greedy, soft, as_table(greedy, 5), as_table(soft, 5)):
        direct = (policy.probabilities(STATES) * (PHI.all(STATES) @ omega)).sum(axis=1)
        np.testing.assert_allclose(policy.mean_features(PHI, STATES) @ omega, direct)


def test_stochastic_actions_follow_their_probabilities():
    p = np.array([[0.2, 0.0, 0.8]])
    policy = TabularPolicy.stochastic(p)
    n = 200_000
    share = np.bincount(policy.act(np.zeros(n, int), np.random.default_rng(1)), minlength=3) / n
    assert share[1] == 0
    assert abs(share[0] - 0.2) < 5.2 * np.sqrt(0.16 / n)  # five standard deviations: false alarms below 1e-6


def test_mixture_merges_equal_members():
    same = TabularPolicy.deterministic(np.zeros(5), 3)
    also = TabularPolicy.deterministic(np.zeros(5), 3)
    other = TabularPolicy.deterministic(np.ones(5), 3)
    gone = TabularPolicy.deterministic(np.full(5, 2), 3)
    mixture = MixturePolicy.of([same, other, also, gone], np.array([0.25, 0.5, 0.25, 0.0]))
    assert len(mixture.members) == 2
    np.testing.assert_allclose(mixture.weights, [0.5, 0.5])


def test_mixture_keeps_one_member_for_an_episode():
    members = [TabularPolicy.deterministic(np.full(5, a), 3) for a in range(3)]
    mixture = MixturePolicy.of(members, np.array([0.2, 0.3, 0.5]))
    rng = np.random.default_rng(0)
    starts = np.zeros(1000, dtype=int)
    first, state = mixture.predict(starts, rng=rng)
    for _ in range(5):
        again, state = mixture.predict(starts, state, rng=rng)
        np.testing.assert_array_equal(again, first)
    share = np.bincount(first, minlength=3) / 1000
    assert np.all(np.abs(share - mixture.weights) < 5.2 * np.sqrt(0.25 / 1000))
    redrawn, _ = mixture.predict(starts, state, episode_start=np.ones(1000, bool), rng=rng)
    assert np.any(redrawn != first)


def test_a_mixture_draws_its_member_whatever_is_deterministic():
    """One member alone may break the constraints, which hold on average over them."""
    members = [TabularPolicy.deterministic(np.full(5, a), 3) for a in range(2)]
    mixture = MixturePolicy.of(members, np.array([0.5, 0.5]))
    rng = np.random.default_rng(0)
    drawn = {int(mixture.predict(0, deterministic=True, rng=rng)[0]) for _ in range(60)}  # one only has chance 2^-59
    assert drawn == {0, 1}
    alone = MixturePolicy.of(members[:1], np.array([1.0]))
    assert alone.predict(np.array([0]), deterministic=True)[0].tolist() == [0]
    assert members[1].predict(np.array([2]))[0].tolist() == [1]


def test_predict_is_called_as_stable_baselines3_calls_it():
    """``predict(observation, state=None, episode_start=None, deterministic=True) -> (action, state)``."""
    table = TabularPolicy.deterministic(np.array([2, 0, 1]), 3)
    for policy in (table, MixturePolicy.of([table], np.ones(1))):
        words = list(inspect.signature(policy.predict).parameters.values())[:4]
        assert [w.name for w in words] == ["observation", "state", "episode_start", "deterministic"]
        assert [w.default for w in words[1:]] == [None, None, True]
        action, _ = policy.predict(np.int64(1))
        assert np.shape(action) == () and int(action) == 0, "one observation, one action"
        assert policy.predict(np.array([0, 2, 1]))[0].tolist() == [2, 1, 0]
        assert policy.predict(1, None, np.array([True]), True)[0] == 0


def test_the_likeliest_action_of_a_policy_that_draws_is_warned_of():
    policy = TabularPolicy.stochastic(np.array([[0.6, 0.4], [0.0, 1.0]]))
    with pytest.warns(UserWarning, match="is another policy"):
        assert policy.predict(0)[0] == 0
    with pytest.warns(UserWarning, match="is another policy"):
        MixturePolicy.of([policy], np.ones(1)).predict(np.array([1, 0]))
    assert policy.predict(1)[0] == 1, "where it does not draw there is nothing to say"


def test_bad_probabilities_are_named():
    with pytest.raises(InputError, match=r"probabilities\[1\]"):
        TabularPolicy.stochastic(np.array([[0.5, 0.5], [0.5, 0.6]]))


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_low_precision_parameters_are_refused(dtype):
    """Property 33: θ is a sum over thousands of iterations."""
    for build in (lambda theta: GreedyPolicy(PHI, theta), lambda theta: SoftmaxPolicy(PHI, theta, 3.0)):
        build(THETA)
        with pytest.raises(InputError, match="`theta` must be float64"):
            build(THETA.astype(dtype))


def test_maxima():
    Q = RNG.random((4, 3, 2))
    np.testing.assert_array_equal(maximum_over_actions(Q), Q.max(axis=1))
    wide = RNG.random((4, 40))
    np.testing.assert_array_equal(maximum_over_actions(wide), wide.max(axis=1))
    gap = soft_maximum(1e5 * Q, 10.0) - 1e5 * Q.max(axis=1)
    assert np.all((gap >= 0) & (gap <= np.log(3) / 10))


def test_randomised_policies_randomise():
    policy = TabularPolicy.stochastic(np.array([[0.6, 0.4]]))
    rng = np.random.default_rng(0)
    drawn = [int(policy.predict(0, deterministic=False, rng=rng)[0]) for _ in range(1000)]
    assert abs(np.mean(drawn) - 0.4) < 5.2 * np.sqrt(0.24 / 1000)
    fresh = {int(policy.predict(0, deterministic=False)[0]) for _ in range(200)}  # one action only has chance 2·.6^200
    assert fresh == {0, 1}


def test_one_continuous_observation():
    from saddleback.features import FeatureFunction

    features = FeatureFunction(lambda s, a: np.column_stack([s[:, 0], a * s[:, 1]]), 2, 2)
    policy = GreedyPolicy(features, np.array([0.0, 1.0]))
    assert policy.predict(np.array([0.3, 0.5]))[0] == 1
    assert policy.predict(np.array([[0.3, 0.5], [0.3, -0.5]], dtype=np.float32))[0].tolist() == [1, 0]
    assert MixturePolicy.of([policy], np.ones(1)).predict(np.array([0.3, -0.5]))[0] == 0
