"""Kills at any moment of a run that draws with workers: what was acknowledged is kept, and the run ends with the same bytes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from kills.commands import call
from kills.kill_points import contents

SOLVE = ["solve", "random-linear", "--set", "states=30", "--samples", "200000", "--workers", "2", "--out"]


def started(*command: object) -> int:
    """A command in a forked child of its own session; its process."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            code = call(*command)[0]
        except BaseException:
            code = 99
        finally:
            os._exit(code)
    return pid


def killed_until_done(home: Path, kills: int, seconds: float, rng: random.Random) -> int:
    """Begin, kill at a random moment, resume, kill again …, and let the last one end; how many were killed."""
    home.mkdir()
    place, killed, acknowledged = home / "run", 0, dict[str, bytes]()
    for attempt in range(kills + 1):
        begun = (home / "run.work" / "request.json").is_file() or place.is_dir()
        pid = started("resume", place, "--workers", "2") if begun else started(*SOLVE, place)
        until = time.monotonic() + rng.uniform(0.02, 1.1) * seconds
        while (
            attempt < kills
            and time.monotonic() < until
            and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        ):
            time.sleep(0.005)
        if attempt < kills:
            os.kill(pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        assert code in (0, -signal.SIGKILL), f"attempt {attempt} ended with {code}"
        killed += code != 0
        found = shards(home)
        lost = [name for name, data in acknowledged.items() if found.get(name) != data]
        assert not lost, f"attempt {attempt} lost {lost}"
        acknowledged = found
    return killed


def shards(home: Path) -> dict[str, bytes]:
    """Every shard that a manifest names, wherever its store is by now."""
    found = {}
    for manifest in home.rglob("manifest.jsonl"):
        for line in manifest.read_bytes().splitlines():
            with contextlib.suppress(ValueError):  # a torn line was not acknowledged
                name = f"{json.loads(line)['shard']:06d}.npy"
                found[f"{manifest.parent.name}/{name}"] = (manifest.parent / name).read_bytes()
    return found


def test_kills(kills: int, each: int, tmp_path: Path) -> None:
    began = time.monotonic()
    (tmp_path / "alone").mkdir()
    assert call(*SOLVE, tmp_path / "alone" / "run")[0] == 0
    began = time.monotonic()
    assert call(*SOLVE, tmp_path / "alone" / "again")[0] == 0
    seconds, wanted = time.monotonic() - began, contents(tmp_path / "alone")
    wanted = {name: data for name, data in wanted.items() if not name.startswith("again")}
    rng, done, trial = random.Random(20_261_116), 0, 0
    while done < kills:
        home = tmp_path / f"killed{trial}"
        done += killed_until_done(home, min(each, kills - done), seconds, rng)
        assert contents(home) == wanted
        trial += 1
    print(f"{done} kills in {trial} runs with two workers, every one ended with the bytes of the unbroken run")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize(
        ("kills", "each"),
        [
            pytest.param(6, 3, marks=pytest.mark.check, id="few"),
            pytest.param(200, 8, marks=pytest.mark.study, id="many"),
        ],
    )
