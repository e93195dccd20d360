from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import best_actions
from saddleback.instances.zoo import make


@settings(derandomize=True, deadline=None, max_examples=25)
@given(slow=st.floats(0.1, 0.7), more=st.floats(0.05, 0.3), worth=st.floats(0.1, 50.0))
def test_paying_is_for_low_buffers(slow: float, more: float, worth: float) -> None:
    """Whatever a stalled slot costs: pay below a critical fill, not above. Fills 0 and 1 have one law of what follows."""
    table = make("streaming", slow=slow, fast=slow + more).table
    assert table is not None
    P = table.P.toarray().reshape(21, 2, 21)
    np.testing.assert_array_equal(P[0], P[1])
    policy = best_actions(table, table.reward - worth * table.constraints[0])
    assert np.all(np.diff(policy) <= 0)


def test_a_perfect_server_stalls_once() -> None:
    known = make("streaming", fast=1.0, slow=0.5, limit=0.2).known
    assert known["best_stall"] == pytest.approx(1.0, abs=1e-10)  # nothing can be played in the first slot


def test_rows_by_hand() -> None:
    table = make("streaming", capacity=2, slow=0.5, fast=0.8, price=3.0).table
    assert table is not None
    P = table.P.toarray().reshape(3, 2, 3)
    np.testing.assert_allclose(P[0], [[0.5, 0.25, 0.25], [0.2, 0.16, 0.64]])
    np.testing.assert_allclose(P[2], [[0, 0.5, 0.5], [0, 0.2, 0.8]])  # one played; a second segment does not fit
    np.testing.assert_allclose(table.reward, [[0, -3.0]] * 3)


def test_no_server_no_picture() -> None:
    known = make("streaming", slow=0.0, fast=0.5, limit=0.5).known
    assert known["unconstrained_stall"] == pytest.approx(20.0, rel=1e-10)
    assert known["unconstrained_value"] == 0.0
