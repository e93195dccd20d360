"""Faults of disks and of runs that are taken up again: a full file system, and a problem that is no longer the same."""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import begun_and_killed, random_table
from saddleback import GenerativeModel, InputError, Table, save_table
from saddleback.errors import StorageError
from saddleback.files.disk import Disk
from saddleback.sampling import fingerprint
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import fingerprint_of
from spelled_out import solve

SAMPLES = {"samples": 3_000, "seed": 3}


# ---- a full disk -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[bool]:
    """A file system of that size, if we may mount one."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    try:
        yield mounted.returncode == 0
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def command(*arguments: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.check
def test_a_full_disk_keeps_what_was_there_and_the_run_goes_on(tmp_path: Path) -> None:
    """A real one. The run stops with one message; with room again it ends with the bits of an undisturbed one."""
    asked = ["solve", "random-linear", "--samples", "600000", "--json"]
    with small_disk(tmp_path / "disk", "400k") as mounted:
        if not mounted:
            pytest.skip(
                "no right to mount a file system; tests/sampling/store/test_disk_faults.py fails every operation"
            )
        place = tmp_path / "disk" / "run"
        ended = command(*asked, "--out", place)
        assert (ended.returncode, ended.stdout) == (5, ""), ended.stderr
        assert "No space left" in ended.stderr and ended.stderr.count("\n") == 1
        subprocess.run(["mount", "-o", "remount,size=64m", str(tmp_path / "disk")], check=True)
        again = command("resume", place, "--json")
        assert again.returncode == 0, again.stderr
        assert command(*asked, "--out", tmp_path / "whole").stdout == again.stdout
        for name in ("solution.json", "certificate.json", "policy.npz"):
            assert (place / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


class FailingDisk(Disk):
    """Takes so many fsyncs, then reports an error at every one, and counts them."""

    left, failures = 6, 0

    def fsync(self, file: int) -> None:
        if self.left <= 0:
            type(self).failures += 1
            raise OSError(5, "Input/output error")
        type(self).left -= 1
        super().fsync(file)


def test_an_fsync_that_failed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from saddleback.sampling.store import sample_store

    table = random_table(1)
    with monkeypatch.context() as patch:
        patch.setattr(sample_store, "Disk", FailingDisk)
        patch.setattr("saddleback.sampling.executors.durable._SYNC_SECONDS", 0.0)
        with pytest.raises(StorageError, match="Input/output error"), kept(tmp_path / "run", table) as executor:
            solve(table.problem(), table.simulator(), executor=executor, **SAMPLES)
    assert FailingDisk.failures == 1
    with kept(tmp_path / "run", table) as executor:
        answer = solve(table.problem(), table.simulator(), executor=executor, **SAMPLES)
    assert answer.to_json() == solve(table.problem(), table.simulator(), **SAMPLES).to_json()


# ---- another problem ---------------------------------------------------------------------------------------------------


def kept(folder: Path, table: Table, model: GenerativeModel | None = None) -> Durable:
    return Durable(folder, fingerprint_of(table.problem(), model or table.simulator()))


def test_a_run_is_not_continued_with_another_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulator, features, discount, start, rewards and version: each is noticed, and named."""
    table = random_table(1, S=8, d=3)
    assert table.phi is not None
    with kept(tmp_path, table) as executor:
        want = solve(table.problem(), table.simulator(), executor=executor, **SAMPLES)
    other = random_table(2, S=8, d=3)
    changed = {
        "simulator": dataclasses.replace(table, P=other.P),
        "features": dataclasses.replace(table, phi=table.phi[..., ::-1].copy()),
        "gamma": dataclasses.replace(table, gamma=0.81),
        "start": dataclasses.replace(table, rho=other.rho),
        "signals": dataclasses.replace(table, reward=other.reward),
    }
    for field, another in changed.items():
        with (
            pytest.raises(InputError, match=rf"`fingerprint.{field}` must be what it was") as caught,
            kept(tmp_path, another) as executor,
        ):
            solve(another.problem(), another.simulator(), executor=executor, **SAMPLES)
        assert "set it back, or choose a new folder" in str(caught.value)
    with monkeypatch.context() as patch:
        patch.setattr(fingerprint, "__version__", "99.0")
        with (
            pytest.raises(InputError, match=r"`fingerprint.version` must be what it was .*, got \"99.0\""),
            kept(tmp_path, table) as executor,
        ):
            solve(table.problem(), table.simulator(), executor=executor, **SAMPLES)
    fresh = GenerativeModel(table.simulator()._sample, table.problem().states)
    with kept(tmp_path, table, fresh) as executor:
        again = solve(table.problem(), fresh, executor=executor, **SAMPLES)
    assert again.to_json() == want.to_json() and executor.num_read > 0, "the same one is continued"


@pytest.mark.slow
def test_a_run_is_not_continued_with_another_seed(tmp_path: Path) -> None:
    """A request under way with another seed is refused, and samples of another seed are never taken for this one's."""
    table = random_table(1)
    path = tmp_path / "problem.npz"

    save_table(table, path)
    begun_and_killed(tmp_path / "run", "sample", str(path), [], {"rounds": 2, "seed": 0})
    ended = command("sample", path, "--out", tmp_path / "run", "--rounds", "2", "--seed", "1")
    assert ended.returncode == 2 and "seed" in ended.stderr and "resume" in ended.stderr
    with kept(tmp_path / "two", table) as executor:
        for seed in (1, 2):
            solve(table.problem(), table.simulator(), samples=3_000, seed=seed, executor=executor)
        one, two = (sorted((tmp_path / "two").glob(f"samples-{seed}")) for seed in (1, 2))
        assert one and two and executor.num_read == 0
    store = np.load(next(one[0].glob("*.npy"))), np.load(next(two[0].glob("*.npy")))
    assert store[0].tobytes() != store[1].tobytes()
