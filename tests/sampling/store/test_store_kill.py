"""SIGKILL at random moments, recovery included: nothing acknowledged is lost, and the run ends as the unbroken one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from places import TESTS
from saddleback.errors import InputError
from saddleback.sampling.store.sample_store import SampleStore
from sampling.store.store_runs import FINGERPRINT, LAYOUTS, some_blocks

pytestmark = pytest.mark.check

SEED = 71_2024


def kill(folder: Path, kills: int, *more: str) -> dict[str, Any]:
    program = Path(__file__).parent / "kill_runs.py"
    done = subprocess.run(
        [sys.executable, str(program), str(SEED), str(kills), str(folder), *more],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    return json.loads(done.stdout)


def test_thirty_kills(tmp_path: Path) -> None:
    report = kill(tmp_path, 30)
    assert report["kills"] == 30 and report["recovering"] >= 1 and report["recovering"] < 30
    assert report["lost"] == 0 and report["damaged"] == 0 and report["right_hashes"]


@pytest.mark.study
def test_a_thousand_kills(tmp_path: Path) -> None:
    """917 clean kills bound the rate of failures below 1% at 99.99%."""
    report = kill(tmp_path, 1000)
    assert report["recovering"] > 50 and report["swept"] > 50 and report["runs"] > 20
    assert report["lost"] == 0 and report["damaged"] == 0 and report["right_hashes"]


def test_kills_find_a_writer_that_acknowledges_too_early(tmp_path: Path) -> None:
    """Most kills show it; a hundred that do not would be a wonder."""
    assert kill(tmp_path, 100, "early")["lost"] == 1


HOLDER = """
import sys
from saddleback.sampling.store.sample_store import SampleStore
store = SampleStore.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
"""


def test_one_writer_at_a_time_and_none_that_is_dead(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    SampleStore.create(folder, FINGERPRINT, LAYOUTS["samples"]).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == "open\n"
        with pytest.raises(InputError, match=f"process {holder.pid} on .* is writing to it; wait"):
            SampleStore.open(folder)
        with SampleStore.open(folder, writable=False) as reader:
            assert reader.blocks() == []
        holder.kill()
    with SampleStore.open(folder) as store:  # its lock died with it
        with pytest.raises(InputError, match="this process has it open already"):
            SampleStore.open(folder)
        with pytest.raises(InputError, match="this process has it open already"):  # looking did not give the lock away
            SampleStore.open(folder)
        assert store.blocks() == []
    SampleStore.open(folder).close()


FORKED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from sampling.store.store_runs import LAYOUTS, add_all, some_blocks
from saddleback.errors import InputError
from saddleback.sampling.store.sample_store import SampleStore
first, second = some_blocks(2, 1, 9)
store = SampleStore.open(sys.argv[1])
add_all(store, [first])
if os.fork() == 0:
    try:
        for use in (lambda: add_all(store, [second]), store.flush, lambda: SampleStore.open(sys.argv[1])):
            try:
                use()
            except InputError as error:
                print(error, flush=True)
        store.close()
    finally:
        os._exit(0)
os.wait()
store.close()
"""


def test_a_child_does_not_write_for_its_parent(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    SampleStore.create(folder, FINGERPRINT, LAYOUTS["samples"]).close()
    command = [sys.executable, "-c", FORKED, str(folder), str(TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
    lines = done.stdout.splitlines()
    assert len(lines) == 3 and all("must be used by the process that opened it" in line for line in lines[:2])
    assert "is writing to it" in lines[2]
    with SampleStore.open(folder) as store:
        assert store.blocks() == some_blocks(2, 1, 9)[:1]
