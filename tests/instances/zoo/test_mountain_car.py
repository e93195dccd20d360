"""Mountain car with a fuel budget, from its Gymnasium simulator alone: the mixture against single multipliers, and memory.

The mixture is judged by its certificate. A single-λ policy is the greedy one of the same solver on the same samples for the reward
r − λ·fuel; of twenty of them the best that meets the budget *in paired rollouts* is compared, which is kinder to it than to ask for
a certificate. Rollouts are paired by their start; the members of the mixture enter with their weights, so that no coin adds noise.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from saddleback.certificates import Certificate
from saddleback.instances.zoo import Instance, make
from saddleback.method.evaluators import Rollouts
from saddleback.method.oracles import simplex_point
from saddleback.method.solvers import PlugIn
from saddleback.problem.policies import Policy
from saddleback.problem.spaces import Array, States
from saddleback.runs.verdict import Status
from saddleback.solving.solution import Solution
from spelled_out import solve

pytestmark = pytest.mark.check

MULTIPLIERS = np.linspace(0.0, 1.5, 20)
DECISIONS = 60  # of a rollout: γ^60 = 0.002 of at most 10 is left out, the same for all policies


class Comparison(NamedTuple):
    """(reward, fuel) of the mixture and of the best feasible single policy, and their paired difference in reward."""

    mixture: Array
    single: Array
    multiplier: float
    margin: float
    error: float


def totals(instance: Instance, policy: Policy, starts: States) -> Array:
    """Discounted reward and fuel of one ride from each start, ``(n, 2)``."""
    problem, rng = instance.problem, np.random.default_rng(0)
    x, out, weight, at = starts, np.zeros((len(starts), 2)), 1.0, np.arange(len(starts))
    for _ in range(DECISIONS):
        a = policy.act(x, rng)
        out[at] += weight * np.column_stack([signal.at(x, a) for signal in problem.signals])
        x, weight = instance.simulator.sample(x, a, rng).next_states, weight * problem.gamma
        running = x[:, 0] < 0.5  # nothing is paid beyond the flag
        x, at = x[running], at[running]
        if not len(x):
            break
    return out


def compare(instance: Instance, solution: Solution, num_starts: int, seed: int) -> Comparison:
    problem, parts, mixture = instance.problem, solution.prepared, solution.mixture
    assert mixture is not None and problem.start.sampler is not None
    starts = problem.start.sampler(num_starts, np.random.default_rng(np.random.SeedSequence(seed)))
    mixing = np.array([simplex_point([x]) for x in MULTIPLIERS])  # reward and fuel both span one unit
    singles = PlugIn().solve(problem, parts.evaluation_buffer, mixing)
    rides = np.array([totals(instance, policy, starts) for policy in singles])  # (20, n, 2)
    means = rides.mean(axis=1)
    feasible = np.flatnonzero(means[:, 1] <= problem.user_thresholds()[0])
    best = int(feasible[np.argmax(means[feasible, 0])])
    ours = np.tensordot(mixture.weights, [totals(instance, m, starts) for m in mixture.members], axes=1)  # (n, 2)
    difference = ours[:, 0] - rides[best, :, 0]
    error = float(difference.std(ddof=1) / np.sqrt(num_starts))
    return Comparison(ours.mean(axis=0), means[best], float(MULTIPLIERS[best]), float(difference.mean()), error)


def told(solution: Solution, found: Comparison) -> str:
    proof = solution.certificate
    assert isinstance(proof, Certificate)
    return (
        f"certified at {proof.confidence:.3g}: reward {proof.value}, fuel {proof.constraints[0]}; {solution.samples} samples\n"
        f"rollouts: mixture {found.mixture}, best feasible of 20 multipliers {found.single} (λ = {found.multiplier:.3g}); "
        f"better by {found.margin:.4f} ± {found.error:.4f} (one standard error)"
    )


def assert_good(instance: Instance, solution: Solution, found: Comparison) -> None:
    """The rollout interval meets the budget, and the reward is not two standard errors below the best single policy."""
    proof, budget = solution.certificate, instance.problem.user_thresholds()[0]
    assert solution.status is Status.SOLVED and isinstance(proof, Certificate)
    assert proof.feasible == "certified" and proof.constraints[0][1] <= budget
    assert found.margin >= -2 * found.error


def test_mixture_against_single_multipliers() -> None:
    """The reduced form: few samples, seed 0."""
    instance = make("mountain-car")
    simulator, problem = instance.simulator, instance.problem
    played = Rollouts(tail=0.04)  # shorter rollouts, and so more of them
    solution = solve(
        problem, simulator, samples=36_000, certificate=44_000, feasibility="strict", evaluator=played, seed=0
    )
    found = compare(instance, solution, 40, seed=1)
    print(told(solution, found))
    assert_good(instance, solution, found)
    # Negative control: the policy that ignores the budget is refuted by the same kind of proof.
    free = solve(problem, simulator, samples=1_000, certificate=5_000, target=[0.0], seed=0)
    assert isinstance(free.certificate, Certificate) and free.certificate.feasible == "refuted"


@pytest.mark.study
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_mixture_against_single_multipliers_in_full(seed: int) -> None:
    """360,000 samples, certificate and all."""
    instance = make("mountain-car")
    solution = solve(
        instance.problem,
        instance.simulator,
        samples=240_000,
        certificate=120_000,
        feasibility="strict",
        evaluator="rollouts",
        seed=seed,
    )
    found = compare(instance, solution, 600, seed=100 + seed)
    print(f"seed {seed}: {told(solution, found)}")
    assert_good(instance, solution, found)


PEAK = """
import json, sys
import gymnasium.envs.classic_control, scipy.sparse, scipy.optimize, scipy.special
from saddleback import solve
from saddleback.instances.zoo import make

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

instance, n = make("mountain-car"), int(sys.argv[1])
before = peak()
solution = solve(instance.problem, instance.simulator, samples=2 * n, feasibility="strict", seed=0)
print(json.dumps({"samples": solution.samples, "above": peak() - before}))
"""


def peak_above_import(samples: int) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(samples)], capture_output=True, text=True, check=True, env=os.environ
    )
    report = json.loads(done.stdout)
    print(report)
    return int(report["above"])


@pytest.mark.study
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_states_visited() -> None:
    """Four times the samples and rollout states: the same peak above that of the imports, to a quarter."""
    small, large = peak_above_import(30_000), peak_above_import(120_000)
    assert large <= 1.25 * small
