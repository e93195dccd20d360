from __future__ import annotations

import numpy as np

from instances.zoo.zoo_checks import best_actions
from saddleback.instances.zoo import make
from saddleback.instances.zoo.ward import EMERGENCIES, REFERRALS


def test_rows_by_hand() -> None:
    """One bed, a list of one: free, taken by an emergency, taken by one called in; nobody or somebody waiting."""
    table = make("ward", beds=1, waiting=1, emergency_leaves=0.25, called_leaves=0.5).table
    assert table is not None
    P = table.P.toarray().reshape(6, 4, 3, 2)
    none, some = EMERGENCIES[0], 1 - EMERGENCIES[0]
    # in use: 0 = none, 1 = one called in, 2 = one emergency
    np.testing.assert_allclose(P[0, 0].sum(axis=1), [none, 0, some])
    np.testing.assert_allclose(P[0, 0].sum(axis=0), [REFERRALS[0], 1 - REFERRALS[0]])
    np.testing.assert_allclose(P[1, 1].sum(axis=1), [0.5 * none, 0.5, 0.5 * some])  # called in, and perhaps home again
    np.testing.assert_allclose(P[4, 3].sum(axis=1), [0.25 * none, 0, 0.75 + 0.25 * some])  # nobody waits: nobody comes
    two = EMERGENCIES[2]
    np.testing.assert_allclose(table.constraints[0][0], two)  # one bed for two emergencies
    np.testing.assert_allclose(table.constraints[0][4, 0], 0.25 * two + 0.75 * (EMERGENCIES[1] + 2 * two))
    np.testing.assert_allclose(table.reward[:2], [[0, 0, 0, 0], [-0.5, 12, 12, 12]])


def test_nobody_is_called_in_where_emergencies_are_all_that_counts() -> None:
    table = make("ward", beds=4, waiting=4).table
    assert table is not None
    policy = best_actions(table, -table.constraints[0] - 1e-9 * np.arange(4))
    assert not policy.any()
    policy = best_actions(table, table.reward)
    assert policy.any()
