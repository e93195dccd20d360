from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import best_actions, evaluate, optimum
from saddleback.instances.zoo import make
from saddleback.instances.zoo.inventory import levels
from saddleback.method.master_lp import solve_master

DEFAULTS = {"capacity": 15, "demand": 5.0, "price": 4.0, "cost": 2.0, "holding": 0.5, "gamma": 0.9}


@settings(derandomize=True, deadline=None, max_examples=15)
@given(demand=st.floats(1.0, 8.0), price=st.floats(2.0, 8.0), holding=st.floats(0.1, 2.0), limit=st.floats(0.01, 0.6))
def test_optimum_is_the_envelope_of_order_up_to_levels(
    demand: float, price: float, holding: float, limit: float
) -> None:
    parameters = DEFAULTS | {"demand": demand, "price": price, "holding": holding}
    costs, rewards = levels(**parameters).T
    mixture = solve_master(np.column_stack([rewards, -costs]), np.array([-limit * 10]))
    assume(mixture is not None)
    answer = optimum(make("inventory", limit=limit, **parameters).table)  # type: ignore[arg-type]
    assert answer.value == pytest.approx(mixture.value, rel=1e-7, abs=1e-7)
    near = np.abs(costs - limit * 10).min() < 1e-6  # at a corner of the envelope the multiplier may be either slope
    assert near or answer.multipliers[0] == pytest.approx(mixture.multipliers[0], rel=1e-4, abs=1e-6)


def test_levels_are_values_of_policies() -> None:
    """Ordering up to y every day, evaluated on the table, for every y."""
    table = make("inventory").table
    assert table is not None
    signals = np.column_stack([table.constraints[0].ravel(), table.reward.ravel()])
    for y, row in enumerate(levels(**DEFAULTS)):
        policy = np.maximum(y - np.arange(16), 0)
        np.testing.assert_allclose(evaluate(table, signals, policy)[0], row, rtol=1e-10, atol=1e-12)


def test_orders_go_up_to_one_level_for_every_price_of_a_stock_out() -> None:
    table = make("inventory").table
    assert table is not None
    seen = set()
    for price in (0.0, 1.0, 5.0, 20.0, 100.0):
        policy = best_actions(table, table.reward - price * table.constraints[0])
        level = policy[0]
        np.testing.assert_array_equal(policy[: level + 1], level - np.arange(level + 1))
        seen.add(int(level))
    assert len(seen) >= 4  # dearer stock-outs, fuller shelves


def test_known_values_of_the_defaults() -> None:
    costs, rewards = levels(**DEFAULTS).T
    known = make("inventory").known
    best = int(rewards.argmax())
    assert known["unconstrained_value"] == pytest.approx(rewards[best], rel=1e-10)
    assert known["unconstrained_stock-out"] == pytest.approx(costs[best], rel=1e-9)
    assert known["best_stock-out"] == pytest.approx(costs[-1], rel=1e-6)
