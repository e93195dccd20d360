"""What is promised about bits, from the command line on: who draws, how many they are and in which order changes nothing.

Samples: the same SHA-256 always. Solutions: the same bytes at one BLAS thread; with more, the same actions, and values
within 1e-12.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import cli, zoo
from saddleback.problem.policy_file import load_mixture
from saddleback.sampling.blocks import BlockSource
from saddleback.sampling.executors import make
from saddleback.simulators.generative_model import Draw
from spelled_out import solve

pytestmark = [pytest.mark.check, pytest.mark.xdist_group("ray")]
STUDY = pytest.mark.study


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """One cluster at a time on this machine, however many processes the tests run in."""
    ray = pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
        ray.init(address="local", num_cpus=7, object_store_memory=80 << 20, **quiet)
        yield
        ray.shutdown()


def sampled(out: Path, *options: Any, target: str = "queue") -> dict[str, Any]:
    """What ``saddleback sample`` says, run in this process."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), pytest.raises(SystemExit) as ended:
        cli.main(["sample", target, "--out", str(out), "--json", *map(str, options)])
    assert not ended.value.code
    return json.loads(said.getvalue())


@pytest.fixture(scope="module")
def serial(tmp_path_factory) -> str:
    found = sampled(tmp_path_factory.mktemp("serial") / "s")
    assert found["drawn_now"] == found["samples"] == 4 * 4096 * found["pairs"]
    return found["sha256"]


# ---- samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_any_number_of_processes(serial, workers, tmp_path):
    assert sampled(tmp_path / "s", "--workers", workers, "--executor", "joblib")["sha256"] == serial


@pytest.mark.parametrize("workers", [1, 2, pytest.param(3, marks=STUDY), pytest.param(7, marks=STUDY)])
def test_any_number_of_ray_workers(serial, cluster, workers, tmp_path):
    assert sampled(tmp_path / "s", "--workers", workers, "--executor", "ray")["sha256"] == serial


@pytest.mark.study
@pytest.mark.parametrize("target", ["wireless", "random-linear", "gridworld"])
def test_every_executor_on_other_problems(cluster, target, tmp_path):
    expected = sampled(tmp_path / "s", "--seed", 3, target=target)["sha256"]
    for name in ("joblib", "ray"):
        for workers in (1, 2, 3, 7):
            options = ("--seed", 3, "--workers", workers, "--executor", name)
            found = sampled(tmp_path / f"{name}{workers}", *options, target=target)["sha256"]
            print(target, name, workers, found)
            assert found == expected


class Shuffled:
    """Draws in one random order and gives the results in another."""

    def __init__(self, seed: int):
        self.random, self.moved = random.Random(seed), 0

    def run(self, function, tasks):
        drawn = [(task, function(task)) for task in self.random.sample(tasks, len(tasks))]
        self.random.shuffle(drawn)
        self.moved += sum(task is not given for (task, _), given in zip(drawn, tasks, strict=True))
        yield from drawn

    def close(self):
        pass


class PerWorker(Shuffled):
    """What must not be done: one random stream for each of so many workers, who take turns."""

    def run(self, function, tasks):
        source, streams = function.__self__, [np.random.default_rng([0, w]) for w in range(self.workers)]
        if not isinstance(source, BlockSource):  # probes, of which no sample is made
            yield from ((task, function(task)) for task in tasks)
            return
        for i, task in enumerate(tasks):
            x = np.full(task.size, task.pair)
            rng, key = streams[i % self.workers], source.key(task)
            yield task, Draw(source.model.sample(source.states[x], source.actions[x], rng, key).next_states, None)

    def __init__(self, workers: int):
        self.workers = workers


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_shuffled_completion(serial, seed, tmp_path, monkeypatch):
    shuffled = Shuffled(seed)
    monkeypatch.setattr("saddleback.sampling.executors.make", lambda *_, **__: shuffled)
    assert sampled(tmp_path / "s", "--workers", 2)["sha256"] == serial
    assert shuffled.moved > 50, "most blocks came at another time than they were asked for"


def test_one_stream_a_worker_would_give_other_bits(serial, tmp_path, monkeypatch):
    hashes = {serial}
    for workers in (1, 2, 3, 7):
        monkeypatch.setattr("saddleback.sampling.executors.make", lambda *_, workers=workers, **__: PerWorker(workers))
        hashes.add(sampled(tmp_path / f"s{workers}", "--workers", 2)["sha256"])
    assert len(hashes) == 5


def test_killed_and_resumed_with_other_workers(tmp_path):
    """Killed when part of it is on the disk; taken up by another number of workers."""
    whole = sampled(tmp_path / "whole", "--rounds", 60)
    place = tmp_path / "s"
    command = [sys.executable, "-m", "saddleback", "sample", "queue", "--out", str(place), "--rounds", "60"]
    program = subprocess.Popen([*command, "--workers", "2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    manifest, end = place / "samples" / "samples-0" / "manifest.jsonl", time.monotonic() + 60
    while not (manifest.is_file() and manifest.stat().st_size) and program.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    os.kill(program.pid, signal.SIGKILL)
    program.communicate(timeout=60)
    assert program.returncode == -signal.SIGKILL
    rest = sampled(place, "--rounds", 60, "--workers", 3)
    assert rest["sha256"] == whole["sha256"]
    assert 0 < rest["drawn_now"] < whole["samples"], "some were kept, and only the others drawn"


# ---- solutions -------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
np.ones((900, 900)) @ np.ones((900, 900))
lines = open(sys.argv[1]).read().splitlines()
print(next(int(line.split()[1]) for line in lines if line.startswith("Threads")), file=sys.stderr)
sys.argv[:2] = ["saddleback"]
from saddleback.__main__ import main
main()
"""
SOLVE = ["solve", "random-linear", "--set", "dim=32", "--samples", 200_000, "--seed", 4, "--solver", "ls-mdvi"]


def solved(out: Path, threads: int, *options: Any) -> tuple[Path, int]:
    """The folder of a run in a process of its own, and how many threads its BLAS had made it."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    status = Path("/proc") / "self" / "status"
    command = [sys.executable, "-c", PROGRAM, status, *SOLVE, "--out", out, *options]
    done = subprocess.run(
        list(map(str, command)), check=False, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return out, int(done.stderr.split()[0])


def test_solutions(tmp_path):
    """Workers change no byte; a second BLAS thread changes no action, and values by no more than 1e-12."""
    one, threads = solved(tmp_path / "one", 1)
    two, _ = solved(tmp_path / "two", 1, "--workers", 2)
    for name in ("run.json", "solution.json", "certificate.json", "policy.npz"):
        assert (one / name).read_bytes() == (two / name).read_bytes(), name
    other, more = solved(tmp_path / "other", 2)
    assert (threads, more) == (1, 2)
    print(
        "policy files equal with two threads:", (one / "policy.npz").read_bytes() == (other / "policy.npz").read_bytes()
    )
    ours, theirs = load_mixture(one / "policy.npz"), load_mixture(other / "policy.npz")
    np.testing.assert_allclose(theirs.weights, ours.weights, rtol=1e-12)
    states = np.arange(200)
    for a, b in zip(ours.members, theirs.members, strict=True):
        np.testing.assert_array_equal(a.probabilities(states), b.probabilities(states))
    a, b = (numbers(json.loads((run / "solution.json").read_text())) for run in (one, other))
    assert list(a) == list(b)
    np.testing.assert_allclose(list(b.values()), list(a.values()), rtol=1e-12, atol=1e-300)


def numbers(data: Any, name: str = "") -> dict[str, float]:
    """Every number in a JSON object, with its place."""
    if isinstance(data, dict):
        return {k: v for key, x in data.items() for k, v in numbers(x, f"{name}.{key}").items()}
    if isinstance(data, list):
        return {k: v for i, x in enumerate(data) for k, v in numbers(x, f"{name}[{i}]").items()}
    return {name: float(data)} if isinstance(data, int | float) else {}


@pytest.fixture(scope="module")
def proved() -> tuple[dict[str, Any], int]:
    return certified(None)


def certified(executor: Any) -> tuple[dict[str, Any], int]:
    """A whole answer with its certificate, and what the simulator's meter says."""
    instance = zoo.make("random-linear")
    model = instance.simulator
    solution = solve(instance.problem, model, samples=40_000, certificate=60_000, seed=2, executor=executor)
    found = solution.to_json()
    assert found["certificate"] is not None
    return found, model.num_queries


@pytest.mark.parametrize("name", ["joblib", "ray"])
def test_certificates_and_what_they_cost(proved, name, request):
    """Rollouts that were drawn elsewhere are counted here, each once."""
    if name == "ray":
        request.getfixturevalue("cluster")
    with make(name, 2) as executor:
        found, num_queries = certified(executor)
    assert found == proved[0]
    assert num_queries == proved[1] == found["samples"]
