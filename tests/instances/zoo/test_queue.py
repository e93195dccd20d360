from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import optimum
from saddleback.instances.zoo import make


def test_closed_form_when_service_takes_one_slot() -> None:
    """Whoever comes in slot t is there in slot t + 1 only: V_r = pH, V_c = pγH."""
    known = make("queue", arrival=0.3, service=1.0, gamma=0.9, limit=0.2).known
    assert known["unconstrained_value"] == pytest.approx(0.3 * 10, rel=1e-12)
    assert known["unconstrained_number-in-system"] == pytest.approx(0.3 * 0.9 * 10, rel=1e-12)
    assert known["zeta"] == pytest.approx(2.0, rel=1e-9)


def test_rows_by_hand() -> None:
    table = make("queue", capacity=2, arrival=0.6, service=0.5).table
    assert table is not None
    P = table.P.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(P[0], [[1, 0, 0], [0.4, 0.6, 0]])
    np.testing.assert_allclose(P[1], [[0.5, 0.5, 0], [0.2, 0.5, 0.3]])
    np.testing.assert_allclose(P[2], [[0, 0.5, 0.5], [0, 0.5, 0.5]])  # full: open or closed is the same
    np.testing.assert_allclose(table.reward, [[0, 0.6], [0, 0.6], [0, 0]])


@settings(derandomize=True, deadline=None, max_examples=25)
@given(arrival=st.floats(0.1, 0.9), service=st.floats(0.1, 0.9), limit=st.floats(0.1, 2.0))
def test_the_optimal_gate_is_a_threshold(arrival: float, service: float, limit: float) -> None:
    """Open, then mixed at one length at most, then closed; lengths that are never reached say nothing."""
    table = make("queue", arrival=arrival, service=service, limit=limit).table
    assert table is not None
    answer = optimum(table)
    assume(answer.multipliers[0] > 1e-6)  # where the limit does not bind the gate is simply open
    mass = answer.occupancy.sum(axis=1)
    seen = np.flatnonzero(mass[:-1] > 1e-6)
    open_share = answer.occupancy[seen, 1] / mass[seen]
    assert np.all(np.diff(open_share) <= 1e-3)  # LP feasibility 1e-10 over a mass of 1e-6 leaves 1e-4
    assert np.sum((open_share > 1e-3) & (open_share < 1 - 1e-3)) <= 1
