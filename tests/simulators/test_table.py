"""The known table: its checks, and whether its samples follow P."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import chi2

from saddleback.errors import InputError
from saddleback.simulators import BY_NAME
from saddleback.simulators.table import Table, TableSampler, transition_matrix

FALSE_ALARM = 1e-6  # of each chi-square test below


def parts(seed: int = 0, S: int = 6, A: int = 2) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "P": rng.dirichlet(np.full(S, 0.7), size=(S, A)),
        "reward": rng.normal(size=(S, A)),
        "constraints": rng.normal(size=(1, S, A)),
        "thresholds": [0.0],
        "gamma": 0.9,
        "rho": rng.dirichlet(np.ones(S)),
    }


def uneven() -> scipy.sparse.csr_array:
    """Rows of 1, 2, 3 … 6 entries, with zeros stored at both ends of some."""
    rng = np.random.default_rng(4)
    dense = np.zeros((6, 40))
    for row in range(6):
        dense[row, rng.choice(40, row + 1, replace=False)] = rng.dirichlet(np.ones(row + 1))
    matrix = scipy.sparse.csr_array(dense)
    matrix.data[[1, 20]] = 0.0  # the first entry of row 1 and the last of row 5
    matrix.data[2], matrix.data[19] = 1.0, matrix.data[19] + dense[5].sum() - matrix.data[15:].sum()
    return matrix


def statistic(sampler: TableSampler, P: np.ndarray, pair: tuple[int, int], n: int, mixed: bool) -> tuple[float, float]:
    """Pearson's statistic of ``n`` draws at one pair against P, and its critical value."""
    rng = np.random.default_rng(np.random.SeedSequence([7, *pair, mixed]))
    states, actions = np.full(n, pair[0]), np.full(n, pair[1])
    if mixed:  # a stranger among the pairs: the general search instead of the one for a single row
        states, actions = np.append(states, 0), np.append(actions, 1 - actions[0] if pair[0] == 0 else 0)
    drawn = sampler(states, actions, rng)[:n]
    p = P[pair]
    counts = np.bincount(drawn, minlength=len(p))
    assert counts[p == 0].sum() == 0
    expected = n * p[p > 0]
    assert expected.min() > 20
    return float(((counts[p > 0] - expected) ** 2 / expected).sum()), float(chi2.isf(FALSE_ALARM, (p > 0).sum() - 1))


@pytest.mark.parametrize("mixed", [False, True])
def test_samples_follow_p(mixed: bool) -> None:
    table = Table.of(**parts())
    P = table.P.toarray().reshape(6, 2, 6)
    for pair in [(0, 0), (2, 1), (5, 1)]:
        value, critical = statistic(TableSampler(table.P, 2), P, pair, 200_000, mixed)
        assert value < critical


def test_samples_of_another_table_are_noticed() -> None:
    """The negative control: one hundredth of one row's mass moved between two states."""
    table = Table.of(**parts())
    P = table.P.toarray().reshape(6, 2, 6)
    moved = P.copy()
    order = np.argsort(P[2, 1])
    moved[2, 1, order[-1]] -= 0.01
    moved[2, 1, order[-2]] += 0.01
    value, critical = statistic(TableSampler(transition_matrix(moved, 6, 2), 2), P, (2, 1), 200_000, False)
    assert value > critical


def test_both_searches_draw_the_same_states_and_never_an_impossible_one() -> None:
    matrix = uneven()
    sampler = TableSampler(matrix, 1)
    for row in range(6):
        alone = sampler(np.full(5000, row), np.zeros(5000, dtype=int), np.random.default_rng(row))
        among = sampler(np.append(np.full(5000, row), (row + 1) % 6), np.zeros(5001, int), np.random.default_rng(row))
        np.testing.assert_array_equal(alone, among[:-1])
        assert set(alone.tolist()) == set(np.flatnonzero(matrix.toarray()[row]).tolist())


class Ends:
    """A generator that only draws the two ends of [0, 1)."""

    def random(self, n: int) -> np.ndarray:
        return np.resize([0.0, 1 - 2**-53], n)


def test_the_ends_of_the_unit_interval_draw_possible_states() -> None:
    matrix = uneven()
    sampler, dense = TableSampler(matrix, 1), matrix.toarray()
    for rows in [np.full(4, 5), np.array([1, 1, 5, 5, 0, 0])]:
        drawn = sampler(rows, np.zeros_like(rows), Ends())
        assert np.all(dense[rows, drawn] > 0)


def test_small_probabilities_keep_their_digits() -> None:
    """Behind a thousand rows of mass 1, a probability of 1e-15 is still drawn when its turn comes."""
    dense = np.zeros((1001, 1001))
    dense[:1000, 0] = 1
    dense[1000, 0], dense[1000, 1] = 1 - 1e-15, 1e-15
    drawn = TableSampler(scipy.sparse.csr_array(dense), 1)(np.full(2, 1000), np.zeros(2, int), Ends())
    assert drawn.tolist() == [0, 1]


def test_queries_are_counted_and_repeatable() -> None:
    model = Table.of(**parts()).simulator()
    states, actions = np.repeat(np.arange(6), 10), np.zeros(60, dtype=np.int64)
    one = model.sample(states, actions, np.random.default_rng(1)).next_states
    other = model.sample(states, actions, np.random.default_rng(1)).next_states
    np.testing.assert_array_equal(one, other)
    assert model.num_queries == 120
    assert BY_NAME["table"] is Table


def test_the_problem_knows_everything_but_p() -> None:
    table = Table.of(**parts(), senses=["<="], names=["cost"])
    problem = table.problem()
    assert not hasattr(problem, "P")
    assert (problem.num_states, problem.num_actions, problem.num_constraints) == (6, 2, 1)
    u = table.utilities()
    assert u.shape == (12, 2) and u.min() == 0 and u.max() == 1
    np.testing.assert_allclose(
        u * problem.scale + problem.base, np.stack([table.reward, table.constraints[0]], -1).reshape(12, 2)
    )


def sparse(dense: np.ndarray, **changes: tuple[int, int]) -> scipy.sparse.csr_array:
    """CSR of ``(S, A, S)`` with single entries of its index arrays overwritten."""
    matrix = scipy.sparse.csr_array(dense.reshape(-1, dense.shape[2]))
    for name, (at, value) in changes.items():
        getattr(matrix, name)[at] = value
    return matrix


def with_entry(x: Any, index: Any, value: float) -> np.ndarray:
    x = np.array(x, dtype=float)
    x[index] = value
    return x


BASE = parts()
FAULTS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "row sum": (
        {"P": BASE["P"] * with_entry(np.ones((6, 2, 1)), (4, 1), 0.98)},
        ["P[state 4, action 1]", "sum to 1", "0.98"],
    ),
    "two row sums": ({"P": BASE["P"] * 0.5}, ["P[state 0, action 0]", "12 such rows"]),
    "negative": ({"P": with_entry(BASE["P"], (1, 0, 0), -0.25)}, ["P[state 1, action 0]", "non-negative", "-0.25"]),
    "NaN": ({"P": with_entry(BASE["P"], (3, 1, 2), np.nan)}, ["P[state 3, action 1]", "finite", "nan"]),
    "float32": ({"P": BASE["P"].astype(np.float32)}, ["P", "float64", "float32"]),
    "shape": ({"P": BASE["P"][:, :, :5]}, ["P", "(6, 2, 6)", "(6, 2, 5)"]),
    "sparse shape": ({"P": sparse(BASE["P"])[:10]}, ["P", "(12, 6)", "(10, 6)"]),
    "sparse index": ({"P": sparse(BASE["P"], indices=(7, 60))}, ["P", "well-formed"]),
    "sparse negative index": ({"P": sparse(BASE["P"], indices=(7, -2))}, ["P", "well-formed"]),
    "sparse indptr": ({"P": sparse(BASE["P"], indptr=(3, 40))}, ["P", "well-formed"]),
    "NaN reward": ({"reward": with_entry(BASE["reward"], (5, 0), np.nan)}, ["reward[5, 0]", "finite", "nan"]),
    "float32 reward": ({"reward": BASE["reward"].astype(np.float32)}, ["reward", "float64", "float32"]),
    "reward shape": ({"reward": np.zeros(12)}, ["reward", "(S, A)", "(12,)"]),
    "NaN constraint": (
        {"constraints": with_entry(BASE["constraints"], (0, 2, 1), np.nan)},
        ["constraint-0[2, 1]", "nan"],
    ),
    "constraint shape": ({"constraints": np.zeros((2, 6, 2))}, ["constraints", "(1, 6, 2)", "(2, 6, 2)"]),
    "threshold": ({"thresholds": [np.inf]}, ["constraint-0", "finite threshold", "inf"]),
    "gamma one": ({"gamma": 1.0}, ["gamma", "[0, 1)", "1.0", "horizon"]),
    "gamma negative": ({"gamma": -0.1}, ["gamma", "-0.1"]),
    "gamma NaN": ({"gamma": np.nan}, ["gamma", "nan"]),
    "rho shape": ({"rho": np.ones(5) / 5}, ["rho", "(6,)", "(5,)"]),
    "rho sum": ({"rho": np.ones(6)}, ["rho", "sum to 1", "6.0"]),
    "rho NaN": ({"rho": with_entry(BASE["rho"], 1, np.nan)}, ["rho[1]", "nan"]),
    "phi shape": ({"phi": np.ones((6, 3, 4))}, ["phi", "(6, 2, d)", "(6, 3, 4)"]),
    "phi float32": ({"phi": np.ones((6, 2, 4), np.float32)}, ["phi", "float64", "float32"]),
    "phi NaN": ({"phi": with_entry(np.ones((6, 2, 4)), (1, 0, 3), np.nan)}, ["phi[1, 0, 3]", "nan"]),
    "sense": ({"senses": ["=="]}, ["'=='", "'>=' or '<='"]),
    "senses": ({"senses": [">=", ">="]}, ["senses", "1 entries", "2"]),
    "names": ({"names": []}, ["names", "1 entries", "0"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_names_its_culprit(fault: str) -> None:
    change, words = FAULTS[fault]
    with pytest.raises(InputError) as caught:
        Table.of(**{**parts(), **change})
    for word in [*words, "; "]:
        assert word in str(caught.value)


def test_rows_may_miss_one_by_rounding_only() -> None:
    near = parts()
    near["P"][0, 0] *= 1 + 5e-10
    assert Table.of(**near).P.sum() == pytest.approx(12, abs=1e-8)
    near["P"][0, 0] *= 1 + 5e-9
    with pytest.raises(InputError, match="must sum to 1"):
        Table.of(**near)
