"""Values and occupancies of one policy: within their limits, by sweeps and by factors alike."""

from __future__ import annotations

import numpy as np
import pytest

from exact.random_tables import random_table
from saddleback import zoo
from saddleback.exact import occupancy, policy_iteration, state_values
from saddleback.exact.bellman import Model
from saddleback.exact.policy_iteration import evaluate, visits
from saddleback.problem.policies import TabularPolicy
from saddleback.simulators.table import Table


def policy_of(table: Table, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, table.num_actions, table.num_states).astype(np.int32)


TABLES = {
    "fast, dense": lambda: random_table(0, m=2, gamma=0.99),
    "fast, sparse": lambda: zoo.make("garnet", states=400, constraints=2, gamma=0.99).table,
    "slow, narrow": lambda: zoo.make("gridworld", width=20, height=12, gamma=0.999).table,
    "long chain": lambda: zoo.make("queue", capacity=500, gamma=0.999, limit=50.0).table,
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("width", [1.0, 1e-3, 1e-7])
def test_values_lie_within_their_limits(name: str, width: float) -> None:
    table = TABLES[name]()
    model, actions = Model.of(table, table.problem(), compiled=False), policy_of(table, 3)
    k, H = model.utilities.shape[1], model.discount.horizon
    guess, q = np.full((table.num_states, k), H / 3, order="F"), np.linspace(1, 2, k)
    found = evaluate(model, model.chain(actions), guess, q, width, width)
    truth = model.rho @ state_values(table, TabularPolicy.deterministic(actions, table.num_actions))
    truth = np.append(truth, truth @ q)
    rounding = 1e-12 * H * q.sum()
    assert np.all(found.limits.low - rounding <= truth) and np.all(truth <= found.limits.high + rounding)
    assert np.all(found.limits.high - found.limits.low <= width) and not found.at_floor
    np.testing.assert_array_equal(guess, H / 3)


def test_rounding_ends_what_cannot_be_had() -> None:
    table = zoo.make("garnet", states=400, gamma=0.99).table
    model, actions = Model.of(table, table.problem(), compiled=False), policy_of(table, 0)
    guess = np.zeros((400, 2), order="F")
    found = evaluate(model, model.chain(actions), guess, np.ones(2), np.inf, 1e-18)
    assert found.at_floor
    assert (found.limits.high - found.limits.low).max() < 1e-9


@pytest.mark.slow
def test_slow_chains_are_factored_and_fast_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    factored = policy_iteration._factored
    monkeypatch.setattr(policy_iteration, "_factored", lambda *a: calls.append(a) or factored(*a))
    for name, slow in (("fast, sparse", False), ("slow, narrow", True), ("long chain", True)):
        calls.clear()
        table = TABLES[name]()
        model, actions = Model.of(table, table.problem(), compiled=False), policy_of(table, 1)
        guess = np.zeros((table.num_states, model.utilities.shape[1]), order="F")
        evaluate(model, model.chain(actions), guess, np.ones(guess.shape[1]), 1e-7, 1e-7)
        assert bool(calls) == slow, name


@pytest.mark.slow
def test_a_hub_does_not_spoil_the_band() -> None:
    """A ring in which every state may also fall back to state 0: a band of the ring's width beside one hub."""
    S, gamma = 3000, 0.999
    P = np.zeros((S, 1, S))
    P[np.arange(S), 0, (np.arange(S) + 1) % S] += 0.9999
    P[:, 0, 0] += 0.0001
    table = Table.of(P, np.eye(S)[:, :1], np.eye(S)[None, :, 1:2], [0.0], gamma=gamma, rho=np.eye(S)[7])
    model = Model.of(table, table.problem(), compiled=False)
    chain = model.chain(np.zeros(S, dtype=np.int32))
    assert policy_iteration._price_of_factors(chain, 2) < 50  # sweeps; with the hub in the band it would be 10⁵


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("direct", [True, False])
def test_visits_are_the_occupancy(name: str, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not direct:
        monkeypatch.setattr(policy_iteration, "_SLOW", np.inf)
        monkeypatch.setattr(policy_iteration, "_DENSE", 0)
    table = TABLES[name]()
    model, actions = Model.of(table, table.problem(), compiled=False), policy_of(table, 2)
    d = visits(model, actions, 1e-6)
    truth = occupancy(table, TabularPolicy.deterministic(actions, table.num_actions)).sum(axis=1)
    assert np.abs(d - truth).sum() <= 1e-6 + 1e-12 * model.discount.horizon**2
    assert np.all(d >= 0)
    np.testing.assert_array_equal(d[truth == 0], 0.0)  # where nobody goes, exactly nobody goes
