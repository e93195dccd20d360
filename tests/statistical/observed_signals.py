"""Tables with a signal that only the simulator shows, a coin for each mean: their plans, their bounds, and the truth."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from helpers import random_table
from saddleback import CMDP
from saddleback.certificates.bounds import AllPairs, Bound
from saddleback.certificates.bounds.tabular import TabularPlan
from saddleback.certificates.guide import Guide, Request
from saddleback.certificates.prove import draw_fresh
from saddleback.exact.values import best_policy
from saddleback.runs.settings import Method
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.simulators.table import Table, TableSampler
from saddleback.solving.prepare import prepare

Shown = Literal["reward", "constraint"]


class Observed(NamedTuple):
    """A table whose means are the truth, the same problem with a signal that is only observed, and its simulator."""

    table: Table
    problem: CMDP
    simulator: GenerativeModel

    def guide(self, sigma: NDArray[np.float64], samples: int, seed: int) -> Guide:
        """From so many earlier samples."""
        parts = prepare(self.problem, self.simulator, samples, seed, Method())
        earlier = [b for b in (parts.solver_buffer, parts.evaluation_buffer) if b is not None]
        return Guide(parts.problem, parts.design, earlier, None, sigma)

    def optimum(self, sigma: NDArray[np.float64]) -> float:
        """max_π V_□^π(ρ), in utilities."""
        return float(sigma @ best_policy(self.table, sigma)[1])


def coins(table: Table, shown: Shown) -> Observed:
    """What is ``shown`` is its highest value with a probability that makes the table's mean, else its lowest, whatever follows."""
    known, column = table.problem(), 0 if shown == "reward" else 1
    ends = known.signals[column].low, known.signals[column].high
    if shown == "reward":
        problem = dataclasses.replace(known, reward=None, reward_range=ends)
    else:
        limits = [dataclasses.replace(known.constraints[0], signal=None, range=ends), *known.constraints[1:]]
        problem = dataclasses.replace(known, constraints=limits)
    follow, chance = TableSampler(table.P, table.num_actions), table.utilities()[..., column].reshape(-1)
    if known.scale[column] < 0:
        chance = 1 - chance

    def sample(states: NDArray[np.int64], actions: NDArray[np.int64], rng: np.random.Generator) -> object:
        following, signals = follow(states, actions, rng), np.zeros((len(states), len(known.signals)))
        high = rng.random(len(states)) < chance[states * table.num_actions + actions]
        signals[:, column] = np.where(high, ends[1], ends[0])
        return following, signals

    return Observed(table, problem, GenerativeModel(sample, known.states, len(known.signals)))


def rare(chance: float, shown: Shown, seed: int = 7) -> Observed:
    """Five states, two actions, γ = .9: events of a probability up to ``chance``, at least half of it."""
    table = random_table(seed, S=5, A=2, gamma=0.9)
    events = chance * (0.5 + 0.5 * np.random.default_rng(seed).random((5, 2)))
    if shown == "reward":
        return coins(dataclasses.replace(table, reward=events), shown)
    return coins(dataclasses.replace(table, constraints=events[None]), shown)


class Proof(NamedTuple):
    """What was planned, and what fresh samples showed."""

    plan: TabularPlan
    bound: Bound


def prove(case: Observed, guide: Guide, samples: int, seed: int, delta: float) -> Proof:
    """One bound over all policies at ``guide.sigma`` from so many fresh calls."""
    assert guide.sigma is not None
    plan = AllPairs().plan(guide, guide.sigma, samples, delta)
    assert plan is not None
    fresh = draw_fresh(guide, case.simulator, [plan], Request(samples, seed))
    return Proof(plan, plan.prove(guide.problem, fresh, delta))
