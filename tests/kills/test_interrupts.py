"""Ctrl-C at every line of the code that writes: what was drawn is kept, and the next command ends with the same bytes.

A signal is answered between any two steps of Python code. One that came while a block was put on the list of those to be
written, or just after its line was, once left a store that its next reader called damaged.
"""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from kills.commands import call
from kills.interrupts import interrupted_at
from kills.kill_points import Bench, Tell, flush_when_all_is_drawn, in_child, watch_blocks
from kills.test_kill_points import SCENARIOS
from saddleback import cli
from saddleback.errors import StorageError
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.store_runs import FINGERPRINT, LAYOUTS, QuickDisk, add_all, expected_hash, some_blocks

BLOCKS, LAYOUT = some_blocks(num_pairs=2, per_pair=2, size=20), LAYOUTS["samples"]
STORE = ("sampling/store/shards.py", "files/disk.py")
WRITING = (
    "files/",
    "runs/work_folder.py",
    "runs/run_folder.py",
    "runs/events.py",
    "sampling/store/",
    "sampling/executors/durable.py",
    "solving/kept_run.py",
)


def _drawn(folder: Path, at: int) -> bool:
    """Draw into a store, and put it away as a run does that is interrupted at a line; whether the line was reached."""
    store = SampleStore.create(folder, FINGERPRINT, LAYOUT, disk=QuickDisk(), shard_bytes=100)
    try:
        with interrupted_at(STORE, at) as reached:
            add_all(store, BLOCKS)
            store.flush()
    except KeyboardInterrupt:
        with suppress(StorageError):
            store.flush()
    store.close()
    return len(reached) > at


@pytest.mark.slow
def test_a_store_whose_writer_is_interrupted_at_any_line(tmp_path: Path) -> None:
    for at in itertools.count():
        folder = tmp_path / str(at)
        if not _drawn(folder, at):
            break
        with SampleStore.open(folder, FINGERPRINT, disk=QuickDisk()) as store:
            add_all(store, store.missing(BLOCKS))
            assert store.content_hash() == expected_hash(BLOCKS, LAYOUT), at
    assert at > 100, "lines were reached"


TAKEN_AGAIN = """
import itertools, sys
from contextlib import suppress
from pathlib import Path

from kills.interrupts import interrupted_at
from saddleback.errors import InputError
from saddleback.files.disk import Lock

folder = Path(sys.argv[1])
for at in itertools.count():
    path = folder / str(at)
    with suppress(KeyboardInterrupt), interrupted_at(("files/disk.py",), at) as reached:
        Lock(path).release()
    with suppress(InputError):  # it is held, by the one that was interrupted
        Lock(path).release()
    Lock(folder / "another").release()
    if len(reached) <= at:
        break
print(at)
"""


WHOLE_OR_NOT_THERE = """
import itertools, sys
from pathlib import Path

import numpy as np

from kills.interrupts import interrupted_at
from saddleback.files.npz import write_arrays

arrays = {"a": np.arange(5.0), "b": np.arange(3)}


def read(path):
    with np.load(path, allow_pickle=False) as file:
        return all(np.array_equal(file[name], x) for name, x in arrays.items())


for at in itertools.count():
    path = Path(sys.argv[1]) / f"{at}.npz"
    with interrupted_at(("files/",), at) as reached:
        try:
            write_arrays(path, arrays)
        except KeyboardInterrupt:
            assert not path.exists() or read(path), "it has its name when all is written"
    if len(reached) <= at:
        break
assert read(path)
print(at)
"""


def _lines_reached(script: str, folder: Path) -> int:
    """What a script prints in a process of its own, where no other test has traced or sent anything."""
    place = Path(__file__).parent.parent
    command = [sys.executable, "-c", script, str(folder)]
    done = subprocess.run(
        command,
        check=False,
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_lock_that_is_interrupted_at_any_line_can_be_taken_again(tmp_path: Path) -> None:
    """Also where Ctrl-C comes between the last line of a `with` and its end: that once left a guard held, and the process waiting for itself."""
    assert _lines_reached(TAKEN_AGAIN, tmp_path) > 15


def test_an_archive_that_is_interrupted_at_any_line_is_whole_or_not_there(tmp_path: Path) -> None:
    """And whoever writes it is told of the interrupt, not of a member that could not be closed."""
    assert _lines_reached(WHOLE_OR_NOT_THERE, tmp_path) > 30


def test_what_an_interrupt_leaves_open_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ValueError("it cannot be closed")

    monkeypatch.setattr("saddleback.cli.app", fails)
    with pytest.raises(SystemExit) as ended:
        cli.main(["solve", "queue"])
    assert ended.value.code == 130 and capsys.readouterr().err == "interrupted\n"


def interrupted(name: str, folder: Path, most: int | None) -> int:
    """Interrupt a command at lines that are drawn, or at every line once, and run the next one; how many there were."""
    made = Bench(SCENARIOS[name], folder)

    def work(tell: Tell, at: int) -> tuple[int, str]:
        watch_blocks(tell)
        flush_when_all_is_drawn()
        with interrupted_at(WRITING, at) as reached:
            code, _, err = call(*made.command)
        if at < 0:
            tell("reached", reached)
        return code, err

    ended = in_child(lambda tell: work(tell, -1))
    (lines,) = ended.told["reached"][0]
    last = sorted({tuple(line): i for i, line in enumerate(lines)}.values())
    chosen = last if most is None else sorted(random.Random(name).sample(last, most))
    for at in chosen:
        made.begin_anew()
        ended = in_child(lambda tell, at=at: work(tell, at))  # type: ignore[misc]
        assert ended.code == 130 and "interrupted" in ended.err, (lines[at], ended)
        fault = made.judged({tuple(what) for what in ended.told.get("acknowledged", [])})
        assert fault is None, (lines[at], fault)
    return len(chosen)


@pytest.mark.check
@pytest.mark.parametrize("name", ["solve in place of a run", "sample, then resume"])
def test_a_command_that_is_interrupted_at_some_lines(name: str, tmp_path: Path) -> None:
    interrupted(name, tmp_path / "bench", 12)


@pytest.mark.study
@pytest.mark.parametrize(
    "name", ["solve, then resume", "solve in place of a run", "sample, then resume", "merge", "repair"]
)
def test_a_command_that_is_interrupted_at_every_line(name: str, tmp_path: Path) -> None:
    print(f"{name}: {interrupted(name, tmp_path / 'bench', None)} interrupts, no fault")
