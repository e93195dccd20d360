"""``sample``, ``solve --out`` and ``resume``: the same bits whoever draws them, and after any number of kills."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import quietly, words
from helpers import begun_and_killed
from saddleback.files.disk import Disk
from saddleback.runs.settings import Settings
from saddleback.runs.work_folder import Work
from saddleback.sampling.fingerprint import CHECK_CALLS
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.simulators.generative_model import GenerativeModel

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
    """Every file of a finished run, versions and hashes in run.json included, and what its samples are."""
    files = {
        name: (run / name).read_bytes() for name in ("run.json", "solution.json", "certificate.json", "policy.npz")
    }
    for folder in sorted((run / "samples").iterdir()):
        with SampleStore.open(folder, writable=False) as store:
            files[folder.name] = store.content_hash().encode()
    return files


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


@pytest.mark.check
@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.study) for s in (1, 2))])
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


@pytest.mark.check
def test_any_number_of_workers_gives_the_same_samples(run: Any, tmp_path: Path) -> None:
    hashes = set()
    for workers in (1, 2, 3):
        out = tmp_path / f"samples{workers}"
        code, text, _ = run("sample", "random-linear", "--out", out, "--rounds", 1, "--workers", workers, "--json")
        assert code == 0
        hashes.add(json.loads(text)["sha256"])
    assert len(hashes) == 1


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_cannot_be_resumed_is_refused(run: Any, tmp_path: Path) -> None:
    assert run("resume", tmp_path / "nothing")[0] == 2
    assert run("sample", "wireless", "--out", tmp_path / "s", "--rounds", 0)[0] == 2
    out = tmp_path / "run"
    assert run("solve", "queue", "--samples", 20_000, "--out", out)[0] == 0
    code, _, err = run("resume", out)
    assert code == 0 and "nothing to resume" in words(err)
    code, _, err = run("sample", "wireless", "--out", tmp_path / "two", "--executor", "magic", "--workers", 2)
    assert code == 2 and "magic" in err
    (tmp_path / "three.work").mkdir()
    (tmp_path / "three.work" / "request.json").write_text('{"format": "other"}')
    assert run("resume", tmp_path / "three")[0] == 2


@pytest.mark.slow
def test_another_request_is_not_mixed_with_one_under_way(run: Any, tmp_path: Path) -> None:
    process = child(*SOLVE, "--out", tmp_path / "run")
    while not (tmp_path / "run.work" / "request.json").is_file():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    code, _, err = run("solve", "random-linear", "--samples", 300_000, "--seed", 5, "--out", tmp_path / "run")
    assert code == 2 and "resume" in err


STARTED = {
    "solve": {
        "budget": {"samples": 200_000, "certificate": 200_000},
        "parts": Settings().record()["parts"],
    },
    "sample": {"rounds": 2, "seed": 0},
}


@pytest.mark.parametrize(
    ("verb", "given", "says"),
    [
        ("solve", ["--samples", 20_000], "started with --samples 400000, got --samples 20000;"),
        ("solve", ["--samples", 4e5, "--for", "gap"], "started with no --for, got --for gap;"),
        ("solve", ["--samples", 4e5, "--solver", "gss"], "started with no --solver, got --solver gss;"),
        ("solve", ["--samples", 4e5, "--limit", "number-in-system=2"], "got --limit number-in-system=2;"),
        ("solve", ["--epsilon", 9], "started with --samples 400000, got --epsilon 9.0 --max-samples 100000000;"),
        ("sample", ["--rounds", 2, "--seed", 3], "started with --seed 0, got --seed 3;"),
    ],
)
def test_only_what_differs_is_named_as_it_is_typed(
    verb: str, given: list[Any], says: str, run: Any, tmp_path: Path
) -> None:
    begun_and_killed(tmp_path / "run", verb, "queue", [], STARTED[verb])
    code, _, err = run(verb, "queue", *given, "--out", tmp_path / "run")
    assert code == 2 and says in words(err), err


def test_another_verb_or_problem_is_named(run: Any, tmp_path: Path) -> None:
    begun_and_killed(tmp_path / "run", "solve", "queue", ["capacity=4"], STARTED["solve"])
    _, _, err = run("sample", "queue", "--out", tmp_path / "run")
    assert "started with `saddleback solve`, got `saddleback sample`;" in words(err)
    _, _, err = run("solve", "wireless", "--samples", 4e5, "--out", tmp_path / "run")
    assert "started with queue --set capacity=4, got wireless;" in words(err)


class Cut(BaseException):
    """The power is off."""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many samples the simulators were asked for, call by call, whoever counts them."""
    asked, sample = [], GenerativeModel.sample

    def counted(self: Any, states: Any, *rest: Any) -> Any:
        asked.append(len(states))
        return sample(self, states, *rest)

    monkeypatch.setattr(GenerativeModel, "sample", counted)
    return asked


def solve_and_cut(place: Path, monkeypatch: pytest.MonkeyPatch, step: int, *more: Any) -> bool:
    """Solve, and cut the power at the given step of putting the work folder away; whether there was such a step."""
    left = [step]

    def counting(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if left[0] <= 0:
                raise Cut
            left[0] -= 1
            return function(*arguments)

        return call

    with monkeypatch.context() as patch:
        whole = Work.finish

        def finish(work: Work) -> None:
            for name in ("rename", "remove", "remove_folder", "sync_folder"):
                patch.setattr(Disk, name, counting(getattr(Disk, name)))
            whole(work)

        patch.setattr(Work, "finish", finish)
        try:
            quietly("solve", "queue", "--samples", 40_000, "--out", place, *more)
        except Cut:
            return True
    return False


@pytest.mark.check
def test_a_run_that_is_cut_while_it_is_put_away_is_not_paid_for_again(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[int]
) -> None:
    whole, step = tmp_path / "whole", 0
    assert not solve_and_cut(whole, monkeypatch, 1000)
    while solve_and_cut(place := tmp_path / f"run{step}", monkeypatch, step):
        assert place.with_name(f"{place.name}.work").exists() or step >= 5
        calls.clear()
        code, _, err = run("resume", place)
        assert code == 0, err
        assert sum(calls) <= CHECK_CALLS, f"step {step}: {sum(calls)} samples drawn again"
        assert contents(place) == contents(whole) and not place.with_name(f"{place.name}.work").exists()
        step += 1
    assert step >= 5


@pytest.mark.slow
def test_a_run_that_was_to_replace_another_is_not_taken_for_it(run: Any, tmp_path: Path, calls: list[int]) -> None:
    place = tmp_path / "run"
    assert run("solve", "queue", "--samples", 40_000, "--out", place)[0] == 0
    request = {"samples": 30_000, "certificate": 30_000}
    stored = json.loads((place / "run.json").read_text())
    parts = {name: value for name, value in stored["request"].items() if name not in request}
    begun_and_killed(place, "solve", "queue", [], {"budget": request, "parts": parts})  # and is killed here
    calls.clear()
    assert run("resume", place)[0] == 0 and sum(calls) >= 50_000
    assert json.loads((place / "run.json").read_text())["request"] == {**request, **parts}


@pytest.mark.slow
def test_a_run_from_samples_goes_on_with_those_samples_only(run: Any, tmp_path: Path) -> None:
    samples, place = tmp_path / "samples", tmp_path / "run"
    assert run("sample", "queue", "--out", samples)[0] == 0
    ask = ["solve", "queue", "--from", samples, "--certificate-samples", 20_000]
    assert run(*ask, "--out", tmp_path / "whole")[0] == 0
    stored = json.loads((tmp_path / "whole" / "run.json").read_text())["request"]
    budget = {name: stored.pop(name) for name in ("from", "certificate", "from_sha256")}
    begun_and_killed(place, "solve", "queue", [], {"budget": budget, "parts": stored})  # and is killed here
    assert run("sample", "queue", "--out", samples, "--rounds", 2)[0] == 0
    code, _, err = run("resume", place)
    assert code == 2 and "SHA-256" in err and budget["from_sha256"][:12] in err and not place.exists()
    shutil.rmtree(samples)
    assert run("sample", "queue", "--out", samples)[0] == 0
    assert run("resume", place)[0] == 0
    assert contents(place) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_an_empty_work_folder_keeps_no_one_out(run: Any, tmp_path: Path) -> None:
    (tmp_path / "run.work").mkdir()  # a kill before the request was written
    assert run("solve", "queue", "--samples", 20_000, "--out", tmp_path / "run")[0] == 0
    (tmp_path / "run.work").mkdir()  # a kill after it had gone
    code, _, err = run("resume", tmp_path / "run")
    assert code == 0 and "nothing to resume" in words(err) and not (tmp_path / "run.work").exists()
