"""Faults of the problem and of the request: what a run says that cannot give what was asked, and never a number beside it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import highspy
import numpy as np
import pytest

from helpers import random_table
from saddleback import InputError, Status, Table
from saddleback.errors import NumericalError
from saddleback.exact import policy_values, solve_exactly
from saddleback.problem.policies import TabularPolicy
from spelled_out import solve


def solved(table: Table, **more: Any) -> Any:
    return solve(table.problem(), table.simulator(), **({"samples": 20_000, "seed": 1} | more))


def with_features(table: Table, phi: np.ndarray) -> Table:
    return dataclasses.replace(table, phi=phi)


def test_features_that_repeat_others_are_reported_with_rank_and_condition() -> None:
    """Rank two of three, and nearly so: no ridge is added, and the answers are those of the features that do not repeat."""
    table = random_table(3, S=20, A=3, d=3)
    assert table.phi is not None
    plain = solved(table)
    assert plain.settings["rank"] == 3 and 1 <= plain.settings["condition"] < 1e4
    assert not any("rank" in remark.text for remark in plain.remarks)
    twice = solved(with_features(table, np.concatenate([table.phi, table.phi[..., :1]], axis=2)))
    assert twice.settings["rank"] == 3
    assert any(
        "the 4 features have rank 3" in remark.text and "condition number" in remark.text for remark in twice.remarks
    )
    assert twice.value == pytest.approx(plain.value, rel=1e-6)
    nearly = table.phi[..., :1] + 1e-6 * np.random.default_rng(0).random((20, 3, 1))
    close = solved(with_features(table, np.concatenate([table.phi, nearly], axis=2)))
    assert close.settings["rank"] == 4 and close.settings["condition"] > 1e8
    assert any("nearly repeat one another: rank 4, condition number" in remark.text for remark in close.remarks)


@pytest.mark.parametrize("off", [2e-9, -1e-3])
def test_a_row_that_is_no_distribution_is_refused_by_name_and_sum(off: float) -> None:
    table = random_table(1)
    P = table.P.toarray().reshape(6, 3, 6)
    P[2, 1] *= 1 + off
    parts = (table.reward, table.constraints, table.thresholds)
    with pytest.raises(InputError, match=r"P\[state 2, action 1\].*sum to 1.*got (1.000000002|0.999)"):
        Table.of(P, *parts, gamma=0.8, rho=table.rho)
    P /= P.sum(axis=-1, keepdims=True)  # at the user's wish
    assert Table.of(P, *parts, gamma=0.8, rho=table.rho).num_states == 6


def test_an_infeasible_threshold_is_refused_with_what_is_reachable() -> None:
    table = dataclasses.replace(random_table(1), thresholds=np.array([4.9]))
    answer = solved(table, samples=60_000, certificate=60_000)
    best = -solve_exactly(table).max_slack
    assert answer.status is Status.INFEASIBLE and answer.mixture is None and answer.value is None
    assert answer.max_slack == pytest.approx(-best, abs=0.05) and "the best found" in answer.message
    assert answer.certificate.infeasible, "and it is proved"
    beyond = solved(dataclasses.replace(table, thresholds=np.array([5.1])))
    assert beyond.status is Status.INFEASIBLE and "is at most 5;" in beyond.message and beyond.samples == 0


def test_too_little_room_is_undecided_and_says_what_would_settle_it() -> None:
    """The threshold lies 0.02 below what is reachable; with as many samples as the first run foresees the second finds out."""
    table = random_table(1)
    reachable = 4.9 + solve_exactly(dataclasses.replace(table, thresholds=np.array([4.9]))).max_slack
    tight = dataclasses.replace(table, thresholds=np.array([reachable - 0.02]))
    answer = solved(tight, samples=2_000, feasibility="strict")
    times = answer.verdict.times
    assert answer.status is Status.UNDECIDED and times is not None and 1.5 <= times[0] < times[1] <= 100 * times[0]
    assert f"{times[0]:.2g} to {times[1]:.2g} times as many samples should settle it" in answer.message
    assert solved(tight, samples=int(2_000 * times[1]), feasibility="strict").status is not Status.UNDECIDED
    edge = dataclasses.replace(table, thresholds=np.array([reachable]))
    assert solved(edge, samples=2_000, feasibility="strict").status is Status.UNDECIDED


def test_a_multiplier_at_its_cap_is_no_convergence() -> None:
    table = random_table(1)
    table = dataclasses.replace(table, thresholds=np.array([best_constraint(table) - 0.1]))
    literal = {"mode": "literal", "iterations": 100, "samples": 20_000}
    answer = solved(table, **literal, upper=1e-3)
    assert answer.status is Status.UNDECIDED
    assert "stayed at its cap U = 0.001" in answer.message and "has not converged" in answer.message
    assert "cap" not in solved(table, **literal).message


def test_ties_and_inactive_constraints_have_one_answer() -> None:
    """All actions alike: the lowest, every time. A threshold that binds nothing has no price. One that lies between two
    policies is met by their mixture."""
    table = random_table(2)
    cycle = np.zeros((6, 3, 6))
    cycle[np.arange(6), :, (np.arange(6) + 1) % 6] = 1  # known to the last bit after one sample: ties are exact
    flat = (np.ones((6, 3)), np.ones((1, 6, 3)), np.array([1.0]))
    ranges = {"reward_range": (0.0, 1.0), "ranges": ((0.0, 1.0),)}
    tied = solved(Table.of(cycle, *flat, gamma=0.8, rho=table.rho, **ranges))
    assert tied.multipliers == (0.0,) and len(tied.members) == 1
    assert np.all(tied.mixture.members[0].act(np.arange(6), np.random.default_rng(0)) == 0)
    loose = [solved(dataclasses.replace(table, thresholds=np.array([0.1]))) for _ in range(2)]
    assert loose[0].multipliers == (0.0,) and len(loose[0].members) == 1
    assert loose[0].to_json() == loose[1].to_json()
    between = solved(dataclasses.replace(table, thresholds=np.array([best_constraint(table) - 0.15])), samples=200_000)
    assert between.status is Status.SOLVED and len(between.members) == 2 and between.constraints[0].slack >= 0


def best_constraint(table: Table) -> float:
    return 4.99 + solve_exactly(dataclasses.replace(table, thresholds=np.array([4.99]))).max_slack


def test_too_few_samples_are_labelled_and_nothing_is_shrunk() -> None:
    answer = solved(random_table(1), samples=3_000, delta=0.01)
    assert "(no a-priori guarantee)" in answer.message and answer.settings["delta"] == 0.01
    assert any(remark.text.startswith("no a-priori guarantee") for remark in answer.remarks)
    short = solved(random_table(1), samples=None, epsilon=1e-3, max_samples=30_000)
    assert short.status is Status.BUDGET_EXHAUSTED and "an accuracy of 0.001 was not proved" in short.message
    assert short.settings["epsilon"] == 1e-3


SHORT_OF_MEMORY = """
import resource, sys
from saddleback import cli, solve, zoo
instance = zoo.make("garnet")
solve(instance.problem, instance.simulator, samples=10_000)  # everything is loaded
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 40_000_000,) * 2)
cli.main(["solve", "garnet", "--samples", "30000000"])
"""


@pytest.mark.slow
def test_a_process_without_memory_ends_with_one_message() -> None:
    """A real limit, well below what the samples take."""
    command = [sys.executable, "-c", SHORT_OF_MEMORY]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode in (2, 5), ended.stderr
    assert ended.stderr.startswith("error: ") and ended.stderr.count("\n") == 1 and "memory" in ended.stderr


def test_what_is_solved_inaccurately_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values and residuals are computed on the original data: a program that is solved badly costs no digit of the answer,
    which carries its gap, and where the equations themselves cannot be solved there is no number."""
    table = random_table(4, S=12, A=4)
    answer = solve_exactly(table)
    assert answer.status == "optimal" and 0 <= answer.gap < 1e-6
    honest = highspy.Highs.getSolution

    def sloppy(self: Any) -> Any:
        found = honest(self)
        found.col_value = [x * (1 + 1e-3) for x in found.col_value]
        return found

    monkeypatch.setattr(highspy.Highs, "getSolution", sloppy)
    again = solve_exactly(table)
    assert again.value == pytest.approx(answer.value, abs=1e-9) and again.gap < 1e-6
    slow = dataclasses.replace(table, gamma=1 - 1e-15)
    with pytest.raises((NumericalError, InputError)):
        policy_values(slow, TabularPolicy.deterministic(np.zeros(12, dtype=np.int64), 4))
