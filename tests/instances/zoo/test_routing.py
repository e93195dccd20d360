from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import evaluate
from saddleback.instances.zoo import make


def test_rows_by_hand() -> None:
    """One place each: (slow, fast) = (1, 0), the next customer to the fast server."""
    table = make("routing", capacity=1, arrival=0.7, slow=0.3, fast=0.6).table
    assert table is not None
    P = table.P.toarray().reshape(4, 2, 4)  # states 0 = (0, 0), 1 = (0, 1), 2 = (1, 0), 3 = (1, 1)
    np.testing.assert_allclose(P[2, 1], [0.3 * 0.3, 0.7 * 0.3, 0.3 * 0.7, 0.7 * 0.7])
    np.testing.assert_allclose(P[3, 1], [0.3 * 0.6, 0.3 * 0.4, 0.7 * 0.6, 0.7 * 0.4])  # full: the customer is lost
    np.testing.assert_allclose(table.reward[3], 0.3 + 0.6 - 2 * 0.05)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), gamma=st.sampled_from([0.5, 0.9, 0.95]))
def test_customers_balance(seed: int, gamma: float) -> None:
    """in − out = (1−γ)/γ · present in discounted totals, under any policy."""
    instance = make("routing", capacity=3, gamma=gamma, waiting=0.0)
    table = instance.table
    assert table is not None
    waiting_slow, waiting_fast = np.divmod(np.arange(16), 4)
    policy = np.random.default_rng(np.random.SeedSequence(seed)).integers(0, 2, 16)
    room = np.column_stack([waiting_slow < 3, waiting_fast < 3])
    signals = np.column_stack([(0.7 * room).ravel(), table.reward.ravel(), np.repeat(waiting_slow + waiting_fast, 2)])
    came, served, present = table.rho @ evaluate(table, signals, policy)
    assert came - served == pytest.approx((1 - gamma) / gamma * present, rel=1e-9)


def test_free_energy_goes_to_the_fast_server() -> None:
    """With room for one and a slow server that never finishes, the fast one serves all there is."""
    instance = make("routing", capacity=1, slow=0.0, arrival=1.0, fast=1.0, waiting=0.0, gamma=0.9, budget=0.1)
    # empty at even slots, served at odd ones: Σ γ^(2k+1)
    assert instance.known["unconstrained_value"] == pytest.approx(0.9 / (1 - 0.81), rel=1e-10)
    assert instance.known["unconstrained_energy"] == pytest.approx(0.9 / (1 - 0.81), rel=1e-10)
