"""A cost that is minimised is the reward −cost in every respect, told in the user's sense: values, limits, bounds, gaps."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

from helpers import random_table
from saddleback import cli, frontier
from saddleback.exact import best_policy, policy_values, solve_by_columns, solve_exactly
from saddleback.files.json_file import as_record
from saddleback.instances.table_file import load_table, save_table
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields
from saddleback.runs.evidence_file import RolloutValues
from saddleback.runs.recheck import recheck
from saddleback.runs.text import print_certificate
from saddleback.simulators.table import Table
from spelled_out import solve

BASE = random_table(1)
EARNED = dataclasses.replace(BASE, reward=4.0 - 3.0 * BASE.reward, reward_range=(1.0, 4.0))
COST = dataclasses.replace(EARNED, minimise=True)
MIRROR = dataclasses.replace(EARNED, reward=-EARNED.reward, reward_range=(-4.0, -1.0))  # COST, as a reward


def solved(table: Table, **more: Any) -> Any:
    return solve(table.problem(), table.simulator(), **{"samples": 40_000, "seed": 3, **more})


def test_utilities_turn_the_cost_round_and_values_turn_it_back() -> None:
    cost, mirror = COST.problem(), MIRROR.problem()
    np.testing.assert_allclose(cost.utilities(*cost.pairs()), mirror.utilities(*mirror.pairs()), atol=1e-14)
    assert cost.objective == "cost" and cost.reward_span == mirror.reward_span == mirror.scale[0] == -cost.scale[0]
    unit = np.array([1.5, 2.0])
    assert cost.values_of(unit)[0] == pytest.approx(-mirror.values_of(unit)[0])
    np.testing.assert_allclose(cost.unit_values_of(cost.values_of(unit)), unit)
    np.testing.assert_allclose(cost.multipliers_of(np.array([2.0])), mirror.multipliers_of(np.array([2.0])))
    assert np.all(cost.multipliers_of(np.array([2.0])) > 0)
    observed = dataclasses.replace(cost, reward=None, reward_range=(1, 4))
    assert observed.utilities_of(np.array([[1.0, 0.0], [4.0, 0.0]]))[:, 0].tolist() == [1.0, 0.0]


@pytest.mark.parametrize("method", [solve_exactly, solve_by_columns])
def test_the_exact_answer_is_the_least_cost(method: Any) -> None:
    cost, mirror, earned = method(COST), method(MIRROR), method(EARNED)
    assert cost.value == pytest.approx(-mirror.value, rel=1e-9) and cost.value < earned.value
    assert cost.gap >= 0 and cost.multipliers == pytest.approx(mirror.multipliers, abs=1e-9)
    cheapest, _ = best_policy(COST, np.array([1.0, 0.0]))
    assert policy_values(COST, cheapest)[0] <= cost.value + 1e-9, "without constraints it is cheaper still"


@pytest.mark.slow
def test_a_solution_and_its_certificate_are_in_the_users_sense() -> None:
    cost, mirror = (solved(table, certificate=100_000) for table in (COST, MIRROR))
    assert cost.value == pytest.approx(-mirror.value, rel=1e-9) and cost.gap == pytest.approx(mirror.gap, abs=1e-9)
    assert [m.value for m in cost.members] == pytest.approx([-m.value for m in mirror.members])
    assert cost.multipliers == pytest.approx(mirror.multipliers)
    ours, theirs = cost.certificate, mirror.certificate
    assert ours.value == pytest.approx((-theirs.value[1], -theirs.value[0])) and ours.value[0] < ours.value[1]
    assert ours.upper_bound == pytest.approx(-theirs.upper_bound), "no policy costs less"
    assert ours.gap == pytest.approx(theirs.gap) and ours.gap == pytest.approx(ours.value[1] - ours.upper_bound)
    assert ours.upper_bound <= solve_exactly(COST).value <= ours.value[1]


def test_a_stored_proof_of_a_cost_checks_out_and_reads_well() -> None:
    found = solved(COST, certificate=100_000)
    fields = certificate_fields(found.certificate, found.problem)
    data = as_record(fields, CertificateRecord, "certificate.json", "look again")
    told = found.certificate.evidence.rollouts
    ends = (np.array(x) for x in (told.low, told.high, told.tail))
    rollouts = RolloutValues(found.certificate.rollout_values, *ends)
    assert all(check.passed for check in recheck(data, rollouts))
    moved = msgspec.structs.replace(data, gap=found.certificate.gap + 0.1)
    assert [c.name for c in recheck(moved, rollouts) if not c.passed] == ["gap"], "the negative control"
    text = io.StringIO()
    print_certificate(Console(file=text, width=200), found.problem, found.certificate)
    assert "cost of the best policy" in text.getvalue() and "at least" in text.getvalue()


@pytest.mark.slow
def test_accuracy_is_asked_and_proved_in_the_users_units() -> None:
    cost, mirror = (solved(table, samples=None, epsilon=1.0, max_samples=2_000_000, seed=0) for table in (COST, MIRROR))
    assert cost.samples == mirror.samples and cost.status == mirror.status
    assert cost.value == pytest.approx(-mirror.value, rel=1e-9) and 0 <= cost.certificate.gap <= 1.0


@pytest.mark.slow
def test_the_frontier_of_a_cost_rises_with_the_threshold() -> None:
    curves = [
        frontier(solved(table), num_points=5).certified(table.simulator(), samples=60_000, seed=9)
        for table in (COST, MIRROR)
    ]
    for ours, theirs in zip(curves[0].points, curves[1].points, strict=True):
        assert ours.value == pytest.approx(-theirs.value) and ours.gap == pytest.approx(theirs.gap, abs=1e-9)
        assert ours.low == pytest.approx(None if theirs.high is None else -theirs.high)
        assert ours.high == pytest.approx(None if theirs.low is None else -theirs.low)
        assert ours.low is None or ours.high is None or ours.low <= ours.high
    values = [p.value for p in curves[0].points]
    assert values == sorted(values), "a stricter floor costs more"


def test_a_table_file_keeps_the_sense(tmp_path: Path) -> None:
    save_table(COST, tmp_path / "cost.npz")
    assert load_table(tmp_path / "cost.npz").minimise is True
    save_table(EARNED, tmp_path / "earned.npz")
    assert load_table(tmp_path / "earned.npz").minimise is False


@pytest.mark.slow
def test_the_command_line_and_the_report_speak_of_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_table(COST, tmp_path / "cost.npz")

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(list(arguments))
        assert not ended.value.code, capsys.readouterr()
        return capsys.readouterr().out

    said = run("solve", "cost.npz", "--samples", "60000", "--out", "run")
    assert "smallest" in said and "cost of the best policy" in said and "largest" not in said
    run("report", "run", "--out", "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "This policy costs" in page and "can cost less than" in page and "smallest" in page
    assert "earns" not in page and "earn more" not in page and "at most" in page
    assert "run" in run("certify", "run", "--recheck")
