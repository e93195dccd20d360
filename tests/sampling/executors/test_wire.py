"""Outcomes on their way between processes: the same arrays arrive, in fewer bytes."""

import threading

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from saddleback.errors import InputError, SaddlebackError, SimulatorError
from saddleback.sampling.executors.shipping import dumps_outcomes, loads
from saddleback.sampling.executors.task_book import Fault, Outcome, carry_out
from saddleback.simulators.generative_model import Draw


def sent(*outcomes):
    return loads(bytes(dumps_outcomes(outcomes)))


@settings(derandomize=True, deadline=None, max_examples=60)
@given(arrays.arrays(st.sampled_from([np.int64, np.int32, np.uint16, np.int8]), st.integers(0, 30)))
@example(np.array([-1, 2**62 + 1]))
@example(np.array([-1, 2**32 - 1]))
def test_whole_numbers_arrive_as_they_were(x):
    (outcome,) = sent(Outcome(3, Draw(x, None), None, 7, 0.5))
    assert outcome[0] == 3 and outcome[2:] == (None, 7, 0.5)
    y = outcome.result.next_states
    assert isinstance(outcome.result, Draw) and y.dtype == x.dtype and np.array_equal(x, y) and y.flags.writeable


def test_points_and_signals_arrive_as_they_were():
    rng = np.random.default_rng(0)
    draw = Draw(rng.random((5, 2)), rng.random((5, 3)))
    (outcome,) = sent(Outcome(0, draw, None, 5, 0.1))
    np.testing.assert_array_equal(outcome.result.next_states, draw.next_states)
    np.testing.assert_array_equal(outcome.result.signals, draw.signals)
    assert outcome.result.signals.flags.writeable


def test_a_block_of_a_small_space_takes_an_eighth():
    x = np.random.default_rng(0).integers(0, 200, 4096)
    assert len(dumps_outcomes([Outcome(0, Draw(x, None), None, 4096, 0.1)])) < 4096 + 512


@pytest.mark.parametrize(
    "error",
    [
        SimulatorError("raised", state=np.int64(2), action=1, key=(1, 2, 3, 4), index=5),
        InputError("gamma", "must lie in [0, 1)", 1.0, "set a horizon"),
        SaddlebackError("plain"),
    ],
)
def test_errors_arrive_as_they_were(error):
    (outcome,) = sent(Outcome(0, None, Fault.of(error), 0, 0.0))
    found = outcome.fault.error(abs, 0)
    assert type(found) is type(error) and str(found) == str(error) and found.exit_code == error.exit_code
    assert {k: v for k, v in vars(found).items() if k != "__notes__"} == vars(error)


def test_only_what_cannot_be_sent_is_lost():
    good, bad = Outcome(0, 1, None, 0, 0.0), Outcome(1, threading.Lock(), None, 0, 0.0)
    refused = InputError("simulator", "must be simple", threading.Lock(), "make it so")
    outcomes = sent(good, bad, Outcome(2, None, Fault.of(refused), 0, 0.0))
    assert outcomes[0] == good
    assert "cannot be sent" in str(outcomes[1].fault.error(abs, 8))
    assert "`simulator` must be simple" in str(outcomes[2].fault.error(abs, 8))


def test_tasks_that_fail_do_not_stop_the_others():
    outcomes = list(carry_out(lambda x: 1 // x, [(0, 1), (1, 0), (2, -1)]))
    assert [o.result for o in outcomes] == [1, None, -1]
    assert str(outcomes[1].fault.error(abs, 0)).startswith("the task 0 raised ZeroDivisionError")
