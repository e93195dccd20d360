"""Every benchmark in a small form: its calls are right and what it compares agrees; the ratios are those of `make bench` alone."""

from __future__ import annotations

import math

import pytest
from benchmarks.__main__ import MODULES, main
from benchmarks.timing import Row

from benchmarks import (
    command,
    design,
    exact_solve,
    literal_loop,
    ls_mdvi,
    rollout_steps,
    sampling,
    streaming,
    trade_off,
)

SMALL = {
    design: {"N": 500, "D": 4, "REPEATS": 1},
    literal_loop: {"STATES": 20, "SAMPLES": 4_000, "T": 10, "K": 3},
    ls_mdvi: {"S": 200, "A": 3, "d": 4, "C": 12, "T": 5, "M": 40, "K": 3},
    rollout_steps: {"PROBLEMS": ("wireless",), "HALF_WIDTH": 1.0, "SAMPLES": 4_000, "ROLLOUTS": 2_000},
    streaming: {"C": 12, "T": 4, "M": 20},
    trade_off: {"PROBLEMS": (("garnet", {"states": 20}),), "SAMPLES": 20_000},
}
SLOW = (ls_mdvi, trade_off)


def fair(rows: list[Row]) -> bool:
    return len(rows) > 0 and all(row.name and math.isfinite(row.ratio) and row.ratio > 0 for row in rows)


@pytest.mark.parametrize(
    "module",
    [pytest.param(m, id=m.__name__, marks=[pytest.mark.slow] if m in SLOW else []) for m in SMALL],
)
def test_small_form(module, monkeypatch):
    for name, value in SMALL[module].items():
        monkeypatch.setattr(module, name, value)
    assert fair(module.rows())


def test_exact_solve():
    assert fair([exact_solve.against_highs(30, 1.0, 1.0, rounds=1)])
    assert exact_solve.measure(200, 1)["ratio"] > 0


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(sampling, "SAMPLES", 2_000)
    monkeypatch.setattr(sampling, "tasks", lambda source, samples, tasks=sampling.tasks: tasks(source, 50))
    monkeypatch.setattr(sampling, "ratio", lambda ours, reference, repeats, r=sampling.ratio: r(ours, reference, 1))


def test_sampling_in_one_process(few):
    assert fair([sampling.vectorised_serially(), *sampling.kept_samples()])


@pytest.mark.slow
def test_a_kept_solve(few):
    assert fair([sampling.kept_solve()])


@pytest.mark.check
def test_sampling_in_two_processes(monkeypatch):
    monkeypatch.setattr(sampling, "tasks", lambda source, samples, tasks=sampling.tasks: tasks(source, 2))
    assert fair([sampling.burning(), sampling.vectorised_in_two_workers(), sampling.heavier_in_two_workers()])


@pytest.mark.check
def test_command(monkeypatch):
    monkeypatch.setattr(command, "REPEATS", 1)
    assert fair([command.front_page(), command.start("check wireless")])


def test_modules_by_name(monkeypatch, capsys):
    for name, value in SMALL[literal_loop].items():
        monkeypatch.setattr(literal_loop, name, value)
    assert main(["literal_loop"]) in (0, 1)
    assert "literal solve, T=10" in capsys.readouterr().out
    assert {m.__name__ for m in MODULES} == {m.__name__ for m in (*SMALL, command, exact_solve, sampling)}
