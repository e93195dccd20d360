"""The command line as a fixture, and a few runs that it has stored."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import Call, quietly
from helpers import random_table
from saddleback import save_table
from saddleback.runs.verdict import ExitCode


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments: Any) -> tuple[int, str, str]:
        capsys.readouterr()
        code = quietly(*arguments)
        out, err = capsys.readouterr()
        assert code != ExitCode.INTERNAL_ERROR and "Traceback" not in out + err, err
        return code, out, err

    return call


@pytest.fixture
def table_file(tmp_path: Path) -> Path:
    path = tmp_path / "problem.npz"
    save_table(random_table(1), path)
    return path


@pytest.fixture(scope="session")
def stored_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with four runs: by name and from a table, both relaxed and with a bound; strict; and infeasible."""
    folder = tmp_path_factory.mktemp("runs")
    save_table(random_table(1), folder / "good.npz")
    save_table(dataclasses.replace(random_table(1), thresholds=np.array([4.9])), folder / "bad.npz")
    relaxed = ["--feasibility", "relaxed"]
    assert quietly("solve", "queue", *relaxed, "--samples", 120_000, "--out", folder / "named") == 0
    assert quietly("solve", folder / "good.npz", *relaxed, "--samples", 20_000, "--out", folder / "table") == 0
    strict = ["--feasibility", "strict", "--samples", 60_000]
    assert quietly("solve", folder / "good.npz", *strict, "--out", folder / "strict") == 0
    assert quietly("solve", folder / "bad.npz", "--samples", 60_000, "--out", folder / "infeasible") == 3
    return folder


@pytest.fixture
def named(stored_runs: Path, tmp_path: Path) -> Path:
    """A copy of the run by name, to be spoiled."""
    return Path(shutil.copytree(stored_runs / "named", tmp_path / "named"))


@pytest.fixture
def from_table(stored_runs: Path, tmp_path: Path) -> Path:
    """A copy of the run from a table file, to be spoiled."""
    return Path(shutil.copytree(stored_runs / "table", tmp_path / "table"))
