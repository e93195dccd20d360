"""Pricing: the best policy for a mixture of reward and constraints, with its proof."""

from __future__ import annotations

import numpy as np
import pytest

from exact.random_tables import random_table
from saddleback import zoo
from saddleback.errors import NumericalError
from saddleback.exact import best_policy, policy_iteration
from saddleback.exact.bellman import Model
from saddleback.exact.policy_iteration import anywhere, price
from saddleback.simulators.table import Table


def corridor(length: int) -> Table:
    """One step right or left, reward at the far end only: news of it travels one state a round of policy iteration."""
    P = np.zeros((length, 2, length))
    states = np.arange(length)
    P[states, 0, np.maximum(states - 1, 0)] = 1
    P[states, 1, np.minimum(states + 1, length - 1)] = 1
    reward = np.repeat((states == length - 1).astype(float)[:, None], 2, axis=1)
    left = np.tile([1.0, 0.0], (length, 1))
    return Table.of(P, reward, left[None], [0.0], gamma=0.99, rho=np.eye(length)[0])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("S", [12, 150])
@pytest.mark.parametrize("gamma", [0.0, 0.9, 0.999])
def test_agrees_with_exact_policy_iteration(seed: int, S: int, gamma: float) -> None:
    table = random_table(seed, m=2, S=S, gamma=gamma)
    model, q = Model.of(table, table.problem(), compiled=False), np.random.default_rng(seed).exponential(size=3)
    target = 1e-7
    priced = price(model, q, anywhere(model), target)
    _, best = best_policy(table, q)
    assert priced.found is not None
    assert q @ best - 1e-9 <= priced.bound <= q @ best + target
    assert priced.found.limits.low[-1] >= q @ best - target - 1e-9
    nothing = price(model, q, priced.place, target, incumbent=float(q @ best) - 0.5 * target)
    assert nothing.found is None and nothing.bound - q @ best <= target


def test_a_share_of_the_gain_is_enough_early_on() -> None:
    table = zoo.make("garnet", states=500, gamma=0.95).table
    model, q = Model.of(table, table.problem(), compiled=False), np.array([1.0, 0.3])
    exact = price(model, q, anywhere(model), 1e-7)
    rough = price(model, q, anywhere(model), 1e-7, incumbent=10.0, share=0.2)
    gain, left = rough.bound - 10.0, rough.bound - float(rough.found.limits.low[-1])
    assert exact.bound <= rough.bound
    assert 1e-4 < left <= 0.2 * gain


def test_news_from_afar_arrives_in_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a corridor of 600 states policy iteration alone takes 600 rounds; passes of value iteration bring it to 50."""
    table = corridor(600)
    model, rounds = Model.of(table, table.problem(), compiled=False), []
    evaluate = policy_iteration.evaluate
    monkeypatch.setattr(policy_iteration, "evaluate", lambda *a: rounds.append(1) or evaluate(*a))
    priced = price(model, np.array([1.0, 0.0]), anywhere(model), 1e-7)
    assert priced.found.limits.low[0] == pytest.approx(0.99**599 * 100, abs=1e-7)
    assert len(rounds) <= 50


def test_rounds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_iteration, "_MOST_ROUNDS", 1)
    table = random_table(0)
    model = Model.of(table, table.problem(), compiled=False)
    with pytest.raises(NumericalError, match="did not settle in 1 rounds"):
        price(model, np.array([1.0, 1.0]), anywhere(model), 1e-9)
