from __future__ import annotations

import numpy as np
import pytest

from instances.zoo.zoo_checks import evaluate, optimum
from saddleback.instances.zoo import make


@pytest.mark.parametrize("length", [2, 4, 6])
def test_closed_form_in_still_water(length: int) -> None:
    """Every stroke gains a place: the treasure from slot length − 1 on."""
    known = make("river-swim", length=length, up=1.0, down=0.0, gamma=0.9).known
    assert known["unconstrained_value"] == pytest.approx(0.9 ** (length - 1) * 10, rel=1e-10)
    assert known["unconstrained_effort"] == pytest.approx(10.0, rel=1e-10)


def test_rows_by_hand() -> None:
    table = make("river-swim", length=3).table
    assert table is not None
    P = table.P.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(P[:, 0], [[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    np.testing.assert_allclose(P[:, 1], [[0.65, 0.35, 0], [0.05, 0.6, 0.35], [0, 0.05, 0.95]])


def test_the_default_mixes_swimming_and_drifting() -> None:
    """At the default limit the optimum is half of always swimming and half of never."""
    instance = make("river-swim")
    table = instance.table
    assert table is not None
    swim, drift = (evaluate(table, table.reward.reshape(-1, 1), np.full(6, a))[0, 0] for a in (1, 0))
    assert drift == pytest.approx(0.005 * 20, rel=1e-12)
    answer = optimum(table)
    assert answer.value == pytest.approx((swim + drift) / 2, rel=1e-9)
    assert answer.multipliers[0] == pytest.approx((swim - drift) / 20, rel=1e-8)
