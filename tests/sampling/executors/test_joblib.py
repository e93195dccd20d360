"""Worker processes: the same samples whatever their number, and faults provoked for real."""

import os
import random
import time

import numpy as np
import pytest

from saddleback.errors import InputError, SaddlebackError, SimulatorError
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.problem.spaces import FiniteStates
from saddleback.sampling.executors import Joblib, Serial
from saddleback.sampling.trajectories import RolloutSource, chunks_for
from saddleback.simulators.generative_model import GenerativeModel
from sampling.executors import faulty_simulators as faulty


@pytest.fixture(scope="module")
def two():
    with Joblib(2) as executor:
        yield executor


# ---- the same samples ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 3, 7])
def test_samples_do_not_depend_on_the_workers(workers):
    """In every order of completion; pairs with several blocks, and observed signals."""
    counts = np.full(faulty.S * faulty.A, 30)
    counts[[0, 4]] = 9000, 4097
    with Joblib(workers) as executor:
        assert faulty.collected(faulty.jittery, executor, counts) == faulty.collected(faulty.uniform, None, counts)
        assert faulty.collected(faulty.with_signals, executor, counts, 2) == faulty.collected(
            faulty.with_signals, None, counts, 2
        )


@pytest.mark.slow
def test_one_stream_a_worker_would_depend_on_them(two):
    """The control: what the streams of blocks prevent."""
    with Joblib(1) as one:
        assert faulty.collected(faulty.per_worker, one) != faulty.collected(faulty.per_worker, two)


@pytest.mark.slow
def test_the_order_of_tasks_does_not_matter(two):
    source, blocks = faulty.source(faulty.jittery), faulty.blocks(5)
    shuffled = random.Random(3).sample(blocks, len(blocks))
    one, other = dict(two.run(source.draw, blocks)), dict(two.run(source.draw, shuffled))
    assert list(one) != list(other), "they were finished in another order"
    assert all(np.array_equal(one[b].next_states, other[b].next_states) for b in blocks)


def test_aliased_arrays_are_copied(two):
    assert faulty.collected(faulty.Aliased(), two) == faulty.collected(faulty.uniform, None)


def test_many_quick_tasks_go_out_in_lots(two):
    tasks = list(range(-5000, 5000))
    assert dict(two.run(abs, tasks)) == {t: abs(t) for t in tasks}


# ---- what is sent ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_function_goes_to_each_worker_once(tmp_path):
    simulator = faulty.CountsLoads(tmp_path)
    with Joblib(2) as executor:
        for _ in range(2):  # the same function again is not sent again
            assert len(dict(executor.run(faulty.source(simulator).draw, faulty.blocks()))) == 18
    used, loads = faulty.lines(tmp_path, "used"), faulty.lines(tmp_path, "loads")
    assert len(used) == 36
    assert len(loads) == len(set(loads)) == 2, "once in each process"
    assert set(used) <= set(loads)


@pytest.mark.slow
def test_a_factory_makes_the_simulator_once_in_each_worker(tmp_path):
    with Joblib(2, factory=faulty.Makes(tmp_path)) as executor:
        assert faulty.collected(None, executor) == faulty.collected(faulty.uniform, None)
        assert faulty.collected(None, executor, 50) == faulty.collected(faulty.uniform, None, 50)
    made = faulty.lines(tmp_path, "made")
    assert 1 <= len(made) == len(set(made)) <= 2


@pytest.mark.slow
def test_what_cannot_be_sent_or_loaded(two, tmp_path):
    source = faulty.source(faulty.Unsendable())
    with pytest.raises(InputError, match=r"can be sent to another process.*lock.*factory"):
        list(two.run(source.draw, faulty.blocks()))
    with Joblib(1, factory=faulty.Makes(tmp_path, wrong=True)) as executor:
        with pytest.raises(InputError, match="a worker process can load, got RuntimeError: no licence"):
            list(executor.run(faulty.source(None).draw, faulty.blocks()))
        with pytest.raises(InputError, match="`factory` must go with blocks"):
            list(executor.run(abs, [1]))
    _, error = faulty.drawn(two, faulty.make_unsendable, [0])
    assert isinstance(error, SaddlebackError) and "cannot be sent" in str(error), "a result with a lock in it"


@pytest.mark.slow
def test_workers_have_one_thread(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with Joblib(1) as executor:
        assert dict(executor.run(faulty.threads, [0])) == {0: ("1", "1")}


# ---- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["raises", "exits", "outside", "short", "square", "float"])
def test_faults_have_the_same_message_everywhere(two, kind):
    here, there = faulty.source(faulty.Wrong(kind)), faulty.source(faulty.Wrong(kind))
    _, expected = faulty.drawn(Serial(), here.draw, faulty.blocks())
    results, error = faulty.drawn(two, there.draw, faulty.blocks())
    assert isinstance(error, SimulatorError) and isinstance(expected, SimulatorError)
    assert str(error) == str(expected)
    fields = [(e.problem, e.state, e.action, e.key, e.index) for e in (error, expected)]
    assert fields[0] == fields[1]
    assert faulty.PAIR not in [block.pair for block in results]
    calls = 20 * len(results) + (0 if kind in ("raises", "exits") else 20)  # a call that returned something is a call
    assert there.model.num_queries == calls
    if kind == "raises":
        assert "faulty_simulators.py" in error.__notes__[0], "where in the simulator it was"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_numbers(two, value):
    boxes = faulty.source(faulty.WrongBox(value), space=faulty.BOX)
    _, error = faulty.drawn(two, boxes.draw, faulty.blocks())
    assert isinstance(error, SimulatorError)
    assert error.index == 3 and error.key == (5, 0, faulty.PAIR, 0) and str(value) in error.problem
    signals = faulty.source(faulty.WrongSignal(value), num_signals=2)
    _, error = faulty.drawn(two, signals.draw, faulty.blocks())
    assert isinstance(error, SimulatorError) and error.problem == f"returned the signal {value} in column 1"
    assert error.index == 4


def test_results_under_way_are_handed_on_before_the_fault_is_raised(two, tmp_path):
    source = faulty.source(faulty.RaisesWhileAnotherWorks(tmp_path))
    tasks = [b for b in faulty.blocks() if b.pair in (0, faulty.A)]
    results, error = faulty.drawn(two, source.draw, tasks)
    assert [block.pair for block in results] == [faulty.A]
    assert isinstance(error, SimulatorError) and error.state == 0


@pytest.mark.check
@pytest.mark.parametrize(("how", "name"), [("segfault", "SIGSEGV"), ("kill", "SIGKILL"), ("exit", "exit code 3")])
def test_a_deadly_pair_is_tried_twice_and_named(how, name, tmp_path):
    seen = []
    source = faulty.source(faulty.Deadly(how, tmp_path))
    with Joblib(2, progress=lambda *now: seen.append(now)) as executor:
        results, error = faulty.drawn(executor, source.draw, faulty.blocks())
    assert isinstance(error, SimulatorError)
    assert (error.state, error.action, error.key) == (faulty.STATE, faulty.ACTION, (5, 0, faulty.PAIR, 0))
    assert "ended its worker process 2 times with the same seed key" in str(error) and name in str(error)
    keys = faulty.lines(tmp_path, "keys")
    assert len(keys) == 2 and len(set(keys)) == 1, "twice with the same key, never with another"
    assert faulty.PAIR not in [block.pair for block in results] and len(results) >= 5, "other results are kept"
    plain = faulty.source(faulty.uniform)
    for block, draw in results.items():
        np.testing.assert_array_equal(draw.next_states, plain.draw(block).next_states)
    assert seen[-1] == (len(results), 20 * len(results), 2)


@pytest.mark.check
@pytest.mark.parametrize("how", ["segfault", "kill"])
def test_one_death_changes_nothing(how, tmp_path):
    with Joblib(2) as executor:
        found = faulty.collected(faulty.Deadly(how, tmp_path, times=1), executor)
    assert found == faulty.collected(faulty.uniform, None)
    assert len(faulty.lines(tmp_path, "keys")) == 2


@pytest.mark.check
def test_retries_are_an_option(tmp_path):
    with Joblib(1, retries=0) as executor:
        _, error = faulty.drawn(executor, faulty.source(faulty.Deadly("kill", tmp_path)).draw, faulty.blocks(pairs=8))
    assert isinstance(error, SimulatorError) and error.key == (5, 0, faulty.PAIR, 0)
    os.remove(tmp_path / "keys")
    with Joblib(2, retries=3) as executor:
        found = faulty.collected(faulty.Deadly("kill", tmp_path, times=3), executor)
    assert found == faulty.collected(faulty.uniform, None)


@pytest.mark.check
@pytest.mark.parametrize("executor", [Joblib(2, timeout=1.0), Serial(timeout=1.0)], ids=["joblib", "serial"])
def test_a_hanging_call_is_ended_and_named(executor, tmp_path):
    """With all it has started; the quick blocks before it were handed on."""
    source = faulty.source(faulty.Deadly("hang", tmp_path))
    with executor:
        results, error = faulty.drawn(executor, source.draw, faulty.blocks())
        assert isinstance(error, SimulatorError)
        assert (error.state, error.action, error.key) == (faulty.STATE, faulty.ACTION, (5, 0, faulty.PAIR, 0))
        assert "did not return within the timeout of 1 s" in str(error)
        assert len(results) >= 5
        pids = [int(p) for p in faulty.lines(tmp_path, "pids")]
        assert len(pids) >= 2 and faulty.gone(pids)
        os.remove(tmp_path / "keys")
        again = dict(executor.run(faulty.source(faulty.uniform).draw, faulty.blocks()))
        assert len(again) == 18, "the executor is as good as new"


@pytest.mark.check
def test_a_timeout_is_for_the_simulator_not_for_the_reader(tmp_path):
    """The other worker finishes while the first result is looked at, and is heard only afterwards."""
    source = faulty.source(faulty.Slow(0.3, tmp_path))
    with Joblib(2, timeout=1.0) as executor:
        for _ in executor.run(source.draw, faulty.blocks(pairs=4)):
            time.sleep(1.3)


# ---- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_an_abandoned_run_ends_its_workers(tmp_path):
    source = faulty.source(faulty.Slow(0.05, tmp_path))
    executor = Joblib(2)
    run = executor.run(source.draw, faulty.blocks())
    next(run)
    with pytest.raises(InputError, match="one run before the next"):
        next(executor.run(source.draw, faulty.blocks()))
    run.close()
    assert faulty.gone([int(p) for p in set(faulty.lines(tmp_path, "pids"))], 0.5)
    assert len(dict(executor.run(source.draw, faulty.blocks(pairs=2)))) == 2
    executor.close()
    assert faulty.gone([int(p) for p in set(faulty.lines(tmp_path, "pids"))], 0.5)


def test_nothing_to_do(two):
    assert list(two.run(abs, [])) == []


@pytest.mark.slow
def test_progress():
    seen = []
    with Joblib(2, progress=lambda *now: seen.append(now)) as executor:
        dict(executor.run(faulty.source(faulty.uniform).draw, faulty.blocks()))
    assert seen == [(i, 20 * i, 0) for i in range(1, 19)]


@pytest.mark.slow
def test_rollouts_can_be_drawn_elsewhere_too(two):
    """Another source than blocks of pairs: the same tapes, the same meter, and its own errors."""
    problem = faulty.problem()
    policy = TabularPolicy.stochastic(np.full((faulty.S, faulty.A), 1 / faulty.A))
    mixture = MixturePolicy([policy], np.ones(1))
    here, there = (
        RolloutSource(GenerativeModel(faulty.uniform, FiniteStates(faulty.S)), problem, mixture, 3) for _ in range(2)
    )
    chunks = chunks_for(6, 0, 3000)
    tapes = dict(two.run(there.draw, chunks))
    for chunk in chunks:
        np.testing.assert_array_equal(tapes[chunk].next_states, here.draw(chunk).next_states)
    assert there.model.num_queries == here.model.num_queries > 3000
    wrong = RolloutSource(GenerativeModel(faulty.always_raises, FiniteStates(faulty.S)), problem, mixture, 3)
    _, error = faulty.drawn(two, wrong.draw, chunks)
    assert isinstance(error, SimulatorError) and error.key is not None and error.key[:2] == (3, 6)
