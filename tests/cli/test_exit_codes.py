"""One table of exit codes: for statuses, errors and proofs, on every page that lists them, and for our own mistakes."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from cli.command_line import quietly
from places import DOCS
from saddleback import errors
from saddleback.instances import zoo
from saddleback.runs.verdict import ExitCode, Status, code_of_proof


def test_the_table() -> None:
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 6, 70, 130]
    assert all(code.meaning and code.meaning[0].islower() for code in ExitCode)


def test_every_status_and_error_is_in_it() -> None:
    assert {s.value: ExitCode(s.exit_code) for s in Status if s.value != "refuted"} == {
        "solved": ExitCode.ANSWERED,
        "infeasible": ExitCode.INFEASIBLE,
        "undecided": ExitCode.UNDECIDED,
        "budget-exhausted": ExitCode.UNDECIDED,
    }
    kinds = [x for x in vars(errors).values() if isinstance(x, type) and issubclass(x, errors.SaddlebackError)]
    found = {kind.__name__: ExitCode(kind.exit_code) for kind in kinds if kind is not errors.SaddlebackError}
    assert found["InputError"] == ExitCode.BAD_INPUT and found["SimulatorError"] == ExitCode.FAULT
    assert set(found.values()) <= {ExitCode.BAD_INPUT, ExitCode.UNDECIDED, ExitCode.FAULT}


def test_the_page_lists_all_codes_in_the_words_of_the_table() -> None:
    text = (DOCS / "json.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*?) \|$", text[text.index("## Exit codes") :], re.MULTILINE)
    assert [int(number) for number, _ in rows] == [int(code) for code in ExitCode]
    assert [words for (_, words), code in zip(rows, ExitCode, strict=True) if not words.startswith(code.meaning)] == []


def test_a_new_proof_has_one_of_five_outcomes() -> None:
    for feasible, strict in product(("certified", "refuted", "undecided"), (False, True)):
        code = code_of_proof(feasible, has_policy=True, infeasible=False, strict=strict)
        open_and_strict = strict and feasible == "undecided"
        assert code == {"refuted": 6}.get(feasible, 4 if open_and_strict else 0), (feasible, strict)
        assert code_of_proof(feasible, has_policy=False, infeasible=True, strict=strict) == 3
        assert code_of_proof(feasible, has_policy=False, infeasible=False, strict=strict) == 4


def test_a_mistake_of_ours_is_one_message_and_a_report(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken() -> None:
        raise KeyError("[red]no such thing[/red]")

    monkeypatch.setitem(zoo.BY_NAME, "broken", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert quietly("exact", "broken") == ExitCode.INTERNAL_ERROR
    out, err = capsys.readouterr()
    (report,) = tmp_path.iterdir()
    assert out == "" and err.count("\n") == 1 and "Traceback" not in err
    assert err.startswith("error: this is a fault of saddleback, not of your input (KeyError).") and str(report) in err
    written = report.read_text()
    assert written.startswith("saddleback exact broken\nsaddleback ") and "Traceback" in written
    assert "no such thing" in written and 'raise KeyError("[red]' in written
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert quietly("exact", "broken") == ExitCode.INTERNAL_ERROR
    assert "The full report could not be written: " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["zoo"], ["zoo", "--json"], ["--help"]])
def test_a_reader_who_has_gone_is_no_failed_proof(arguments: list[str]) -> None:
    """``saddleback zoo | true``: silent, and the code of a disk that takes nothing."""
    child = subprocess.Popen(
        [sys.executable, "-m", "saddleback", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    said = child.stderr.read()
    child.stderr.close()
    assert (child.wait(timeout=120), said) == (ExitCode.FAULT, b"")


@pytest.mark.slow
def test_a_mistake_of_ours_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was drawn before it is kept, and taken up with the same result."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    solve = ["solve", "queue", "--samples", 20_000, "--out"]
    assert quietly(*solve, tmp_path / "unbroken") == ExitCode.ANSWERED

    def broken(*given: object, **named: object) -> None:
        raise KeyError("no such thing")

    with monkeypatch.context() as patch:
        patch.setattr("saddleback.cli.solve.put_away", broken)
        assert quietly(*solve, tmp_path / "run") == ExitCode.INTERNAL_ERROR
    (report,) = tmp_path.glob("saddleback-*.txt")
    assert "no such thing" in report.read_text() and (tmp_path / "run.work").is_dir()
    assert quietly("resume", tmp_path / "run") == ExitCode.ANSWERED
    for name in ("solution.json", "certificate.json", "policy.npz"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "unbroken" / name).read_bytes()
