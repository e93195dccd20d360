"""A number of samples is a limit, for every verb and at every discount; and a horizon costs no time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from saddleback import InputError, Method, Status, solve, zoo
from saddleback.certificates.values.rollouts import Baseline, roll_out
from saddleback.instances.instance import Instance
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.run_folder import load_run
from saddleback.sampling.trajectories import RolloutPlan, longest, plan_rollouts, steps_per_rollout
from saddleback.solving.forecast import forecast
from saddleback.solving.frontier import frontier
from saddleback.solving.recertify import recertify

DISCOUNTS = ("0.3", "0.9", "0.99", "0.9995", "0.999999")


def solved(instance: Instance, samples: int, seed: int, path: Path) -> None:
    solve(instance.problem, instance.simulator, samples=samples, seed=seed)


def paper(instance: Instance, samples: int, seed: int, path: Path) -> None:
    method = Method.paper(iterations=20)
    solve(instance.problem, instance.simulator, samples=samples, seed=seed, method=method)


def strict(instance: Instance, samples: int, seed: int, path: Path) -> None:
    solve(instance.problem, instance.simulator, samples=samples, seed=seed, feasibility="strict")


def adaptive(instance: Instance, samples: int, seed: int, path: Path) -> None:
    epsilon = 0.2 * instance.problem.horizon * instance.problem.reward_span
    solve(instance.problem, instance.simulator, epsilon=epsilon, max_samples=samples, seed=seed)


def certified_again(instance: Instance, samples: int, seed: int, path: Path) -> None:
    solve(instance.problem, instance.simulator, samples=4_000, seed=seed, out=path / "run")
    instance.simulator.num_queries = 0
    recertify(load_run(path / "run"), instance.problem, instance.simulator, samples=samples)


def banded(instance: Instance, samples: int, seed: int, path: Path) -> None:
    found = solve(instance.problem, instance.simulator, samples=samples // 2, seed=seed, method=Method(certificate=0))
    frontier(found, num_points=3).certified(instance.simulator, samples=samples - samples // 2, seed=seed)


def planned(instance: Instance, samples: int, seed: int, path: Path) -> None:
    epsilon = 0.2 * instance.problem.horizon * instance.problem.reward_span
    forecast(instance.problem, instance.simulator, epsilon=epsilon, samples=samples, seed=seed)


VERBS: dict[str, Callable[[Instance, int, int, Path], None]] = {
    "solve": solved,
    "solve, literal": paper,
    "solve, strict": strict,
    "solve, epsilon": adaptive,
    "certify": certified_again,
    "frontier": banded,
    "plan": planned,
}


@pytest.mark.slow
@pytest.mark.parametrize("gamma", ["0.9", "0.9995"])
@pytest.mark.parametrize("verb", VERBS)
def test_samples_are_a_limit(verb: str, gamma: str, tmp_path: Path) -> None:
    spend("queue", gamma, verb, 2_000, 1, tmp_path)


@pytest.mark.study
@pytest.mark.parametrize("gamma", DISCOUNTS)
@pytest.mark.parametrize("verb", VERBS)
def test_samples_are_a_limit_of_every_verb(verb: str, gamma: str, tmp_path: Path) -> None:
    for name, samples, seed in (("queue", 4_000, 1), ("queue", 700, 2), ("random-linear", 3_000, 3)):
        (folder := tmp_path / f"{name}-{samples}").mkdir()
        spend(name, gamma, verb, samples, seed, folder)


def spend(name: str, gamma: str, verb: str, samples: int, seed: int, folder: Path) -> None:
    """The calls are within the limit, or the request is refused before half of them were made."""
    instance = zoo.make(name, gamma=gamma)
    try:
        VERBS[verb](instance, samples, seed, folder)
    except InputError as refused:
        if refused.name != "samples":
            raise
        samples //= 2
    assert instance.simulator.num_queries <= samples


@pytest.mark.check
@pytest.mark.parametrize("gamma", DISCOUNTS)
def test_samples_are_a_limit_in_many_seeds(gamma: str, tmp_path: Path) -> None:
    for seed in range(10):
        for samples in (200 + 37 * seed, 2_000 + 531 * seed):
            instance = zoo.make("queue", gamma=gamma)
            solve(instance.problem, instance.simulator, samples=samples, seed=seed)
            assert instance.simulator.num_queries <= samples


def test_plans_keep_their_steps() -> None:
    """Few rollouts are cut so that they cannot take more; many keep the length that leaves a millionth."""
    for gamma in (0.0, 0.5, 0.9, 0.99, 0.9995, 1 - 1e-6):
        each = steps_per_rollout(gamma)
        for steps in (1, 2, 10, int(each) + 1, int(5 * each), int(40 * each), int(100 * each)):
            plan = plan_rollouts(gamma, steps)
            assert plan.number >= 1 and 1 <= plan.cap <= longest(gamma)
            assert plan.cap == longest(gamma) or plan.number * plan.cap <= steps
        assert plan.cap == longest(gamma)


def played(plan: RolloutPlan, gamma: str = "0.9", seed: int = 5) -> tuple[object, Instance, MixturePolicy]:
    instance = zoo.make("queue", gamma=gamma)
    policy = MixturePolicy.of([TabularPolicy.deterministic(np.zeros(11, dtype=np.int64), 2)], np.ones(1))
    instance.simulator.num_queries = 0
    middle = np.full(2, instance.problem.horizon / 2)
    flat = Baseline([lambda states: np.broadcast_to(middle, (len(states), 2))], middle, middle)
    return roll_out(instance.problem, instance.simulator, policy, flat, plan, seed=seed), instance, policy


@pytest.mark.parametrize("number", [40, 3_000])
def test_rollouts_that_run_out_of_steps_show_nothing(number: int) -> None:
    """As a few might with probability 0.05 at most, and many hardly ever; whoever goes on to use them gets what is known anyway."""
    each = steps_per_rollout(0.9)
    generous, instance, _ = played(RolloutPlan(number, longest(0.9), int(1.5 * number * each)))
    assert not generous.cut and instance.simulator.num_queries == generous.steps  # type: ignore[attr-defined]
    steps = int(generous.steps) - 50  # type: ignore[attr-defined]
    short, instance, _ = played(RolloutPlan(number, longest(0.9), steps))
    assert short.cut and instance.simulator.num_queries <= steps  # type: ignore[attr-defined]
    low, high = short.limits(0.05, "betting")  # type: ignore[attr-defined]
    np.testing.assert_array_equal([low, high], short.known)  # type: ignore[attr-defined]


def test_what_lies_beyond_a_cut_is_accounted_for() -> None:
    """2,000 rollouts of three steps each: the true value lies within the limits, and not without the tail."""
    from saddleback.exact import mixture_values

    rollouts, instance, policy = played(RolloutPlan(2_000, 3, 6_000))
    truth = instance.problem.unit_values_of(mixture_values(instance.table, policy))
    low, high = rollouts.limits(1e-6, "betting")  # type: ignore[attr-defined]
    assert np.all(low <= truth) and np.all(truth <= high)
    z = rollouts.values  # type: ignore[attr-defined]
    far = np.abs(z.mean(axis=0) - truth) / (z.std(axis=0) / math.sqrt(len(z)))
    assert far.max() > 10, "the cut must matter, or this shows nothing"


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("queue", marks=pytest.mark.check), "random-linear"])
def test_a_long_horizon_takes_no_time(name: str) -> None:
    """Ten minutes and more, once; a hundredth of that is far above what it takes on a busy machine."""
    instance = zoo.make(name, gamma="0.999999")
    began = time.process_time()
    found = solve(instance.problem, instance.simulator, samples=4_000)
    forecast(instance.problem, instance.simulator, epsilon=0.1 * instance.problem.horizon, samples=4_000)
    assert time.process_time() - began < 20
    assert found.status is not Status.REFUTED and found.certificate is not None


@pytest.mark.parametrize("gamma", [1 - 1e-16, 1 - 1e-12, 1.0, 0.999999999])
def test_a_discount_that_arithmetic_cannot_tell_from_one(gamma: float) -> None:
    with pytest.raises(InputError, match="gamma"):
        zoo.make("queue", gamma=repr(gamma))
