"""Every command that writes, killed at every disk operation: nothing acknowledged is lost, nothing jams, nothing is left.

The next command, whichever of the two it is, ends with the bytes of a run that was never killed, and cleans up. A few moments
of each command are tried by ``make test``, more by ``make check``, all of them by ``make study``.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from kills.commands import SMALL, call
from kills.kill_points import CHANGING, Bench, Scenario, Tell, in_child, run
from saddleback import save_table, zoo
from saddleback.files.disk import Disk
from saddleback.runs.work_folder import Work

_GARNET = " ".join(SMALL)
_SOLVE = f"solve {_GARNET} --samples 400"


def _table(home: Path) -> None:
    table = zoo.make("garnet", states=4, successors=2).table
    assert table is not None
    save_table(table, home / "table.npz")


def _killed(home: Path) -> None:
    """A solve that was killed when half of its samples were drawn."""
    assert run([*_SOLVE.split(), "--out", str(home / "run")], at=60).code is None


def _damaged(home: Path) -> None:
    """A byte of the last shard is not what it was."""
    shard = max((home / "run").rglob("*.npy"))
    data = bytearray(shard.read_bytes())
    data[-5] ^= 1
    shard.write_bytes(data)


SCENARIOS = {
    "solve, then resume": Scenario(f"{_SOLVE} --out {{home}}/run"),
    "solve, then again": Scenario(f"{_SOLVE} --out {{home}}/run", again=(0, 2)),
    "solve in place of a run": Scenario(
        f"{_SOLVE} --out {{home}}/run --force", (f"{_SOLVE} --seed 1 --out {{home}}/run",)
    ),
    "solve a table": Scenario(
        "solve {home}/table.npz --samples 400 --out {home}/run --policy {home}/p.npz --callback jsonl:{home}/t.jsonl",
        (_table,),
        again=(0, 2),
    ),
    "solve to an accuracy": Scenario(f"solve {_GARNET} --epsilon 9 --max-samples 4000 --out {{home}}/run"),
    "solve from samples": Scenario(
        f"solve {_GARNET} --from {{home}}/samples --certificate-samples 200 --out {{home}}/run",
        (f"sample {_GARNET} --out {{home}}/samples",),
    ),
    "policy and trace": Scenario(f"{_SOLVE} --policy {{home}}/p.npz --callback jsonl:{{home}}/t.jsonl", again=(0,)),
    "report": Scenario("report {home}/run", (f"{_SOLVE} --out {{home}}/run",), again=(0,)),
    "sample, then resume": Scenario(f"sample {_GARNET} --out {{home}}/run"),
    "sample, then again": Scenario(f"sample {_GARNET} --out {{home}}/run", again=(0,)),
    "more samples": Scenario(
        f"sample {_GARNET} --rounds 2 --out {{home}}/run", (f"sample {_GARNET} --out {{home}}/run",)
    ),
    "merge": Scenario(
        f"sample {_GARNET} --merge {{home}}/a --merge {{home}}/b --out {{home}}/run",
        (f"sample {_GARNET} --out {{home}}/a", f"sample {_GARNET} --seed 1 --out {{home}}/b"),
        again=(0,),
    ),
    "repair": Scenario(
        f"sample {_GARNET} --repair --out {{home}}/run", (f"sample {_GARNET} --out {{home}}/run", _damaged), again=(0,)
    ),
    "resume": Scenario("resume {home}/run", (_killed,)),
}


def tried(name: str, folder: Path, most: int | None) -> dict[str, int]:
    """How often the command was killed; a fault is raised with its moment."""
    made = Bench(SCENARIOS[name], folder)
    points = list(made.points())
    chosen = points if most is None else sorted(random.Random(name).sample(points, min(most, len(points))))
    faults = {point: fault for point in chosen if (fault := made.fault(*point)) is not None}
    for (at, when), fault in faults.items():
        print(f"{name}: killed {when} operation {at}, {made.operations[at]}: {fault}")
    assert not faults
    return {"operations": len(made.operations), "kills": len(chosen)}


_EVERY_DAY = ("solve in place of a run", "sample, then resume")


@pytest.mark.check
@pytest.mark.parametrize("name", _EVERY_DAY)
def test_a_few_kills(name: str, tmp_path: Path) -> None:
    tried(name, tmp_path / "few", 2)


@pytest.mark.check
@pytest.mark.parametrize("name", SCENARIOS)
def test_more_kills(name: str, tmp_path: Path) -> None:
    tried(name, tmp_path / "more", 5)


@pytest.mark.study
def test_every_kill(tmp_path: Path) -> None:
    total = 0
    for i, name in enumerate(SCENARIOS):
        found = tried(name, tmp_path / str(i), None)
        print(f"{name}: {found['operations']} operations, {found['kills']} kills, no fault", flush=True)
        total += found["kills"]
    print(f"{total} kills in all")
    assert total >= 1000


def test_kills_find_planted_bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that nobody removes, and a request that has its name before it is whole: each is seen."""
    made = Bench(SCENARIOS["sample, then again"], tmp_path / "bench")
    named = made.operations.index("rename")
    assert made.fault(named - 2, "half") is None
    with monkeypatch.context() as patch:
        patch.setattr(Work, "_leave", lambda work: work._lock.release())
        assert made.fault(named - 2, "half") == "run.work is left"
    with monkeypatch.context() as patch:
        patch.setattr("saddleback.files.disk.partial_of", lambda path: path)
        assert "request.json" in (made.fault(named - 2, "half") or "")


_CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"}


@pytest.mark.check
def test_all_writing_goes_through_the_disk(tmp_path: Path) -> None:
    """What is not an operation of the disk would not be counted: the interpreter tells of every file that is changed."""
    for i, name in enumerate(("policy and trace", "sample, then again", "solve a table")):
        made = Bench(SCENARIOS[name], tmp_path / str(i))
        ended = in_child(lambda tell, made=made: _audited(tell, made))  # type: ignore[misc]
        assert ended.code == 0, ended.err
        assert ended.told.get("outside", []) == [] and len(ended.told["inside"]) >= 9, name


def _audited(tell: Tell, made: Bench) -> tuple[int, str]:
    depth = [0]

    def inside(real: Any) -> Any:
        def operation(*arguments: Any) -> Any:
            depth[0] += 1
            try:
                return real(*arguments)
            finally:
                depth[0] -= 1

        return operation

    for name in (*CHANGING, "open_append"):
        setattr(Disk, name, inside(getattr(Disk, name)))

    def seen(event: str, arguments: tuple[Any, ...]) -> None:
        writes = event in _CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes and str(made.home) in str(arguments[0]):
            tell("inside" if depth[0] else "outside", event, str(arguments[0]))

    made.begin_anew()
    sys.addaudithook(seen)
    code, _, err = call(*made.command)
    return code, err
