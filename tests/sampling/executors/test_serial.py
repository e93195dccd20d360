"""The serial executor, and what all executors share: names, options, lazy imports."""

import subprocess
import sys

import numpy as np
import pytest

from saddleback.errors import InputError, SaddlebackError, SimulatorError
from saddleback.sampling.blocks import InOrder
from saddleback.sampling.executors import BY_NAME, Joblib, Ray, Serial, make
from sampling.executors import faulty_simulators as faulty


def test_draws_what_the_plain_loop_draws():
    source = faulty.source(faulty.uniform)
    ours, plain = dict(Serial().run(source.draw, faulty.blocks())), dict(InOrder().run(source.draw, faulty.blocks()))
    assert list(ours) == list(plain)
    for block in plain:
        np.testing.assert_array_equal(ours[block].next_states, plain[block].next_states)
    assert faulty.collected(faulty.uniform, Serial()) == faulty.collected(faulty.uniform, None)


def test_a_fault_names_everything_and_keeps_its_cause():
    source = faulty.source(faulty.Wrong("raises"))
    results, error = faulty.drawn(Serial(), source.draw, faulty.blocks())
    assert isinstance(error, SimulatorError)
    assert (error.state, error.action, error.index) == (faulty.STATE, faulty.ACTION, 0)
    assert error.key == (5, 0, faulty.PAIR, 0)
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert [block.pair for block in results] == list(range(faulty.PAIR)), "results before the fault were handed on"
    assert source.model.num_queries == 20 * faulty.PAIR


def test_a_simulator_that_exits_does_not_end_the_program():
    source = faulty.source(faulty.Wrong("exits"))
    _, error = faulty.drawn(Serial(), source.draw, faulty.blocks())
    assert isinstance(error, SimulatorError) and "raised SystemExit: 3" in str(error)


def test_other_tasks_than_blocks():
    assert dict(Serial().run(abs, [-1, 2])) == {-1: 1, 2: 2}
    _, error = faulty.drawn(Serial(), abs, ["x"])
    assert isinstance(error, SaddlebackError) and str(error).startswith("the task x raised TypeError")


def test_aliased_arrays_are_copied():
    assert faulty.collected(faulty.Aliased(), Serial()) == faulty.collected(faulty.uniform, None)


def test_progress():
    seen = []
    source = faulty.source(faulty.Wrong("raises"))
    faulty.drawn(Serial(progress=lambda *now: seen.append(now)), source.draw, faulty.blocks())
    n = faulty.PAIR
    assert seen == [(i, 20 * i, 0) for i in range(1, n + 1)] + [(n, 20 * n, 1)]


def test_names():
    assert set(BY_NAME) == {"serial", "joblib", "ray"}
    assert isinstance(make(), Serial) and isinstance(make("serial", None), Serial)
    assert isinstance(make(workers=2), Joblib) and isinstance(make(workers=None), Joblib)
    assert isinstance(make("ray", 2), Ray)
    assert make("joblib", 3).workers == 3
    assert make(workers=None).workers >= 1


@pytest.mark.parametrize(
    ("name", "options", "complaint"),
    [
        ("dask", {}, "`executor` must be known"),
        ("serial", {"workers": 2}, "`workers` must be 1"),
        ("joblib", {"workers": 0}, "`workers` must be at least 1"),
        ("ray", {"workers": -1}, "`workers` must be at least 1"),
        ("joblib", {"timeout": 0.0}, "`timeout` must lie in"),
        ("serial", {"timeout": -1.0}, "`timeout` must lie in"),
        ("joblib", {"retries": -1}, "`retries` must not be negative"),
    ],
)
def test_bad_options(name, options, complaint):
    with pytest.raises(InputError, match=complaint):
        make(name, **options)


@pytest.mark.slow
def test_imports_are_lazy():
    code = "import sys, saddleback, saddleback.sampling.executors as e; e.make('joblib', 2); e.make('ray', 2)"
    code += "; print(*[m for m in ('joblib', 'ray', 'cloudpickle') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
