from __future__ import annotations

import contextlib
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from instances.zoo.zoo_checks import fit, optimum
from saddleback.errors import InputError
from saddleback.instances.zoo import _building, make
from saddleback.instances.zoo.garnet import _distinct_columns
from saddleback.problem.numerics import rounded


@settings(derandomize=True, deadline=None, max_examples=25)
@given(S=st.integers(1, 30), A=st.integers(1, 4), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_every_row_has_its_successors(S: int, A: int, share: float, seed: int) -> None:
    k = 1 + round(share * (S - 1))
    table = make("garnet", states=S, actions=A, successors=k, seed=seed).table
    assert table is not None
    assert np.all(np.diff(table.P.indptr) == k)
    assert table.P.has_canonical_format  # sorted and distinct
    np.testing.assert_allclose(table.P.sum(axis=1), 1.0, rtol=1e-13)


def test_successors_are_uniform_subsets() -> None:
    """60,000 draws of 2 of 5, one chi-square test at 1e-6, and a biased draw that fails it."""
    rng = np.random.default_rng(np.random.SeedSequence(3))
    subsets = {pair: i for i, pair in enumerate(combinations(range(5), 2))}

    def p_value(rows: np.ndarray) -> float:
        counts = np.zeros(10)
        for pair in np.sort(rows, axis=1):
            counts[subsets[tuple(pair)]] += 1
        return fit(counts, np.full(10, 0.1))

    assert p_value(_distinct_columns(60_000, 5, 2, rng)) > 1e-6
    biased = rng.choice(5, size=(60_000, 2), p=[0.22, 0.195, 0.195, 0.195, 0.195])
    assert p_value(biased[biased[:, 0] != biased[:, 1]]) < 1e-6


def test_threshold_is_midway() -> None:
    instance = make("garnet", states=20, actions=3, gamma=0.8, seed=4)
    table, known = instance.table, instance.known
    assert table is not None
    middle = rounded((known["unconstrained_c1"] + known["best_c1"]) / 2, 10)
    assert table.thresholds[0] == pytest.approx(middle, rel=1e-12)
    assert known["best_c1"] == pytest.approx(optimum(table, table.constraints[0], constrained=False).value, rel=1e-8)
    assert known["zeta"] == pytest.approx((known["best_c1"] - known["unconstrained_c1"]) / 2, rel=1e-9)


def test_seed_decides_the_table() -> None:
    tables = [make("garnet", seed=s, constraints=2).table for s in (1, 1, 2)]
    assert all(t is not None for t in tables)
    first, again, other = tables
    assert (first.P != again.P).nnz == 0 and np.array_equal(first.thresholds, again.thresholds)  # type: ignore[union-attr]
    assert (first.P != other.P).nnz > 0 and first.names == ("c1", "c2")  # type: ignore[union-attr]


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 20])
def test_large_tables_stay_within_the_predicted_memory(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    S, A = 10_000, 4
    tracemalloc.start()
    try:
        instance = make("garnet", states=S, actions=A, successors=k)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert instance.table is not None and instance.table.P.nnz == S * A * k
    for limit, accepted in ((2.5 * peak, True), (peak, False)):  # what is let through takes less than the limit
        monkeypatch.setattr(_building, "MEMORY_LIMIT", limit)
        with contextlib.nullcontext() if accepted else pytest.raises(InputError, match="GiB"):
            make("garnet", states=S, actions=A, successors=k)
