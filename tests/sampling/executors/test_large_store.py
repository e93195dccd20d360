"""Four gigabytes of points of R¹⁶, solved by one process that streams them and by four actors on Ray."""

import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest

from places import TESTS

pytestmark = [pytest.mark.xdist_group("ray"), pytest.mark.study]

PROGRAM = """
import hashlib, json, sys, time
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
from sampling.streamed_runs import QuickDisk
from saddleback.sampling.blocks import blocks_for
from saddleback.designs.design import weighted_design
from saddleback.method.evaluators import LSTD
from saddleback.features import FeatureFunction
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.simulators.generative_model import Draw
from saddleback.method.solvers import LSMDVI
from saddleback.problem.spaces import BoxStates
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import ray_buffer, streamed_buffer

K, A, PAIRS, BLOCKS, T = 16, 2, 64, int(sys.argv[5]), 64
rng = np.random.default_rng(0)
waves = rng.normal(size=(K, 7))
start, states, shifts = rng.random((3, K)), rng.random((PAIRS, K)), rng.random(PAIRS * BLOCKS)

def phi(states, actions):
    out = np.zeros((len(states), A, 8))
    waved = np.cos(states @ waves)
    out[np.arange(len(states)), actions, 1:] = waved
    out[np.arange(len(states)), actions, 0] = 1.0
    return out.reshape(len(states), -1)

features, actions = FeatureFunction(phi, 8 * A, A), np.tile(np.arange(A), PAIRS // A)
problem = CMDP(
    gamma=0.9, start=Start(start, np.full(3, 1 / 3)), num_actions=A, states=BoxStates(np.zeros(K), np.ones(K)),
    reward=lambda s, a: 0.5 + 0.5 * np.cos(np.pi * s[:, 0]), reward_range=(0.0, 1.0),
    constraints=[Constraint("c", lambda s, a: a / A, ">=", 1.0, range=(0.0, 1.0))],
    features=features, candidates=(states, actions),
)
design = weighted_design(states, actions, features.at(states, actions), np.full(PAIRS, 1 / PAIRS))
folder, how = Path(sys.argv[2]), sys.argv[4]

def peak():
    lines = open(sys.argv[3]).read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

if how == "fill":  # a few random points, moved on by another step in every block
    some = rng.random((4096, K))
    with SampleStore.create(folder, {}, Layout.of(problem.states), disk=QuickDisk(), shard_bytes=32 << 20) as store:
        for block, shift in zip(blocks_for(0, np.full(PAIRS, 4096 * BLOCKS)), shifts):
            store.add(block, Draw((some + shift) % 1.0, None))
    print(json.dumps({"bytes": sum(f.stat().st_size for f in folder.iterdir())}))
    sys.exit()

if how == "ray":
    import ray
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    ray.init(address="local", num_cpus=4, object_store_memory=80 << 20, **quiet)
store = SampleStore.open(folder, writable=False, hashes=False)
before, began = peak(), time.perf_counter()
if how == "ray":
    buffer = ray_buffer(folder, 0, problem, design, T, actors=4, hashes=False)
else:
    buffer = streamed_buffer(store, 0, problem, design, T)
ready = time.perf_counter()
with buffer:
    (policy,) = LSMDVI().solve(problem, buffer, np.array([[0.5, 0.5]]))
    values = LSTD().evaluate(problem, buffer, policy)
    now = time.perf_counter()
digest = hashlib.sha256(policy.theta.tobytes() + values.tobytes()).hexdigest()
print(json.dumps({"seconds": now - began, "start": ready - began, "driver": peak() - before, "baseline": before, "sha256": digest}))
"""


@pytest.fixture
def alone(tmp_path_factory):
    """One cluster at a time on this machine, however many processes the tests run in."""
    pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def report(folder: Path, how: str, blocks: int) -> dict:
    status, tests = Path("/proc") / "self" / "status", TESTS
    command = [sys.executable, "-c", PROGRAM, str(tests), str(folder), str(status), how, str(blocks)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(how, found)
    return found


def test_four_actors_and_four_gigabytes(alone, tmp_path):
    folder = tmp_path / "s"
    try:
        assert report(folder, "fill", 128)["bytes"] >= 1 << 32
        found = [(report(folder, "streamed", 128), report(folder, "ray", 128)) for _ in range(2)]
    finally:  # pytest keeps the folders of the last runs
        for file in folder.iterdir():
            file.unlink()
    assert len({side["sha256"] for pair in found for side in pair}) == 1, "the same bits"
    ratio = min(ours["seconds"] / one["seconds"] for one, ours in found)
    driver = max(ours["driver"] for _, ours in found)
    print(f"four actors take {ratio:.2f} of one process's time; the driver {driver / 2**20:.0f} MB above its baseline")
    assert ratio <= 1.5
    assert driver <= 1 << 30
