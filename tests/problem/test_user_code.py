"""The user's code at arm's length: whatever comes out of a call is one short message that names who raised it."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from saddleback import CMDP, Constraint, FeatureFunction, GenerativeModel, Start, as_simulator
from saddleback.errors import InputError, SaddlebackError, SimulatorError, plain_text, what_happened
from saddleback.features.base import StateFunction
from saddleback.problem.alarm import time_limit
from saddleback.problem.spaces import FiniteStates
from saddleback.problem.user_code import calling, culprit, state
from saddleback.runs.events import tell


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


ENDINGS: dict[str, Callable[[], BaseException]] = {
    "exit": lambda: SystemExit(0),
    "generator": GeneratorExit,
    "interrupt": KeyboardInterrupt,
    "unspeakable": Unspeakable,
    "long": lambda: ValueError("x" * 5_000_000),
    "control": lambda: ValueError("\x1b[2J\r\x07\u202eabc\ud800"),
    "plain": lambda: BaseException("bare"),
    "iteration": lambda: StopIteration(3),
}


@pytest.fixture(params=ENDINGS)
def raising(request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Functions that end so, in a process that is told of real signals."""

    def ends(*given: Any) -> Any:
        raise ENDINGS[request.param]()

    state.watching = True
    yield ends
    state.watching = False


def short(error: BaseException) -> str:
    text = str(error)
    assert len(text) < 700 and text.isprintable(), text[:2000]
    return text


def problem(**changes: Any) -> CMDP:
    fields: dict[str, Any] = {
        "gamma": 0.9,
        "states": 6,
        "num_actions": 2,
        "start": 0,
        "reward": lambda s, a: np.zeros(len(s)),
        "reward_range": (0.0, 1.0),
        "constraints": [Constraint("cost", np.zeros((6, 2)), "<=", 1.0)],
    }
    return CMDP(**(fields | changes))


PAIRS = np.arange(6), np.array([0, 1, 0, 1, 0, 1])


def test_rewards(raising: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match=r"`reward` must not fail for a pair") as caught:
        problem(reward=raising).utilities(*PAIRS)
    short(caught.value)


def test_features_and_coordinates(raising: Callable[..., Any]) -> None:
    for features in (FeatureFunction(raising, 2, 2).at, lambda s, a: StateFunction(raising, 2).at(s)):
        with pytest.raises(InputError, match=r"`features` must not fail") as caught:
            features(*PAIRS)
        short(caught.value)


def test_predicates_samplers_and_callbacks(raising: Callable[..., Any]) -> None:
    doors: list[Callable[[], Any]] = [
        lambda: problem(actions_allowed=raising),
        lambda: Start.sampled(lambda n, rng: raising()),
        lambda: tell([raising], {"event": "samples"}),
    ]
    for door in doors:
        with pytest.raises(SaddlebackError) as caught:
            door()
        short(caught.value)


@pytest.mark.parametrize("batched", [False, True])
def test_the_pair_that_raised_is_named(raising: Callable[..., Any], batched: bool) -> None:
    """Not the first of its batch; the search asks for parts of the batch and is not on the meter."""

    def step(s: Any, a: Any, rng: np.random.Generator) -> Any:
        if np.any((s == 4) & (a == 0)):
            raising()
        return s

    model = as_simulator(problem(), step, batched=batched)
    key = (7, 0, 1, 2)
    with pytest.raises(SimulatorError, match="the simulator raised") as caught:
        model.sample(*PAIRS, np.random.default_rng(0), key)
    found = caught.value
    assert (found.state, found.action, found.index, found.key) == (4, 0, 4, key)
    assert model.num_queries == 0
    assert "seed key (seed, stream, pair, block) = (7, 0, 1, 2)" in short(found)


def test_a_batch_in_which_nobody_raises_alone() -> None:
    def crowd(s: Any, a: Any, rng: np.random.Generator) -> Any:
        if len(s) > 5:
            raise ValueError("too many")
        return s

    with pytest.raises(
        SimulatorError, match=r"too many, for a batch of 6 pairs from this one on \(at state 0, action 0"
    ):
        GenerativeModel(crowd, FiniteStates(6)).sample(*PAIRS, np.random.default_rng(0))


def test_the_search_halves() -> None:
    asked: list[slice] = []

    def fails(rows: slice) -> None:
        asked.append(rows)
        assert not rows.start <= 700 < rows.stop

    assert culprit(fails, 1000) == 700 and len(asked) <= 20
    assert culprit(lambda rows: None, 1000) is None


def test_a_real_interrupt_passes() -> None:
    def interrupted(*given: Any) -> Any:
        state.caught = signal.SIGINT
        raise KeyboardInterrupt

    state.watching = True
    try:
        with pytest.raises(KeyboardInterrupt):
            problem(reward=interrupted).utilities(*PAIRS)
        with pytest.raises(KeyboardInterrupt), calling("anything"):
            raise AssertionError("the next call comes too late")
    finally:
        state.watching, state.caught = False, 0
    with pytest.raises(KeyboardInterrupt):  # where nobody tells us of signals they are all believed
        problem(reward=lambda s, a: (_ for _ in ()).throw(KeyboardInterrupt())).utilities(*PAIRS)


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True])
def test_a_call_that_hangs_is_interrupted_and_named(batched: bool) -> None:
    def step(s: Any, a: Any, rng: np.random.Generator) -> Any:
        while np.any(s == 3):
            with suppress(Exception):  # what a simulator may well do
                time.sleep(0.01)
        return s

    def hanging(s: Any, a: Any) -> Any:
        time.sleep(60)

    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.2):
        with pytest.raises(SimulatorError, match=r"did not return within the timeout of 0.2 s \(at state 3, action 1"):
            as_simulator(problem(), step, batched=batched).sample(*PAIRS, np.random.default_rng(0))
        with pytest.raises(InputError, match=r"`reward` must not fail .* did not return within the timeout of 0.2 s"):
            problem(reward=hanging).utilities(*PAIRS)
        with calling("many rows", 5 * 4096):
            time.sleep(0.3)  # a limit is for 4,096 rows
    assert signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL)[0] == 0


def test_text_of_strangers_is_one_short_printable_line() -> None:
    assert plain_text("a\x00\x1b[31m\x85\u202e\u2066\ud800\n\u00e9 \u4e2d") == (
        "a\\x00\\x1b[31m\\x85\\u202e\\u2066\\ud800\\n\u00e9 \u4e2d"
    )
    assert len(plain_text("\x1b" * 10**6)) <= 300 and plain_text("y" * 301).endswith("y...")
    assert plain_text("x" * 300) == "x" * 300
    assert what_happened(ValueError()) == "raised ValueError"
    assert what_happened(Unspeakable()) == "raised Unspeakable: (its text cannot be had: SystemExit)"
    odd = type("Odd\x1b[2J" + "n" * 500, (Exception,), {})
    assert what_happened(odd("x")).isprintable() and len(what_happened(odd("x"))) < 100
