"""Runs that were computed on a known table, and runs without a policy: what is said to whoever reads them on."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from cli.command_line import Call, words
from helpers import random_table
from saddleback import save_table

PER_STEP = dataclasses.replace(random_table(1), units=("per-step",))  # 0.4 per step, 2 as a total


@pytest.fixture
def computed(run: Call, tmp_path: Path) -> Path:
    save_table(PER_STEP, tmp_path / "ok.npz")
    assert run("exact", tmp_path / "ok.npz", "--out", tmp_path / "computed")[0] == 0
    return tmp_path / "computed"


@pytest.fixture
def impossible(run: Call, tmp_path: Path) -> Path:
    save_table(dataclasses.replace(PER_STEP, thresholds=np.array([4.9])), tmp_path / "bad.npz")
    assert run("exact", tmp_path / "bad.npz", "--out", tmp_path / "impossible")[0] == 3
    return tmp_path / "impossible"


def test_the_optimum_of_a_table_is_exported_as_what_it_is(run: Call, computed: Path, tmp_path: Path) -> None:
    """It is neither an estimate nor without a proof that anybody would miss; limits are in the unit they were given in."""
    code, out, _ = run("export", computed, "--to", "json", "--out", tmp_path / "p.json", "--json")
    told = json.loads(out)
    worth, says = told["worth"], told["says"]
    assert code == 0 and worth["exact"] and not worth["proved"]
    assert (
        "exact, on the known table" in says
        and "estimated" not in says
        and "no proof" not in says.replace("needs no", "")
    )
    unit = worth["in_units"]["constraint-0"]
    assert unit["units"] == "per-step" and unit["wanted"] == pytest.approx(0.4) and unit["limits"] is None
    assert unit["value"] == pytest.approx(worth["values"]["constraint-0"] / 5)
    assert f"constraint-0 {unit['value']:.4g} per step (>= 0.4 per step)" in says
    code, _, err = run("certify", computed, "--recheck")
    assert code == 2 and "computed on the known table" in err and "more samples" not in err


def test_proved_limits_are_exported_in_their_unit_too(run: Call, tmp_path: Path) -> None:
    save_table(dataclasses.replace(PER_STEP, thresholds=np.array([1.5])), tmp_path / "ok.npz")
    assert run("solve", tmp_path / "ok.npz", "--samples", 20_000, "--out", tmp_path / "run")[0] == 0
    options = ["--to", "json", "--out", tmp_path / "p.json", "--which", "mixture", "--json"]
    code, out, _ = run("export", tmp_path / "run", *options)
    told = json.loads(out)
    limits, unit = told["worth"]["limits"]["constraint-0"], told["worth"]["in_units"]["constraint-0"]
    assert code == 0 and unit["limits"] == pytest.approx([x / 5 for x in limits])
    assert "per step (>= 0.3 per step)" in told["says"] and "(>= 1.5)" not in told["says"]
    assert told["worth"]["exact"] is False and told["worth"]["proved"] is True


def test_where_no_policy_can_be_more_samples_are_not_the_remedy(run: Call, impossible: Path, tmp_path: Path) -> None:
    bad, sampled = tmp_path / "bad.npz", tmp_path / "sampled"
    assert run("solve", bad, "--samples", 60_000, "--out", sampled)[0] == 3
    asked = [
        ["act", impossible, "--state", 0],
        ["act", sampled, "--state", 0],
        ["export", impossible, "--to", "csv"],
        ["export", sampled, "--to", "csv"],
        ["export", sampled, "--to", "csv", "--certificate-samples", 1_000],
        ["certify", impossible],
    ]
    for arguments in asked:
        code, _, err = run(*arguments)
        assert code == 2 and "no policy meets the constraints" in words(err), arguments
        assert "more samples" not in err


def test_what_is_missing_is_said_in_the_unit_of_its_limit(run: Call, impossible: Path) -> None:
    told = json.loads((impossible / "solution.json").read_text())["message"]
    assert "'constraint-0' >= 0.98 per step (the best found: 0." in told


def test_an_exact_frontier_has_the_units_of_a_frontier(run: Call, computed: Path) -> None:
    told = json.loads(run("exact", computed.parent / "ok.npz", "--frontier", "--points", 4, "--json")[1])
    assert told["units"] == "per-step"
    for point in told["points"]:
        price = None if point["multiplier"] is None else pytest.approx(5 * point["multiplier"])
        assert point["in_units"] == {"threshold": pytest.approx(point["threshold"] / 5), "price": price}
    totals = json.loads(run("exact", "queue", "--frontier", "--points", 3, "--json")[1])
    assert totals["units"] == "discounted" and all("in_units" not in point for point in totals["points"])
