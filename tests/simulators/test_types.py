"""States have one type from the moment they are received: int64 where they are finite, float64 in a box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import CMDP, BoxStates, Constraint, FeatureFunction, GenerativeModel, SimulatorError, Start, solve
from saddleback.sampling.blocks import Block, BlockSource
from saddleback.sampling.executors.durable import Durable

BOX, S = BoxStates([0.0], [1.0]), 200


def counting(dtype: Any, seen: set[Any] | None = None) -> GenerativeModel:
    """A walk upwards over 200 states, reckoned in ``dtype``, where it would overflow if it got its own states back."""

    def walk(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        if seen is not None:
            seen.add((states.dtype, actions.dtype))
        moved = states + 1 + actions * rng.integers(0, 2, len(states))
        return np.where(moved < 100, moved, 0).astype(dtype)

    return GenerativeModel(walk, S)


def finite(start: Any = 60) -> CMDP:
    cost = Constraint("cost", np.tile([0.0, 1.0], (S, 1)), "<=", 3.0)
    return CMDP(0.9, start, 2, S, np.arange(S) / S, [cost])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.uint64, np.int64])
def test_whole_numbers_of_any_size_are_the_same_states(dtype: Any) -> None:
    seen: set[Any] = set()
    found = solve(finite(), counting(dtype, seen), samples=6000, seed=1)
    assert seen == {(np.dtype(np.int64), np.dtype(np.int64))}, "it gets back what it was promised"
    honest = solve(finite(), counting(np.int64), samples=6000, seed=1)
    assert (found.value, found.certificate) == (honest.value, honest.certificate)


def test_starts_and_candidates_of_other_types_are_states_like_any() -> None:
    seen: set[Any] = set()
    at = Start.sampled(lambda n, rng: rng.integers(50, 70, n).astype(np.int8), 16)
    assert at.states.dtype == np.int64
    found = solve(finite(at), counting(np.int8, seen), samples=6000, seed=1)
    assert found.certificate is not None and seen == {(np.dtype(np.int64), np.dtype(np.int64))}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_points_of_any_precision_are_float64(dtype: Any, tmp_path: Path) -> None:
    """Drawn or read again from the disk: to the last bit, so that a run that is taken up ends with the same bytes."""

    def step(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        assert states.dtype == np.float64
        return (0.5 * states + 0.5 * rng.random(states.shape)).astype(dtype)

    problem = CMDP(
        gamma=0.5,
        start=Start.sampled(lambda n, rng: rng.random((n, 1)).astype(dtype), 8),
        num_actions=2,
        states=BOX,
        reward=lambda s, a: s[:, 0],
        reward_range=(0, 1),
        constraints=[Constraint("c", lambda s, a: a, ">=", 1.0, range=(0, 1))],
        features=FeatureFunction(lambda s, a: np.column_stack([np.ones(len(s)), s, a * 1.0]), 3, 2),
        candidates=(np.linspace(0, 1, 12).astype(dtype)[:, None], (np.arange(12) % 2).astype(np.int8)),
    )
    states, actions = problem.pairs()
    assert (problem.start.states.dtype, states.dtype, actions.dtype) == (np.float64, np.float64, np.int64)
    source, drawn = BlockSource(GenerativeModel(step, BOX), problem, states, actions, 7), []
    for _ in range(2):
        with Durable(tmp_path / "kept", {"of": "this"}) as executor:
            drawn.append(dict(executor.run(source.draw, [Block(0, 3, 0, 50)])))
    (one,), (two,) = (d.values() for d in drawn)
    assert one.next_states.dtype == two.next_states.dtype == np.float64
    assert one.next_states.tobytes() == two.next_states.tobytes()
    assert solve(problem, GenerativeModel(step, BOX), samples=4000, seed=1).certificate is not None


@pytest.mark.parametrize(
    ("space", "returned", "said"),
    [
        (S, np.array([True, False]), "integer array"),
        (S, np.array([1.0, 2.0]), "integer array"),
        (S, np.array([1, 2], dtype=object), "integer array"),
        (S, np.array([1, 2**64 - 1], dtype=np.uint64), "outside the state space"),
        (S, np.array([1, -128], dtype=np.int8), "outside the state space"),
        (BOX, np.array([[1], [0]]), "float array"),
        (BOX, np.array([[0.1], [0.2]], dtype=object), "float array"),
        (BOX, np.array([[1 / 3], [0.5]], dtype=np.longdouble) / 3, "that float64 can hold"),
        (BOX, np.array([[0.1], [np.nan]], dtype=np.float32), "outside the state space"),
    ],
)
def test_what_no_cast_keeps_is_refused(space: Any, returned: Any, said: str) -> None:
    model, n = GenerativeModel(lambda s, a, rng: returned, space), len(returned)
    states = np.zeros(n, dtype=np.int64) if space is S else np.zeros((n, 1))
    with pytest.raises(SimulatorError, match=said):
        model.sample(states, np.zeros(n, dtype=np.int64), np.random.default_rng(0))


@pytest.mark.parametrize("signals", [[[1j, 0.0]], [["0.5", "0.5"]], [[1.0], [2.0, 3.0]]])
def test_signals_that_are_no_numbers_are_refused(signals: Any) -> None:
    model = GenerativeModel(lambda s, a, rng: (s, signals), S, 2)
    with pytest.raises(SimulatorError, match="not numbers"):
        model.sample(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.random.default_rng(0))
