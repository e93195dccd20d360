"""The comparison: every method once a setting, numbers where they mean something, ranges where they do not."""

from __future__ import annotations

import math

import pytest

from saddleback.errors import InputError
from saddleback.theory import comparison, plan
from saddleback.theory.paper_rates import COMPARATORS, linear_parameters, lower_bound, tabular_parameters

HARD = {"gamma": 0.9, "zeta": 0.02, "threshold": 5.0, "dimension": 6}
EASY = {"gamma": 0.8, "zeta": 1.0, "threshold": 2.5, "dimension": 5, "num_pairs": 60}


def find(rows, start: str, setting: str):
    (row,) = [r for r in rows if r.method.startswith(start) and r.setting == setting]
    return row


def test_numbers_are_those_of_the_functions() -> None:
    rows = comparison(0.03, 0.05, **EASY)
    rest = {"zeta": 1.0, "threshold": 2.5, "horizon": 1 / (1 - 0.8)}
    for setting in ("relaxed", "strict"):
        ours = plan(0.03, 0.05, kind="linear", gamma=0.8, zeta=1.0, feasibility=setting, dimension=5)
        assert find(rows, "plan, column-generation, linear", setting).samples == ours.samples
        theirs = tabular_parameters(0.03, 0.05, num_pairs=60, **rest, feasibility=setting)
        assert find(rows, "the paper's corollary, tabular", setting).samples == theirs.samples
        theirs = linear_parameters(0.03, 0.05, dimension=5, **rest, feasibility=setting)
        assert find(rows, "the paper's corollary, linear", setting).samples == theirs.samples
    assert find(rows, "Weisz", "unconstrained").samples == pytest.approx(25 * 5**3 / 0.03**2)
    assert find(rows, "Vaswani", "strict").samples == pytest.approx(60 * 5**5 / 0.03**2)


def test_rows_out_of_range_hold_the_range() -> None:
    rows = comparison(0.5, 0.1, **EASY)
    row = find(rows, "the paper's corollary, tabular", "relaxed")
    assert row.samples is None
    assert row.remark == "epsilon must lie in (0, 1/H²] = (0, 0.04]"
    assert find(rows, "the paper's lower bound", "strict").remark == "delta must lie in (0, 0.08]"
    assert find(rows, "Hong", "relaxed").remark == "rate must state its power of H"
    rows = comparison(0.001, 0.05, **HARD)
    assert find(rows, "Vaswani", "relaxed").remark == "needs num_pairs"
    assert find(rows, "plan, projected-descent, linear", "strict").remark.startswith("epsilon must lie in [0.025, H]")
    H = 1 / (1 - 0.9)
    bound = lower_bound(0.001, 0.05, dimension=6, horizon=H, zeta=0.02, threshold=5.0)
    assert find(rows, "the paper's lower bound", "strict").samples == bound


def test_order_and_labels() -> None:
    rows = comparison(0.5, 0.1, **EASY)
    assert len(rows) == 13 + len(COMPARATORS)
    order = ["relaxed", "strict", "unconstrained"]
    keys = [(order.index(r.setting), math.inf if r.samples is None else r.samples) for r in rows]
    assert keys == sorted(keys)
    for row in rows:
        assert row.label == ("rigorous" if row.method.startswith("plan") else "heuristic")
        assert (row.samples is None) == bool(row.remark)


def test_rows_print_in_columns() -> None:
    lines = [str(row) for row in comparison(0.5, 0.1, **EASY)]
    assert len({line.index("rigorous" if "rigorous" in line else "heuristic") for line in lines}) == 1
    assert any(line.endswith("rigorous   3e+08") for line in lines)


def test_arguments_out_of_range_are_named() -> None:
    with pytest.raises(InputError, match="`dimension, num_pairs` must not both be left out"):
        comparison(0.5, 0.1, gamma=0.8, zeta=1.0, threshold=1.0)
    with pytest.raises(InputError, match=r"`gamma` must lie in \[0, 1\), got 1"):
        comparison(0.5, 0.1, **{**EASY, "gamma": 1})
