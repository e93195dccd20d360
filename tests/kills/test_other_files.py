"""Files that the user names: what somebody else wrote is not overwritten, and no file goes into the folder of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helpers import begun_and_killed
from kills.commands import SMALL, SOLVE, call, everything
from saddleback import save_table
from saddleback.instances.zoo import make
from saddleback.reports.listeners import JSONLines

KINDS: dict[str, Callable[[Path, Path], list[Any]]] = {
    "policy": lambda run, file: [*SOLVE, "--policy", file],
    "trace": lambda run, file: [*SOLVE, "--callback", f"jsonl:{file}"],
    "page": lambda run, file: ["report", run, "--out", file],
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs") / "run"
    assert call(*SOLVE, "--out", place)[0] == 0
    return place


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Other people's files, of many kinds."""
    (tmp_path / "model.py").write_text("def step(state, action, rng):\n    return state\n")
    (tmp_path / "page.html").write_text("<!doctype html>\n<html><head><title>mine</title></head></html>\n")
    (tmp_path / "notes.jsonl").write_text('{"time": 1}\n')
    (tmp_path / "text.npz").write_text("no archive")
    save_table(make("garnet", states=4, successors=2).table, tmp_path / "problem.npz")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_somebody_else_wrote_is_not_overwritten(kind: str, run: Path, home: Path) -> None:
    before, stored = everything(home), everything(run)
    for name in sorted(before):
        code, out, err = call(*KINDS[kind](run, home / name))
        assert (code, out) == (2, "") and name in err and "--force" in err, (name, err)
    assert (everything(home), everything(run)) == (before, stored)
    assert call(*KINDS[kind](run, home / "text.npz"), "--force")[0] == 0
    assert (home / "text.npz").read_bytes() != before["text.npz"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_we_wrote_is_replaced(kind: str, run: Path, home: Path) -> None:
    """The file of the same kind, or an empty one, and the bytes are the same; of another kind it is refused."""
    assert call(*KINDS[kind](run, home / "new"))[0] == 0
    first = (home / "new").read_bytes()
    assert call(*KINDS[kind](run, home / "new"))[0] == 0
    (home / "empty").touch()
    assert call(*KINDS[kind](run, home / "empty"))[0] == 0
    assert (home / "new").read_bytes() == (home / "empty").read_bytes() == first
    for other in set(KINDS) - {kind}:
        assert call(*KINDS[other](run, home / "new"))[0] == 2
    assert (home / "new").read_bytes() == first and not [p for p in home.iterdir() if p.name.endswith(".partial")]


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_goes_into_a_run(kind: str, run: Path, home: Path) -> None:
    """Nor into its samples or a work folder, through a link or with --force."""
    (home / "link").symlink_to(run)
    (home / "samples").symlink_to(run / "samples")
    (home / "other.work").mkdir()
    (home / "other.work" / "request.json").write_text("{}")
    store = next((run / "samples").iterdir())
    files = [run / "certificate.json", run / "new", store / "new", run / "samples" / "new", home / "other.work" / "new"]
    stored = everything(run)
    for file in [*files, home / "link" / "policy.npz", home / "samples" / "new"]:
        for force in ([], ["--force"]):
            code, out, err = call(*KINDS[kind](run, file), *force)
            assert (code, out) == (2, "") and "outside the folders of runs" in err, (file, err)
    assert everything(run) == stored and sorted(p.name for p in (home / "other.work").iterdir()) == ["request.json"]


def test_one_place_is_not_given_to_two(home: Path) -> None:
    """Nor by another way there: a trace in the work folder was written twice, by the run and by the callback."""
    place, twice = home / "run", home / "twice"
    (home / "here").symlink_to(home)
    again = home / "here" / "twice"
    for options in (
        ["--policy", twice, "--callback", f"jsonl:{again}"],
        ["--callback", f"jsonl:{twice}", "--callback", f"jsonl:{again}"],
        ["--out", place, "--policy", home / "here" / "run"],
        ["--out", place, "--callback", f"jsonl:{home / 'here' / 'run'}"],
        ["--out", place, "--callback", f"jsonl:{home / 'run.work' / 'trace.jsonl'}"],
        ["--out", place, "--callback", f"jsonl:{home / 'here' / 'run.work' / 'trace.jsonl'}"],
        ["--out", place, "--callback", f"tensorboard:{place}"],
        ["--policy", twice, "--callback", f"jsonl:{home / '.twice.partial'}"],
        ["--out", place, "--policy", place],
        ["--out", place, "--policy", home / "run.work"],
        ["--out", place, "--callback", f"jsonl:{place}"],
        ["--policy", twice, "--callback", f"jsonl:{twice}"],
        ["--callback", f"jsonl:{twice}", "--callback", f"jsonl:{twice}"],
    ):
        assert call(*SOLVE, *options, "--force")[:2] == (2, ""), options
    assert not [p for p in home.iterdir() if p.name.startswith(("run", "twice"))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_place_without_a_name_is_refused(kind: str, run: Path) -> None:
    code, out, err = call(*KINDS[kind](run, Path("/")), "--force")
    assert (code, out) == (2, "") and "must lie in an existing folder" in err


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_that_is_too_long_is_refused_beforehand(kind: str, run: Path, home: Path) -> None:
    code, out, err = call(*KINDS[kind](run, home / ("x" * 250)))
    assert (code, out) == (2, "") and "must have a name of at most 246 bytes" in err
    assert call(*KINDS[kind](run, home / ("x" * 246)))[0] == 0


def test_a_pipe_or_a_folder_is_no_place_for_a_page(run: Path, home: Path) -> None:
    os.mkfifo(home / "pipe")
    (home / "folder").mkdir()
    for kind in ("policy", "page"):
        for name in ("pipe", "folder"):
            assert call(*KINDS[kind](run, home / name), "--force")[:2] == (2, "")


def test_a_device_is_told_and_left_as_it_is() -> None:
    lines = JSONLines("/dev/null")
    lines({"event": "samples"})
    assert Path("/dev/null").is_char_device()


def test_samples_do_not_take_the_place_of_a_file(home: Path) -> None:
    before = everything(home)
    code, _, err = call("sample", *SMALL, "--out", home / "model.py")
    assert code == 2 and "must be a folder" in err and everything(home) == before


def test_no_run_goes_into_another_or_into_samples(run: Path, home: Path) -> None:
    """Nor does one draw into the samples of a run, or into its work folder."""
    (home / "link").symlink_to(run)
    assert call("sample", *SMALL, "--out", home / "drawn")[0] == 0
    store = home / "drawn" / "samples" / "samples-0"
    begun_and_killed(home / "begun", "sample", "garnet", ["states=4", "successors=2"], {"rounds": 1, "seed": 0})
    before, stored = everything(home), everything(run)
    inside = [run / "new", run / "samples", run / "samples" / "new", home / "link" / "new", store, store / "new"]
    for place in [*inside, store.parent, store.parent / "new", home / "begun.work", home / "begun.work" / "new"]:
        for verb in (SOLVE, ["sample", *SMALL]):
            code, out, err = call(*verb, "--out", place)
            assert (code, out) == (2, "") and ("must lie outside" in err or "of its own" in err), (place, err)
    code, out, err = call("sample", *SMALL, "--out", run)
    assert (code, out) == (2, "") and "a run" in err
    assert (everything(home), everything(run)) == (before, stored)


def test_a_run_does_not_replace_the_folder_that_one_is_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "empty").mkdir()
    monkeypatch.chdir(home / "empty")
    for place in (".", "./", home / "empty"):
        code, out, err = call(*SOLVE, "--out", place)
        assert (code, out) == (2, "") and "the folder that you are in" in err
    assert Path.cwd() == home / "empty" and not list((home / "empty").iterdir())
    assert not (home / "empty.work").exists()


@pytest.mark.parametrize("place", ["/", "no/such/folder", "/no/such/folder"])
def test_a_place_that_cannot_be_is_refused_by_every_verb(
    place: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    for verb in ([*SOLVE, "--out"], ["sample", *SMALL, "--out"], ["sample", *SMALL, "--verify", "--out"], ["resume"]):
        code, out, err = call(*verb, place)
        assert (code, out) == (2, "") and "error:" in err, (verb, err)
