"""The same problem through each adapter: the same samples for the same seed, and the same answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from saddleback.sampling.executors.joblib import Joblib
from saddleback.simulators import Table, from_gymnasium
from saddleback.simulators.generative_model import GenerativeModel, Stream, generator
from saddleback.solving.solution import Solution
from simulators.one_problem import (
    KNOWN,
    OBSERVED,
    TABLES,
    lake_table,
    lake_told,
    observed,
    plain_lake,
    queue_table,
    sorted_lake,
)
from spelled_out import solve

SEED = 20
FALSE_ALARM = 1e-6  # of each chi-square test below


def draws(model: GenerativeModel, num_states: int, num_actions: int) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """A block of every pair, and one draw of all pairs in disorder."""
    pairs = np.arange(num_states * num_actions)
    asked = [(np.full(200, p), generator(SEED, Stream.SOLVER, int(p), 0)) for p in pairs]
    mixed = np.random.default_rng(SEED).permutation(np.repeat(pairs, 30))
    asked.append((mixed, generator(SEED, Stream.EVALUATION, 0, 0)))
    found = [model.sample(p // num_actions, p % num_actions, rng) for p, rng in asked]
    return [(d.next_states, d.signals) for d in found]


def answer(solution: Solution) -> list[float]:
    return [float(solution.value), *(float(c.value) for c in solution.constraints)]


def same_table(told: Table, table: Table) -> None:
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(told.P, name), getattr(table.P, name))
    np.testing.assert_array_equal(told.reward, table.reward)
    np.testing.assert_array_equal(told.constraints, table.constraints)
    np.testing.assert_array_equal(told.rho, table.rho)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["queue", "lake"])
@pytest.mark.parametrize("way", TABLES)
def test_tables_are_the_same_to_the_last_bit(way: str, problem: str, tmp_path: Path) -> None:
    table = queue_table() if problem == "queue" else lake_table()
    told = TABLES[way](table, tmp_path)
    same_table(told, table)
    size = (table.num_states, table.num_actions)
    for (one, _), (other, _) in zip(draws(told.simulator(), *size), draws(table.simulator(), *size), strict=True):
        np.testing.assert_array_equal(one, other)
    samples = 400 * size[0] * size[1]
    answers = [answer(solve(t.problem(), t.simulator(), samples=samples, seed=SEED)) for t in (told, table)]
    assert answers[0] == answers[1]


@pytest.mark.slow
@pytest.mark.parametrize("way", KNOWN)
def test_simulators_draw_what_the_table_draws(way: str) -> None:
    table = queue_table()
    size = (table.num_states, table.num_actions)
    for (one, signals), (other, _) in zip(draws(KNOWN[way](), *size), draws(table.simulator(), *size), strict=True):
        np.testing.assert_array_equal(one, other)
        assert signals is None
    problem = table.problem()
    answers = [answer(solve(problem, m, samples=8800, seed=SEED)) for m in (KNOWN[way](), table.simulator())]
    assert answers[0] == answers[1]


@pytest.mark.slow
@pytest.mark.parametrize("way", OBSERVED)
def test_observed_signals_are_those_of_the_table(way: str) -> None:
    table = queue_table()
    size = (table.num_states, table.num_actions)
    signals_SA = np.stack([table.reward, table.constraints[0]], axis=-1).reshape(-1, 2)
    drawn = draws(OBSERVED[way](), *size)
    for pair, ((one, signals), (other, _)) in enumerate(zip(drawn, draws(table.simulator(), *size), strict=True)):
        np.testing.assert_array_equal(one, other)
        assert signals is not None
        if pair < len(signals_SA):
            np.testing.assert_array_equal(signals, np.broadcast_to(signals_SA[pair], signals.shape))
    seen = answer(solve(observed(table), OBSERVED[way](), samples=8800, seed=SEED))
    np.testing.assert_allclose(
        seen, answer(solve(table.problem(), table.simulator(), samples=8800, seed=SEED)), rtol=1e-9
    )


def test_an_environment_with_a_table_s_order_draws_what_the_table_draws() -> None:
    """Walks that end go to state 16 here and stay where they ended in the table; nothing else differs."""
    table, model = lake_table(), from_gymnasium(sorted_lake)
    over = np.flatnonzero([stays(table, s) for s in range(16)])
    assert over.tolist() == OVER
    for pair in range(64):
        s, a = divmod(pair, 4)
        if s in over:
            continue
        pairs = np.full(300, s), np.full(300, a)
        one = model.sample(*pairs, generator(SEED, 0, pair, 0))
        other = table.simulator().sample(*pairs, generator(SEED, 0, pair, 0)).next_states
        np.testing.assert_array_equal(one.next_states, np.where(np.isin(other, over), 16, other))
        assert one.signals is not None
        np.testing.assert_array_equal(one.signals[:, 0], other == 15)
        np.testing.assert_array_equal(one.signals[:, 1], np.full(300, 1.0 if a == 3 else 0.25))


def stays(table: Table, s: int) -> bool:
    return all(table.P[[s * 4 + a], [s]][0] == 1.0 for a in range(4))


@pytest.mark.slow
def test_the_lake_s_answer_is_the_same_through_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples are the same, pair by pair, but for the pairs of walks that are over, which are certain in both.

    Holes are never reached there, since a walk that is over is in state 16, and would go without samples, which others get;
    and two holes are one next state there, so that other actions do the same. Both are left out of it.
    """
    monkeypatch.setattr("saddleback.solving.prepare.may_skip", lambda *_: False)
    monkeypatch.setattr("saddleback.solving.prepare.ties_of", lambda *_: None)
    table = lake_table()
    told = lake_told(np.vstack([table.reward, np.zeros((1, 4))]), np.vstack([table.constraints[0], np.zeros((1, 4))]))
    known = answer(solve(table.problem(), table.simulator(), samples=64 * 1000, seed=SEED, allocation="equal"))
    seen = answer(
        solve(told, from_gymnasium(sorted_lake, signals=()), samples=68 * 1000, seed=SEED, allocation="equal")
    )
    np.testing.assert_allclose(seen, known, rtol=1e-9)
    assert known[0] > 0.01


def statistic(model: GenerativeModel, P: np.ndarray, pair: int, over: list[int]) -> tuple[float, float]:
    """Pearson's statistic of draws of the environment against P, endings taken together, and its critical value."""
    n = 20_000
    s, a = divmod(pair, 4)
    drawn = model.sample(np.full(n, s), np.full(n, a), generator(SEED, 0, pair, 0)).next_states
    p = np.append(P[pair], P[pair, over].sum())
    p[over] = 0.0
    counts = np.bincount(drawn, minlength=17)
    assert counts[p == 0].sum() == 0
    expected = n * p[p > 0]
    value = float(((counts[p > 0] - expected) ** 2 / expected).sum())
    return value, float(chi2.isf(FALSE_ALARM, (p > 0).sum() - 1))


PAIRS = [0, 4 * 6 + 1, 4 * 14 + 2]
OVER = [5, 7, 11, 12, 15]


@pytest.mark.slow
def test_an_environment_in_its_own_order_follows_the_same_law() -> None:
    """Gymnasium lists outcomes by direction, a table by state: the samples differ, their law does not."""
    P = lake_table().P.toarray()
    model = from_gymnasium(plain_lake)
    for pair in PAIRS:
        value, critical = statistic(model, P, pair, OVER)
        assert value < critical
    pairs = np.full(200, 14), np.full(200, 2)
    one, other = (m.sample(*pairs, generator(SEED, 0, 0, 0)) for m in (model, lake_table().simulator()))
    assert not np.array_equal(one.next_states == 14, other.next_states == 14)


def test_another_law_is_noticed() -> None:
    """The negative control: less slippery ice."""
    P = lake_table().P.toarray()
    model = from_gymnasium("FrozenLake-v1", map_name="4x4", success_rate=0.38, signals=())
    value, critical = statistic(model, P, PAIRS[1], OVER)
    assert value > critical


@pytest.mark.slow
def test_worker_processes_draw_the_same() -> None:
    """An environment made anew in two workers: the answer of one process."""
    table = lake_table()
    told = lake_told(np.vstack([table.reward, np.zeros((1, 4))]), np.vstack([table.constraints[0], np.zeros((1, 4))]))
    model = from_gymnasium("FrozenLake-v1", map_name="4x4", signals=())
    answers = [answer(solve(told, model, samples=8000, seed=SEED, executor=e)) for e in (None, Joblib(2))]
    assert answers[0] == answers[1]
