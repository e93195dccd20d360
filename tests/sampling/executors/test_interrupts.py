"""Ends that come from outside, in programs of their own: an interrupt, a kill, and the plain end of a script.

The scripts have no main guard, and their simulators are defined in them: both are common, and both must work.
"""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from places import TESTS
from sampling.executors import faulty_simulators as faulty

pytestmark = pytest.mark.check

SCRIPT = """
    import os, sys, time
    import numpy as np
    sys.path[:0] = {paths!r}
    from sampling.executors import faulty_simulators as faulty
    from saddleback.sampling.executors import {kind}

    def simulator(states, actions, rng):
        faulty.note({folder!r}, "pids", str(os.getpid()))
        time.sleep({seconds})
        return rng.integers(0, 6, len(states))

    source = faulty.source(simulator)
    executor = {kind}({options})
    found = dict(executor.run(source.draw, faulty.blocks()))
    print(len(found), sum(int(d.next_states.sum()) for d in found.values()), flush=True)
"""


def start(folder: Path, kind: str, options: str, seconds: float) -> subprocess.Popen:
    paths = [str(TESTS)]
    text = SCRIPT.format(paths=paths, folder=str(folder), kind=kind, options=options, seconds=seconds)
    (folder / "script.py").write_text(textwrap.dedent(text))
    command = [sys.executable, str(folder / "script.py")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def workers(folder: Path, number: int) -> list[int]:
    """The processes that the simulator runs in, once there are as many."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        pids = sorted({int(p) for p in faulty.lines(folder, "pids")})
        if len(pids) >= number:
            return pids
        time.sleep(0.05)
    raise AssertionError("the workers did not start")


def descendants(session: int) -> list[int]:
    """All processes of a session, and those whose parents are in it."""
    found = set()
    listing = subprocess.run(["ps", "-eo", "pid=,ppid=,sid="], capture_output=True, text=True, check=True).stdout
    rows = [tuple(map(int, line.split())) for line in listing.splitlines()]
    for _ in range(3):
        found |= {pid for pid, parent, sid in rows if sid == session or parent in found}
    return sorted(found)


@pytest.mark.parametrize("whole_group", [False, True], ids=["to the program", "from the keyboard"])
def test_an_interrupt_leaves_no_process_behind(tmp_path, whole_group):
    program = start(tmp_path, "Joblib", "2", 30.0)
    pids = workers(tmp_path, 2)
    family = descendants(program.pid)
    assert set(pids) <= set(family)
    (os.killpg if whole_group else os.kill)(program.pid, signal.SIGINT)
    _, errors = program.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors and program.returncode in (1, -signal.SIGINT)
    assert errors.count("Traceback") == 1, "nobody but the program itself complains"
    assert faulty.gone(family, 5)


def test_killing_the_program_ends_its_workers_in_the_middle_of_a_call(tmp_path):
    program = start(tmp_path, "Joblib", "2", 300.0)
    pids = workers(tmp_path, 2)
    program.kill()
    program.wait()
    program.stdout.close()
    program.stderr.close()
    try:
        assert faulty.gone(pids, 10)
    finally:
        for pid in filter(faulty.alive, pids):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("kind", "options"), [("Joblib", "2"), ("Serial", "timeout=20")])
def test_a_script_without_a_main_guard_ends_by_itself(tmp_path, kind, options):
    """Its simulator travels by value, and idle workers that nobody closed end with the program."""
    program = start(tmp_path, kind, options, 0.0)
    output, errors = program.communicate(timeout=60)
    assert program.returncode == 0 and errors == ""
    source = faulty.source(faulty.uniform)
    total = sum(int(source.draw(block).next_states.sum()) for block in faulty.blocks())
    assert output.split() == ["18", str(total)]
    pids = {int(p) for p in faulty.lines(tmp_path, "pids")}
    assert program.pid not in pids and faulty.gone(sorted(pids), 5)
