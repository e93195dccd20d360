"""Files that earlier versions wrote are read, and say what they said then.

Each folder in ``fixtures`` is named after the commit whose code wrote it; its ``make_fixtures.py`` says how and its
``expected.json`` what that code said when it read its own files (``readings.py``). Whole numbers, words and exit codes must be
the same. Numbers that a processor may round its own way must agree to 1e-9, as for a certificate that is checked again.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from places import TESTS
from repository.readings import QUEUE, RUNS, ask, events, final_files, readings
from saddleback import cli

THEN = TESTS / "fixtures" / "1c6912f"
EXPECTED = json.loads((THEN / "expected.json").read_text())
_ROUNDING = 1e-9


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the fixtures, which is the working directory too."""
    copy = Path(shutil.copytree(THEN, tmp_path / "home"))
    monkeypatch.chdir(copy)
    yield copy
    sys.modules.pop("shop", None)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(arguments: list[Any]) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return int(ended.value.code or 0), out, err

    return run


def differences(found: Any, wanted: Any, where: str = "") -> Iterator[str]:
    """Where an answer is not what it was."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in wanted.keys() | found.keys():
            yield from differences(found.get(name), wanted.get(name), f"{where}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted):
        for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
            yield from differences(a, b, f"{where}[{i}]")
    elif isinstance(wanted, float) and isinstance(found, (int, float)):
        if not math.isclose(found, wanted, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
            yield f"{where}: {found}, was {wanted}"
    elif found != wanted:
        yield f"{where}: {found}, was {wanted}"


def test_differences_are_seen() -> None:
    wanted = {"a": [1.0, 2], "b": "x", "c": None}
    assert list(differences({"a": [1.0 + 1e-12, 2], "b": "x"}, wanted)) == []
    for other in ({"a": [1.0 + 1e-8, 2], "b": "x"}, {"a": [1.0, 3], "b": "x"}, {"a": [1.0, 2], "b": "y"}, {"a": [1.0]}):
        assert list(differences(other, wanted))


def test_every_question_has_its_answer() -> None:
    assert readings().keys() == EXPECTED["readings"].keys()
    assert all((THEN / name / "run.json").is_file() for name in RUNS)


@pytest.mark.parametrize("name", [name for name in readings() if not name.startswith("resume ")])
def test_what_was_written_then_says_what_it_said_then(name: str, call: Any, home: Path) -> None:
    found, wanted = ask(call, readings()[name], home), EXPECTED["readings"][name]
    if name.startswith("certify "):  # a new proof, which draws other samples since its plan changed (docs/adr/0015)
        found = {"stored": found["said"]["stored"]}
        wanted = {"stored": wanted["said"]["stored"]}
    if name.startswith("recheck ") and "said" in found:  # what was checked then is checked now, and more besides
        then = [check for check, _ in wanted["said"]["checks"]]
        found["said"]["checks"] = [check for check in found["said"]["checks"] if check[0] in then]
    if name.startswith("solve "):  # then said where nothing was found, now where something was looked at
        assert found["said"].pop("reproducible") == "not checked"
        wanted = {**wanted, "said": {k: x for k, x in wanted["said"].items() if k != "reproducible"}}
        found, wanted = _without_proof(found, wanted)
    assert list(differences(_without_checks(found, wanted), wanted)) == []


def _without_proof(found: dict[str, Any], wanted: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the stored samples say. The proof is new: a bound that would say nothing gets no samples, so the rest is closer."""
    found, wanted = ({**x, "said": dict(x["said"])} for x in (found, wanted))
    now, then = (x["said"].pop("certificate") for x in (found, wanted))
    for x, proof in ((found, now), (wanted, then)):
        x["said"]["samples"] -= proof["samples"]
    assert (now["confidence"], now["feasible"]) == (then["confidence"], then["feasible"])
    for (low, high), (low_then, high_then) in zip(
        (now["value"], *now["constraints"]), (then["value"], *then["constraints"]), strict=True
    ):
        assert low_then <= low <= high <= high_then
    return found, wanted


def _without_checks(found: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """With as many calls for checks as then: simulators are examined more closely now."""
    then, now = ((x.get("said") or {}).get("check_calls") for x in (wanted, found))
    if then is None or now is None:
        return found
    assert now >= then
    return {**found, "said": {**found["said"], "check_calls": then}}


def _final(run: Path) -> dict[str, str]:
    """Hashes of what must be the same whoever drew the samples; shards may be cut elsewhere on a slow machine."""
    return {name: sha for name, sha in final_files(run).items() if "samples/" not in name and name != "run.json"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["killed-solve", "killed-certificate"])
def test_a_run_that_was_killed_then_is_finished_now(name: str, call: Any, home: Path) -> None:
    """Plans follow from rounded numbers now, so it ends with other numbers than then; what was drawn is kept and used."""
    drawn = {p.name: p.read_bytes() for p in (home / f"{name}.work" / "samples").rglob("*.npy")}
    found = ask(call, readings()[f"resume {name}"], home)
    if name == "killed-certificate":  # rollouts cannot be completed as blocks can: what is in the way is named
        assert found["code"] == 5
        for tapes in (home / f"{name}.work" / "samples").glob("tapes-*"):
            drawn = {shard: data for shard, data in drawn.items() if not (tapes / shard).exists()}
            shutil.rmtree(tapes)
        found = ask(call, readings()[f"resume {name}"], home)
    assert found["code"] in (0, 4, 6)
    assert not (home / f"{name}.work").exists()
    kept = {p.name: p.read_bytes() for p in (home / name / "samples").rglob("*.npy")}
    assert drawn and all(kept.get(shard) == data for shard, data in drawn.items())
    assert call(["certify", name, "--recheck"])[0] == 0
    again = ask(call, readings()[f"resume {name}"], home)
    assert again["code"] == 0


def test_samples_that_were_interrupted_then_are_all_there_now(call: Any, home: Path) -> None:
    name = "resume interrupted-sample"
    found = ask(call, readings()[name], home)
    wanted = EXPECTED["readings"][name]
    assert list(differences(_without_checks(found, wanted), wanted)) == []
    assert call(["sample", *QUEUE, "--out", "interrupted-sample", "--verify"])[0] == 0
    assert not (home / "interrupted-sample.work").exists()


def test_a_trace_of_then() -> None:
    assert events(THEN / "trace.jsonl") == EXPECTED["trace"]


def test_the_files_name_no_machine() -> None:
    """Those that are not text too; where the files were made is the one absolute path in them."""
    folders = "example", "home", "root", "work", "tmp", "Users", "usr", "opt", "mnt", "srv", "var", "private"
    absolute = re.compile(rb"/(?:" + "|".join(folders).encode() + rb")/[\w./-]*")
    found = {str(path): set(absolute.findall(path.read_bytes())) for path in THEN.rglob("*") if path.is_file()}
    assert set().union(*found.values()) == {b"/example/samples"}, found
