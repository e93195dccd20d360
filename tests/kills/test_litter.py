"""What kills have left, of this version and of earlier ones, is known by its name, and goes with the next command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kills.commands import SMALL, SOLVE, call, everything

_TOKEN = "0a1b2c3d"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished") / "run"
    assert call(*SOLVE, "--out", place)[0] == 0
    return place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_request_that_was_half_written(home: Path) -> None:
    """Nothing was begun: the original command works, and `resume` says that there is nothing, and cleans up."""
    for verb in (["sample", *SMALL, "--out"], [*SOLVE, "--out"], ["resume"]):
        for name in (f".request.json.{_TOKEN}.partial", ".request.json.partial"):
            shutil.rmtree(home)
            (home / "run.work").mkdir(parents=True)
            (home / "run.work" / name).write_text('{"format"')
            code, _, err = call(*verb, home / "run")
            assert code == (2 if verb == ["resume"] else 0), err
            assert [p.name for p in home.iterdir()] == ([] if verb == ["resume"] else ["run"])


@pytest.mark.slow
def test_a_run_that_was_half_written(home: Path, finished: Path) -> None:
    """Beside the place, as earlier versions wrote it, and in the work folder, with a file that is not whole."""
    for place in (home / f".run.{_TOKEN}.partial", home / "run.work" / "finished"):
        shutil.copytree(finished, place, ignore=lambda *_: {"samples", "run.json"})
        (place / f".dual.json.{_TOKEN}.partial").write_text("{")
        (place / ".dual.json.partial").write_text("{")
    assert call(*SOLVE, "--out", home / "run")[0] == 0
    assert [p.name for p in home.iterdir()] == ["run"]


@pytest.mark.parametrize("where", [f".run.{_TOKEN}.old", "run.work/replaced"])
def test_a_run_that_was_to_be_replaced_comes_back(where: str, home: Path, finished: Path) -> None:
    """If its place is empty; if it is not, the new run is there, and the old one goes."""
    for already in (False, True):
        (home / where).parent.mkdir(exist_ok=True)
        shutil.copytree(finished, home / where)
        code, _, err = call("resume", home / "run", "--json")
        assert code == 0 and "nothing to resume" in err, already
        assert [p.name for p in home.iterdir()] == ["run"]
        assert everything(home / "run") == everything(finished)


def test_what_only_looks_like_litter_stays(home: Path, finished: Path) -> None:
    """A folder of such a name with something else in it, a file, a name of another run."""
    shutil.copytree(finished, home / "run")
    mine = home / f".run.{_TOKEN}.partial"
    mine.mkdir()
    (mine / "thesis.tex").write_text("ten years")
    (home / f".run.{_TOKEN[::-1]}.old").write_text("a file")
    (home / f".other.{_TOKEN}.old").mkdir()
    (home / ".run.notes.partial").mkdir()
    before = everything(home)
    assert call("resume", home / "run")[0] == 0
    assert call(*SOLVE, "--out", home / "run")[0] == 2
    assert everything(home) == before


def test_a_file_that_was_half_written(home: Path, finished: Path) -> None:
    for name in ("p.npz", "t.jsonl", "page.html"):
        (home / f".{name}.partial").write_text("half")
    assert call(*SOLVE, "--policy", home / "p.npz", "--callback", f"jsonl:{home / 't.jsonl'}")[0] == 0
    assert call("report", finished, "--out", home / "page.html")[0] == 0
    assert sorted(p.name for p in home.iterdir()) == ["p.npz", "page.html", "t.jsonl"]
