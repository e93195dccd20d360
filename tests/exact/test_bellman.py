"""What Bellman residuals prove: limits that hold for any guess of the values, on any table."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.random_tables import random_table
from saddleback.exact import best_policy, state_values
from saddleback.exact.bellman import Discount, Model
from saddleback.problem.policies import TabularPolicy
from saddleback.simulators.table import Table

NUMBERED = st.integers(0, 10_000)


def model_of(table: Table) -> Model:
    return Model.of(table, table.problem(), compiled=False)


def uneven_table(seed: int, gamma: float) -> Table:
    """Rows of P that sum to 1 ± 9e-10 only, which a table may do."""
    table = random_table(seed, m=2, gamma=gamma)
    P = table.P.copy()
    lengths = np.diff(P.indptr)
    rng = np.random.default_rng(seed)
    P.data *= np.repeat(1 + 9e-10 * rng.choice([-1, 1], len(lengths)), lengths)
    return Table.of(
        P,
        table.reward,
        table.constraints,
        table.thresholds,
        gamma=gamma,
        rho=table.rho,
        senses=table.senses,
    )


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(NUMBERED, st.sampled_from([0.0, 0.5, 0.9, 0.999]), st.floats(0, 100), st.booleans())
def test_the_upper_limit_holds_whatever_the_guess(seed: int, gamma: float, size: float, even: bool) -> None:
    table = random_table(seed, m=2, gamma=gamma) if even else uneven_table(seed, gamma)
    model, rng = model_of(table), np.random.default_rng(seed)
    q = rng.exponential(size=3)
    V = size * rng.normal(size=model.num_states)
    step = model.greedy(model.utilities @ q, V, np.zeros(model.num_states, dtype=np.int32), 0.0)
    high = model.discount.bracket(step.low, step.high, q.sum() * model.discount.horizon).high
    _, best = best_policy(table, q)
    assert float(model.rho @ step.values + high) >= q @ best - 1e-13 * q.sum() * model.discount.horizon


def test_the_upper_limit_is_tight_at_the_optimum_and_at_constants() -> None:
    table = random_table(5, m=1)
    model = model_of(table)
    policy, best = best_policy(table, np.array([1.0, 2.0]))
    V = state_values(table, policy) @ np.array([1.0, 2.0])
    for shift in (0.0, 7.0):  # a constant error costs nothing
        step = model.greedy(model.utilities @ np.array([1.0, 2.0]), V + shift, policy.table.astype(np.int32), 0.0)
        high = model.discount.bracket(step.low, step.high, 30.0).high
        assert float(model.rho @ step.values + high) == pytest.approx(best @ [1.0, 2.0], abs=1e-11)


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=60)
@given(NUMBERED, st.sampled_from([0.0, 0.9, 0.999]), st.booleans())
def test_limits_of_a_policy_hold_at_every_state(seed: int, gamma: float, even: bool) -> None:
    table = random_table(seed, m=2, gamma=gamma) if even else uneven_table(seed, gamma)
    model, rng = model_of(table), np.random.default_rng(seed)
    S, H = model.num_states, model.discount.horizon
    actions = rng.integers(0, table.num_actions, S).astype(np.int32)
    V, q, new = H * rng.random((S, 3)), np.array([1.0, 0.5, 3.0]), np.empty((S, 3))
    low, high = model.chain(actions).sweep(V, q, new)
    limits = model.discount.bracket(low, high, np.array([H, H, H, 4.5 * H]))
    truth = state_values(table, TabularPolicy.deterministic(actions, table.num_actions))
    truth, new = np.column_stack([truth, truth @ q]), np.column_stack([new, new @ q])
    rounding = 1e-12 * H  # of the factorisation that gave the truth
    assert np.all(truth <= new + limits.high + rounding) and np.all(truth >= new + limits.low - rounding)


def test_uneven_rows_are_reckoned_with() -> None:
    """One state that leads to itself with "probability" 1 + 9e-10: V = u/(1 − γ(1 + 9e-10)), not u·H.

    From the guess 10⁶ the first limits contain it; those for rows that sum to one miss by 10³·H²·9e-10 = 0.9.
    """
    P = scipy.sparse.csr_array(np.array([[1 + 9e-10]]))
    table = Table.of(P, [[1.0]], [[[1.0]]], [0.0], gamma=0.999, rho=[1.0], reward_range=(0.0, 1.0))
    model = model_of(table)
    assert model.discount.uneven == pytest.approx(9e-10, rel=1e-6)
    new = np.empty((1, 2))
    low, high = model.chain(np.zeros(1, dtype=np.int32)).sweep(np.full((1, 2), 1e6), np.ones(2), new)
    truth = 1 / (1 - 0.999 * (1 + 9e-10))
    honest, blind = (
        new[0, 0] + np.array(d.bracket(low, high, 1e6))[:, 0] for d in (model.discount, Discount(0.999, 0))
    )
    assert honest[0] <= truth <= honest[1]
    assert abs(blind - truth).min() == pytest.approx(0.9, rel=0.01)


def test_utilities_are_the_problem_s() -> None:
    for compiled in (False, True):
        table = random_table(1, m=3)
        model = Model.of(table, table.problem(), compiled=compiled)
        np.testing.assert_array_equal(model.utilities, table.utilities())
        assert model.P.indices.dtype == np.int32
