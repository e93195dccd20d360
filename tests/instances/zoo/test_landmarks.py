"""Landmarks against a dense LP, a direct solve and themselves on the other side of their size limit; midway thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import most_slack
from instances.zoo.zoo_checks import optimum as lp_optimum
from saddleback.exact.bellman import Model
from saddleback.exact.policy_iteration import optimum
from saddleback.instances import instance as module
from saddleback.instances.zoo import make


@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), gamma=st.floats(0, 0.95), S=st.integers(1, 12), A=st.integers(1, 4))
def test_optimum_against_the_lp(seed: int, gamma: float, S: int, A: int) -> None:
    table = make("garnet", states=S, actions=A, successors=min(S, 3), gamma=gamma, seed=seed).table
    assert table is not None
    value = module.landmarks(table)["unconstrained_value"]
    # both are accurate to 1e-10 of H ≤ 20
    assert value == pytest.approx(lp_optimum(table, constrained=False).value, abs=2e-9)


@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
def test_sweeps_equal_direct_solves(monkeypatch: pytest.MonkeyPatch, gamma: float) -> None:
    for name in ("wireless", "garnet", "gridworld"):
        direct = make(name, gamma=gamma).known
        with monkeypatch.context() as patch:
            patch.setattr(module, "_DENSE", 0)
            swept = make(name, gamma=gamma).known
        assert swept == pytest.approx(
            direct, rel=1e-9, abs=1e-9 / (1 - gamma)
        )  # of H, a thousand times the stated 1e-12


def test_ties_go_to_the_lowest_action() -> None:
    """An empty queue sends nothing at any power, and the cheapest is the first."""
    table = make("wireless").table
    assert table is not None
    policy, _ = optimum(Model.of(table, table.problem()), np.array([1.0, 0.0]))
    assert list(policy[:3]) == [0, 0, 0]
    assert policy[3] == 2  # one packet in a deep fade takes 4 mW; 10 mW would do no better


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), m=st.integers(2, 5))
def test_several_midway_thresholds_can_be_met_together(seed: int, m: int) -> None:
    table = make("garnet", states=8, actions=3, successors=3, constraints=m, seed=seed).table
    assert table is not None
    assert most_slack(table) > 1e-6


def test_several_thresholds_follow_the_rule() -> None:
    """b_i = min(midpoint, V_ci(π_c)), from the LP's occupancies; among these tables some V_ci(π_c) < V_ci(π_r)."""
    num_reversed = 0
    for seed in range(10):
        table = make("garnet", states=4, actions=2, successors=2, constraints=5, seed=seed).table
        assert table is not None
        at_reward, at_sum = (
            np.tensordot(table.constraints, lp_optimum(table, aim, constrained=False).occupancy, axes=2)
            for aim in (table.reward, table.constraints.sum(axis=0))
        )
        np.testing.assert_allclose(table.thresholds, np.minimum((at_reward + at_sum) / 2, at_sum), atol=1e-8)
        num_reversed += int(np.sum(at_sum < at_reward - 1e-3))
    assert num_reversed > 0
