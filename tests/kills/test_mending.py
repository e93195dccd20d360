"""Runs that are mended: a range that was too small, a file that has moved, and finished runs that are not what they were."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from kills.commands import SMALL, SOLVE, call, everything
from kills.kill_points import contents, run
from saddleback import save_table, zoo

CODE = '''"""A queue whose overtime is, once in a while, more than one hour."""


def step(waiting, action, rng):
    after = min(max(waiting - (rng.random() < (0.3, 0.7)[action]), 0) + (rng.random() < 0.4), 3)
    hours = action * rng.random()
    return after, 1 - waiting / 3, 1.4 if rng.random() < 2e-4 and action else hours
'''
FILE = """
gamma = 0.6
states = 4
actions = 2
start = 0
[simulator]
function = "{module}:step"
[reward]
values = "observed"
range = [0, 1]
[[constraints]]
name = "overtime"
values = "observed"
range = {range}
limit = "<= {limit}"
units = "per-step"
"""
OPTIONS = ["--samples", 30_000, "--seed", 4, "--json"]


def write_file(folder: Path, range_: str = "[0, 1]", limit: float = 0.3) -> Path:
    """A problem file, with code that has a name of its own."""
    folder.mkdir(exist_ok=True)
    module = f"queue_{folder.name}"
    (folder / f"{module}.py").write_text(CODE)
    (folder / "shop.toml").write_text(FILE.format(module=module, range=range_, limit=limit))
    return folder / "shop.toml"


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["solve", pytest.param("sample", marks=pytest.mark.check)])
def test_a_range_is_widened_and_what_was_drawn_is_kept(verb: str, tmp_path: Path) -> None:
    file, options = write_file(tmp_path / f"narrow{verb}"), OPTIONS if verb == "solve" else ["--json"]
    code, _, err = call(verb, file, *options, "--out", tmp_path / "run")
    assert code == 2 and "declare the true range, at least (0, 1.4)" in err
    stores = (tmp_path / "run.work" if verb == "solve" else tmp_path / "run") / "samples"
    drawn = {p.name: p.read_bytes() for p in stores.rglob("*.npy")}
    assert drawn
    write_file(file.parent, "[0, 1.5]")
    ended = run(["resume", str(tmp_path / "run"), "--problem", str(file)])
    assert ended.code == 0, ended.err
    kept = {p.name: p.read_bytes() for p in (tmp_path / "run" / "samples").rglob("*.npy")}
    assert all(kept[name] == data for name, data in drawn.items())
    assert call(verb, file, *options, "--out", tmp_path / "whole")[0] == 0
    found = contents(tmp_path)
    for name in [name for name in found if name.startswith("whole/")]:
        assert found[name] == found[name.replace("whole/", "run/", 1)], name


@pytest.mark.slow
def test_nothing_but_ranges_may_be_mended(tmp_path: Path) -> None:
    file = write_file(tmp_path / "limits")
    assert call("solve", file, *OPTIONS, "--out", tmp_path / "run")[0] == 2
    write_file(file.parent, "[0, 1.5]", limit=0.2)
    before = everything(tmp_path)
    code, out, err = call("resume", tmp_path / "run", "--problem", file)
    assert (code, out) == (2, "") and "a file with the SHA-256" in err and everything(tmp_path) == before


@pytest.mark.check
def test_a_problem_file_under_another_path_gives_the_same_bytes(tmp_path: Path) -> None:
    """A problem file, and a table: the file has moved while the run was under way."""
    file = write_file(tmp_path / "moving", "[0, 1.5]")
    table = zoo.make("garnet", states=4, successors=2).table
    assert table is not None
    save_table(table, tmp_path / "moving" / "table.npz")
    for name in (file, tmp_path / "moving" / "table.npz"):
        command = ["solve", str(name), "--samples", "4000", "--out", str(tmp_path / "run")]
        assert call(*command)[0] == 0
        whole = contents(tmp_path / "run")
        shutil.rmtree(tmp_path / "run")
        assert run(command, at=60).code is None
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        moved = Path(shutil.copy(name, tmp_path / "elsewhere"))
        shutil.copy(tmp_path / "moving" / "queue_moving.py", tmp_path / "elsewhere")
        ended = run(["resume", str(tmp_path / "run"), "--problem", str(moved)])
        assert ended.code == 0, ended.err
        assert contents(tmp_path / "run") == whole
        shutil.rmtree(tmp_path / "run")


@pytest.mark.slow
def test_a_finished_run_is_verified_before_it_is_called_finished(tmp_path: Path) -> None:
    code, out, _ = call(*SOLVE, "--json", "--out", tmp_path / "run")
    again = call("resume", tmp_path / "run", "--json")
    answer, stored = json.loads(out), json.loads(again[1])
    assert again[0] == code == 0 and "nothing to resume" in again[2]
    assert stored.pop("check_calls") == 0 and answer.pop("check_calls") > 0
    assert stored == answer
    for path in sorted(p for p in (tmp_path / "run").rglob("*") if p.is_file() and p.name != "lock"):
        good = path.read_bytes()
        path.write_bytes(good[: len(good) // 2] + bytes([good[len(good) // 2] ^ 4]) + good[len(good) // 2 + 1 :])
        code, out, err = call("resume", tmp_path / "run", "--json")
        assert code in (2, 5) and not out and "nothing to resume" not in err, path
        path.write_bytes(good)
    assert call("resume", tmp_path / "run")[0] == 0


def test_samples_that_are_complete_are_verified_too(tmp_path: Path) -> None:
    assert call("sample", *SMALL, "--out", tmp_path / "run")[0] == 0
    (tmp_path / "run.work").mkdir()  # a kill when all was done
    code, out, err = call("resume", tmp_path / "run", "--json")
    assert code == 0 and "nothing to resume" in err and json.loads(out)["samples"] > 0
    assert not (tmp_path / "run.work").exists()
    shard = next((tmp_path / "run").rglob("*.npy"))
    shard.write_bytes(shard.read_bytes()[:-1] + b"!")
    (tmp_path / "run.work").mkdir()
    assert call("resume", tmp_path / "run")[0] == 2
