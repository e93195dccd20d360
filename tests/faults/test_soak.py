"""A long day: sample, kill, resume, certify, report, over and over in one folder. Memory stays flat and nothing is left behind.

Runs are killed as processes, at random moments; certificates, pages and checks are made in this process, which lives as long as
the soak. SADDLEBACK_SOAK sets its length in seconds.
"""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from saddleback.cli import main

SEED = 20_261_117
KEPT = ("run.json", "solution.json", "certificate.json", "policy.npz", "rollouts.npz")
SOLVE = ["solve", "river-swim", "--samples", "60000", "--seed", "3"]
SAMPLE = ["sample", "river-swim", "--rounds", "3", "--seed", "3"]
WAIT = 60.0  # seconds for a command, or for the processes of one that was killed to go


def started(*arguments: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)


def code_of(*arguments: Any) -> int:
    """Run a command to its end."""
    return started(*arguments).wait(WAIT)


def here(*arguments: Any) -> int:
    """Run a command in this process."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()), pytest.raises(SystemExit) as ended:
        main([str(a) for a in arguments])
    return int(ended.value.code or 0)


def killed(seconds: float, *arguments: Any) -> None:
    """Start a command and kill it, all its processes or only the first, after so many seconds."""
    process = started(*arguments)
    time.sleep(seconds)
    if random.random() < 0.5:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait(WAIT)
    until = time.monotonic() + WAIT
    while processes_of(process.pid):
        assert time.monotonic() < until, f"processes live on: {processes_of(process.pid)}"
        time.sleep(0.05)


def processes_of(session: int) -> list[str]:
    """What is left of a command, by its session; the dead that nobody has waited for included."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except OSError:  # it has just ended
            continue
        if int(rest.split()[3]) == session:
            found.append(f"{name}) {rest.split()[0]}")
    return found


def resident() -> float:
    """Megabytes that this process holds."""
    gc.collect()
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1000


def growth(sizes: list[float]) -> float:
    """By how much the last third is larger than the one before it; the first third warms up."""
    third = len(sizes) // 3
    return statistics.median(sizes[-third:]) - statistics.median(sizes[third : len(sizes) - third])


def room(cycles: int) -> float:
    """Megabytes by which memory may seem to grow: what allocators keep, less than 20 kB a cycle in a long soak."""
    return 12.0 if cycles < 60 else 4.0


def cycle(folder: Path, number: int, wanted: dict[str, bytes], took: float) -> None:
    """One run and one set of samples, each killed on its way; then all that can be done with them."""
    run, samples = folder / "run", folder / "samples"
    workers = ["--workers", "2"] if number % 3 == 2 else []
    for place, command in ((run, SOLVE), (samples, SAMPLE)):
        command = [*command, "--out", str(place)]
        killed(random.uniform(0.2, 1.1) * took, *command, *workers)
        if code_of("resume", place) not in (0, 4):  # it had not begun
            assert code_of(*command) in (0, 4)
    contents = {name: (run / name).read_bytes() for name in KEPT}
    assert contents == wanted, "a run that was killed has other bytes"
    assert here("sample", "river-swim", "--out", samples, "--verify") == 0
    assert here("solve", "river-swim", "--from", samples, "--certificate-samples", "3000") in (0, 4)
    assert here("certify", run, "--samples", "4000", "--seed", 100 + number) in (0, 4, 6)
    assert here("certify", run, "--recheck") == 0
    assert here("report", run, "--out", folder / "page.html", "--force") == 0
    assert here("act", run, "--state", "1") == 0
    assert here("resume", run) in (0, 4)
    assert left_in(folder) == ["page.html", "run", "samples"]
    for place in (run, samples):
        shutil.rmtree(place)
    (folder / "page.html").unlink()


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def soak(folder: Path, seconds: float) -> None:
    random.seed(SEED)
    reference = folder / "reference"
    began = time.monotonic()
    assert code_of(*SOLVE, "--out", reference) in (0, 4)
    took = time.monotonic() - began
    wanted = {name: (reference / name).read_bytes() for name in KEPT}
    shutil.rmtree(reference)
    sizes, files, began = list[float](), list[int](), time.monotonic()
    while time.monotonic() - began < seconds or len(sizes) < 3:
        cycle(folder, len(sizes), wanted, took)
        sizes.append(resident())
        files.append(len(os.listdir("/proc/self/fd")))
    print(
        f"seed {SEED}: {len(sizes)} cycles in {time.monotonic() - began:.0f} s, {sizes[0]:.1f} MB at first, {sizes[-1]:.1f} MB at "
        f"last, at most {max(sizes):.1f}; growth {growth(sizes):.2f} MB; open files {files[0]} to {files[-1]}"
    )
    assert left_in(folder) == []
    assert files[-1] <= files[0] + 1
    assert growth(sizes) <= room(len(sizes))


@pytest.mark.check
def test_a_short_soak(tmp_path: Path) -> None:
    soak(tmp_path, 40.0)


@pytest.mark.study
def test_an_hour_of_it(tmp_path: Path) -> None:
    soak(tmp_path, float(os.environ.get("SADDLEBACK_SOAK", "3600")))


def test_a_leak_would_be_seen() -> None:
    flat = [100.0, 120.0, *(121.0 + 0.3 * (i % 5) for i in range(298))]
    assert growth(flat) <= room(len(flat))
    assert growth([x + 0.05 * i for i, x in enumerate(flat)]) > room(len(flat)), "fifty kilobytes a cycle"
