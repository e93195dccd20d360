"""Sound simulators are believed: the problems of the zoo, and exact tests on values that are independent.

At most one run in a million is to be accused. Of 2,000 runs three or more would be, at that rate, with probability 1.4e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from saddleback import SaddlebackError, Start, zoo
from saddleback.instances.instance import Instance
from saddleback.sampling.blocks import Block, BlockSource, InOrder
from saddleback.sampling.drawn_rows import examine_blocks, examine_rollouts, examine_starts
from saddleback.sampling.examination import EXAMINATION_CALLS, examine
from saddleback.simulators.generative_model import Draw, Stream, generator
from saddleback.simulators.independence import fisher, in_no_order, one_law, ungrouped, unrelated

ZOO = sorted(zoo.BY_NAME)
TEN = [
    *("wireless", "gridworld", "queue", "garnet", "random-linear"),
    *("hard-instance", "inventory", "river-swim", "linear-quadratic", "streaming"),
]
RUNS, MOST_ACCUSED = 200, 2
STREAMS = (Stream.SOLVER, Stream.EVALUATION, Stream.CERTIFICATE)


class Counting(InOrder):
    """Draws here, and keeps account of checks."""

    check_calls = 0


def accused(instance: Instance, seed: int, rows: int = 600) -> str | None:
    """What is said of a simulator in a run that draws three blocks of four pairs."""
    model, problem = instance.simulator.metered(), instance.problem
    states, actions = problem.pairs()
    chosen = generator(seed, Stream.EXAMINATION, 99, 0).integers(0, len(actions), 4)
    source = BlockSource(model, problem, np.asarray(states)[chosen], np.asarray(actions)[chosen], seed)
    try:
        examine(problem, model, seed, problem.pairs(), counting := Counting())
        assert 0 < counting.check_calls <= EXAMINATION_CALLS and model.num_queries == 0
        for stream in STREAMS:
            drawn = [(Block(stream, x, 0, rows), source.states[x], source.actions[x]) for x in range(4)]
            examine_blocks(model, [(s, a, source.key(b), [source.draw(b)]) for b, s, a in drawn])
    except SaddlebackError as error:
        return f"seed {seed}: {error}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_the_zoo_is_sound(name: str) -> None:
    assert accused(zoo.make(name), 0, 64) is None


@pytest.mark.study
def test_of_two_thousand_runs_nearly_none_is_accused() -> None:
    found = []
    for name in TEN:
        instance = zoo.make(name)
        said = [f"{name}: {text}" for seed in range(RUNS) if (text := accused(instance, 1000 + seed))]
        print(f"{name}: {len(said)} of {RUNS} runs accused")
        found += said
    assert len(found) <= MOST_ACCUSED, found


def test_start_samplers_that_draw_what_they_say_are_believed() -> None:
    """One state for all included: a law without chance is a law."""
    space = zoo.make("river-swim").problem.states
    laws: list[Callable[[int, np.random.Generator], Any]] = [
        lambda n, rng: rng.choice(6, n),
        lambda n, rng: np.zeros(n, dtype=np.int64),
        lambda n, rng: (rng.random(n) < 0.001).astype(np.int8),
    ]
    for law in laws:
        assert Start.sampled(law, 16).states.dtype == np.int64
        for seed in range(5):
            examine_starts(
                lambda n, i, law=law, seed=seed: law(n, generator(seed, Stream.START, 1, i)),  # type: ignore[misc]
                law(1 << 16, generator(seed, Stream.START, 0, 0)),
                space,
            )


def rolled(draw: Callable[[np.random.Generator, int], Any], seed: int) -> list[Any]:
    """Rows as rollouts ask for them: fewer from call to call, of pairs that the answers lead to; two of five ways on each."""
    rng, at, rows = generator(seed, Stream.ROLLOUT, 0, 0), np.zeros(512, dtype=np.int64), []
    while len(at) > 1:
        actions = rng.integers(0, 2, len(at))
        following = (at + actions + (draw(rng, len(at)) < 0.4)) % 5
        rows.append((at, actions, Draw(following, None)))
        at = following[rng.random(len(at)) < 0.9]
    return rows


def refused_rollouts(draw: Callable[[np.random.Generator, int], Any], runs: int) -> int:
    """In how many runs rollouts are refused, each by its first test."""
    refused, model = 0, zoo.make("river-swim").simulator
    for seed in range(runs):
        try:
            examine_rollouts(model.metered(), rolled(draw, seed), (seed, int(Stream.ROLLOUT), 0, 0))
        except SaddlebackError:
            refused += 1
    return refused


@pytest.mark.check
def test_rollouts_are_refused_as_often_as_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first test has 1/8 of all alarms, so at a level of 0.4 sound rollouts are refused with p ≤ 0.05: of 200 runs, more
    than 30 with probability below 1e-6. Those that share numbers are, at the level of a run."""
    shared = refused_rollouts(lambda rng, n: np.full(n, rng.random()), 5)
    monkeypatch.setattr("saddleback.sampling.drawn_rows.FALSE_ALARM", 0.4)
    sound = refused_rollouts(lambda rng, n: rng.random(n), 200)
    print(f"{sound} of 200 sound ones refused at 0.05, {shared} of 5 that share numbers")
    assert sound <= 30 and shared == 5


# ---- the tests themselves -----------------------------------------------------------------------------------------------

LAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "a coin": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "a rare event": lambda rng, n: (rng.random(n) < 0.03).astype(float),
    "five values": lambda rng, n: rng.choice(5, n, p=[0.5, 0.3, 0.1, 0.07, 0.03]).astype(float),
    "a continuum": lambda rng, n: rng.normal(size=n),
}
TESTS: dict[str, Callable[[Any], float]] = {
    "one_law": lambda x: one_law(x[:40], x[40:]),
    "unrelated": lambda x: unrelated(x[0::2], x[1::2]),
    "ungrouped": lambda x: ungrouped(x.reshape(16, 8)),
    "across groups": lambda x: ungrouped(x.reshape(16, 8).T),
    "in_no_order": in_no_order,
    "fisher": lambda x: fisher(x[0::2] > 0.5, x[1::2] > 0.5),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", TESTS)
def test_p_values_are_honest(name: str, law: str) -> None:
    """Of 400 under independence those below 0.05 are Bin(400, p), p ≤ 0.05: more than 46 with probability below 1e-6."""
    rng = np.random.default_rng(2026)
    p = [TESTS[name](LAWS[law](rng, 128)) for _ in range(400)]
    assert sum(x <= 0.05 for x in p) <= 46


@pytest.mark.parametrize("law", ["a coin", "five values", "a continuum"])
def test_dependence_is_found(law: str) -> None:
    """The control, at the level of a run."""
    rng, level = np.random.default_rng(7), 1e-9
    x = LAWS[law](rng, 1024)
    assert ungrouped(np.repeat(x[:32, None], 4, axis=1)) <= level
    assert ungrouped(np.repeat(x[:8, None], 32, axis=1).T.copy().T) <= level
    assert in_no_order(np.repeat(x, 2)[:1024]) <= level
    assert in_no_order(np.resize(x[:100], 1024)) <= level
    assert one_law(np.sort(x)[:512], np.sort(x)[512:]) <= level
    assert unrelated(x, x) <= level
