"""The compiled Bellman sweeps against their readable originals in :mod:`saddleback.exact.bellman`."""

from __future__ import annotations

import numpy as np
import pytest

from exact.random_tables import random_table
from saddleback.exact.bellman import Model

CASES = [(1, 12, 3), (1, 40, 5), (3, 12, 1), (2, 30, 4)]  # m, S, A: one constraint has a path of its own
ROUNDING = 1e-12  # sums of at most 12 products of numbers of size 20, in another order: 12·20·2⁻⁵³ is 3e-14


def both(m: int, S: int, A: int) -> tuple[Model, Model, np.random.Generator]:
    table = random_table(m + S, m=m, S=S, A=A, gamma=0.95)
    compiled, plain = (Model.of(table, table.problem(), compiled=c) for c in (True, False))
    assert compiled.kernels is not None and plain.kernels is None
    return compiled, plain, np.random.default_rng(S)


@pytest.mark.parametrize(("m", "S", "A"), CASES)
def test_greedy(m: int, S: int, A: int) -> None:
    compiled, plain, rng = both(m, S, A)
    box, V = rng.random(S * A), 20 * rng.random(S)
    actions = rng.integers(0, A, S).astype(np.int32)
    Q = (box + 0.95 * (plain.P @ V)).reshape(S, A)
    for tie in (0.0, 5.0, np.inf):
        fast, slow = (model.greedy(box, V, actions, tie) for model in (compiled, plain))
        np.testing.assert_allclose(fast.values, slow.values, atol=ROUNDING, rtol=0)
        # Of several actions within a wide tie the two may keep another; none is further from the best than the tie.
        for found in (fast, slow):
            lost = found.values - Q[np.arange(S), found.actions]
            assert lost.max() <= tie + ROUNDING
        if tie == 0.0:
            np.testing.assert_array_equal(fast.actions, slow.actions)
        assert (fast.low, fast.high) == pytest.approx((slow.low, slow.high), abs=ROUNDING)
    np.testing.assert_array_equal(fast.actions, actions)  # with an infinite tie nothing changes
    np.testing.assert_allclose(slow.values, Q.max(axis=1), atol=ROUNDING, rtol=0)
    np.testing.assert_array_equal(compiled.greedy(box, V, actions, 0.0).actions, Q.argmax(axis=1))


def test_greedy_prefers_the_lowest_of_equal_actions() -> None:
    for model in both(1, 12, 3)[:2]:
        equal = model.greedy(np.tile([0.0, 1.0, 1.0], 12), np.zeros(12), np.zeros(12, dtype=np.int32), 0.5)
        np.testing.assert_array_equal(equal.actions, 1)


@pytest.mark.parametrize(("m", "S", "A"), CASES)
def test_chain_sweep_and_push(m: int, S: int, A: int) -> None:
    compiled, plain, rng = both(m, S, A)
    actions = rng.integers(0, A, S).astype(np.int32)
    fast, slow = compiled.chain(actions), plain.chain(actions)
    np.testing.assert_array_equal(fast.P.toarray(), slow.P.toarray())
    np.testing.assert_array_equal(fast.utilities, slow.utilities)
    V, q, d = 20 * rng.random((S, 1 + m)), rng.random(1 + m), rng.random(S)
    d[0] = 0.0
    new_fast, new_slow = np.empty((S, 1 + m)), np.empty((S, 1 + m))
    limits_fast, limits_slow = fast.sweep(V, q, new_fast), slow.sweep(V, q, new_slow)
    np.testing.assert_allclose(new_fast, new_slow, atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(new_slow, slow.utilities + 0.95 * (slow.P.toarray() @ V), atol=ROUNDING, rtol=0)
    for a, b in zip(limits_fast, limits_slow, strict=True):
        np.testing.assert_allclose(a, b, atol=ROUNDING * (1 + m), rtol=0)
    pushed = fast.push(plain.rho, d)
    np.testing.assert_allclose(pushed, slow.push(plain.rho, d), atol=ROUNDING, rtol=0)
    np.testing.assert_allclose(pushed, plain.rho + 0.95 * (slow.P.toarray().T @ d), atol=ROUNDING, rtol=0)


def test_limits_of_a_sweep_are_those_of_every_column_and_of_the_mixture() -> None:
    _, plain, rng = both(2, 30, 4)
    chain = plain.chain(np.zeros(30, dtype=np.int32))
    V, q, new = rng.random((30, 3)), np.array([1.0, 2.0, 0.5]), np.empty((30, 3))
    low, high = chain.sweep(V, q, new)
    change = np.column_stack([new - V, (new - V) @ q])
    np.testing.assert_allclose((low, high), (change.min(axis=0), change.max(axis=0)), atol=1e-14)
