"""Power cuts at every moment of a run: renames that are lost or come in another order, files that are torn, folders that vanish.

What was acknowledged is there, nothing jams, nothing is left behind, and the run ends with the bytes of an unbroken one.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from kills.kill_points import Bench
from kills.run_images import Change, Recorder, Tree, images, recorded, write_tree
from kills.test_kill_points import SCENARIOS

NAMES = ("solve, then resume", "solve in place of a run", "sample, then resume", "solve, then again")


def cut_off(name: str, folder: Path, most: int, step: int) -> Counter[str]:
    """What became of the images of one scenario: at most so many a moment, and every so-many-th of all."""
    made = Bench(SCENARIOS[name], folder)
    found: Counter[str] = Counter()
    for i, cut in enumerate(images(recorded(made), random.Random(20_261_116), most)):
        if i % step:
            continue
        shutil.rmtree(made.home)
        write_tree(made.home, cut.tree)
        fault = made.judged(cut.acknowledged)
        if fault:
            print(f"{name}, after {cut.after}: {fault}")
        found["good" if fault is None else "bad"] += 1
    return found


@pytest.mark.check
@pytest.mark.parametrize("name", NAMES[:3])
def test_some_power_cuts(name: str, tmp_path: Path) -> None:
    found = cut_off(name, tmp_path / "bench", 1, 5 if name.startswith("sample") else 17)
    assert found["good"] >= 5 and not found["bad"]


@pytest.mark.study
@pytest.mark.parametrize("name", NAMES)
def test_every_power_cut(name: str, tmp_path: Path) -> None:
    found = cut_off(name, tmp_path / "bench", 4, 1)
    print(f"{name}: {found.total()} images of power cuts, {dict(found)}")
    assert found["good"] > (25 if name.startswith("sample") else 60) and not found["bad"]


def test_power_cuts_find_a_sync_that_is_missing(tmp_path: Path) -> None:
    """Without syncs of folders acknowledged samples vanish with the folder that they are in."""
    made = Bench(SCENARIOS["sample, then again"], tmp_path / "bench")
    record = recorded(made)
    record.log = [entry for entry in record.log if entry[0] != "sync folder"]
    bad = 0
    for cut in images(record, random.Random(1), 2):
        if cut.acknowledged and cut.tree.get("run") != {} and not bad:
            shutil.rmtree(made.home)
            write_tree(made.home, cut.tree)
            bad += made.judged(cut.acknowledged) is not None
    assert bad


def test_the_images_are_those_a_cut_allows(tmp_path: Path) -> None:
    """By hand: a file in a new folder, which is written, synced and moved to another folder."""
    (tmp_path / "old").mkdir()
    record = Recorder(tmp_path)
    folder, file = tmp_path / "new", tmp_path / "new" / "a"
    record.new(folder)
    record.log.append(("folder", record.items[str(folder)]))
    record.new(file)
    record.log.append(("write", record.items[str(file)], 0, b"1234"))

    def last() -> list[Tree]:
        return [cut.tree for cut in images(record, random.Random(0)) if cut.after == len(record.log)]

    assert sorted(map(repr, last())) == sorted(
        map(repr, [{"old": {}, "new": {"a": b"1234"}}, {"old": {}, "new": {"a": b"12"}}])
    )
    record.log += [("sync", record.items[str(file)]), ("sync folder", record.items[str(folder)])]
    record.log.append(("sync folder", 0))
    record.moved(file, tmp_path / "old" / "b")
    assert isinstance(record.log[-1][1], Change)
    before: Tree = {"old": {}, "new": {"a": b"1234"}}
    after: Tree = {"old": {"b": b"1234"}, "new": {}}
    assert [tree for tree in last() if tree != before] == [after]
    record.log.append(("sync folder", record.items[str(tmp_path / "old")]))
    record.log.append(("sync folder", record.items[str(folder)]))
    assert all(tree in (before, after) for tree in last())


@pytest.mark.check
def test_every_change_goes_on_record(tmp_path: Path) -> None:
    """What is left after the last entry of the record, all of it applied, is what the command left."""
    made = Bench(SCENARIOS["sample, then again"], tmp_path / "bench")
    record = recorded(made)
    assert {entry[0] for entry in record.log} >= {"change", "write", "sync", "sync folder", "acknowledged", "folder"}
    *_, last = images(record, random.Random(0))
    names = {str(p.relative_to(made.home)) for p in made.home.rglob("*")}
    assert set(_names(last.tree)) == names


def _names(tree: Tree, above: str = "") -> list[str]:
    found = []
    for name, inside in tree.items():
        found.append(f"{above}{name}")
        if not isinstance(inside, bytes):
            found += _names(inside, f"{above}{name}/")
    return found
