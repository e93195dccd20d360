from __future__ import annotations

import sys

import numpy as np
import pytest

from instances.zoo.zoo_checks import optimum
from saddleback.errors import InputError
from saddleback.instances.zoo import make

NEEDY = ("frozen-lake", "taxi", "cliff-walking", "mountain-car", "pendulum")


@pytest.mark.parametrize("name", NEEDY)
def test_missing_gymnasium_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)  # what an import of a package that is not there finds
    with pytest.raises(InputError) as caught:
        make(name)
    assert 'pip install "saddleback[gymnasium]"' in str(caught.value)
    assert "`gymnasium`" in str(caught.value)


@pytest.mark.parametrize("gamma", [0.9, 0.95])
@pytest.mark.parametrize("limit", [0.0, 1.0, 2.0, 20.0])
def test_cliff_in_closed_form(gamma: float, limit: float) -> None:
    """V(n) = −(1−γⁿ)H; the walk along the edge takes 13 steps, of which t = 2..11 are counted; the free one takes 15."""
    edge = sum(gamma**t for t in range(2, 12))
    along, above = (-(1 - gamma**n) / (1 - gamma) for n in (13, 15))
    share = min(1.0, limit / edge)
    instance = make("cliff-walking", gamma=gamma, limit=limit)
    assert instance.known["unconstrained_value"] == pytest.approx(along, rel=1e-10)
    assert instance.known["unconstrained_edge"] == pytest.approx(edge, rel=1e-10)
    answer = optimum(instance.table)  # type: ignore[arg-type]
    assert answer.value == pytest.approx(above + (along - above) * share, rel=1e-8)


def test_slippery_ground_can_fall() -> None:
    """At the edge a step forward falls with chance 1/3, for which Gymnasium pays −100 instead of −1."""
    table = make("cliff-walking", slippery=True).table
    assert table is not None
    assert table.reward[30, 1] == pytest.approx(-(2 / 3 + 100 / 3))
    assert table.constraints[0, 30, 1] == 1.0 and table.constraints[0, 18].max() == 0.0


def test_frozen_lake_by_hand() -> None:
    """From the field left of the first hole (row 1, column 0) a step up goes up, left (stays) or into the hole."""
    table = make("frozen-lake").table
    assert table is not None
    up = 3
    row = table.P[[4 * 4 + up]].toarray()[0]
    np.testing.assert_allclose(row[[0, 4, 5]], 1 / 3)
    assert table.constraints[0, 4, up] == pytest.approx(1 / 3)
    holes = [5, 7, 11, 12]
    assert np.all(table.constraints[0, holes] == 0)  # whoever lies in a hole falls no further
    assert table.reward[14, 1] == pytest.approx(1 / 3)  # beside the goal


def test_firm_ice_in_closed_form() -> None:
    """Six steps to the goal, paid with the sixth; nobody falls."""
    known = make("frozen-lake", slippery=False).known
    assert known["unconstrained_value"] == pytest.approx(0.95**5, rel=1e-10)
    assert known["unconstrained_falls"] == pytest.approx(0.0, abs=1e-12)


def test_taxi_starts_and_delivers() -> None:
    """300 starts; next to a delivery the best is 20 at once and no fuel."""
    instance = make("taxi")
    table = instance.table
    assert table is not None
    assert np.count_nonzero(table.rho) == 300
    at_goal = 16  # row 0, column 0, passenger in the taxi, destination R
    assert table.state_names is not None
    assert table.state_names[at_goal] == "taxi at row 0, column 0; passenger in the taxi, to R"
    assert table.reward[at_goal, 5] == 20.0 and table.constraints[0, at_goal, 5] == 0.0
    south, north = 0, 1
    assert table.constraints[0, at_goal, south] == 1.0
    assert table.constraints[0, at_goal, north] == 0.0  # against the wall of the town: no move, no fuel
