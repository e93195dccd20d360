"""Ends, successors and totals in problem files and table files: what they say becomes the problem, and comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import ending_table
from saddleback import InputError, load_table, save_table
from saddleback.instances.problem_file import load_problem
from saddleback.problem.digest import problem_digest
from saddleback.simulators.table import Table

LADDER = """\
gamma = 0.99
states = 7
actions = 2
start = 0
terminal = [5, 6]
successors = "ladder:followers"

[simulator]
function = "ladder:step"

[reward]
values = "observed"
range = [0, 1]
total = [0, 1]

[[constraints]]
name = "falls"
values = "observed"
range = [0, 1]
total = [0, 1]
limit = "<= 0.3"
units = "discounted"
"""
CODE = """\
def step(s, a, rng):
    up, fall = ((0.6, 0.08), (0.25, 0.02))[a]
    u = rng.random()
    if u < up:
        return s + 1, float(s == 4), 0.0
    return (6, 0.0, 1.0) if u > 1 - fall else (s, 0.0, 0.0)


def followers(s, a):
    return [s] if s >= 5 else [s, s + 1, 6]


def is_over(s):
    return s >= 5
"""


def loaded(folder: Path, old: str = "", new: str = "") -> Any:
    assert old in LADDER
    (folder / "ladder.py").write_text(CODE)
    (folder / "ladder.toml").write_text(LADDER.replace(old, new, 1) if old else LADDER)
    return load_problem(folder / "ladder.toml").problem


def test_a_problem_file_declares_them(tmp_path: Path) -> None:
    problem = loaded(tmp_path)
    assert np.flatnonzero(problem.ended(np.arange(7))).tolist() == [5, 6]
    assert problem.reward_total == problem.constraints[0].total == (0.0, 1.0)
    assert problem.successors.toarray()[0].tolist() == [1, 1, 0, 0, 0, 0, 1]
    by_function = loaded(tmp_path, "terminal = [5, 6]", 'terminal = "ladder:is_over"')
    assert problem_digest(by_function) == problem_digest(problem)


@pytest.mark.parametrize(
    ("old", "new", "where", "rule"),
    [
        ("terminal = [5, 6]", "terminal = [9]", ":5: terminal", "must lie in the state space"),
        ("terminal = [5, 6]", "terminal = 5.5", ":5: terminal", "must be a list of states"),
        ("terminal = [5, 6]", 'terminal = "terminated"', ":5: terminal", "must name states"),
        ('"ladder:followers"', "3", ":6: successors", "must be a function or lists"),
        ("total = [0, 1]", "total = [1, 2]", ":14: reward.total", "must be [least, most]"),
        ("total = [0, 1]\nlimit", "total = [0]\nlimit", ":20: constraints[0].total", "must be [least, most]"),
        ("total = [0, 1]", "totals = [0, 1]", ":14: reward.totals", "must be a known key"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, old: str, new: str, where: str, rule: str) -> None:
    with pytest.raises(InputError) as error:
        loaded(tmp_path, old, new)
    assert where in error.value.name and rule in error.value.rule and error.value.remedy


def test_a_table_file_gives_them_back(tmp_path: Path) -> None:
    table = ending_table(declares_successors=True)
    save_table(table, tmp_path / "ladder.npz")
    again = load_table(tmp_path / "ladder.npz")
    assert problem_digest(again.problem()) == problem_digest(table.problem())
    assert again.terminal is not None and again.terminal.tolist() == [False] * 5 + [True] * 2
    assert again.reward_total == (0.0, 1.0) and again.totals == ((0.0, 1.0),) and again.declares_successors
    partly = ending_table(totals=None, reward_total=None)
    save_table(partly, tmp_path / "partly.npz")
    assert load_table(tmp_path / "partly.npz").totals is None


def test_a_table_must_stay_in_its_ends() -> None:
    P, nothing = np.full((2, 1, 2), 0.5), np.array([[1.0], [0.0]])
    with pytest.raises(InputError, match=r"P\[state 1, action 0\].*must stay in terminal states"):
        Table.of(P, nothing, nothing[None], [1.0], gamma=0.9, rho=[1.0, 0.0], terminal=np.array([False, True]))
