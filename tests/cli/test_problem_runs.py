"""Runs made from a problem file: taken up and certified only where the user names the file again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call, words
from cli.first_projects import write

SOLVE = ["--samples", 40_000]


@pytest.fixture
def stored(run: Call, tmp_path: Path) -> tuple[Path, Path]:
    path = write(tmp_path, "step")
    assert run("solve", path, *SOLVE, "--out", tmp_path / "run")[0] == 0
    return path, tmp_path / "run"


def test_certify(stored: tuple[Path, Path], run: Call) -> None:
    path, place = stored
    code, _, err = run("certify", place, "--seed", 9)
    assert code == 2 and "--problem` must be given: the run was made from the problem file" in words(err)
    assert run("certify", place, "--seed", 9, "--problem", path)[0] == 0
    assert run("certify", place, "--recheck")[0] == 0, "which runs nothing"
    path.write_text(path.read_text() + "# changed\n")
    code, _, err = run("certify", place, "--seed", 9, "--problem", path)
    assert code == 2 and "must be unchanged since the run was made" in words(err)


def test_report(stored: tuple[Path, Path], run: Call) -> None:
    path, place = stored
    code, _, err = run("report", place)
    assert code == 2 and "--problem` must be given" in words(err)
    assert run("report", place, "--problem", path)[0] == 0
    assert "<!doctype html>" in place.with_suffix(".html").read_text()


@pytest.mark.check
@pytest.mark.parametrize(("verb", "options"), [("solve", SOLVE), ("sample", ["--rounds", 1])])
def test_resume(verb: str, options: list[Any], run: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose simulator failed is taken up, from wherever the user stands, and ends as an unbroken one."""
    away, trap = tmp_path / "away", tmp_path / "trap"
    away.mkdir()
    rule = f"    if pathlib.Path({str(trap)!r}).exists():\n        raise OSError('tired')\n    arrives"
    path = write(away, "step", ("def step", "import pathlib\n\n\ndef step"), ("    arrives", rule))
    code, unbroken, _ = run(verb, path, *options, "--out", tmp_path / "whole", "--json")
    assert code == 0
    trap.touch()
    monkeypatch.chdir(away)
    assert run(verb, "shop.toml", *options, "--out", tmp_path / "run")[0] == 5
    trap.unlink()
    monkeypatch.chdir(tmp_path)
    code, _, err = run("resume", tmp_path / "run")
    assert code == 2 and "--problem` must be given" in words(err)
    code, resumed, _ = run("resume", "run", "--problem", path, "--json")
    assert code == 0
    for name in ("value", "constraints") if verb == "solve" else ("sha256", "samples"):
        assert json.loads(resumed)[name] == json.loads(unbroken)[name]


def test_a_changed_file_is_not_taken_up(run: Call, tmp_path: Path) -> None:
    path = write(tmp_path, "step", ("    arrives", "    if waiting == 9:\n        raise OSError('tired')\n    arrives"))
    assert run("solve", path, *SOLVE, "--out", tmp_path / "run")[0] == 5
    path.write_text(path.read_text().replace("0.3", "0.4"))
    code, _, err = run("resume", tmp_path / "run", "--problem", path)
    assert code == 2 and "where the same is under way" in words(err)
