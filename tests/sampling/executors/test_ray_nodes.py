"""Two Ray nodes: sampled and solved on both as in one process, also when one of them is killed in the middle.

One cluster serves the module; a test that kills the second node adds another for the next.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from saddleback.errors import SaddlebackError
from saddleback.method.solvers import LSMDVI
from saddleback.runs.settings import Method
from saddleback.sampling.blocks import BlockSource, blocks_for
from saddleback.sampling.executors import Ray
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.store.buffers import OnRay
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import ray_buffer, streamed_buffer
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepare import prepare_from
from sampling.executors import faulty_simulators as faulty
from sampling.streamed_runs import SEED, square

ray = pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
pytestmark = [pytest.mark.check, pytest.mark.xdist_group("ray")]

STORE = 80 << 20
SPREAD = {"scheduling_strategy": "SPREAD"}
LIMITS = {"memory": 1_200_000, "num_lots": 5}
MIXING = np.array([[0.5, 0.5]])
T = 24


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    from ray.cluster_utils import Cluster

    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        head = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": STORE}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        try:
            ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
            yield cluster
        finally:
            ray.shutdown()
            cluster.shutdown()


@pytest.fixture
def second(cluster):
    """A node beside the head; one that a test has left is removed."""
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE, resources={"disk-b": 4})
    yield node
    if node in cluster.list_all_nodes():
        cluster.remove_node(node, allow_graceful=False)


class OnNodes:
    """A simulator that notes its node, waits until all of ``nodes`` have had a block, and never returns on ``doomed``."""

    def __init__(self, inner, folder, nodes, doomed):
        self.inner, self.folder, self.nodes, self.doomed = inner, folder, nodes, doomed

    def __call__(self, states, actions, rng):
        here, end = ray.get_runtime_context().get_node_id(), time.monotonic() + 60
        faulty.note(self.folder, "nodes", here)
        if here == self.doomed:
            time.sleep(300)
        while not self.nodes <= set(faulty.lines(self.folder, "nodes")) and time.monotonic() < end:
            time.sleep(0.02)
        return self.inner(states, actions, rng)


def drawn_on(nodes, tmp_path, doomed=None, kill=lambda: None):
    """The square's samples, drawn on these nodes into a store, with the hash of one drawn here."""
    problem, model, design = square(observed=True)
    blocks = [*blocks_for(0, np.full(design.size, 4600)), *blocks_for(1, np.full(design.size, 500))]
    other = GenerativeModel(OnNodes(model._sample, tmp_path, nodes, doomed), model.states, model.num_signals)
    hashes = []
    for name, simulator, inner in (("here", model, None), ("there", other, Ray(4, options=SPREAD))):
        source = BlockSource(simulator, problem, design.states, design.actions, SEED)
        with Durable(tmp_path / name, {}, inner) as executor:
            run = executor.run(source.draw, blocks)
            next(run)
            if inner is not None:
                kill()
            assert len(list(run)) == len(blocks) - 1
            hashes.append(executor.content_hashes()[f"samples-{SEED}"])
        assert simulator.num_queries == sum(block.size for block in blocks), "no block is counted twice"
    assert hashes[0] == hashes[1]
    assert nodes <= set(faulty.lines(tmp_path, "nodes"))
    return problem, design, tmp_path / "there" / f"samples-{SEED}"


def test_samples_and_solutions_are_those_of_one_process(cluster, second, tmp_path):
    nodes = {cluster.head_node.node_id, second.node_id}
    problem, design, folder = drawn_on(nodes, tmp_path)

    class Given:
        def design(self, problem):
            return design

    found = []
    with SampleStore.open(folder, writable=False) as store:
        for kind in ("streamed", OnRay(actors=2)):
            parts = prepare_from(problem, store, Method(design=Given()), buffer=kind)
            policy, values = parts.oracle(MIXING[0])
            found.append((policy.theta.tobytes(), values.tobytes(), np.array(parts.interval(policy, 0.95)).tobytes()))
            if kind != "streamed":
                assert places(parts.solver_buffer.hosts) == nodes, "one actor on each"
            for buffer in (parts.solver_buffer, parts.evaluation_buffer):
                buffer.close()
    assert found[0] == found[1]


def test_the_command_line_finds_the_cluster(cluster, second, tmp_path):
    """By the environment: it is a job of that cluster, and starts none of its own."""
    hashes, before = [], {n["NodeID"] for n in ray.nodes()}
    for where in (["--workers", "1"], ["--workers", "2", "--executor", "ray"]):
        run = [
            sys.executable,
            "-m",
            "saddleback",
            "sample",
            "queue",
            "--out",
            str(tmp_path / where[-1]),
            "--json",
            *where,
        ]
        environment = os.environ | {"RAY_ADDRESS": cluster.address}
        done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        hashes.append(json.loads(done.stdout)["sha256"])
    assert hashes[0] == hashes[1]
    assert {n["NodeID"] for n in ray.nodes()} == before
    assert len(ray._private.state.jobs()) >= 2, "the command was a job of this cluster"


def kill(cluster, node, hosts=None):
    """A node with its actors, which would notice only after a moment that they have lost it."""
    actors = [] if hosts is None else [a["Pid"] for a in state(hosts) if a["Address"]["NodeID"] == node.node_id]
    cluster.remove_node(node, allow_graceful=False)
    for pid in filter(faulty.alive, actors):
        os.kill(pid, signal.SIGKILL)


def places(hosts):
    """The nodes on which the actors are."""
    return {actor["Address"]["NodeID"] for actor in state(hosts)}


def state(hosts):
    """What Ray knows of the actors."""
    actors = ray._private.state.actors()
    return [actors[actor._actor_id.hex()] for actor in hosts._actors]


def test_a_node_killed_in_the_middle_of_sampling_and_of_solving(cluster, second, tmp_path):
    nodes = {cluster.head_node.node_id, second.node_id}
    problem, design, folder = drawn_on(nodes, tmp_path, second.node_id, lambda: kill(cluster, second))
    third = cluster.add_node(num_cpus=2, object_store_memory=STORE)
    with SampleStore.open(folder, writable=False) as store:
        expected = LSMDVI().solve(problem, streamed_buffer(store, 0, problem, design, T, **LIMITS), MIXING)[0].theta
    with ray_buffer(folder, 0, problem, design, T, actors=3, **LIMITS) as buffer:
        assert third.node_id in places(buffer.hosts)
        asking, asked = buffer.asking, []

        def killing(ask):
            asked.append(ask)
            if len(asked) == 9:
                kill(cluster, third, buffer.hosts)
            return asking(ask)

        buffer.asking = killing
        (policy,) = LSMDVI().solve(problem, buffer, MIXING)
        assert policy.theta.tobytes() == expected.tobytes()
        assert len(asked) > 9 and buffer.hosts.num_restarts >= 1
        assert places(buffer.hosts) == {cluster.head_node.node_id}


def test_nobody_waits_for_a_node_that_is_gone(cluster, second, tmp_path):
    """The node with the resource dies: an error says so, for actors that answer and for workers that draw."""
    problem, design, folder = drawn_on(set(), tmp_path)
    pinned = [{"resources": {"node:__internal_head__": 0.1}}, {"resources": {"disk-b": 1}}]
    with ray_buffer(folder, 0, problem, design, T, actors=2, options=pinned, **LIMITS) as buffer:
        assert second.node_id in places(buffer.hosts)
        kill(cluster, second, buffer.hosts)
        end = time.monotonic() + 60  # Ray takes a few seconds to be sure
        while any(n["Alive"] and n["NodeID"] == second.node_id for n in ray.nodes()) and time.monotonic() < end:
            time.sleep(0.1)
        buffer.hosts._patience = 2.0  # enough for one that is there; starting a process may take longer
        expected = r"actor 1 found no place .* within 2 s: it asks for 1 disk-b; there are nodes with 2 CPU"
        with pytest.raises(SaddlebackError, match=expected):
            LSMDVI().solve(problem, buffer, MIXING)
    source, began = faulty.source(faulty.uniform), time.monotonic()
    with pytest.raises(SaddlebackError, match="no node of the cluster can draw samples: it asks for 1 CPU, 1 disk-b"):
        list(Ray(2, options={"resources": {"disk-b": 1}}, patience=1.0).run(source.draw, faulty.blocks()))
    assert time.monotonic() - began < 30
    with pytest.raises(SaddlebackError, match="the nodes that could take it have no room or do not answer"):
        ray_buffer(folder, 0, problem, design, T, actors=3, options=[{"num_cpus": 1}] * 3, patience=2.0)


def test_an_answer_that_does_not_come_is_asked_for_again(cluster, tmp_path):
    problem, design, folder = drawn_on(set(), tmp_path)
    with ray_buffer(folder, 0, problem, design, T, actors=2, timeout=60.0, **LIMITS) as buffer:
        buffer.hosts._timeout = (
            10.0  # the replacement has to open the store in that time, on a machine that may be busy
        )
        expected = LSMDVI().solve(problem, buffer, MIXING)[0].theta
        pid = state(buffer.hosts)[0]["Pid"]
        os.kill(pid, signal.SIGSTOP)
        assert LSMDVI().solve(problem, buffer, MIXING)[0].theta.tobytes() == expected.tobytes()
        assert buffer.hosts.num_restarts >= 1
    assert faulty.gone([pid])
