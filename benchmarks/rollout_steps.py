"""Simulator calls for a half-width of .05 (utilities, 95 %): roulette rollouts with betting against plain Maurer-Pontil.

Plain: rollouts of the mixture to a horizon L, the interval mean ± h widened by γ^L·H, with the L that needs the fewest steps
(its variance measured on 4,000 rollouts). Ours: the fewest rollouts whose interval is as narrow, by bisection over prefixes
of one long run. Both follow the same mixture, solved from 200,000 samples, which also give our baseline. Nothing is timed:
the reference is a number of calls.
"""

from __future__ import annotations

import math

import numpy as np

from benchmarks.timing import Row
from saddleback.certificates.values.intervals import betting, maurer_pontil_half_width
from saddleback.certificates.values.rollouts import fit_baseline, roll_out, steps_per_rollout
from saddleback.instances.zoo import make
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy
from saddleback.runs.settings import Method
from saddleback.sampling.trajectories import RolloutPlan
from saddleback.simulators.generative_model import GenerativeModel, Stream, generator
from saddleback.solving.solve import solve

PROBLEMS = ("wireless", "queue", "random-linear")
HALF_WIDTH, DELTA = 0.05, 0.05
SAMPLES, ROLLOUTS = 200_000, 60_000


def rows() -> list[Row]:
    return [row(name) for name in PROBLEMS]


def row(name: str) -> Row:
    instance = make(name)
    solution = solve(instance.problem, instance.simulator, samples=SAMPLES, seed=1, method=Method(certificate=0))
    problem = solution.prepared.problem
    assert solution.mixture is not None
    baseline = fit_baseline(problem, solution.prepared.evaluation_buffer, solution.mixture)
    plan = RolloutPlan.unlimited(problem.gamma, ROLLOUTS)
    rolled = roll_out(problem, instance.simulator, solution.mixture, baseline, plan, seed=2)
    tail = float((rolled.tail_high - rolled.tail_low).max()) / 2

    def narrow(n: int) -> bool:
        widths = [betting(rolled.values[:n, j], rolled.low[j], rolled.high[j], DELTA).half_width for j in (0, 1)]
        return max(widths) + tail <= HALF_WIDTH

    low, high = 1, ROLLOUTS
    assert narrow(ROLLOUTS), name
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if narrow(middle) else (middle, high)
    ours = high * steps_per_rollout(problem.gamma)
    plain = plain_steps(problem, instance.simulator, solution.mixture)
    title = f"simulator calls for a half-width of .05 on {name}: {ours:,.0f} / plain Maurer-Pontil {plain:,.0f}"
    return Row(title, ours / plain, 0.5, 0.25, 0.0, 0.0)


def plain_steps(problem: CMDP, model: GenerativeModel, mixture: MixturePolicy) -> float:
    """The fewest steps that plain rollouts need for every signal, over the horizons L."""
    rng, n = generator(3, Stream.ROLLOUT, 1, 0), 4000
    member = rng.choice(len(mixture.weights), size=n, p=mixture.weights)
    states = problem.start.states[rng.choice(len(problem.start.weights), size=n, p=problem.start.weights)]
    total, best, gamma, H = np.zeros((n, 1 + problem.num_constraints)), math.inf, problem.gamma, problem.horizon
    for step in range(math.ceil(math.log(HALF_WIDTH / 50 / H) / math.log(gamma))):
        actions = np.empty(n, dtype=np.int64)
        for k, policy in enumerate(mixture.members):
            actions[member == k] = policy.act(states[member == k], rng)
        total += gamma**step * problem.utilities(states, actions)
        states = model.sample(states, actions, rng).next_states
        left = HALF_WIDTH - gamma ** (step + 1) * H / 2
        if left > 0:
            span = H * (1 - gamma ** (step + 1))
            best = min(best, (step + 1) * _rollouts(float(total.var(axis=0).max()), span, left))
    return best


def _rollouts(variance: float, span: float, half_width: float) -> int:
    low, high = 2, 1 << 40
    while high - low > 1:
        middle = (low + high) // 2
        narrow = maurer_pontil_half_width(variance, middle, span, DELTA) <= half_width
        low, high = (low, middle) if narrow else (middle, high)
    return high
