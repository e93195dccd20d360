"""Values are shown in the unit that they were given in: one limit, given as a total and per step, wherever numbers are shown."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from helpers import random_table
from report_runs import Reported, reported
from reports.printing import printed, words
from saddleback import InputError, frontier, load_table, save_table
from saddleback.exact import solve_exactly
from saddleback.files.json_file import to_plain
from saddleback.instances.instance import Instance
from saddleback.problem.cmdp import Constraint
from saddleback.problem.criteria import Unit
from saddleback.reports.plots import plot
from saddleback.reports.text import frontier_json, print_check, print_exact, print_frontier
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.targets import load_run_target
from saddleback.runs.text import print_solution
from saddleback.runs.truth import exact_json
from saddleback.runs.words import sentence
from saddleback.simulators.arrays import table_of
from saddleback.simulators.checks import Report
from saddleback.solving.solution import out_of_reach, refutation
from spelled_out import solve

H = 5.0  # of the table below, whose limit is 2 as a total
TOTALS = random_table(1)
PER_STEP = dataclasses.replace(TOTALS, units=("per-step",))
SOLVED = {
    table: solve(table.problem(), table.simulator(), samples=20_000, certificate=40_000) for table in (TOTALS, PER_STEP)
}


def test_a_unit_turns_totals_into_numbers_and_words() -> None:
    unit, total = Unit("per-step", 50.0), Unit("discounted", 50.0)
    assert unit.of(7.5) == pytest.approx(0.15) and unit.total(0.15) == 7.5 and total.of(7.5) == 7.5
    assert unit.price_of(2.0) == 100.0 and unit.limits_of((0.0, 50.0)) == (0.0, 1.0)
    assert unit.say(7.5) == "0.15 per step" and total.say(7.5) == "7.5"
    assert unit.say(7.5, both=True) == "0.15 per step (7.5 as a discounted total)"
    assert total.say(7.5, both=True) == "7.5 (0.15 per step)"


def test_the_unit_changes_nothing_but_what_is_shown() -> None:
    totals, steps = SOLVED[TOTALS], SOLVED[PER_STEP]
    assert steps.value == totals.value and steps.multipliers == totals.multipliers
    assert [c.value for c in steps.constraints] == [c.value for c in totals.constraints]
    assert steps.problem.thresholds.tolist() == totals.problem.thresholds.tolist()


def test_tables_show_the_unit() -> None:
    text = words(printed(print_solution, SOLVED[PER_STEP]))
    (row,), (low, high) = SOLVED[PER_STEP].constraints, SOLVED[PER_STEP].certificate.constraints[0]
    price = SOLVED[PER_STEP].multipliers[0] * H
    assert f"constraint-0 >= 0.4 per step {row.value / H:.4g} {low / H:.4g} to {high / H:.4g}" in text
    assert f" {price:.4g} " in text and "constraint-0 >= 0.4 per step" in text and ">= 2" not in text
    assert "divided by 5: averages in which early steps count most. 0.4 per step is a total of 2." in text
    assert "constraint-0 (>= 0.4 per step)" in text  # the members
    plain = words(printed(print_solution, SOLVED[TOTALS]))
    assert "constraint-0 >= 2" in plain and "per step" not in plain and "Averages over time" not in plain


def test_the_truth_is_shown_in_the_unit() -> None:
    best = solve_exactly(PER_STEP)
    text = words(printed(print_exact, PER_STEP.problem(), best))
    assert f">= 0.4 per step {best.constraint_values[0] / H:.4g} {best.multipliers[0] * H:.4g}" in text
    assert f"(room left by the constraints): {best.slater / H:.4g} per step" in text


def test_json_keeps_its_totals_and_adds_the_unit() -> None:
    data, plain = (json.loads(json.dumps(SOLVED[table].to_json())) for table in (PER_STEP, TOTALS))
    row, without = data["constraints"][0], plain["constraints"][0]
    shown, units = row.pop("in_units"), row.pop("units")
    assert (units, without.pop("units")) == ("per-step", "discounted") and row == without
    assert shown["threshold"] == 0.4 and shown["value"] == pytest.approx(row["value"] / H)
    assert data["prices"] == pytest.approx([H * x for x in data["multipliers"]])
    assert plain["prices"] == plain["multipliers"]
    exact = to_plain(exact_json(Instance.of_table(PER_STEP, "a table"), solve_exactly(PER_STEP)))
    assert exact["constraints"][0]["in_units"]["threshold"] == 0.4 and exact["constraints"][0]["units"] == "per-step"


def test_a_frontier_is_shown_in_the_unit() -> None:
    curve = frontier(SOLVED[PER_STEP], num_points=4)
    data = frontier_json(curve)
    for point in data["points"]:
        assert point["in_units"]["threshold"] == pytest.approx(point["threshold"] / H)
        assert point["in_units"]["price"] == pytest.approx(point["multiplier"] * H)
    assert data["units"] == "per-step"
    text = words(printed(print_frontier, curve))
    assert "threshold (discounted averages per step)" in text and "constraint-0 per step >=" in text
    assert f"{curve.points[1].threshold / H:.4g} {curve.points[1].value:.4g}" in text
    with pytest.raises(InputError, match=r"4 per step \(20 as a discounted total\)"):
        curve.at(20.0)
    assert curve.at(curve.unit.total(0.4)).threshold == pytest.approx(2.0)


def test_errors_speak_the_unit() -> None:
    hopeless = dataclasses.replace(PER_STEP, thresholds=np.array([6.0])).problem()
    found = out_of_reach(hopeless)
    assert found is not None
    said = sentence(found[0])
    assert "'constraint-0' >= 1.2 per step (6 as a discounted total)" in said
    assert "the discounted average per step is at most 1;" in said
    certificate = dataclasses.replace(SOLVED[PER_STEP].certificate, feasible="refuted", constraints=((1.0, 1.5),))
    refuted = refutation(SOLVED[PER_STEP].problem, certificate, SOLVED[PER_STEP].verdict)
    assert refuted is not None and "is missed by 0.1 to 0.2 per step;" in sentence(refuted)


def test_a_check_shows_both_units() -> None:
    report = Report()
    assert "constraint-0 >= 0.4 per step (2 as a discounted total)" in printed(print_check, PER_STEP.problem(), report)
    assert "constraint-0 >= 2 (0.4 per step)" in printed(print_check, TOTALS.problem(), report)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("units")
    save_table(PER_STEP, folder / "shop.npz")
    return reported(folder / "run", str(folder / "shop.npz"))


@pytest.mark.slow
def test_the_report_shows_the_unit(made: Reported) -> None:
    page = made.page
    estimate = made.solution.constraints[0].value / H
    assert f"It keeps constraint-0 at {estimate:.4g} per step, with at least 0.4 wanted" in page
    assert "constraint-0 ≥ 0.4 per step" in page and "≥ 2<" not in page
    numbers = json.loads(re.search(r'<script type="application/json" id="numbers">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    stored = made.run.drawings.frontier.curves[0].points  # type: ignore[union-attr]
    shown = numbers["curves"][0]["points"]
    assert [p["threshold"] for p in shown] == pytest.approx([p.threshold / H for p in stored])
    assert [p["multiplier"] for p in shown] == pytest.approx([p.multiplier * H for p in stored])
    assert numbers["asked"] == [0.4] and numbers["suffixes"] == [" per step"]
    # The script's own sums, in the unit: b_u of the threshold is what the table's is.
    target = (0.4 - numbers["base"][1] * numbers["horizon"]) / numbers["scale"][1]
    assert target == pytest.approx(PER_STEP.problem().thresholds[0])


@pytest.mark.slow
def test_a_recheck_sees_units_that_were_changed(made: Reported) -> None:
    instance, run = load_run_target(made.run), made.run
    assert run.certificate is not None
    outcome = {check.name: check for check in recheck_run(run, instance)}
    assert "constraints" not in outcome["answer"].detail and outcome["averages over time"].word == "not checked"
    (row,) = run.solution.constraints
    forged = [
        dataclasses.replace(run, solution=structs.replace(run.solution, constraints=(structs.replace(row, **change),)))
        for change in (
            {"units": "discounted"},
            {"in_units": None},
            {"in_units": structs.replace(row.in_units, value=0.9)},
        )
    ]
    record = run.certificate.problem
    other = structs.replace(record, constraints=[structs.replace(record.constraints[0], units="discounted")])
    forged.append(dataclasses.replace(run, certificate=structs.replace(run.certificate, problem=other)))
    for run in forged:
        assert "constraints[0]" in {check.name: check for check in recheck_run(run, instance)}["answer"].detail


def test_plots_are_in_the_unit() -> None:
    pytest.importorskip("matplotlib")
    (ax,) = plot(SOLVED[PER_STEP], panel="constraints").axes
    assert ax.get_xlabel() == "discounted average per step"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["constraint-0 ≥ 0.4 per step"]
    (marks,) = [line for line in ax.lines if line.get_label() == "threshold"]
    assert marks.get_xdata() == pytest.approx([0.4, 0.4])
    curve = plot(frontier(SOLVED[PER_STEP], num_points=4)).axes
    assert curve[1].get_xlabel() == "threshold of constraint-0 (discounted average per step)"
    assert curve[1].lines[0].get_xdata().max() <= 1.0


def test_tables_and_their_files_keep_the_unit(tmp_path: Path) -> None:
    given = Constraint("wait", None, "<=", 0.3, (0.0, 1.0), "per-step")
    table = table_of(
        np.ones((1, 2, 1)), np.array([[0.0, 1.0]]), [np.array([[0.0, 1.0]])], [given], gamma=0.9, rho=[1.0]
    )
    assert table.thresholds == pytest.approx([3.0])
    save_table(table, tmp_path / "wait.npz")
    (kept,) = load_table(tmp_path / "wait.npz").problem().constraints
    assert kept.units == "per-step" and kept.threshold == pytest.approx(0.3)
