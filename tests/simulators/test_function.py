"""Plain functions as simulators: what they may return, what is refused, and by what name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from saddleback.errors import InputError, SimulatorError
from saddleback.problem.spaces import BoxStates, FiniteStates
from saddleback.sampling.executors.shipping import pack, unpack
from saddleback.simulators import from_function
from saddleback.simulators.generative_model import GenerativeModel
from simulators.one_problem import KNOWN, OBSERVED, many_steps, one_step

LINE = BoxStates(np.array([-10.0]), np.array([10.0]))
PLANE = BoxStates(np.array([-10.0, -10.0]), np.array([10.0, 10.0]))


def sample(model: GenerativeModel, states: Any, seed: int = 0) -> Any:
    states = np.asarray(states)
    return model.sample(states, np.arange(len(states)) % 2, np.random.default_rng(seed))


def walk(x: np.ndarray, action: int, rng: np.random.Generator) -> np.ndarray:
    x += rng.normal(size=2) * 0.1 * (1 + action)  # in place: the row is the function's own
    return x


def test_vectors_may_be_written_to_without_harm() -> None:
    states = np.zeros((50, 2))
    drawn = sample(from_function(walk, PLANE), states)
    assert not states.any()
    assert len(np.unique(drawn.next_states[:, 0])) == 50
    again = sample(from_function(walk, PLANE), states)
    np.testing.assert_array_equal(drawn.next_states, again.next_states)


class Reuses:
    """Hands out one and the same array."""

    def __init__(self) -> None:
        self.held = np.zeros(2)

    def __call__(self, x: np.ndarray, action: int, rng: np.random.Generator) -> np.ndarray:
        self.held[:] = rng.random(2)
        return self.held


def test_an_array_that_is_used_again_is_copied_in_time() -> None:
    drawn = sample(from_function(Reuses(), PLANE), np.zeros((20, 2)))
    np.testing.assert_array_equal(drawn.next_states, np.random.default_rng(0).random((20, 2)))


@pytest.mark.parametrize("value", [0.5, (0.5,), [0.5], np.array([0.5]), np.float32(0.5), np.array(0.5)])
def test_one_coordinate_may_be_a_number(value: Any) -> None:
    drawn = sample(from_function(lambda x, a, rng: value, LINE), np.zeros((3, 1)))
    assert drawn.next_states.tolist() == [[0.5]] * 3


@pytest.mark.parametrize("value", [3, np.int32(3), np.array(3), True + 2])
def test_a_state_may_be_any_whole_number(value: Any) -> None:
    assert sample(from_function(lambda s, a, rng: value, 5), [0, 1]).next_states.tolist() == [3, 3]


def test_columns_that_the_problem_knows_are_left_out() -> None:
    def step(s: int, a: int, rng: Any) -> tuple[int, float]:
        return s, 7.0 + a

    def batched(s: Any, a: Any, rng: Any) -> Any:
        return s, 7.0 + a

    for function in (
        from_function(step, 5, signals=(None, "c")),
        from_function(batched, 5, signals=(None, "c"), batched=True),
    ):
        assert sample(function, [0, 1]).signals.tolist() == [[0, 7], [0, 8]]


@pytest.mark.parametrize(
    "function",
    [
        lambda s, a, rng: (s, np.stack([a, -a], axis=1)),
        lambda s, a, rng: (s, a, -a),
        lambda s, a, rng: {"c": -a, "r": a, "next_state": s},
    ],
)
def test_a_batched_function_may_answer_in_three_ways(function: Any) -> None:
    drawn = sample(from_function(function, 5, signals=("r", "c"), batched=True), [0, 1, 2])
    assert drawn.next_states.tolist() == [0, 1, 2]
    assert drawn.signals.tolist() == [[0, 0], [1, -1], [0, 0]]


def fails_at_three(s: int, a: int, rng: Any) -> int:
    if s == 3:
        raise ZeroDivisionError("no bread")
    return s


FAULTS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "raises": (fails_at_three, {}, ["raised ZeroDivisionError: no bread", "state 3, action 1, sample 3"]),
    "half a state": (
        lambda s, a, rng: s / 2 if s == 3 else s,
        {},
        ["1.5", "a float where an integer is wanted", "state 3"],
    ),
    "whole float": (lambda s, a, rng: float(s), {}, ["0.0, a float where an integer is wanted"]),
    "unnamed signals": (lambda s, a, rng: (s, 1.0, 2.0), {}, ["3 things", "signals"]),
    "outside": (lambda s, a, rng: s + 4, {}, ["next state 5", "outside", "state 1"]),
    "too few": (lambda s, a, rng: (s, 1.0), {"signals": ("r", "c")}, ["2 things", "next state, r, c"]),
    "no tuple": (lambda s, a, rng: s, {"signals": ("r", "c")}, ["int", "next state, r, c"]),
    "no name": (lambda s, a, rng: {"next_state": s, "r": 1}, {"signals": ("r", "c")}, ["without 'c'", "'r'"]),
    "no state": (lambda s, a, rng: {"state": s}, {}, ["without 'next_state'", "'state'"]),
    "text": (lambda s, a, rng: (s, "a", 1), {"signals": ("r", "c")}, ["['a', 1]", "not 2 numbers"]),
    "NaN": (lambda s, a, rng: (s, 1, np.nan), {"signals": ("r", "c")}, ["nan", "column 1"]),
    "flat": (lambda x, a, rng: 1.0, {"states": PLANE}, ["shape ()", "(2,)"]),
    "long": (lambda x, a, rng: np.zeros(3), {"states": PLANE}, ["shape (3,)", "(2,)"]),
    "no vector": (lambda x, a, rng: "here", {"states": PLANE}, ["'here'", "not an array"]),
    "batched names": (lambda s, a, rng: {"next_state": s, "r": a}, {"signals": ("r", "c"), "batched": True}, ["'c'"]),
    "batched count": (lambda s, a, rng: (s, a, a, a), {"signals": ("r", "c"), "batched": True}, ["4 things"]),
    "batched shape": (lambda s, a, rng: (s, 1.0, a), {"signals": ("r", "c"), "batched": True}, ["'r'", "shape ()"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_named(fault: str) -> None:
    function, options, words = FAULTS[fault]
    options = {"states": FiniteStates(5), **options}
    model = from_function(function, **options)
    states = np.arange(5) if isinstance(options["states"], FiniteStates) else np.zeros((5, 2))
    with pytest.raises(SimulatorError) as caught:
        sample(model, states)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("signals", [("reward",), "reward", ("a", "a"), (1, 2)])
def test_signals_that_make_no_sense_are_refused(signals: Any) -> None:
    with pytest.raises(InputError, match="signals"):
        from_function(one_step, 11, signals=signals)


def test_only_functions_are_functions() -> None:
    with pytest.raises(InputError, match="callable"):
        from_function(3, 11)  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [*KNOWN.values(), *OBSERVED.values()])
def test_a_simulator_can_be_sent_to_another_process(model: Any) -> None:
    """Packed and unpacked as executors do it, it draws the same."""
    here = model()
    there = unpack(pack(here.sample))
    states, actions = np.arange(11), np.arange(11) % 2
    one, other = (f(states, actions, np.random.default_rng(3)) for f in (here.sample, there))
    np.testing.assert_array_equal(one.next_states, other.next_states)
    assert (one.signals is None) == (other.signals is None)
    if one.signals is not None:
        np.testing.assert_array_equal(one.signals, other.signals)


def test_a_loop_and_a_batch_draw_the_same() -> None:
    one, other = from_function(one_step, 11), from_function(many_steps, 11, batched=True)
    states = np.random.default_rng(5).integers(0, 11, 500)
    np.testing.assert_array_equal(sample(one, states).next_states, sample(other, states).next_states)
