"""Records that were edited by hand, and runs that are made to speak of another problem: refused, with the field's name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call, quietly, read, reseal, words
from helpers import begun_and_killed
from saddleback.instances import zoo
from saddleback.runs.targets import _law_of
from saddleback.runs.work_folder import work_folder

QUEUE = ["queue", "--set", "capacity=3", "--set", "gamma=0.5", "--set", "limit=0.3"]
LINEAR = ["linear-quadratic", "--samples", 4_000]
READERS = (["report"], ["certify"], ["certify", "--recheck"], ["act", "--state", 0], ["resume"])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kept") / "run"
    assert quietly("solve", *QUEUE, "--samples", 20_000, "--out", place) in (0, 4)
    return place


@pytest.fixture
def place(kept: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(kept, tmp_path / "run"))


def at(fields: Any, name: str, value: Any) -> None:
    """Set ``options.budget.samples`` and the like."""
    *path, last = name.split(".")
    for part in path:
        fields = fields[part]
    fields[last] = value


EDITS = {
    "status": "infeasible",
    "target.name": "wireless",
    "target.settings": ["capacity=4", "gamma=0.5", "limit=0.3"],
    "request.certificate": 1,
    "request.feasibility": "relaxed",
    "seed": 1,
    "versions.numpy": "0.1",
    "problem.asks": "0" * 16,
    "problem.law": None,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_run_is_refused_with_the_field(place: Path, run: Call, name: str) -> None:
    fields = read(place / "run.json")
    at(fields, name, EDITS[name])
    (place / "run.json").write_text(json.dumps(fields, indent=2))
    for verb, *more in READERS[:-1]:
        code, out, err = run(verb, place, *more)
        assert (code, out) == (2, ""), (verb, out)
        assert f"run.json: {name}` must be what it was when the file was written" in words(err)


@pytest.mark.parametrize("lost", ["seal", "seal.seed", "problem", "seed"])
def test_what_is_taken_away_is_missed(place: Path, run: Call, lost: str) -> None:
    fields = read(place / "run.json")
    outer, _, inner = lost.partition(".")
    del (fields[outer] if inner else fields)[inner or outer]
    (place / "run.json").write_text(json.dumps(fields))
    code, out, err = run("certify", place, "--recheck")
    assert (code, out) == (2, "") and "run.json" in err
    fields["format"] = "saddleback-run/1"  # which had neither
    (place / "run.json").write_text(json.dumps(fields))
    assert run("certify", place, "--recheck")[0] == (0 if lost == "seal" else 2)


OTHERS = {
    "law": ["capacity=3", "gamma=0.5", "limit=0.3", "service=0.5001"],
    "limit": ["capacity=3", "gamma=0.5", "limit=0.31"],
    "states": ["capacity=4", "gamma=0.5", "limit=0.3"],
    "discount": ["capacity=3", "gamma=0.5001", "limit=0.3"],
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_problem_is_noticed_though_the_seal_fits(place: Path, run: Call, name: str) -> None:
    fields = read(place / "run.json")
    fields["target"]["settings"] = OTHERS[name]
    reseal(place / "run.json", fields)
    for verb, *more in READERS[:3]:
        code, out, err = run(verb, place, *more)
        assert (code, out) == (2, ""), (verb, out)
        assert "target queue` must" in words(err), err
    fields["target"]["settings"] = [*QUEUE[2::2]]
    reseal(place / "run.json", fields)
    assert run("certify", place, "--recheck")[0] == 0


@pytest.mark.slow
def test_another_simulator_without_a_table_is_noticed(tmp_path: Path, run: Call) -> None:
    place = tmp_path / "run"
    assert run("solve", *LINEAR, "--out", place)[0] in (0, 4)
    assert run("certify", place, "--recheck")[0] == 0
    fields = read(place / "run.json")
    laws = [_law_of(zoo.make("linear-quadratic", **more)) for more in ({}, {}, {"noise": 0.2001})]
    assert laws[0] == laws[1] == fields["problem"]["law"] != laws[2]
    fields["problem"]["law"] = laws[2]
    reseal(place / "run.json", fields)
    code, _, err = run("certify", place, "--recheck")
    assert code == 2 and "must be the problem that the run was made for" in words(err)


@pytest.mark.parametrize(("name", "value"), {"options.seed": 7, "options.rounds": 2, "target": "wireless"}.items())
def test_an_edited_request_is_refused_with_the_field(tmp_path: Path, run: Call, name: str, value: Any) -> None:
    place = tmp_path / "s"
    begun_and_killed(place, "sample", "queue", [], {"rounds": 1, "seed": 0})
    path = work_folder(place) / "request.json"
    fields = read(path)
    at(fields, name, value)
    path.write_text(json.dumps(fields))
    code, out, err = run("resume", place)
    assert (code, out) == (2, "") and f"request.json: {name}` must be what it was" in words(err)
    assert not (place / "samples").exists()
