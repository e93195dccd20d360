"""Ray on a cluster of three nodes on this machine: the same samples, also when workers and nodes are killed in mid-run.

One cluster serves the whole module, after a test that starts its own; the last tests kill a node each.
"""

import fcntl
import os
import signal
import time

import numpy as np
import pytest

from saddleback.errors import InputError, SaddlebackError, SimulatorError
from saddleback.sampling.executors import Ray, Serial
from saddleback.sampling.fingerprint import fingerprint_of
from sampling.executors import faulty_simulators as faulty

ray = pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
STORE = 80 * 1024 * 1024


pytestmark = [pytest.mark.check, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def turn(tmp_path_factory):
    """One cluster at a time on this machine, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_a_cluster_of_its_own(turn):
    """Before the module's cluster is there: started when it is needed, and gone afterwards."""
    seen = []
    with Ray(2, progress=lambda *now: seen.append(now)) as executor:
        assert list(executor.run(abs, [])) == [] and not ray.is_initialized()
        assert faulty.collected(faulty.jittery, executor) == faulty.collected(faulty.uniform, None)
        assert ray.is_initialized() and executor.workers == 2
    assert not ray.is_initialized()
    assert seen == [(i, 37 * i, 0) for i in range(1, 19)]


@pytest.fixture(scope="module")
def cluster(turn):
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 3, "include_dashboard": False, "object_store_memory": STORE}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.others = [cluster.add_node(num_cpus=2, object_store_memory=STORE) for _ in range(2)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_samples_do_not_depend_on_the_workers(cluster):
    """1, 2, 3 and 7 workers on three nodes, in every order of completion."""
    counts = np.full(faulty.S * faulty.A, 30)
    counts[[0, 4]] = 9000, 4097
    expected = faulty.collected(faulty.uniform, None, counts)
    for workers in (7, 3, 2, 1):
        assert faulty.collected(faulty.jittery, Ray(workers), counts) == expected, workers
    assert faulty.collected(faulty.with_signals, Ray(), counts, 2) == faulty.collected(
        faulty.with_signals, None, counts, 2
    )
    assert Ray().workers == 7


def test_one_stream_a_worker_would_depend_on_them(cluster):
    assert faulty.collected(faulty.per_worker, Ray(7)) != faulty.collected(faulty.per_worker, Ray(7))


def test_arrays_may_be_written_to(cluster):
    """Ray's own arrays are read-only: a simulator with a buffer of its own must not notice."""
    assert faulty.collected(faulty.Aliased(), Ray(2)) == faulty.collected(faulty.uniform, None)
    source = faulty.source(faulty.uniform)
    for _, draw in Ray(2).run(source.draw, faulty.blocks(4096, 2)):
        draw.next_states[0] = 1


def test_the_function_goes_to_each_worker_once(cluster, tmp_path):
    source = faulty.source(faulty.CountsLoads(tmp_path))
    for _ in range(2):
        assert len(dict(Ray(2).run(source.draw, faulty.blocks()))) == 18
    used, loads = faulty.lines(tmp_path, "used"), faulty.lines(tmp_path, "loads")
    assert len(used) == 36 and len(loads) == len(set(loads)) and set(loads) == set(used)


def test_workers_have_one_thread(cluster):
    ((omp, _),) = dict(Ray(1).run(faulty.threads, [0])).values()
    assert omp == "1"


def test_actors_keep_their_simulator(cluster, tmp_path):
    with Ray(2, factory=faulty.Makes(tmp_path)) as executor:
        for counts in (37, 50):
            assert faulty.collected(None, executor, counts) == faulty.collected(faulty.uniform, None, counts)
        made = [int(pid) for pid in faulty.lines(tmp_path, "made")]
        assert 1 <= len(made) == len(set(made)) <= 2  # on a busy machine one of them may have done it all
    assert faulty.gone(made), "the actors went with the executor"
    assert ray.is_initialized(), "the cluster, which it did not start, stayed"


@pytest.mark.parametrize("kind", ["raises", "outside"])
def test_faults_have_the_same_message_everywhere(cluster, kind):
    here, there = faulty.source(faulty.Wrong(kind)), faulty.source(faulty.Wrong(kind))
    _, expected = faulty.drawn(Serial(), here.draw, faulty.blocks())
    results, error = faulty.drawn(Ray(2), there.draw, faulty.blocks())
    assert isinstance(error, SimulatorError) and str(error) == str(expected)
    assert faulty.PAIR not in [block.pair for block in results]
    assert there.model.num_queries == 20 * len(results) + (20 if kind == "outside" else 0)


def test_what_cannot_be_loaded(cluster, tmp_path):
    executor = Ray(1, factory=faulty.Makes(tmp_path, wrong=True))
    with pytest.raises(InputError, match=r"a worker process can load.*no licence"):
        list(executor.run(faulty.source(None).draw, faulty.blocks()))
    _, error = faulty.drawn(Ray(1), faulty.make_unsendable, [0])
    assert isinstance(error, SaddlebackError) and "cannot be sent" in str(error)


def test_a_hanging_call_is_ended_and_named(cluster, tmp_path):
    source = faulty.source(faulty.Deadly("hang", tmp_path))
    _, error = faulty.drawn(Ray(1, timeout=1.0), source.draw, faulty.blocks(pairs=faulty.PAIR + 1))
    assert isinstance(error, SimulatorError) and error.key == (5, 0, faulty.PAIR, 0)
    assert "did not return within the timeout of 1 s" in str(error)
    assert faulty.gone([int(p) for p in faulty.lines(tmp_path, "pids")])


def test_probes_are_made_in_the_cluster(cluster):
    """In the order given; a pair that ends its process ends none of ours, and is named."""

    def deadly(states, actions, rng):
        if np.any((states == 2) & (actions == 1)):
            os._exit(3)
        return faulty.uniform(states, actions, rng)

    with Ray(2) as executor:
        assert executor.in_order(str, range(20)) == [str(i) for i in range(20)] and executor.workers == 2
        source = faulty.source(deadly)
        with pytest.raises(SimulatorError, match="ended its worker process 2 times") as caught:
            fingerprint_of(source.problem, source.model, executor.in_order)
    assert (caught.value.state, caught.value.action, caught.value.ended) == (2, 1, True)


@pytest.mark.parametrize("warm", [False, True], ids=["tasks", "actors"])
def test_a_deadly_pair_is_tried_twice_and_named(cluster, tmp_path, warm):
    simulator = faulty.Deadly("segfault", tmp_path)
    executor = Ray(2, factory=lambda: simulator) if warm else Ray(2)
    source = faulty.source(None if warm else simulator)
    with executor:
        results, error = faulty.drawn(executor, source.draw, faulty.blocks())
    assert isinstance(error, SimulatorError) and error.key == (5, 0, faulty.PAIR, 0)
    assert "ended its worker process 2 times with the same seed key" in str(error)
    keys = faulty.lines(tmp_path, "keys")
    assert len(keys) == 2 and len(set(keys)) == 1
    plain = faulty.source(faulty.uniform)
    for block, draw in results.items():
        np.testing.assert_array_equal(draw.next_states, plain.draw(block).next_states)


@pytest.mark.parametrize("warm", [False, True], ids=["tasks", "actors"])
def test_a_worker_killed_in_mid_run_changes_nothing(cluster, tmp_path, warm):
    seen = []
    simulator = faulty.Slow(0.03, tmp_path)
    options = {"factory": lambda: simulator} if warm else {}
    source = faulty.source(None if warm else simulator)
    with Ray(2, progress=lambda *now: seen.append(now), **options) as executor:
        run = executor.run(source.draw, faulty.blocks())
        results = dict([next(run)])
        os.kill(int(faulty.lines(tmp_path, "pids")[-1]), signal.SIGKILL)
        results |= run
    plain = faulty.source(faulty.uniform)
    for block in faulty.blocks():
        np.testing.assert_array_equal(results[block].next_states, plain.draw(block).next_states)
    assert seen[-1] == (18, 360, 1)
    assert source.model.num_queries == 360


def test_an_abandoned_run_stops(cluster, tmp_path):
    source = faulty.source(faulty.Slow(0.2, tmp_path))
    run = Ray(2).run(source.draw, faulty.blocks())
    next(run)
    run.close()
    time.sleep(0.5)
    calls = len(faulty.lines(tmp_path, "pids"))
    time.sleep(1.0)
    assert len(faulty.lines(tmp_path, "pids")) == calls < 18


@pytest.mark.parametrize("warm", [False, True], ids=["tasks", "actors"])
def test_a_node_killed_in_mid_run_changes_nothing(cluster, tmp_path, warm):
    node, seen = cluster.others.pop(), []
    simulator = faulty.StaysOnANode(tmp_path, node.node_id)
    options = {"factory": lambda: simulator} if warm else {}
    source = faulty.source(None if warm else simulator)
    spread = {"scheduling_strategy": "SPREAD"}
    with Ray(4, progress=lambda *now: seen.append(now), options=spread, **options) as executor:
        run = executor.run(source.draw, faulty.blocks())
        results = dict([next(run)])
        assert faulty.lines(tmp_path, "doomed"), "a block is on the node, and only its death can end it"
        cluster.remove_node(node, allow_graceful=False)
        results |= run
    assert seen[-1][:2] == (18, 360) and seen[-1][2] >= 1
    assert source.model.num_queries == 360
    plain = faulty.source(faulty.uniform)
    for block in faulty.blocks():
        np.testing.assert_array_equal(results[block].next_states, plain.draw(block).next_states)
