"""``saddleback new``: two files that run as they are."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from cli.command_line import Call
from saddleback.instances.problem_file.starter import write_starter


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_files_run_at_once(run: Call, home: Path) -> None:
    code, out, _ = run("new", "store")
    assert code == 0 and "saddleback check store.toml" in out
    assert sorted(p.name for p in home.iterdir()) == ["store.py", "store.toml"]
    assert run("check", "store.toml", "--calls", 4000)[0] == 0
    assert run("plan", "store.toml", "--epsilon", 40)[0] == 0
    code, out, err = run("solve", "store.toml", "--samples", 40_000, "--json")
    assert code in (0, 4), err
    assert json.loads(out)["constraints"][0]["name"] == "nearly empty"


def test_what_is_promised_in_the_comments_is_true(home: Path) -> None:
    """Every name in the problem file is a function of the simulator, and the range holds what occurs."""
    simulator, problem = write_starter("mine", home)
    names: dict[str, object] = {}
    exec(compile(simulator.read_text(), str(simulator), "exec"), names)
    said = tomllib.loads(problem.read_text())
    for place in (said["simulator"]["function"], said["reward"]["values"], said["constraints"][0]["values"]):
        module, _, function = place.partition(":")
        assert module == "mine" and callable(names[function])
    low, high = said["reward"]["range"]
    earned = [names["profit"](s, a) for s in range(said["states"]) for a in range(len(said["actions"]))]  # type: ignore[operator]
    assert low <= min(earned) and max(earned) <= high
    assert simulator.name in problem.read_text() and problem.name in simulator.read_text()


@pytest.mark.parametrize("there", ["store.py", "store.toml"])
def test_nothing_is_overwritten(run: Call, home: Path, there: str) -> None:
    (home / there).write_text("mine")
    code, out, err = run("new", "store")
    assert (code, out) == (2, "") and there in err and "nothing is overwritten" in err
    assert [p.name for p in home.iterdir()] == [there] and (home / there).read_text() == "mine"


@pytest.mark.parametrize("name", ["", "a-b", "../x", "x/y", "class", "1st", "x.py", "é", "a" * 80])
def test_names_that_python_cannot_import(run: Call, home: Path, name: str) -> None:
    code, out, err = run("new", name)
    assert (code, out) == (2, "") and "NAME" in err
    assert list(home.iterdir()) == []
