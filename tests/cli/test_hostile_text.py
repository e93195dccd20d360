"""Names, exceptions, paths and files of strangers, shown by every verb: nothing of them acts on the terminal or the page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli import hostile
from cli.hostile import DOORS, KINDS
from report_runs import Outline
from saddleback import cli

QUICK = {"a colour": ("names", "words of files", "options"), "a line of its own": ("words of files",)}


def form_of(number: int, kind: str, door: str) -> Any:
    """A few in the quick suite, every kind by one door in the long one, all in the study."""
    turn = (number - [*DOORS, "runs"].index(door)) % 7
    marks = [] if door in QUICK.get(kind, ()) else pytest.mark.check if turn == 0 else pytest.mark.study
    return pytest.param(kind, door, marks=marks)


FORMS = [form_of(i, kind, door) for i, kind in enumerate(KINDS) for door in (*DOORS, "runs")]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lines are not broken, reports of faults are no faults of other tests."""
    monkeypatch.setenv("COLUMNS", "4000")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("sound") / "run"
    with pytest.raises(SystemExit):
        cli.main(["solve", "river-swim", "--samples", "2000", "--out", str(run)])
    return run


def said_by(command: list[str], capfdbinary: Any) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(command)
    out, err = capfdbinary.readouterr()
    return int(ended.value.code or 0), hostile.as_terminal_says(out + err)


def judge(code: int, said: str, command: list[str]) -> None:
    found = hostile.faults_of(said)
    assert code in range(7), f"code {code}: {command!r:.300} {said[:500]!r}"
    assert not found, f"{command!r:.300}: {found[:3]}"
    assert code in (0, 1, 3, 4) or len(said.replace("─", "").replace("  ", "")) < 6000, (
        f"{len(said)} characters: {command!r:.300}"
    )


@pytest.mark.parametrize(("kind", "door"), FORMS)
def test_nothing_acts_on_the_terminal(kind: str, door: str, tmp_path: Path, sound: Path, capfdbinary: Any) -> None:
    text = KINDS[kind]
    every = 12 if kind in QUICK else 4
    commands = hostile.strangers_runs(text, tmp_path, sound, every) if door == "runs" else DOORS[door](text, tmp_path)
    number = 0
    for command in commands:
        judge(*said_by(command, capfdbinary), command)
        number += 1
    assert number, "no command at all"
    judge_pages(tmp_path)


def judge_pages(folder: Path) -> None:
    """Every element is one that we wrote, and no text holds what acts on a terminal."""
    for page in folder.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        outline = Outline(text)
        assert not outline.faults
        assert all(
            tag != "img" and not any(a.startswith("on") for a in attributes) for tag, attributes in outline.elements
        )
        assert sum(tag == "script" for tag, _ in outline.elements) <= 2
        assert all(hostile.shown(c) or c in "\n\t" for c in text)


@pytest.mark.check
@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_that_know_few_characters(encoding: str, tmp_path: Path, sound: Path) -> None:
    """Every verb, its page of help, and an error: as processes, for only those have a terminal's encoding."""
    target = str(hostile.problem(tmp_path, name="énergie ≥ 1 €"))
    commands = [["--help"], ["check", target], ["solve", "nonsense ≥"]]
    if encoding != "ascii":
        commands += [
            ["zoo"],
            ["solve", "--help"],
            *hostile.questions(target, tmp_path),
            *hostile.answers(str(sound), tmp_path),
        ]
    for command in commands:
        words = [sys.executable, "-m", "saddleback", *command]
        done = subprocess.run(words, capture_output=True, timeout=120, check=False, env=hostile.in_locale(encoding))
        said = (done.stdout + done.stderr).decode(encoding)
        assert done.returncode in (0, 2, 3, 4, 5) and not hostile.faults_of(said), (command, said[-2000:])


def test_the_harness_sees_what_it_is_for(tmp_path: Path) -> None:
    """Every kind but the two that are for pages and for rich, printed as it is, is noticed."""
    for kind, text in KINDS.items():
        assert bool(hostile.faults_of(f"error: {text}; mend it")) == (kind != "markup of rich")
    (tmp_path / "bad.html").write_text(f"<p>{KINDS['HTML']}</p>", encoding="utf-8")
    with pytest.raises(AssertionError):
        judge_pages(tmp_path)
