"""SIGINT, SIGTERM and SIGHUP at moments spread over whole runs, with and without workers.

Whatever the moment: the exit code says which signal it was, no process is left, and `resume` ends with the bytes of an unbroken
run. A signal that comes when all is done changes nothing.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

FILES = ["solution.json", "certificate.json", "policy.npz", "rollouts.npz", "trace.jsonl"]
SOLVE = ["solve", "queue", "--samples", "400000", "--seed", "3"]
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
MARK = "SADDLEBACK_TEST_RUN"
SECONDS = 120


def begun(folder: Path, *arguments: Any) -> subprocess.Popen[str]:
    """A command whose processes can be told, by a variable of their environment; with the usual handlers of signals."""

    def usual() -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    words = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    environment = os.environ | {MARK: str(folder)}
    return subprocess.Popen(words, cwd=folder, env=environment, text=True, preexec_fn=usual, **pipes)  # noqa: PLW1509 - no threads here


def wait_for_the_command(program: subprocess.Popen[str]) -> None:
    """Until Python itself has begun, and the command is two processes: what comes before is not ours to answer."""
    children, end = Path(f"/proc/{program.pid}/task/{program.pid}/children"), time.monotonic() + SECONDS
    while not children.read_text().split():
        assert time.monotonic() < end
        time.sleep(0.001)


def left_of(folder: Path) -> list[int]:
    """Processes of that command that still live."""
    mark, found = f"{MARK}={folder}".encode(), []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it has gone, or is not ours
            continue
    return found


def all_gone(folder: Path, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while left_of(folder):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "run" / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], float]:
    """The files of a run that nobody disturbs, and the seconds it takes."""
    folder, began = tmp_path_factory.mktemp("unbroken"), time.monotonic()
    program = begun(folder, *SOLVE, "--out", "run")
    _, err = program.communicate(timeout=SECONDS)
    assert program.returncode == 0, err
    return contents(folder), time.monotonic() - began


def wait_for_a_file(program: subprocess.Popen[str], folder: Path, pattern: str) -> None:
    """Until the command has made a file of that name, or has ended."""
    end = time.monotonic() + SECONDS
    while not list(folder.glob(pattern)) and program.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.005)


def ends_well(folder: Path, number: int, moment: float | str, workers: int, want: dict[str, bytes]) -> int:
    """Send the signal so many seconds after the beginning, or once there is a file; the exit code, and all else is checked."""
    program = begun(folder, *SOLVE, "--workers", workers, "--out", "run")
    wait_for_the_command(program)
    if isinstance(moment, str):
        wait_for_a_file(program, folder, moment)
    else:
        time.sleep(moment)
    program.send_signal(number)
    _, err = program.communicate(timeout=SECONDS)
    code = program.returncode
    assert code in (0, 128 + number), (code, err)
    assert "Traceback" not in err and all_gone(folder), err
    if code:
        assert "interrupted" in err
        begun_or_done = (folder / "run.work" / "request.json").is_file() or (folder / "run").is_dir()
        again = begun(folder, *(["resume", "run"] if begun_or_done else [*SOLVE, "--out", "run"]))
        _, err = again.communicate(timeout=SECONDS)
        assert again.returncode == 0, err
    assert contents(folder) == want
    assert sorted(p.name for p in folder.iterdir()) == ["run"], "no litter"
    return code


def spread(tmp_path: Path, unbroken: tuple[dict[str, bytes], float], moments: int, workers: int) -> None:
    want, seconds = unbroken
    codes = []
    for i in range(moments):
        folder = tmp_path / str(i)
        folder.mkdir()
        moment = seconds * (1.0 if workers == 1 else 1.5) * (i + 0.5) / moments
        codes.append(ends_well(folder, SIGNALS[i % 3], moment, workers, want))
    assert any(code > 128 for code in codes), "some of them came in time"


@pytest.mark.check
@pytest.mark.parametrize("workers", [1, 2])
def test_signals_at_a_few_moments(tmp_path: Path, unbroken: Any, workers: int) -> None:
    """As soon as there is the command, a request, a sample, a rollout: whatever the machine is busy with."""
    names = ("*", "run.work/request.json", "run.work/samples/samples-*/*.npy", "run.work/samples/tapes-*")
    for i, name in enumerate(("", *names)):
        folder = tmp_path / str(i)
        folder.mkdir()
        code = ends_well(folder, SIGNALS[i % 3], name or 0.0, workers, unbroken[0])
        assert code or name == names[-1], "it came in time"


@pytest.mark.study
@pytest.mark.parametrize("workers", [1, 2])
def test_signals_at_many_moments(tmp_path: Path, unbroken: Any, workers: int) -> None:
    spread(tmp_path, unbroken, 60, workers)


HANGING = """
import time
def step(s, a, rng):
    open("calls", "a").write("x")
    while True:
        time.sleep(0.1)
"""
PROBLEM = """
gamma = 0.5
states = 2
actions = 2
start = 0
[simulator]
function = "hanging:step"
[reward]
values = [[0, 1], [1, 0]]
[[constraints]]
name = "c"
values = [[0, 1], [1, 0]]
limit = "<= 1"
units = "discounted"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "more"),
    [
        (signal.SIGTERM, []),
        pytest.param(signal.SIGHUP, ["--workers", "2"], marks=pytest.mark.check),
        pytest.param(signal.SIGINT, ["--timeout", "60"], marks=pytest.mark.check),
    ],
)
def test_in_the_middle_of_a_call(tmp_path: Path, number: int, more: list[str]) -> None:
    """The exit code, and no process left: neither the one that watches, nor the one that works, nor its workers."""
    (tmp_path / "hanging.py").write_text(HANGING)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    program = begun(tmp_path, "solve", "problem.toml", "--samples", "4000", "--out", "run", *more)
    end = time.monotonic() + SECONDS
    while not (tmp_path / "calls").exists() and time.monotonic() < end:
        time.sleep(0.05)
    program.send_signal(number)
    out, err = program.communicate(timeout=SECONDS)
    assert program.returncode == 128 + number and out == ""
    assert "interrupted" in err and err.count("\n") == 1 and all_gone(tmp_path)


@pytest.mark.check
def test_kill_takes_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    (tmp_path / "problem.toml").write_text(PROBLEM)
    program = begun(tmp_path, "solve", "problem.toml", "--samples", "4000", "--workers", "2")
    end = time.monotonic() + SECONDS
    while not (tmp_path / "calls").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert len(left_of(tmp_path)) >= 3
    program.kill()
    program.communicate(timeout=SECONDS)
    assert program.returncode == -signal.SIGKILL and all_gone(tmp_path)
