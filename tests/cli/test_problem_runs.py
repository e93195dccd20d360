"""Runs made from a problem file: read without its code, taken up and certified with the code that is unchanged or named."""

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


@pytest.mark.slow
def test_certify(stored: tuple[Path, Path], run: Call) -> None:
    path, place = stored
    assert run("certify", place, "--seed", 9)[0] == 0, "from where the file was"
    assert run("certify", place, "--seed", 9, "--problem", path)[0] == 0
    assert run("certify", place, "--recheck")[0] == 0, "which runs nothing"
    moved = path.rename(path.with_name("away.toml"))
    code, _, err = run("certify", place, "--seed", 9)
    assert code == 2 and "--problem` must be given: the run was made from the problem file" in words(err)
    assert "no longer at" in words(err)
    moved.rename(path)
    path.write_text(path.read_text() + "# changed\n")
    for named in ([], ["--problem", path]):
        code, _, err = run("certify", place, "--seed", 9, *named)
        assert code == 2 and "must be unchanged since the run was made" in words(err)


@pytest.mark.slow
def test_code_that_has_changed_is_not_run(stored: tuple[Path, Path], run: Call, tmp_path: Path) -> None:
    path, place = stored
    code, trap = path.with_name("shop.py"), tmp_path / "sprung"
    code.write_text(f"{code.read_text()}\nopen({str(trap)!r}, 'w').close()\n")
    ended, _, err = run("certify", place, "--seed", 9)
    assert ended == 2 and "shop.py has changed" in words(err) and not trap.exists()


@pytest.mark.slow
def test_report(stored: tuple[Path, Path], run: Call) -> None:
    path, place = stored
    assert run("report", place, "--problem", path)[0] == 0
    named = place.with_suffix(".html").read_text()
    for file in path.parent.glob("shop.*"):
        file.unlink()
    assert run("report", place)[0] == 0, "with no code at all"
    assert "<!doctype html>" in named and place.with_suffix(".html").read_text() == named


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
    code, resumed, _ = run("resume", "run", "--json")
    assert code == 0
    for name in ("value", "constraints") if verb == "solve" else ("sha256", "samples"):
        assert json.loads(resumed)[name] == json.loads(unbroken)[name]


def test_a_changed_file_is_not_taken_up(run: Call, tmp_path: Path) -> None:
    path = write(tmp_path, "step", ("    arrives", "    if waiting == 9:\n        raise OSError('tired')\n    arrives"))
    assert run("solve", path, *SOLVE, "--out", tmp_path / "run")[0] == 5
    path.write_text(path.read_text().replace("0.3", "0.4"))
    code, _, err = run("resume", tmp_path / "run", "--problem", path)
    assert code == 2 and "where the same is under way" in words(err)
