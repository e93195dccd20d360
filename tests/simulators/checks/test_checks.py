"""The checks of a simulator: exact tests that keep their level, sound simulators that pass, faults that do not."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats

from helpers import random_table
from saddleback import CMDP, BoxStates, Constraint, FeatureFunction, InputError, Start, zoo
from saddleback.simulators.checks import Report, run_checks
from saddleback.simulators.independence import FALSE_ALARM, fisher, one_law, unrelated
from saddleback.testing import check_simulator

S, A = 6, 3
PROBLEM = random_table(0, S, A).problem()


def uniform(states: Any, actions: Any, rng: Any) -> Any:
    return rng.integers(0, S, len(states))


def named(simulator: Any, problem: CMDP = PROBLEM, **options: Any) -> set[str]:
    return {f.check for f in check_simulator(problem, simulator, **options)}


# ---- the tests behind the checks ---------------------------------------------------------------------------------------


def test_fisher_is_the_hypergeometric_tail() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        N = int(rng.integers(2, 60))
        one, two = rng.random((2, N)) < rng.random((2, 1))
        x, law = int((one & two).sum()), scipy.stats.hypergeom(N, int(one.sum()), int(two.sum()))
        assert math.isclose(fisher(one, two), min(1.0, 2 * min(law.cdf(x), law.sf(x - 1))), rel_tol=1e-9)


@pytest.mark.parametrize("test", [unrelated, one_law])
@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5)])
def test_the_level_holds_for_every_law(test: Any, chances: tuple[float, ...]) -> None:
    """Every outcome of a few draws, with its probability: P(p ≤ α) ≤ α, without any chance in the test itself."""
    n = 4 if len(chances) == 2 else 3
    found: dict[float, float] = {}
    for outcome in itertools.product(range(len(chances)), repeat=2 * n):
        x = np.array(outcome, dtype=float)
        p = round(test(x[:n], x[n:]), 12)
        found[p] = found.get(p, 0.0) + math.prod(chances[i] for i in outcome)
    assert math.isclose(sum(found.values()), 1)
    for level in found:
        assert sum(mass for p, mass in found.items() if p <= level) <= level + 1e-9


def test_the_tests_see_what_they_are_for() -> None:
    x = np.random.default_rng(0).random(100) - 0.5
    assert unrelated(x, x) < 1e-20 and unrelated(x, -x) < 1e-20
    assert one_law(x, x + 0.5) < 1e-9
    assert one_law(np.zeros(30), np.ones(30)) < 1e-12
    assert unrelated(np.ones(9), np.ones(9)) == one_law(np.ones(9), np.ones(9)) == 1.0


# ---- what passes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wireless", "queue", "gridworld", "garnet", "random-linear", "hard-instance"])
def test_the_zoo_passes(name: str) -> None:
    instance = zoo.make(name)
    report = run_checks(instance.problem, instance.simulator, calls=4000, seed=1)
    assert report.findings == [] and report.calls <= 4000


@pytest.mark.study
@pytest.mark.parametrize("name", zoo.BY_NAME)
def test_the_whole_zoo_passes(name: str) -> None:
    instance = zoo.make(name)
    for seed in range(10):
        report = run_checks(instance.problem, instance.simulator, calls=20_000, seed=seed)
        assert report.errors == 0, report.findings
        assert report.calls <= 20_000
    print(f"{name}: seeds 0 to 9, no error")


@pytest.mark.slow
def test_a_table_and_a_constant_pass() -> None:
    assert named(random_table(0, S, A).simulator()) == set()
    assert named(lambda states, actions, rng: np.zeros(len(states), dtype=int)) == set()


@pytest.mark.slow
def test_calls_are_counted_and_bounded() -> None:
    seen = 0

    def counting(states: Any, actions: Any, rng: Any) -> Any:
        nonlocal seen
        seen += len(states)
        return uniform(states, actions, rng)

    for calls in (100, 1000, 4000, 20_000, 50_000):
        seen = 0
        report = run_checks(PROBLEM, counting, calls=calls)
        assert report.calls == seen <= calls
        assert 0 < report.seconds_in_batch < report.seconds_alone < 1
    with pytest.raises(InputError, match="at least 100"):
        run_checks(PROBLEM, uniform, calls=99)
    with pytest.raises(InputError, match="negative"):
        run_checks(PROBLEM, uniform, seed=-1)


def test_the_callers_meter_is_left_alone() -> None:
    model = random_table(0, S, A).simulator()
    run_checks(PROBLEM, model, calls=4000)
    assert model.num_queries == 0


def test_the_global_generators_are_left_as_they_were() -> None:
    np.random.seed(11)  # noqa: NPY002
    expected = np.random.get_state()[1].tolist()  # type: ignore[union-attr] # noqa: NPY002

    def forgetful(states: Any, actions: Any, rng: Any) -> Any:
        return np.random.default_rng().integers(0, S, len(states))

    assert named(forgetful) == {"replay"}
    assert np.random.get_state()[1].tolist() == expected  # type: ignore[union-attr] # noqa: NPY002


# ---- what does not -----------------------------------------------------------------------------------------------------


def shared_within_half(states: Any, actions: Any, rng: Any) -> Any:
    """Rows 2i and 2i+1 share a number."""
    u = np.repeat(rng.random(len(states)), 2)[: len(states)]
    return (u * S).astype(int)


def by_position(states: Any, actions: Any, rng: Any) -> Any:
    """Behind the first row of a batch nothing happens."""
    out = uniform(states, actions, rng)
    out[1:] = states[1:]
    return out


class Slow:
    """Counts calls, and lets the count in every hundredth call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, states: Any, actions: Any, rng: Any) -> Any:
        self.calls += 1
        return (uniform(states, actions, rng) + (self.calls % 2)) % S


@pytest.mark.parametrize(
    ("simulator", "check"),
    [
        (shared_within_half, "independence"),
        (by_position, "batches"),
        (Slow(), "replay"),
        (lambda s, a, rng: list(uniform(s, a, rng)[:-1]), "conformance"),
        (lambda s, a, rng: uniform(s, a, rng) + 1, "conformance"),
        (lambda s, a, rng: uniform(s, a, rng).astype(float), "conformance"),
        (lambda s, a, rng: None, "conformance"),
        (lambda s, a, rng: 1 / 0, "conformance"),
    ],
)
def test_faults_are_found(simulator: Any, check: str) -> None:
    assert check in named(simulator)


def test_a_finding_can_be_replayed() -> None:
    """The state, action and key of a finding are enough to see it."""
    from saddleback.simulators.generative_model import generator

    def leaves(states: Any, actions: Any, rng: Any) -> Any:
        u = rng.random(len(states))
        return np.where((states == 4) & (actions == 2), S, (u * S).astype(int))

    (finding,) = check_simulator(PROBLEM, leaves)
    assert (finding.state, finding.action) == (4, 2) and finding.key is not None
    assert leaves(np.array([finding.state]), np.array([finding.action]), generator(*finding.key)) == [S]
    assert "state 4, action 2" in finding.message and str(finding.key) in finding.message
    assert finding.to_json()["state"] == 4


@pytest.mark.slow
def test_continuous_states() -> None:
    rng = np.random.default_rng(0)
    pool = np.repeat(rng.random((100, 2)), 2, axis=0), np.tile([0, 1], 100)
    features = FeatureFunction(lambda s, a: np.column_stack([np.ones(len(s)), s, a * 1.0]), 4, 2)
    problem = CMDP(
        gamma=0.9,
        start=Start(np.array([[0.5, 0.5]]), np.ones(1)),
        num_actions=2,
        states=BoxStates(np.zeros(2), np.ones(2)),
        reward=None,
        reward_range=(0.0, 1.0),
        constraints=[Constraint("push", lambda s, a: a * 1.0, "<=", 0.5, (0.0, 1.0), "per-step")],
        features=features,
        candidates=pool,
    )

    def walk(states: Any, actions: Any, rng: Any) -> Any:
        after = np.clip(states + 0.1 * rng.standard_normal(states.shape) + 0.05 * actions[:, None], 0, 1)
        return after, np.column_stack([after[:, 0], np.zeros(len(states))])

    report = run_checks(problem, walk, calls=4000)
    assert report.findings == [] and (report.dim, report.rank) == (4, 4)

    def stuck_noise(states: Any, actions: Any, rng: Any) -> Any:
        return np.clip(states + 0.1 * rng.standard_normal(2), 0, 1), walk(states, actions, rng)[1]

    assert "independence" in named(stuck_noise, problem, calls=4000)
    out = named(lambda s, a, rng: (s + 0.3, np.zeros((len(s), 2))), problem, calls=4000)
    assert out == {"conformance"}
    single = dataclasses.replace(problem, features=FeatureFunction(lambda s, a: s.copy(), 2, 2))
    assert named(walk, single, calls=4000) == {"span"}
    twice = FeatureFunction(lambda s, a: np.column_stack([np.ones(len(s)), s, s]), 5, 2)
    (finding,) = check_simulator(dataclasses.replace(problem, features=twice), walk, calls=4000)
    assert (finding.check, finding.severity) == ("rank", "warning") and "rank 3" in finding.message
    steep = FeatureFunction(lambda s, a: np.column_stack([np.ones(len(s)), 1e-10 * s]), 3, 2)
    assert named(walk, dataclasses.replace(problem, features=steep), calls=4000) == {"conditioning"}


def test_the_report_as_json() -> None:
    told = run_checks(PROBLEM, uniform, calls=4000).to_json()
    assert told["clean"] and told["false_alarm"] == FALSE_ALARM and told["tests"] == 4 * 4
    assert Report().to_json()["seconds_per_call"] == {"alone": None, "in_batch": None}
