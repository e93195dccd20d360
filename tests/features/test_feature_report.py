"""The report on hand-made features whose rank, conditioning and coverage are known."""

import numpy as np
import pytest

from saddleback.designs.design import orthonormalizing_map
from saddleback.errors import InputError
from saddleback.features import FeatureFunction, FeatureMatrix, OneHot, PerAction, RadialBasis, Tiles, examine
from saddleback.instances.zoo import make as make_problem
from saddleback.problem.spaces import BoxStates


def test_one_hot_features_are_perfect():
    report = examine(OneHot(4, 3), np.arange(4))
    assert (report.num_pairs, report.dim, report.rank) == (12, 12, 12)
    assert report.condition == pytest.approx(1) and report.condition_on_span == pytest.approx(1)
    assert report.effective_dimension == pytest.approx(12 / 1.001)
    assert report.largest_leverage == pytest.approx(12)
    assert report.high_leverage_share == 0
    assert report.never_active == () and report.not_finite == 0
    assert report.constant_in_span and report.remarks() == []


def test_eigenvalues_by_hand():
    """Rows (1, 1) and (1, −½): scaled by the largest entries 1 and 1 the Gram matrix is ½[[2, ½], [½, 5/4]]."""
    report = examine(FeatureMatrix(np.array([[[1.0, 1.0]], [[1.0, -0.5]]])), np.arange(2))
    low, high = np.linalg.eigvalsh([[1.0, 0.25], [0.25, 0.625]])
    assert report.condition == pytest.approx(high / low)
    assert report.effective_dimension == pytest.approx(1 / 1.001 + low / (low + high / 1000))
    assert report.largest_leverage == pytest.approx(2)  # two rows, two dimensions


def test_dependent_features_and_units():
    rng = np.random.default_rng(0)
    phi = rng.random((40, 2, 3))
    plain = examine(FeatureMatrix(phi), np.arange(40))
    scaled = examine(FeatureMatrix(phi * [1.0, 1e-9, 1e9]), np.arange(40))
    assert scaled.condition == pytest.approx(plain.condition) and scaled.rank == 3
    more = np.concatenate([phi, phi[..., :1] - phi[..., 1:2]], axis=-1)
    report = examine(FeatureMatrix(more), np.arange(40))
    assert report.rank == orthonormalizing_map(more.reshape(80, 4)).shape[1] == 3
    assert report.condition == np.inf and report.condition_on_span < 1e3
    assert report.largest_leverage == pytest.approx(plain.largest_leverage)


def test_a_lonely_pair_and_a_sleeping_feature_are_found():
    phi = np.zeros((100, 1, 3))
    phi[:99, 0, 0] = 1.0
    phi[99, 0, 1] = 1.0
    report = examine(FeatureMatrix(phi), np.arange(100))
    assert report.rank == 2 and report.never_active == (2,)
    assert report.largest_leverage == pytest.approx(100) and report.worst_pair == (99, 0)
    assert report.high_leverage_share == pytest.approx(0.01)
    assert examine(FeatureMatrix(phi), np.arange(100), high_leverage=60).high_leverage_share == 0
    text = report.text()
    assert "hardly covers state 99, action 0: leverage 50.0 times the mean" in text
    assert "1 features are zero on the whole pool (2)" in text
    assert "1.00% of the pairs above 3 times the mean" in str(report)


def test_a_missing_constant_is_measured():
    """The best multiple of (1, 2) for (1, 1) is 3/5: off by 2/5 and 1/5."""
    report = examine(FeatureMatrix(np.array([[[1.0]], [[2.0]]])), np.arange(2))
    assert report.constant_residual == pytest.approx(0.4)
    assert not report.constant_in_span
    assert "1 is not in the span (off by 4.0e-01)" in report.text()


def test_features_that_are_not_finite_are_counted_and_left_out():
    def phi(states, actions):
        rows = np.column_stack([np.ones(len(states)), states[:, 0]])
        rows[(states[:, 0] == 3) & (actions == 1), 1] = np.nan
        return rows

    class Careless(FeatureFunction):
        def at(self, states, actions):
            return phi(states, actions)

    states = np.arange(5.0)[:, None]
    report = examine(Careless(phi, 2, 2), states)
    assert report.not_finite == 1 and report.rank == 2
    assert report.first_not_finite[0] == 3.0 and report.first_not_finite[1] == 1
    assert "1 pairs have features that are not finite, first state [3.], action 1" in report.text()


def test_all_features_zero():
    report = examine(FeatureMatrix(np.zeros((3, 1, 2))), np.arange(3))
    assert report.rank == 0 and report.never_active == (0, 1) and report.constant_residual == 1
    assert report.text()


def test_pieces_change_nothing(monkeypatch):
    box = BoxStates([0.0, 0.0], [1.0, 1.0])
    states, features = np.random.default_rng(0).random((300, 2)), PerAction(RadialBasis(box, 4), 2)
    whole = examine(features, states)
    monkeypatch.setattr("saddleback.features.report._PIECE", 32 * 7)
    pieces = examine(features, states)
    assert (pieces.rank, pieces.worst_pair[1], pieces.num_pairs) == (whole.rank, whole.worst_pair[1], 600)
    for name in ("condition", "effective_dimension", "largest_leverage", "high_leverage_share"):
        assert getattr(pieces, name) == pytest.approx(getattr(whole, name), rel=1e-6)


def test_rank_of_tilings():
    """T grids sum to one each, so that T−1 of the constants are lost, for every action."""
    box = BoxStates([0.0], [1.0])
    states = np.linspace(0, 1, 400)[:, None]
    report = examine(PerAction(Tiles(box, 5, 3), 2), states)
    assert report.dim == 2 * (5 + 2 * 6) and report.rank == report.dim - 2 * 2
    assert report.constant_in_span


def test_pools_of_pairs():
    features = make_problem("hard-instance", dim=40).problem.features
    with pytest.raises(InputError, match="must be given where there are more than 4096"):
        examine(features, np.arange(4))
    assert examine(features, np.arange(4), np.array([0, 1, 0, 0])).num_pairs == 4
    with pytest.raises(InputError, match="must be 4, one a state"):
        examine(features, np.arange(4), np.zeros(3, dtype=np.int64))
    with pytest.raises(InputError, match="a state at least"):
        examine(features, np.arange(0))
