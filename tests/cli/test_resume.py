"""``sample``, ``solve --out`` and ``resume``: the same bits whoever draws them, and after any number of kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SOLVE = ["solve", "random-linear", "--samples", "3000000", "--seed", "5"]


def child(*arguments: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finished(*arguments: Any) -> bytes:
    process = child(*arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err.decode()
    return out


def contents(run: Path) -> dict[str, bytes]:
    """Every file of a finished run; versions and hashes in run.json included."""
    return {name: (run / name).read_bytes() for name in ("run.json", "solution.json", "certificate.json", "policy.npz")}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    place = tmp_path_factory.mktemp("unbroken") / "run"
    began = time.monotonic()
    finished(*SOLVE, "--out", place)
    return place, time.monotonic() - began


def kill_until_done(place: Path, kills: int, seconds: float, seed: int) -> int:
    """Start, kill at a random moment, resume, kill again … and let the last one end; how many were really killed."""
    rng, killed = random.Random(seed), 0
    for attempt in range(kills + 1):
        begun = place.with_name(f"{place.name}.work").is_dir()
        process = child("resume", place) if begun else child(*SOLVE, "--out", place)
        if attempt < kills:
            try:
                process.wait(timeout=rng.uniform(0.2, 0.8) * seconds)
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                killed += 1
        process.communicate(timeout=120)
        if place.is_dir():
            break
    return killed


@pytest.mark.parametrize("seed", range(3))
def test_killed_runs_end_as_unbroken_ones(seed: int, unbroken: tuple[Path, float], tmp_path: Path) -> None:
    place, seconds = unbroken
    killed = kill_until_done(tmp_path / "run", 4, seconds, seed)
    print(f"seed {seed}: {killed} kills")
    assert killed >= 1 or seed  # each should be killed a few times; a very busy machine may let one through
    assert contents(tmp_path / "run") == contents(place)
    assert not (tmp_path / "run.work").exists()


@pytest.mark.study
def test_two_hundred_kills(unbroken: tuple[Path, float], tmp_path: Path) -> None:
    place, seconds = unbroken
    killed, trial = 0, 0
    while killed < 200:
        killed += kill_until_done(tmp_path / f"run{trial}", 8, seconds, 100 + trial)
        assert contents(tmp_path / f"run{trial}") == contents(place)
        trial += 1
    print(f"{killed} kills in {trial} runs, every one ended with the bytes of the unbroken run")


def test_any_number_of_workers_gives_the_same_samples(run: Any, tmp_path: Path) -> None:
    hashes = set()
    for workers in (1, 2, 3):
        out = tmp_path / f"samples{workers}"
        code, text, _ = run("sample", "random-linear", "--out", out, "--rounds", 1, "--workers", workers, "--json")
        assert code == 0
        hashes.add(json.loads(text)["sha256"])
    assert len(hashes) == 1


def test_samples_are_continued_and_verified(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "samples"
    first = json.loads(run("sample", "random-linear", "--out", out, "--rounds", 1, "--json")[1])
    more = json.loads(run("sample", "random-linear", "--out", out, "--rounds", 2, "--json")[1])
    whole = json.loads(run("sample", "random-linear", "--out", tmp_path / "whole", "--rounds", 2, "--json")[1])
    assert more["drawn_now"] == first["samples"] and more["samples"] == 2 * first["samples"]
    assert more["sha256"] == whole["sha256"] != first["sha256"]
    assert run("sample", "random-linear", "--out", out, "--verify")[0] == 0
    shard = next((out / "samples" / "samples-0").glob("*.npy"))
    shard.write_bytes(shard.read_bytes()[:-8])
    code, text, _ = run("sample", "random-linear", "--out", out, "--verify", "--json")
    assert code == 5 and not json.loads(text)["sound"]


def test_what_cannot_be_resumed_is_refused(run: Any, tmp_path: Path) -> None:
    assert run("resume", tmp_path / "nothing")[0] == 2
    assert run("sample", "wireless", "--out", tmp_path / "s", "--rounds", 0)[0] == 2
    out = tmp_path / "run"
    assert run("solve", "queue", "--samples", 20_000, "--out", out)[0] == 0
    code, _, err = run("resume", out)
    assert code == 0 and "nothing to resume" in err
    code, _, err = run("sample", "wireless", "--out", tmp_path / "two", "--executor", "magic", "--workers", 2)
    assert code == 2 and "magic" in err
    (tmp_path / "three.work").mkdir()
    (tmp_path / "three.work" / "request.json").write_text('{"format": "other"}')
    assert run("resume", tmp_path / "three")[0] == 2


def test_another_request_is_not_mixed_with_one_under_way(run: Any, tmp_path: Path) -> None:
    process = child(*SOLVE, "--out", tmp_path / "run")
    while not (tmp_path / "run.work" / "request.json").is_file():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    code, _, err = run("solve", "random-linear", "--samples", 300_000, "--seed", 5, "--out", tmp_path / "run")
    assert code == 2 and "resume" in err
