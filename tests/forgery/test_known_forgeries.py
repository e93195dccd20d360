"""Forgeries that once passed, each with all the numbers that a forger would change together; and what a checker may import."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import quietly
from forgery.forging import arrays_of, packed, refused, write
from places import ROOT

QUEUE = ["queue", "--set", "capacity=4", "--set", "gamma=0.8"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known")
    assert quietly("solve", *QUEUE, "--samples", 20_000, "--out", folder / "run") == 0
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
