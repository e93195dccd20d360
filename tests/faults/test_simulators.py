"""Faults of the simulator, provoked for real through ``solve``: what is said, what is kept, and how a run goes on."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saddleback import (
    BoxStates,
    Constraint,
    FeatureFunction,
    FiniteStates,
    GenerativeModel,
    InputError,
    Start,
)
from saddleback.errors import SimulatorError
from saddleback.problem.cmdp import CMDP
from saddleback.sampling.executors import Joblib, Serial
from saddleback.sampling.executors.durable import Durable
from saddleback.sampling.fingerprint import CHECK_CALLS, fingerprint_of
from sampling.executors import faulty_simulators as faulty
from spelled_out import solve

SEED, KEY = 7, (7, 0, faulty.PAIR, 0)
SAMPLES = {"samples": 4_000, "seed": SEED}


def solved(simulator: Any, executor: Any = None, problem: CMDP | None = None, num_signals: int = 0, **more: Any) -> Any:
    problem = problem or faulty.problem()
    model = simulator
    if not isinstance(simulator, GenerativeModel):
        model = GenerativeModel(simulator, problem.states, num_signals)
    return solve(problem, model, executor=executor, **(SAMPLES | more))


def kept(folder: Path, inner: Any = None) -> Durable:
    """Samples that stay; what they are samples of is not at issue here."""
    return Durable(folder, {"test": "faults"}, inner)


@dataclasses.dataclass
class Counted:
    """Counts the calls of another simulator."""

    inner: Any
    calls: int = 0

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        answer = self.inner(states, actions, rng)
        self.calls += len(states)
        return answer


def is_named(error: SimulatorError, key: tuple[int, ...] = KEY) -> None:
    assert (error.state, error.action, error.key) == (faulty.STATE, faulty.ACTION, key)
    for words in (f"state {faulty.STATE}", f"action {faulty.ACTION}", f"sample {error.index}", str(key)):
        assert words in str(error)


def test_one_that_raises_stops_the_pair_and_keeps_the_rest(tmp_path: Path) -> None:
    """Nothing is drawn with another seed; mended, the run ends as if nothing had happened and draws only what is missing."""
    broken = Counted(faulty.Wrong("raises"))
    with pytest.raises(SimulatorError, match="ZeroDivisionError: no packets") as caught, kept(tmp_path) as executor:
        solved(broken, executor)
    is_named(caught.value)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    mended = Counted(faulty.uniform)
    with kept(tmp_path) as executor:
        answer = solved(mended, executor)
    whole = Counted(faulty.uniform)
    assert answer.to_json() == solved(whole).to_json()
    checks = whole.calls - answer.samples
    assert broken.calls > checks and broken.calls + mended.calls == whole.calls + checks


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused_before_it_is_averaged(value: float) -> None:
    """In next states, in observed signals, in known rewards, and in features."""

    def no_point(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        x = rng.random((len(states), 2))
        x[3, 1] = value
        return x

    with pytest.raises(
        SimulatorError, match=rf"the next state \[.*{value}.*sample 3, seed key .* = \(\d+, \d, \d, 0\)"
    ):
        solved(no_point, problem=box_problem())
    with pytest.raises(SimulatorError, match=f"the signal {value} in column 1") as caught:
        solved(faulty.WrongSignal(value), problem=observed_problem(), num_signals=2)
    is_named(caught.value)
    assert caught.value.index == 4
    reward = np.zeros((faulty.S, faulty.A))
    reward[2, 1] = value
    with pytest.raises(InputError, match=r"reward\[2, 1\]` must be finite"):
        dataclasses.replace(faulty.problem(), reward=reward, reward_range=(0.0, 1.0))
    bad = FeatureFunction(lambda s, a: np.where(s[:, None] == 2, value, 1.0) * np.ones((len(s), 2)), 2, faulty.A)
    with pytest.raises(InputError, match=r"features.*finite"):
        solved(faulty.uniform, problem=dataclasses.replace(faulty.problem(), features=bad))


def test_a_next_state_outside_is_refused_and_never_clipped() -> None:
    with pytest.raises(SimulatorError, match=f"the next state {faulty.S}, which is outside") as caught:
        solved(faulty.Wrong("outside"))
    is_named(caught.value)
    assert caught.value.index == 7


@pytest.mark.parametrize("wrong", ["shape", "dtype"])
@pytest.mark.parametrize("at", [0, 5])
def test_features_of_the_wrong_kind_are_refused_whenever_they_come(wrong: str, at: int) -> None:
    """At the first call, and at a later one."""
    calls = iter(range(10**6))

    def phi(states: Any, actions: Any) -> Any:
        x = np.stack([np.ones(len(states)), states / faulty.S, actions / faulty.A], axis=1)
        if next(calls) < at:
            return x
        return x[:, :2] if wrong == "shape" else x.astype(np.float32)

    problem = dataclasses.replace(faulty.problem(), features=FeatureFunction(phi, 3, faulty.A))
    with pytest.raises(InputError, match=r"`features` must return a float64 array \(\d+, 3\) for \d+ pairs"):
        solved(faulty.uniform, problem=problem)
    assert next(calls) == at + 1


def test_values_outside_their_range_are_refused_with_the_range_that_would_do() -> None:
    def beyond(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        x, signals = faulty.with_signals(states, actions, rng)
        if faulty.at_fault(states, actions):
            signals[6, 1] = 3.5
        return x, signals

    with pytest.raises(InputError, match=r"within its declared range \[0, 1\], got 3.5 at state 2, action 1") as caught:
        solved(beyond, problem=observed_problem(), num_signals=2)
    assert f"sample 6, seed key (seed, stream, pair, block) = {KEY}" in str(caught.value)
    assert "at least (0, 3.5)" in str(caught.value) and "never clipped" in str(caught.value)
    wider = observed_problem((0.0, 3.5))
    assert solved(beyond, problem=wider, num_signals=2).value is not None


def test_one_that_ignores_its_seed_is_found_out_at_a_stated_cost() -> None:
    refused_at_the_start(faulty.ignores_its_seed)
    calls: list[int] = []

    def counted(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        calls.append(len(states))
        return faulty.uniform(states, actions, rng)

    fingerprint_of(faulty.problem(), GenerativeModel(counted, FiniteStates(faulty.S)))
    assert sum(calls) == CHECK_CALLS


def test_one_that_remembers_is_found_out_by_the_other_order() -> None:
    """In the same order the first of them repeats itself: the way back is needed."""
    simulator, blocks = faulty.RemembersLast(last=faulty.S - 1), faulty.blocks()
    source, ends = faulty.source(simulator), [blocks[0], blocks[-1]]
    first, second = ([source.draw(block).next_states for block in ends] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    refused_at_the_start(simulator)
    refused_at_the_start(faulty.Remembers())


def refused_at_the_start(simulator: Any) -> None:
    """A run that keeps its samples asks before it draws them; these calls are not on the meter."""
    model = GenerativeModel(simulator, FiniteStates(faulty.S))
    with pytest.raises(SimulatorError, match="different answers to the same question with the same seed") as caught:
        fingerprint_of(faulty.problem(), model)
    assert caught.value.key is not None and model.num_queries == 0
    assert fingerprint_of(faulty.problem(), GenerativeModel(faulty.uniform, FiniteStates(faulty.S)))["gamma"] == 0.8


class Mutates:
    """Returns one array again and again, changes it later, and writes into what it is given."""

    def __init__(self) -> None:
        self.out = np.zeros(1 << 16, dtype=np.int64)

    def __call__(self, states: Any, actions: Any, rng: np.random.Generator) -> Any:
        self.out[:] = -1
        x = self.out[: len(states)]
        x[:] = rng.integers(0, faulty.S, len(states))
        states[:], actions[:] = 0, 0
        return x


def test_arrays_that_are_used_again_do_no_harm() -> None:
    """Neither those returned nor those handed over; in the certificate's rollouts too."""
    want = solved(faulty.uniform, certificate=4_000).to_json()
    assert solved(Mutates(), certificate=4_000).to_json() == want


def test_states_of_single_precision_are_samples_as_they_are() -> None:
    """A float32 observation of a float64 state is another state. It is taken as it is, and a simulator that returns its own
    state does not lose the digits."""

    def inner(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        return 0.3 * states + 0.7 * rng.random((len(states), 2))

    def observed(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        return inner(states, actions, rng).astype(np.float32)

    def seen(simulator: Any) -> np.ndarray:
        model = GenerativeModel(simulator, faulty.BOX)
        states, actions = np.full((50, 2), 0.1), np.zeros(50, dtype=np.int64)
        return model.sample(states, actions, np.random.default_rng(1)).next_states

    np.testing.assert_array_equal(seen(observed).astype(np.float32), seen(inner).astype(np.float32))
    assert np.any(seen(observed).astype(np.float64) != seen(inner)), "digits are gone"
    answers = [solved(x, problem=box_problem()) for x in (inner, observed)]
    assert answers[0].value == pytest.approx(answers[1].value, rel=1e-4)


@pytest.mark.check
@pytest.mark.parametrize("workers", [0, 2])
def test_one_that_hangs_is_ended_and_named(workers: int, tmp_path: Path) -> None:
    inner = Joblib(workers, timeout=1.0) if workers else Serial(timeout=1.0)
    hangs = faulty.Deadly("hang", tmp_path)
    with (
        pytest.raises(SimulatorError, match="did not return within the timeout of 1 s") as caught,
        kept(tmp_path / "kept", inner) as executor,
    ):
        solved(hangs, executor)
    is_named(caught.value)
    assert faulty.gone([int(pid) for pid in faulty.lines(tmp_path, "pids")])
    with kept(tmp_path / "kept") as executor:
        assert solved(faulty.uniform, executor).to_json() == solved(faulty.uniform).to_json()
        assert executor.num_read > 0, "what was drawn before is not drawn again"


@pytest.mark.check
@pytest.mark.parametrize("how", ["segfault", "kill"])
def test_one_that_kills_its_process_gets_the_same_key_once_more(how: str, tmp_path: Path) -> None:
    with Joblib(2) as inner, kept(tmp_path / "once", inner) as executor:
        answer = solved(faulty.Deadly(how, tmp_path, times=1), executor)
    assert answer.to_json() == solved(faulty.uniform).to_json()
    keys = faulty.lines(tmp_path, "keys")
    assert len(keys) >= 2 and keys[0] == keys[1], "the same key again"
    os.remove(tmp_path / "keys")
    with (
        pytest.raises(SimulatorError, match="ended its worker process 2 times with the same seed key") as caught,
        Joblib(2) as inner,
        kept(tmp_path / "always", inner) as executor,
    ):
        solved(faulty.Deadly(how, tmp_path), executor)
    is_named(caught.value)
    assert len(set(faulty.lines(tmp_path, "keys"))) == 1 == len(faulty.lines(tmp_path, "keys")) - 1


# ---- problems ----------------------------------------------------------------------------------------------------------


def observed_problem(span: tuple[float, float] = (0.0, 1.0)) -> CMDP:
    """Reward and constraint come from the simulator."""
    return CMDP(
        gamma=0.8,
        start=Start(np.array([0]), np.ones(1)),
        num_actions=faulty.A,
        states=FiniteStates(faulty.S),
        reward=None,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("signal", None, ">=", 1.0, span)],
    )


def box_problem() -> CMDP:
    """States in the unit square, features linear in them."""
    rng = np.random.default_rng(0)
    pool = (rng.random((40, 2)), rng.integers(0, faulty.A, 40))

    def phi(states: Any, actions: Any) -> np.ndarray:
        return np.stack([np.ones(len(states)), states[:, 0], states[:, 1], (actions == 1) * 1.0], axis=1)

    return CMDP(
        gamma=0.5,
        start=Start(np.full((1, 2), 0.5), np.ones(1)),
        num_actions=faulty.A,
        states=BoxStates(np.zeros(2), np.ones(2)),
        reward=lambda s, a: s[:, 0],
        reward_range=(0.0, 1.0),
        constraints=[Constraint("c", lambda s, a: s[:, 1], ">=", 0.2, (0.0, 1.0))],
        features=FeatureFunction(phi, 4, faulty.A),
        candidates=pool,
    )
