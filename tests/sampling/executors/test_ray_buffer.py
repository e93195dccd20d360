"""Readers in actors: the bits of one process, also when actors are killed in mid-solve."""

import fcntl
import os
import threading

import numpy as np
import pytest

from saddleback.errors import InputError, SaddlebackError
from saddleback.method.evaluators import LSPE, LSTD
from saddleback.method.solvers import LSMDVI, MirrorDescent, PlugIn
from saddleback.runs.settings import Method
from saddleback.sampling.blocks import BlockSource, blocks_for
from saddleback.sampling.store.buffers import OnRay
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import ray_buffer, streamed_buffer
from saddleback.sampling.value_functions import MaxDifference
from saddleback.solving.prepare import prepare_from
from sampling.streamed_runs import SEED, QuickDisk, fill, square

ray = pytest.importorskip("ray", reason="Ray is an extra: pip install 'saddleback[ray]'")
pytestmark = [pytest.mark.check, pytest.mark.xdist_group("ray")]

COUNTS = np.array([4600 if x % 5 == 0 else 330 + 7 * x for x in range(27)])
LIMITS = {"memory": 1_200_000, "num_lots": 5}  # 555 rows a window: products too small for BLAS to share among threads
MIXING = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
T = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    problem, model, design = square(observed=True)
    store = fill(tmp_path_factory.mktemp("store") / "s", problem, model, design, COUNTS, (0, 1))
    yield problem, model, design, store
    store.close()


@pytest.fixture(scope="module")
def turn(tmp_path_factory):
    """One cluster at a time on this machine, however many processes the tests run in."""
    with (tmp_path_factory.getbasetemp().parent / "ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_buffers_share_a_cluster_of_their_own(made, turn):
    """The first one starts it, the last one ends it, and neither keeps the other out."""
    problem, _, design, store = made
    value = MaxDifference(*np.random.default_rng(0).normal(size=(2, 9, 2)))
    here = streamed_buffer(store, 0, problem, design, T, **LIMITS)
    with ray_buffer(store.folder, 1, problem, design, T, actors=2, **LIMITS) as second:
        with ray_buffer(store.folder, 0, problem, design, T, actors=2, **LIMITS) as first:
            np.testing.assert_array_equal(first.expect(3, value), here.expect(3, value))
        assert ray.is_initialized()
        assert second.expect(3, value).shape == (27, 2)
    assert not ray.is_initialized()


@pytest.fixture(scope="module")
def cluster(turn):
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    store = 80 * 1024 * 1024
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    ray.init(address="local", num_cpus=4, object_store_memory=store, **quiet)
    yield
    ray.shutdown()


def solved(problem, buffer, solver):
    return b"".join(policy.theta.tobytes() for policy in solver.solve(problem, buffer, MIXING))


@pytest.mark.parametrize("solver", [LSMDVI(), PlugIn(tolerance=1e-3), MirrorDescent()], ids=str)
def test_any_number_of_actors_gives_the_bits_of_one_process(made, cluster, solver):
    problem, _, design, store = made
    expected = solved(problem, streamed_buffer(store, 0, problem, design, T, **LIMITS), solver)
    for actors in (1, 3):
        with ray_buffer(store.folder, 0, problem, design, T, actors=actors, **LIMITS) as buffer:
            assert solved(problem, buffer, solver) == expected
            assert buffer.hosts.num_restarts == 0
    assert ray.is_initialized(), "a cluster that was there before stays"


def test_values_and_limits_have_the_bits_of_one_process(made, cluster):
    problem, _, design, store = made
    here = streamed_buffer(store, 1, problem, design, T, **LIMITS)
    with ray_buffer(store.folder, 1, problem, design, T, actors=2, **LIMITS) as there:
        np.testing.assert_array_equal(there.utilities(problem), here.utilities(problem))
        np.testing.assert_array_equal(there.signal_noise(problem), here.signal_noise(problem))
        for policy in PlugIn(tolerance=1e-3).solve(problem, here, MIXING):
            for evaluator in (LSTD(), LSPE()):
                ours, theirs = (evaluator.evaluate(problem, buffer, policy) for buffer in (there, here))
                np.testing.assert_array_equal(ours, theirs)
                ours, theirs = (evaluator.interval(problem, buffer, policy, 0.95) for buffer in (there, here))
                np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("in_flight", [False, True], ids=["between questions", "in the middle of one"])
def test_an_actor_killed_in_mid_solve_is_survived_with_the_same_bits(made, cluster, in_flight):
    problem, _, design, store = made
    expected = solved(problem, streamed_buffer(store, 0, problem, design, T, **LIMITS), LSMDVI())
    with ray_buffer(store.folder, 0, problem, design, T, actors=3, **LIMITS) as buffer:
        asking, asked, victims = buffer.asking, [], []

        def killing(ask):
            asked.append(ask)
            if len(asked) in (7, 15):
                victim = buffer.hosts._actors[len(victims)]
                victims.append(victim)
                if in_flight:
                    killer = threading.Timer(0.001, ray.kill, [victim])
                    killer.start()
                    answer = asking(ask)
                    killer.join()
                    return answer
                ray.kill(victim)
            return asking(ask)

        buffer.asking = killing
        assert solved(problem, buffer, LSMDVI()) == expected
        assert buffer.hosts.num_restarts == len(victims) == 2


def test_every_actor_may_have_a_part_of_its_own(made, cluster, tmp_path):
    """Two disks with some pairs each; nobody has them all."""
    problem, model, design, store = made
    source = BlockSource(model, problem, design.states, design.actions, SEED)
    folders = [tmp_path / "a", tmp_path / "b"]
    for i, folder in enumerate(folders):
        with SampleStore.create(folder, {}, store.layout, disk=QuickDisk()) as part:
            for block in blocks_for(0, COUNTS):
                if (block.pair >= 10) == bool(i):
                    part.add(block, source.draw(block))
    value = MaxDifference(*np.random.default_rng(0).normal(size=(2, 9, 2)))
    here = streamed_buffer(store, 0, problem, design, T)
    with ray_buffer(folders, 0, problem, design, T) as there:
        np.testing.assert_allclose(there.expect(5, value), here.expect(5, value), rtol=0, atol=1e-12)
        np.testing.assert_allclose(there.average(value), here.average(value), rtol=0, atol=1e-12)
        np.testing.assert_array_equal(there.utilities(problem), here.utilities(problem))
    with pytest.raises(InputError, match="none of pair 10"):
        ray_buffer(folders[:1], 0, problem, design, T)


def test_faults_have_the_words_of_one_process(made, cluster, tmp_path):
    problem, _, design, _ = made
    with pytest.raises(InputError) as here:
        streamed_buffer(tmp_path / "nothing", 0, problem, design)
    with pytest.raises(SaddlebackError) as there:
        ray_buffer(tmp_path / "nothing", 0, problem, design)
    assert str(there.value) == str(here.value)
    with pytest.raises(InputError, match="one mapping for each"):
        ray_buffer(tmp_path, 0, problem, design, options=[{}])


def test_oracles_from_a_store_on_ray(made, cluster):
    """The whole preparation, with the design's own pairs."""
    problem, _, design, store = made

    class Given:
        def design(self, problem):
            return design

    choices = Method(design=Given())
    sigma, found = np.array([0.4, 0.6]), []
    for kind in ("streamed", OnRay(actors=2)):
        parts = prepare_from(problem, store, choices, buffer=kind)
        policy, values = parts.oracle(sigma)
        limits = parts.interval(policy, 0.95)
        found.append((policy.theta.tobytes(), values.tobytes(), np.array(limits).tobytes()))
        for buffer in (parts.solver_buffer, parts.evaluation_buffer):
            buffer.close()
    assert found[0] == found[1]
