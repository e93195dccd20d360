"""Buffers that stay on disk: the answers of one in memory, in memory that does not grow."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import random_design, random_table, sampled
from places import TESTS
from saddleback.designs.design import Design
from saddleback.errors import InputError
from saddleback.method.evaluators import LSPE, LSTD
from saddleback.method.solvers import LSMDVI, MirrorDescent, PlugIn
from saddleback.problem.policies import GreedyPolicy, SoftmaxPolicy
from saddleback.runs.settings import Method, Settings
from saddleback.sampling.blocks import BlockSource, blocks_for
from saddleback.sampling.buffer import counted
from saddleback.sampling.store.buffers import counted_buffer
from saddleback.sampling.store.layout import Layout
from saddleback.sampling.store.sample_store import SampleStore
from saddleback.sampling.streamed_buffer import StreamedBuffer, streamed_buffer
from saddleback.sampling.value_functions import MaxDifference, PolicyValue, SoftDifference
from saddleback.simulators.generative_model import Stream
from saddleback.solving.find import find_policy
from saddleback.solving.prepare import prepare, prepare_from
from sampling.streamed_runs import SEED, QuickDisk, fill, in_memory, square

COUNTS = np.array([4600 if x % 5 == 0 else 330 + 7 * x for x in range(27)])  # some pairs have two blocks
SMALL = {"memory": 1_200_000, "num_lots": 3}  # 925 rows a window: batches in pieces, or a few at a time
ASKED = Settings()
MIXING = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])


@pytest.fixture(scope="module", params=[False, True], ids=["known", "observed"])
def made(request: Any, tmp_path_factory: Any) -> Any:
    problem, model, design = square(request.param)
    store = fill(tmp_path_factory.mktemp("store") / "s", problem, model, design, COUNTS, (0, 1))
    yield problem, model, design, store
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("T", [1, 3, 7, 100])
@pytest.mark.parametrize("limits", [{}, SMALL], ids=["large", "small"])
def test_every_mean_is_the_one_in_memory(made: Any, T: int, limits: dict[str, int]) -> None:
    problem, model, design, store = made
    ours, memory = streamed_buffer(store, 0, problem, design, T, **limits), in_memory(problem, model, design, COUNTS, T)
    assert (ours.num_batches, ours.num_samples) == (T, memory.num_samples)
    np.testing.assert_array_equal(ours.counts, memory.counts)
    np.testing.assert_array_equal(ours.utilities(problem), memory.utilities(problem))
    np.testing.assert_array_equal(ours.signal_noise(problem), memory.signal_noise(problem))
    rng, d = np.random.default_rng(T), problem.required_features().dim
    for shape in [(d,), (d, 1), (d, 4)]:
        high, low = rng.normal(size=(2, *shape))
        policy = GreedyPolicy(problem.required_features(), rng.normal(size=d))
        soft = SoftmaxPolicy(problem.required_features(), rng.normal(size=d), 2.0)
        values = [
            MaxDifference(high, low),
            MaxDifference(high, 0 * low),
            SoftDifference(high, low, 0.9, 3.0),
            PolicyValue(policy, high),
            PolicyValue(soft, high),
        ]
        for value in values:
            np.testing.assert_allclose(ours.average(value), memory.average(value), rtol=0, atol=1e-12)
            for t in sorted({0, 1 % T, T - 1}):
                np.testing.assert_allclose(ours.expect(t, value), memory.expect(t, value), rtol=0, atol=1e-12)
        V, held = ours.at_support(values[3]), memory.at_support(values[3])
        np.testing.assert_allclose(ours.average(V), memory.average(held), rtol=1e-12, atol=1e-12)
        for a, b in zip(ours.moments(V), memory.moments(held), strict=True):  # mean and variance
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(V.max(axis=0), held.max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(V.min(axis=0), held.min(axis=0), rtol=1e-12)


def test_pieces_in_which_some_pairs_have_no_sample(made: Any) -> None:
    problem, model, design, store = made
    ours = streamed_buffer(store, 0, problem, design, 100, memory=20_000, num_lots=1)  # 46 rows, of batches of 380
    memory = in_memory(problem, model, design, COUNTS, 100)
    for shape in [(9,), (9, 2)]:
        value = MaxDifference(*np.random.default_rng(0).normal(size=(2, *shape)))
        np.testing.assert_allclose(ours.expect(57, value), memory.expect(57, value), rtol=0, atol=1e-12)


def test_compiled_sums_are_the_same(made: Any) -> None:
    problem, model, design, store = made
    ours, memory = streamed_buffer(store, 0, problem, design, 5), in_memory(problem, model, design, COUNTS, 5)
    reader = ours.asking.func.__self__  # type: ignore[attr-defined]
    reader.begin(reader._plan._replace(compiled=True))
    theta = np.random.default_rng(0).normal(size=(2, problem.required_features().dim, 2))
    value = MaxDifference(*theta)
    np.testing.assert_allclose(ours.expect(3, value), memory.expect(3, value), rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.average(value), memory.average(value), rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("limits", [{}, SMALL], ids=["large", "small"])
@pytest.mark.parametrize("solver", [LSMDVI(), LSMDVI(0.5), PlugIn(), MirrorDescent()], ids=str)
def test_solvers_find_the_same(made: Any, solver: Any, limits: dict[str, int]) -> None:
    problem, model, design, store = made
    ours, memory = (
        streamed_buffer(store, 0, problem, design, 40, **limits),
        in_memory(problem, model, design, COUNTS, 40),
    )
    points = np.random.default_rng(1).random((500, 2))
    for here, there in zip(solver.solve(problem, memory, MIXING), solver.solve(problem, ours, MIXING), strict=True):
        scale = np.abs(here.theta).max()
        np.testing.assert_allclose(there.theta, here.theta, rtol=0, atol=1e-12 * max(1.0, scale))
        np.testing.assert_array_equal(there.probabilities(points).argmax(1), here.probabilities(points).argmax(1))


@pytest.mark.slow
@pytest.mark.parametrize("evaluator", [LSTD(), LSPE(), LSPE(0.5)], ids=str)
def test_evaluators_find_the_same_values_and_limits(made: Any, evaluator: Any) -> None:
    problem, model, design, store = made
    T = 16
    ours, memory = (
        streamed_buffer(store, 1, problem, design, T, **SMALL),
        in_memory(problem, model, design, COUNTS, T, 1),
    )
    for policy in PlugIn().solve(problem, memory, MIXING):
        np.testing.assert_allclose(
            evaluator.evaluate(problem, ours, policy), evaluator.evaluate(problem, memory, policy), rtol=0, atol=1e-12
        )
        limits = evaluator.interval(problem, memory, policy, 0.95)
        np.testing.assert_allclose(evaluator.interval(problem, ours, policy, 0.95), limits, rtol=0, atol=1e-12)
        assert np.all(limits[1] > limits[0])


def test_what_a_streamed_buffer_refuses(made: Any, tmp_path: Path) -> None:
    problem, model, design, store = made
    ours = streamed_buffer(store, 0, problem, design, 4)
    for question in (
        lambda: counted(ours),
        lambda: ours.average(np.zeros(0)),
        lambda: ours.at_support(np.zeros(0)),
        lambda: ours.expect(0, np.ones(5)),
        lambda: ours.expect(4, np.zeros(0)),
        lambda: ours.moments(np.zeros(0)),
        lambda: streamed_buffer(store, 0, problem, design, 5000),
        lambda: streamed_buffer(store, 2, problem, design),
        lambda: streamed_buffer(store, 0, dataclasses.replace(problem, features=None), design),
        lambda: counted_buffer(store, 0, problem, design),
        lambda: prepare_from(problem, store, buffer="disk"),  # type: ignore[arg-type]
        lambda: prepare_from(problem, store, Method(solver="gss")),
    ):
        with pytest.raises(InputError):
            question()
    holes = tmp_path / "holes"
    source = BlockSource(model, problem, design.states, design.actions, SEED)
    blocks = blocks_for(0, np.full(design.size, 5000))
    with SampleStore.create(holes, {}, store.layout, disk=QuickDisk()) as broken:
        for block in blocks[1:]:
            broken.add(block, source.draw(block))
    with pytest.raises(InputError, match="without a gap"):
        streamed_buffer(holes, 0, problem, design)


def test_blocks_not_yet_flushed_are_seen(tmp_path: Path) -> None:
    problem, model, design = square()
    source = BlockSource(model, problem, design.states, design.actions, SEED)
    with SampleStore.create(tmp_path / "s", {}, Layout.of(model.states), disk=QuickDisk()) as store:
        for block in blocks_for(0, np.full(design.size, 20)):
            store.add(block, source.draw(block))
        ours = streamed_buffer(store, 0, problem, design)
        value = MaxDifference(np.arange(9.0), np.zeros(9))
        memory = in_memory(problem, model, design, 20, 1)
        np.testing.assert_allclose(ours.average(value), memory.average(value), rtol=1e-13)


@pytest.mark.parametrize("d", [None, 4], ids=["table", "linear"])
@pytest.mark.parametrize("counts", [False, True], ids=["samples", "counts"])
@pytest.mark.parametrize("T", [1, 10])
def test_finite_states_are_counted_in_one_pass(d: int | None, counts: bool, T: int, tmp_path: Path) -> None:
    table = random_table(3, S=12, A=3, d=d)
    problem = table.problem()
    design: Design = random_design(problem, 0) if d else prepare_design(problem)
    memory = sampled(table, problem, design, 500, T, seed=SEED)
    source = BlockSource(table.simulator(), problem, design.states, design.actions, SEED)
    layout = Layout.of(problem.states, counts=counts)
    with SampleStore.create(tmp_path / "s", {}, layout, disk=QuickDisk()) as store:
        for block in blocks_for(0, np.full(design.size, 500)):
            store.add(block, source.draw(block))
        reads = CountsReads(store)
        ours = counted_buffer(reads, 0, problem, design, T)  # type: ignore[arg-type]
    assert reads.num_read == design.size
    assert ours.num_samples == memory.num_samples
    V = np.random.default_rng(0).random(12)
    np.testing.assert_allclose(ours.average(V[ours.support]), memory.average(V[memory.support]), rtol=1e-12)
    for t in range(T if not counts else 0):  # counts give their samples back in another order
        np.testing.assert_allclose(ours.expect(t, V[ours.support]), memory.expect(t, V[memory.support]), rtol=1e-12)


def prepare_design(problem: Any) -> Design:
    from saddleback.designs.design import full_design

    return full_design(*problem.pairs())


class CountsReads:
    """A store that says how many blocks were read."""

    def __init__(self, store: SampleStore):
        self._store, self.num_read = store, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def rows(self, stream: int) -> Any:
        for found in self._store.rows(stream):
            self.num_read += 1
            yield found


def test_many_counts_are_kept_sparse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = random_table(4, S=12, A=3)
    problem = table.problem()
    design = prepare_design(problem)
    memory = sampled(table, problem, design, 300, 5, seed=SEED)
    source = BlockSource(table.simulator(), problem, design.states, design.actions, SEED)
    with SampleStore.create(tmp_path / "s", {}, Layout.of(problem.states), disk=QuickDisk()) as store:
        for block in blocks_for(0, np.full(design.size, 300)):
            store.add(block, source.draw(block))
        monkeypatch.setattr("saddleback.sampling.store.buffers._MOST_COUNTS", 2000)
        monkeypatch.setattr("saddleback.sampling.store.buffers._TALLY", 1000)
        ours = counted_buffer(store, 0, problem, design, 5)
        V = np.random.default_rng(0).random(12)
        for t in range(5):
            np.testing.assert_allclose(ours.expect(t, V[ours.support]), memory.expect(t, V[memory.support]), rtol=1e-12)
        monkeypatch.setattr("saddleback.sampling.store.buffers._MOST_COUNTS", 500)
        with pytest.raises(InputError, match="use fewer batches"):
            counted_buffer(store, 0, problem, design, 5)


@pytest.mark.check
@pytest.mark.parametrize("mode", ["default", "literal"])
def test_a_whole_solve_from_a_store(mode: Any, tmp_path: Path) -> None:
    """Memory and stream end with the same policies; so does the run that drew the samples."""
    problem, model, _ = square()
    choices = Method(mode=mode)
    first = prepare(problem, model, 20_000, SEED, choices)
    layout = Layout.of(model.states)
    with SampleStore.create(tmp_path / "s", {}, layout, disk=QuickDisk()) as store:
        assert first.solver_buffer is not None
        for stream, buffer in ((Stream.SOLVER, first.solver_buffer), (Stream.EVALUATION, first.evaluation_buffer)):
            n = buffer.counts + buffer.num_unused // first.design.size
            source = BlockSource(model, problem, first.design.states, first.design.actions, SEED)
            for block in blocks_for(stream, n):
                store.add(block, source.draw(block))
        T = (first.solver_buffer.num_batches, first.evaluation_buffer.num_batches)
        parts = [first] + [
            prepare_from(problem, store, choices, buffer=kind, num_batches=T) for kind in ("memory", "streamed")
        ]
        assert isinstance(parts[2].solver_buffer, StreamedBuffer)
        found = [find_policy(problem, p, ASKED) for p in parts]
    for solution in found[1:]:
        assert solution.status == found[0].status
        np.testing.assert_allclose(solution.mixture.weights, found[0].mixture.weights, rtol=0, atol=1e-9)
        points = np.random.default_rng(1).random((300, 2))
        for a, b in zip(solution.mixture.members, found[0].mixture.members, strict=True):
            np.testing.assert_array_equal(a.probabilities(points), b.probabilities(points))


PROGRAM = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from sampling.streamed_runs import fill, in_memory, square
from saddleback.method.evaluators import LSTD
from saddleback.method.solvers import LSMDVI
from saddleback.sampling.streamed_buffer import streamed_buffer
import numpy as np

def peak():
    lines = open(sys.argv[3]).read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

problem, model, design = square()
how, each = sys.argv[4], int(sys.argv[5])
if how == "memory":
    buffer = in_memory(problem, model, design, each, 40)
else:
    store = fill(Path(sys.argv[2]), problem, model, design, each)
    buffer = streamed_buffer(store, 0, problem, design, 40, memory=4 << 20)
start = peak()
(policy,) = LSMDVI().solve(problem, buffer, np.array([[0.5, 0.5]]))
limits = LSTD().interval(problem, buffer, policy, 0.95)
print(json.dumps({"peak": peak(), "growth": peak() - start, "limits": np.array(limits).tolist()}))
"""


def peak_of(how: str, each: int, folder: Path) -> dict[str, Any]:
    status, here = Path("/proc") / "self" / "status", TESTS
    command = [sys.executable, "-c", PROGRAM, str(here), str(folder), str(status), how, str(each)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    print(how, each, report)
    return report


@pytest.mark.check
def test_memory_does_not_grow_with_the_store(tmp_path: Path) -> None:
    """Four times the samples: the same memory; a buffer in memory, the control, grows."""
    small, large = (peak_of("streamed", n, tmp_path / str(n)) for n in (10_000, 40_000))
    assert large["peak"] < 1.2 * small["peak"]
    few, many = (peak_of("memory", n, tmp_path) for n in (10_000, 40_000))
    assert many["peak"] > 1.2 * few["peak"]
    np.testing.assert_allclose(large["limits"], many["limits"], rtol=0, atol=1e-12)
