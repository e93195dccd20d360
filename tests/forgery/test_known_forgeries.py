"""Forgeries that once passed, each with all the numbers that a forger would change together; and what a checker may import."""

from __future__ import annotations

import ast
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import quietly
from forgery.forging import arrays_of, packed, refused, write
from helpers import random_table
from places import ROOT
from saddleback import save_table
from saddleback.instances.zoo import make
from saddleback.runs.recheck.limits import _lower
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import load_run

QUEUE = ["queue", "--set", "capacity=4", "--set", "gamma=0.8"]
RELAXED = ["--feasibility", "relaxed"]  # whose proof has a bound over all policies


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known")
    assert quietly("solve", *QUEUE, *RELAXED, "--samples", 40_000, "--out", folder / "run") == 0
    return folder / "run"


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def proof(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "certificate.json").read_text())
    return found


def test_levels_that_make_up_for_each_other(run: Path) -> None:
    told = proof(run)
    told["evidence"]["rollouts"]["delta_of_each"] = 0.9
    told["evidence"]["bound"]["delta"] = -1.75
    write(run, "certificate.json", told)
    assert refused(run) is not None
    told["evidence"]["bound"]["delta"] = 1e-9
    told["confidence"] = 0.01
    write(run, "certificate.json", told)
    assert "division of δ" in str(refused(run))


def test_a_widened_allowance(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does a new proof take it over: it allows what was asked for, which is nothing."""
    told = proof(run)
    told |= {"allowance": [5.0], "feasible": "certified"}
    write(run, "certificate.json", told)
    assert "allowance" in str(refused(run))
    capsys.readouterr()
    assert quietly("certify", run, "--samples", 8_000, "--json") in (0, 6)
    fresh = json.loads(capsys.readouterr().out)["certificate"]
    assert fresh["allowance"] == [0.0]


@pytest.mark.parametrize("name", ["epsilon", "delta"])
def test_a_request_that_is_no_number(run: Path, name: str) -> None:
    """True was no number to the check, and an allowance of 1 to a new proof."""
    for value in (True, "0.5"):
        manifest = json.loads((run / "run.json").read_text())
        manifest["request"][name] = value
        write(run, "run.json", manifest)
        for more in (["--recheck"], ["--samples", 8_000]):
            assert quietly("certify", run, *more) == 2
        assert f"request.{name}" in str(refused(run))


def test_prices_beyond_reason(run: Path) -> None:
    """A new proof does without them."""
    told, answer = proof(run), json.loads((run / "solution.json").read_text())
    told["evidence"]["bound"] = None
    write(run, "certificate.json", told)
    write(run, "solution.json", answer | {"multipliers": [1e308]})
    assert quietly("certify", run, "--samples", 8_000) in (0, 6)


def test_a_tail_that_helps(run: Path) -> None:
    told, arrays = proof(run), arrays_of(run / "rollouts.npz")
    arrays["tail"] = np.abs(arrays["tail"]) + 1e-3
    told["evidence"]["rollouts"]["tail"] = arrays["tail"].tolist()
    write(run, "certificate.json", told)
    write(run, "rollouts.npz", packed(arrays))
    assert "range of the rollouts" in str(refused(run))


def test_a_range_cut_to_the_data(run: Path) -> None:
    told, arrays = proof(run), arrays_of(run / "rollouts.npz")
    arrays["low"], arrays["high"] = arrays["values"].min(axis=0), arrays["values"].max(axis=0)
    for name in ("low", "high"):
        told["evidence"]["rollouts"][name] = arrays[name].tolist()
    write(run, "certificate.json", told)
    write(run, "rollouts.npz", packed(arrays))
    assert "range of the rollouts" in str(refused(run))


@pytest.mark.parametrize("what", ["by_start", "linear", "linearity"])
def test_invented_statements(run: Path, what: str) -> None:
    told = proof(run)
    low, high = told["value"]
    near = [low + 0.49 * (high - low), low + 0.51 * (high - low)]
    rows = {"value": near, "constraints": told["constraints"]}
    invented = {
        "by_start": [{"state": 0, "weight": 1.0, "rollouts": 40, **rows}],
        "linear": {**rows, "assumes": f"{told['assumes']['value']}; transition probabilities linear in the features"},
        "linearity": {"assumed": True, "passed": True, "failures": [], "samples": 0, "delta": 0.05, "tests": []},
    }
    write(run, "certificate.json", told | {what: invented[what]})
    assert refused(run) is not None


def test_a_better_bound_with_all_that_follows(run: Path) -> None:
    """Bound, upper bound and gap moved together: only the samples behind them show it."""
    told = proof(run)
    sigma = told["evidence"]["bound"]["sigma"][0]
    step = 0.5 * told["gap"]
    told["evidence"]["bound"]["value"] -= step * sigma / told["problem"]["reward"]["scale"]
    told["upper_bound"] -= step
    told["gap"] -= step
    write(run, "certificate.json", told)
    assert "bound over all policies" in str(refused(run))


def test_another_problem(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    manifest["target"]["settings"] = ["capacity=4", "gamma=0.8", "service=0.4"]
    write(run, "run.json", manifest)
    assert refused(run) is not None


def test_a_policy_of_the_same_weights_but_another_mind(run: Path) -> None:
    arrays = arrays_of(run / "policy.npz")
    arrays["probabilities"] = arrays["probabilities"][:, :, ::-1]
    write(run, "policy.npz", packed(arrays))
    assert "the truth" in str(refused(run))


def test_evidence_that_is_gone(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    for name in ("rollouts.npz", "bound.npz"):
        less = {**manifest, "files": {k: v for k, v in manifest["files"].items() if k != name}}
        write(run, "run.json", less)
        assert refused(run) is not None, name


def _cut_to_the_data(told: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The limits that would follow if no rollout could leave the range of those that were made."""
    values, evidence, H = arrays["values"], told["evidence"]["rollouts"], told["problem"]["horizon"]
    arrays["low"], arrays["high"] = values.min(axis=0), values.max(axis=0)
    evidence |= {name: arrays[name].tolist() for name in ("low", "high")}
    limits, delta = [], evidence["delta_of_each"] / 2
    for j, signal in enumerate([told["problem"]["reward"], *told["problem"]["constraints"]]):
        low, span = arrays["low"][j], arrays["high"][j] - arrays["low"][j]
        y = (values[:, j] - low) / span
        ends = [low + span * _lower(y, delta), low + span * (1 - _lower(1 - y, delta))] + arrays["tail"][:, j]
        limits.append(sorted((ends * signal["scale"] + signal["base"] * H).tolist()))
    told |= {"value": limits[0], "constraints": limits[1:], "gap": told["upper_bound"] - limits[0][0]}


@pytest.mark.parametrize("how", ["the rollouts alone", "without their names", "a run of another format"])
def test_evidence_in_the_form_of_an_earlier_version(run: Path, how: str) -> None:
    """What an earlier version did not keep cannot be left out of a proof of this one; nor can a range be too small for any."""
    told, arrays = proof(run), arrays_of(run / "rollouts.npz")
    arrays = {name: arrays[name] for name in ("values", "low", "high", "tail")}
    _cut_to_the_data(told, arrays)
    told["evidence"]["fitted"] = None
    write(run, "certificate.json", told)
    write(run, "rollouts.npz", packed(arrays))
    assert "range of the rollouts" in str(refused(run))
    if how != "the rollouts alone":
        told = proof(run)
        del told["about"]
        write(run, "certificate.json", told)
        assert "files" in str(refused(run))
    if how == "a run of another format":
        manifest = json.loads((run / "run.json").read_text())
        manifest = {k: v for k, v in manifest.items() if k not in ("problem", "seal")} | {"format": "saddleback-run/1"}
        write(run, "run.json", manifest)
        assert refused(run) == "range of the rollouts"


def test_a_bound_without_its_samples(run: Path) -> None:
    """The certificate no longer names them, nor does the run; then any value would do."""
    told, manifest = proof(run), json.loads((run / "run.json").read_text())
    del told["about"]["bound"]
    del manifest["files"]["bound.npz"]
    write(run, "run.json", manifest)
    write(run, "certificate.json", told)
    assert refused(run) == "bound over all policies"


@pytest.mark.parametrize("delta", [1e-308, 5e-324])
def test_levels_whose_inverse_is_no_number(run: Path, delta: float) -> None:
    """With them every tolerance was infinite, or the check itself came to an end."""
    told = proof(run)
    low, high = told["value"]
    told["value"] = [low + 0.4 * (high - low), high]
    told["gap"] = told["upper_bound"] - told["value"][0]
    told["evidence"]["rollouts"]["delta_of_each"] = told["evidence"]["bound"]["delta"] = delta
    write(run, "certificate.json", told)
    assert "1e-200" in str(refused(run))


def test_a_threshold_in_the_users_units_alone(run: Path) -> None:
    """Seen without the problem too, where it was made from a file that is not named again."""
    for forged in ({"threshold": 8.5}, {"sense": ">="}, {"unit_threshold": 2.5}):
        told = proof(run)
        told["problem"]["constraints"][0] |= forged
        write(run, "certificate.json", told)
        failed = [check.detail for check in recheck_run(load_run(run), None) if not check.passed]
        assert any("problem.constraints[0]" in detail for detail in failed), forged


@pytest.mark.slow
@pytest.mark.parametrize("field", ["feasible", "gap", "upper_bound", "allowance", "value"])
def test_units_that_are_tiny(tmp_path: Path, field: str) -> None:
    """Tolerances are relative to the ranges of the signals: here a billionth is all there is."""
    table = make("garnet", states=4, successors=2).table
    assert table is not None
    small = {name: 1e-12 * getattr(table, name) for name in ("reward", "constraints", "thresholds")}
    ranges = dict.fromkeys(("reward_range", "ranges"))
    tiny = replace(table, **small, **ranges)
    save_table(tiny, tmp_path / "tiny.npz")
    run = tmp_path / "run"
    assert quietly("solve", tmp_path / "tiny.npz", *RELAXED, "--samples", 4_000, "--out", run) == 0
    assert refused(run) is None
    told = proof(run)
    assert told["feasible"] == "undecided"
    low, high = told["value"]
    forged = {
        "feasible": "certified",
        "gap": 0.5 * told["gap"],
        "upper_bound": 0.9 * told["upper_bound"],
        "allowance": [1e-12],
        "value": [0.5 * (low + high), high],
    }
    write(run, "certificate.json", told | {field: forged[field]})
    assert refused(run) is not None


def test_a_contradiction_between_other_constraints(tmp_path: Path) -> None:
    """Which constraints contradict each other is said of those of the problem, and what they reach is no more than estimated."""
    save_table(replace(random_table(1), thresholds=np.array([4.9])), tmp_path / "bad.npz")
    run = tmp_path / "run"
    assert quietly("solve", tmp_path / "bad.npz", "--samples", 30_000, "--out", run) == 3
    assert refused(run) is None
    whole = json.loads((run / "solution.json").read_text())
    forgeries = {"name": "rent", "limit": 4.5, "sense": "<=", "units": "per-step", "given": ["rent"], "label": "exact"}
    for name, value in forgeries.items():
        write(run, "solution.json", {**whole, "conflict": [{**whole["conflict"][0], name: value}]})
        assert "answer" in str(refused(run)), name


def test_the_checker_shares_no_code_with_the_prover() -> None:
    """Of the certificates' own code it knows the form of their evidence, and nothing else."""
    folder = ROOT / "src" / "saddleback"
    files = [*(folder / "runs" / "recheck").glob("*.py"), folder / "runs" / "evidence_file.py"]
    assert len(files) > 5
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and "certificates" in node.module:
                assert node.module == "saddleback.certificates.certificate", f"{file.name} imports {node.module}"
                assert {alias.name for alias in node.names} <= {"RolloutEvidence", "BoundEvidence"}
            named = node.module if isinstance(node, ast.ImportFrom) else ""
            assert not (named or "").startswith(("saddleback.solving", "saddleback.method")), file.name
