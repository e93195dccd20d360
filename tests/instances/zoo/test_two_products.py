from __future__ import annotations

import numpy as np
import pytest

from instances.zoo.zoo_checks import TWO_PRODUCTS, best_actions, evaluate, most_slack, optimum
from saddleback.exact import solve_by_columns
from saddleback.instances.zoo import make
from saddleback.instances.zoo.two_products import CHANCES, LUCK, SEASONS


def test_rows_by_hand() -> None:
    """Shelves for two and one: a lot of five fills them, and each demand of one or two empties them or leaves one."""
    table = make("two-products", first_shelf=2, second_shelf=1, first_lots=1, second_lots=1, first_demand=1.0).table
    assert table is not None
    P = table.P.toarray().reshape(3, 2, 4, 3, 2)
    # D₁ = round(w·z): 0 with z = .4 on a quiet day, 2 with z = 1.2 or 1.6 on a busy one, else 1; D₂ ≥ 3 always.
    none, two = CHANCES[0] / 2, (CHANCES[2] + CHANCES[3]) / 2
    np.testing.assert_allclose(P[0, 0, 0, 0], [1, 0])  # nothing ordered, nothing there
    np.testing.assert_allclose(P[0, 0, 2].sum(axis=1), [two, 1 - none - two, none])  # full shelves of the first
    np.testing.assert_allclose(P[..., 0].sum(axis=-1), 1)  # the second is always sold out
    np.testing.assert_allclose(P[2, 0, 0], P[0, 0, 2])  # what does not fit does not come
    reward = table.reward.reshape(3, 2, 2, 2)
    sold = 1 - none + two
    assert reward[0, 0, 0, 0] == 0
    assert reward[0, 0, 1, 0] == pytest.approx(0.5 * sold - 0.1 * (2 - sold) - 6 - 0.5)  # one lot is handled
    assert reward[0, 0, 1, 1] == pytest.approx(0.5 * sold + 2 - 0.1 * (2 - sold) - 6 - 2 * 0.5)  # in the same drive
    assert reward[2, 1, 1, 1] == pytest.approx(0.5 * sold + 2 - 0.1 * (2 - sold))  # no room: no drive
    unmet, stock = table.constraints.reshape(2, 3, 2, 2, 2)
    mean = sum(np.floor(9 * w * LUCK + 0.5) @ CHANCES for w in SEASONS) / 2
    assert unmet[0, 0, 0, 0] == 1
    assert unmet[2, 1, 0, 0] == pytest.approx((1 - 1 / mean) / 2)
    assert stock[2, 1, 0, 0] == pytest.approx((2 - sold) / 3)


def test_both_constraints_bind_and_can_be_met_together() -> None:
    """Every reference by an independent linear program; the policy that ignores the limits breaks both."""
    instance = make("two-products", **TWO_PRODUCTS)
    table, known = instance.table, instance.known
    assert table is not None
    answer, exact = optimum(table), solve_by_columns(table)
    assert np.all(answer.multipliers > 1)
    np.testing.assert_allclose(table.constraints.reshape(2, -1) @ answer.occupancy.ravel(), table.thresholds, rtol=1e-8)
    assert exact.value == pytest.approx(answer.value, rel=1e-6)
    np.testing.assert_allclose(exact.multipliers, answer.multipliers, rtol=1e-4)
    assert most_slack(table) == pytest.approx(exact.slater, abs=1e-5) and exact.slater > 0.02 / (1 - table.gamma)
    for name, threshold in zip(table.names, table.thresholds, strict=True):
        assert known[f"best_{name}"] < threshold < known[f"unconstrained_{name}"]


@pytest.mark.slow
def test_so_they_do_at_the_defaults() -> None:
    table = make("two-products").table
    assert table is not None and table.reward.shape == (2970, 30)
    answer = solve_by_columns(table)
    assert answer.status == "optimal" and np.all(answer.multipliers > 10)
    np.testing.assert_allclose(answer.constraint_values, table.thresholds, rtol=1e-5)
    assert answer.slater > 0.01 / (1 - table.gamma)


def test_what_serves_everybody_fills_the_shelves() -> None:
    """The best policy for one constraint alone breaks the other."""
    table = make("two-products", **TWO_PRODUCTS).table
    assert table is not None
    signals = table.constraints.reshape(2, -1).T
    served, lean = (evaluate(table, signals, best_actions(table, -c))[0] for c in table.constraints)
    assert served[0] < table.thresholds[0] < lean[0]
    assert lean[1] < table.thresholds[1] < served[1]
