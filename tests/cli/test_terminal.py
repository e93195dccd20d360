"""On a pseudo-terminal: what a person sees while a run is going on, and Ctrl-C followed by ``resume``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.check

pexpect = pytest.importorskip("pexpect", reason="a test tool: pip install 'saddleback[test]'")

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SOLVE = ["solve", "random-linear", "--samples", "1000000", "--seed", "5"]
FILES = ["run.json", "solution.json", "certificate.json", "policy.npz", "rollouts.npz", "trace.jsonl"]
SECONDS = 120


def terminal(*arguments: Any) -> Any:
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "40"}
    words = ["-m", "saddleback", *map(str, arguments)]
    return pexpect.spawn(
        sys.executable, words, encoding="utf-8", timeout=SECONDS, dimensions=(40, 140), env=environment
    )


def everything(child: Any) -> str:
    child.expect(pexpect.EOF)
    child.close()
    return ESCAPES.sub("", child.before)


def finished(*arguments: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a terminal: plain text, and a line every ten seconds at most."""
    place = tmp_path_factory.mktemp("unbroken") / "run"
    done = finished(*SOLVE, "--out", place)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr and "━" not in done.stderr
    return place


def contents(run: Path) -> dict[str, bytes]:
    return {name: (run / name).read_bytes() for name in FILES}


def test_rounds_show_the_current_bound() -> None:
    text = everything(terminal("solve", "random-linear", "--set", "states=30", "--epsilon", "1.5"))
    assert re.search(r"round 1: samples.*?error [\d.e+-]+ (expected|proved), 1\.5 wanted", text, re.S)
    assert re.search(r"error [\d.e+-]+ proved, 1\.5 wanted", text)


def test_bars_then_ctrl_c_then_resume_ends_as_the_unbroken_run(unbroken: Path, tmp_path: Path) -> None:
    place = tmp_path / "run"
    child = terminal(*SOLVE, "--out", place)
    child.expect("samples to (solve|evaluate|certify)")
    child.sendintr()
    text = first = everything(child)
    assert child.exitstatus == 130
    assert "interrupted; what was drawn is kept." in text
    assert f"saddleback resume {place}" in " ".join(text.split())
    assert not place.exists() and (tmp_path / "run.work").is_dir()
    again = terminal("resume", place)
    text = everything(again)
    assert again.exitstatus == 0
    for label in ("samples to evaluate", "samples to certify", "dual iterations"):
        assert label in text, label
    shown = r"(samples|rollouts) to \w+.*?[\d,]+/[\d,]+ +[\d,]+/s +[0-9]+:[0-9]{2}:[0-9]{2}"  # done, rate, time left
    assert re.search(shown, first + text)
    assert re.search(r"dual iterations.*?\d+/\d+.*?gap [\d.e+-]+", text)
    assert "What is proved, with 95 % confidence" in text
    assert contents(place) == contents(unbroken)
    assert not (tmp_path / "run.work").exists()
    assert finished(*SOLVE[:3], "20000", "--out", tmp_path / "other").returncode == 0
    different = contents(tmp_path / "other")
    assert all(different[name] != contents(unbroken)[name] for name in FILES)  # another run is told apart
