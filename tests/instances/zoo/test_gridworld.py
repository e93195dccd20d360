from __future__ import annotations

import numpy as np
import pytest

from instances.zoo.zoo_checks import optimum
from saddleback.instances.zoo import make


@pytest.mark.parametrize("width", [3, 4, 7])
def test_closed_forms_without_slips(width: int) -> None:
    """Straight on takes width − 1 steps, all but the first and the last cell in water; dry ground takes a climb each way."""
    gamma, H = 0.9, 10.0
    instance = make("gridworld", width=width, slip=0.0, gamma=gamma, limit=0.0)
    known = instance.known
    assert known["unconstrained_value"] == pytest.approx(gamma ** (width - 1) * H, rel=1e-12)
    assert known["unconstrained_lake"] == pytest.approx(sum(gamma**t for t in range(1, width - 1)), rel=1e-12)
    assert known["best_lake"] == pytest.approx(0, abs=1e-12)
    climb = (width - 1) // 2
    assert instance.table is not None
    assert optimum(instance.table).value == pytest.approx(gamma ** (width - 1 + 2 * climb) * H, rel=1e-9)


def test_moves_slips_and_walls() -> None:
    table = make("gridworld", width=4, height=3, slip=0.2).table
    assert table is not None
    P = table.P.toarray().reshape(12, 4, 12)
    up, right, down, left = range(4)
    np.testing.assert_allclose(P[5, up, [9, 6, 4]], [0.8, 0.1, 0.1])  # inside: ahead, right, left
    np.testing.assert_allclose(P[5, left, [4, 9, 1]], [0.8, 0.1, 0.1])
    np.testing.assert_allclose(P[0, left, [0, 4]], [0.9, 0.1])  # the corner holds the robot back twice
    np.testing.assert_allclose(P[0, down, [0, 1]], [0.9, 0.1])
    np.testing.assert_allclose(P[3, :, 3], 1.0)  # the goal
    assert P[8, right, 9] == pytest.approx(0.8)


def test_the_map() -> None:
    names = make("gridworld").problem.state_names
    assert names is not None
    letters = [
        "".join({"l": "~", "g": "G", "d": "."}[n.split("(")[1][0]] for n in names[7 * y : 7 * y + 7]) for y in range(5)
    ]
    assert letters == [".~~~~~G", "..~~~..", "...~...", ".......", "......."]
