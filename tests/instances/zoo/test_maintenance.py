from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import best_actions, evaluate
from saddleback.instances.zoo import make
from saddleback.instances.zoo.maintenance import REPLACE, RUN


@settings(derandomize=True, deadline=None, max_examples=25)
@given(
    wear=st.floats(0.1, 1.0),
    breakage=st.floats(0.05, 0.9),
    planned=st.floats(0.5, 8.0),
    extra=st.floats(0.0, 5.0),
    price=st.floats(0.0, 5.0),
)
def test_a_control_limit_is_optimal(wear: float, breakage: float, planned: float, extra: float, price: float) -> None:
    """Whatever availability is worth: run up to some degree of wear, replace from there on."""
    table = make("maintenance", wear=wear, breakage=breakage, planned=planned, emergency=planned + extra).table
    assert table is not None
    policy = best_actions(table, table.reward + price * table.constraints[0])[:-1]
    assert np.all(np.diff(policy) >= 0)


def test_rows_by_hand() -> None:
    table = make("maintenance", grades=3, wear=0.5, breakage=0.4, swift=0.3, output=2.0).table
    assert table is not None
    P = table.P.toarray().reshape(4, 2, 4)
    np.testing.assert_allclose(P[0, RUN], [0.5, 0.5, 0, 0])
    np.testing.assert_allclose(P[1, RUN], [0, 0.9 * 0.5, 0.9 * 0.5, 0.1])
    np.testing.assert_allclose(P[2, RUN], [0, 0, 0.6, 0.4])
    np.testing.assert_allclose(P[3, REPLACE], [0.3, 0, 0, 0.7])
    np.testing.assert_allclose(table.reward[:, RUN], [2.0, 1.5, 1.0, 0.0])


def test_a_machine_that_never_breaks_is_always_available() -> None:
    known = make("maintenance", breakage=0.0, floor=0.9).known
    assert known["best_availability"] == pytest.approx(20.0, rel=1e-10)


def test_certain_breakage_in_closed_form() -> None:
    """Wear and breakage certain, replacement swift: run until it breaks takes `grades` slots, then one slot is lost."""
    gamma, n, H = 0.9, 3, 10.0
    table = make("maintenance", grades=n, wear=1.0, breakage=1.0, swift=1.0, floor=0.0, gamma=gamma).table
    assert table is not None
    value = evaluate(table, table.constraints[0].reshape(-1, 1), np.array([RUN] * n + [REPLACE]))[0, 0]
    # degree 1 breaks with (1/2)² = 1/4 already: solve v = the mean discounted slots at work of one cycle
    #   cycle: slot at 0, slot at 1, then (with 3/4) slot at 2, then the lost slot
    work = 1 + gamma + 0.75 * gamma**2
    cycle = 0.25 * gamma**3 + 0.75 * gamma**4
    assert value == pytest.approx(work / (1 - cycle), rel=1e-12)
    assert value < H
