"""One owner of a run: whoever comes second touches nothing, and what somebody else put there is neither followed nor removed."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers import begun_and_killed
from kills.commands import SMALL, SOLVE, call, everything
from saddleback.errors import StorageError
from saddleback.runs.work_folder import owned

OPTIONS = {"rounds": 1, "seed": 0}
VERBS = {
    "solve": [*SOLVE, "--out"],
    "solve --force": [*SOLVE, "--force", "--out"],
    "sample": ["sample", *SMALL, "--out"],
    "merge": ["sample", *SMALL, "--merge", "{part}", "--out"],
    "repair": ["sample", *SMALL, "--repair", "--out"],
    "resume": ["resume"],
}


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """Samples to be merged."""
    assert call("sample", *SMALL, "--out", tmp_path / "part")[0] == 0
    return tmp_path / "part"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def command(verb: str, part: Path, place: Path) -> list[str]:
    return [*(word.replace("{part}", str(part)) for word in VERBS[verb]), str(place)]


_HOLD = """
import sys
from saddleback.errors import StorageError
from saddleback.runs.work_folder import owned
with owned(sys.argv[1]) as work:
    if sys.argv[2] == "begun":
        work.begin("sample", "garnet", ["states=4", "successors=2"], {"rounds": 1, "seed": 0})
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(home: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the run."""
    child = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(home / "run"), request.param], stdin=-1, stdout=-1, text=True
    )
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("holder", [pytest.param("new", marks=pytest.mark.check), "begun"], indirect=True)
def test_who_comes_second_touches_nothing(holder: subprocess.Popen[str], home: Path, part: Path) -> None:
    before = everything(home)
    for verb in VERBS:
        code, out, err = call(*command(verb, part, home / "run"))
        assert (code, out) == (2, "") and "must have one writer at a time" in err, (verb, err)
        assert f"process {holder.pid} on {platform.node()} since 20" in err
        assert everything(home) == before, verb
    shutil.copytree(home, home.with_name("copy"))  # which nobody holds
    assert call(*command("sample", part, home.with_name("copy") / "run"))[0] == 0
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    assert (home / "run.work" / "lock").is_file()  # left behind, and in nobody's way
    assert call(*command("sample", part, home / "run"))[0] == 0
    assert [p.name for p in home.iterdir()] == ["run"]


def test_two_owners_in_one_process(home: Path) -> None:
    with owned(home / "run"):
        code, _, err = call(*SOLVE, "--out", home / "run")
        assert code == 2 and "this process has it open already" in err and "run.work" in err
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_that_was_made_anew_is_its_makers(home: Path, begun: bool) -> None:
    """The first owner, whose folder was moved away, neither fills it nor takes lock or request of the second away."""
    with owned(home / "run") as first:
        if begun:
            first.begin("sample", "garnet", ["states=4", "successors=2"], OPTIONS)
        (home / "run.work").rename(home / "away.work")
        with owned(home / "run") as other:
            other.begin("sample", "garnet", ["states=4", "successors=2"], {"rounds": 2, "seed": 0})
            before = everything(home)
            first.abandon()
            with pytest.raises(StorageError, match="another's now"), first.filled():
                pass
            first._leave()
            assert everything(home) == before
            code, _, err = call("resume", home / "run")
            assert code == 2 and "must have one writer" in err


def test_a_request_that_is_impossible_leaves_what_was_there(home: Path) -> None:
    """One that is new leaves nothing; one that was there before stays, whatever is wrong with it now."""
    impossible = [*SOLVE[:-1], "2", "--set", "actions=50"]
    assert call(*impossible, "--out", home / "run")[0] == 2
    assert list(home.iterdir()) == []
    begun_and_killed(home / "run", "sample", "garnet", ["states=4", "successors=9"], OPTIONS)
    before = everything(home)
    assert call("resume", home / "run")[0] == 2
    assert everything(home) == before


# ---- other people's files ----------------------------------------------------------------------------------------------


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """A folder of the user, which looks like one of ours to whoever only looks for a request."""
    folder = tmp_path / "treasure"
    begun_and_killed(tmp_path / "decoy", "sample", "garnet", ["states=4", "successors=2"], OPTIONS)
    shutil.copytree(tmp_path / "decoy.work", folder)
    (folder / "thesis.tex").write_text("ten years")
    (folder / "samples").mkdir()
    (folder / "samples" / "notes.txt").write_text("more")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("finished", [pytest.param(False, marks=pytest.mark.check), True])
def test_a_work_folder_that_is_a_link_is_not_followed(home: Path, part: Path, treasure: Path, finished: bool) -> None:
    if finished:
        assert call(*SOLVE, "--out", home / "run")[0] == 0
    (home / "run.work").symlink_to(treasure)
    before, precious = everything(home), everything(treasure)
    for verb in VERBS:
        code, out, err = call(*command(verb, part, home / "run"))
        assert (code, out) == (2, "") and "run.work, a link" in err, (verb, err)
        assert (everything(home), everything(treasure)) == (before, precious), verb


def _linked_store(work: Path, treasure: Path) -> None:
    (work / "samples").mkdir()
    (work / "samples" / "samples-0").symlink_to(treasure)


_PLANTED = {
    "a file of another name": lambda work, treasure: (work / "thesis.tex").write_text("x"),
    "a folder of another name": lambda work, treasure: (work / "mine").mkdir(),
    "samples that are a link": lambda work, treasure: (work / "samples").symlink_to(treasure),
    "a store that is a link": _linked_store,
    "a file among the samples": lambda work, treasure: shutil.copytree(treasure / "samples", work / "samples"),
    "a trace that is a link": lambda work, treasure: (work / "trace.jsonl").symlink_to(treasure / "thesis.tex"),
    "a lock that is a link": lambda work, treasure: (work / "lock").symlink_to(treasure / "thesis.tex"),
    "a lock that is another's file": lambda work, treasure: os.link(treasure / "thesis.tex", work / "lock"),
    "a lock of another program": lambda work, treasure: (work / "lock").write_text("4711"),
    "a finished run that is a link": lambda work, treasure: (work / "finished").symlink_to(treasure),
    "a file in a replaced run": lambda work, treasure: shutil.copytree(treasure / "samples", work / "replaced"),
    "a pipe": lambda work, treasure: os.mkfifo(work / "trace.jsonl"),
}


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("what", _PLANTED)
def test_a_work_folder_with_anything_else_is_left_alone(
    what: str, begun: bool, home: Path, treasure: Path, tmp_path: Path
) -> None:
    if begun:
        begun_and_killed(home / "run", "sample", "garnet", ["states=4", "successors=2"], OPTIONS)
    else:
        (home / "run.work").mkdir()
    _PLANTED[what](home / "run.work", treasure)
    before, precious = _plain(home), everything(treasure)
    for verb in ("solve", "solve --force", "sample", "resume"):
        code, out, err = call(*command(verb, tmp_path, home / "run"))
        assert (code, out) == (2, "") and "run.work" in err, (verb, err)
        assert (_plain(home), everything(treasure)) == (before, precious), verb


def _plain(folder: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and kinds: a pipe is not read."""
    return [(str(p), p.lstat().st_mode, p.lstat().st_size) for p in sorted(folder.rglob("*"))]


def test_a_folder_of_the_same_name_beside_a_finished_run_is_left_alone(home: Path, part: Path) -> None:
    assert call(*SOLVE, "--out", home / "run")[0] == 0
    (home / "run.work").mkdir()
    (home / "run.work" / "results.csv").write_text("1,2,3")
    before = everything(home)
    for verb in VERBS:
        code, _, err = call(*command(verb, part, home / "run"))
        assert code == 2 and "results.csv" in err and everything(home) == before, (verb, err)


def test_samples_are_not_drawn_through_a_link(home: Path, treasure: Path) -> None:
    (home / "run").mkdir()
    (home / "run" / "samples").symlink_to(treasure)
    precious = everything(treasure)
    code, _, err = call("sample", *SMALL, "--out", home / "run")
    assert (code == 2 and "a link" in err) or "same seed" in err
    assert everything(treasure) == precious
    (home / "run" / "samples").unlink()
    (home / "run" / "samples").mkdir()
    (home / "run" / "samples" / "samples-0").symlink_to(treasure)
    for verb in (["sample", *SMALL], ["sample", *SMALL, "--repair"]):
        code, _, err = call(*verb, "--out", home / "run")
        assert code == 2 and "a link" in err and everything(treasure) == precious


def test_a_run_that_holds_a_file_of_the_user_is_not_replaced(home: Path) -> None:
    assert call(*SOLVE, "--out", home / "run")[0] == 0
    note = next((home / "run" / "samples").iterdir()) / "notes.txt"
    note.write_text("mine")
    before = everything(home)
    code, out, err = call(*SOLVE, "--seed", 1, "--force", "--out", home / "run")
    assert (code, out) == (2, "") and "notes.txt" in err and everything(home) == before
