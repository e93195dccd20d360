"""Pools of candidates that grow where next states show leverage, start samplers, and the leverage a certificate reports."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from saddleback.designs.design import EXCESS
from saddleback.errors import NumericalError, SimulatorError
from saddleback.features import FeatureFunction
from saddleback.problem.cmdp import CMDP, Constraint, Start
from saddleback.problem.spaces import BoxStates
from saddleback.runs.settings import Method
from saddleback.sampling.candidate_pool import grown, highest_leverages, may_grow
from saddleback.simulators.generative_model import GenerativeModel
from saddleback.solving.prepared import parts_of
from spelled_out import solve

CENTRES = np.linspace(0.0, 1.0, 7)
A = 2


def bumps(states: Any, actions: Any) -> Any:
    """Seven normalised bumps a copy for each action."""
    psi = np.exp(-(((states - CENTRES) / 0.15) ** 2) / 2)
    psi /= psi.sum(axis=1, keepdims=True)
    phi = np.zeros((len(states), A, len(CENTRES)))
    phi[np.arange(len(states)), actions] = psi
    return phi.reshape(len(states), -1)


def walk(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    """To the right with action 1, to the left with action 0."""
    step = rng.normal(np.where(actions == 1, 0.15, -0.15), 0.05)
    return np.clip(states + step[:, None], 0.0, 1.0)


def problem_on(candidates: Any = None, start: Start | None = None) -> tuple[CMDP, GenerativeModel]:
    box = BoxStates(np.zeros(1), np.ones(1))
    problem = CMDP(
        gamma=0.8,
        start=start or Start(np.array([[0.2]]), np.array([1.0])),
        num_actions=A,
        states=box,
        reward=lambda s, a: s[:, 0],
        constraints=[Constraint("rest", lambda s, a: 1.0 * (a == 0), ">=", 2.0, (0.0, 1.0))],
        features=FeatureFunction(bumps, A * len(CENTRES), A),
        reward_range=(0.0, 1.0),
        candidates=candidates,
        name="walk",
    )
    return problem, GenerativeModel(walk, box)


def left_half(number: int = 200, end: float = 0.5) -> Any:
    """A pool that knows nothing of the right half."""
    states = np.linspace(0.0, end, number)[:, None]
    return np.repeat(states, A, axis=0), np.tile(np.arange(A), number)


def test_the_pool_grows_until_what_is_seen_does_not_stick_out() -> None:
    problem, model = problem_on(left_half())
    problem, _, _, _, designer = parts_of(problem, Method())
    first = designer.design(problem)
    before = highest_leverages(problem.features, first, np.array([[0.6], [0.9]]))
    assert before.leverages[0] > 10 * first.leverage_bound  # the far states are foreign to the pool
    found = grown(problem, model, designer, 200_000, seed=1)
    assert found.added > 0 and found.samples == model.num_queries > 0
    assert found.seen <= EXCESS * found.design.leverage_bound
    assert float(found.problem.pairs()[0].max()) > 0.9
    after = highest_leverages(problem.features, found.design, np.linspace(0, 1, 101)[:, None])
    assert after.leverages[0] < 2 * found.design.leverage_bound


def test_growing_depends_on_the_seed_alone_and_costs_little() -> None:
    found = []
    for _ in range(2):
        problem, model = problem_on(left_half())
        problem, _, _, _, designer = parts_of(problem, Method())
        found.append(grown(problem, model, designer, 100_000, seed=3))
    assert np.array_equal(found[0].problem.pairs()[0], found[1].problem.pairs()[0])
    assert found[0].samples < 0.12 * 100_000


def test_a_pool_that_suffices_stays_as_it_is_and_finite_problems_do_not_grow() -> None:
    problem, model = problem_on()
    assert may_grow(problem) and len(problem.pairs()[0]) >= 8192
    problem, _, _, _, designer = parts_of(problem, Method())
    found = grown(problem, model, designer, 100_000, seed=1)
    assert found.added == 0 and found.problem is problem
    from saddleback import zoo

    assert not may_grow(zoo.make("random-linear").problem)


@pytest.mark.slow
def test_solutions_count_what_growing_cost_and_certificates_report_the_leverage() -> None:
    problem, model = problem_on(left_half())
    found = solve(problem, model, samples=60_000, certificate=40_000, seed=2)
    assert found.samples == model.num_queries
    assert found.samples <= 100_000
    assert any("joined the candidates" in remark.text for remark in found.remarks)
    assert found.certificate is not None and found.certificate.leverage is not None
    seen = found.certificate.leverage
    assert 0 < seen.seen <= EXCESS * seen.candidates
    again = solve(*problem_on(left_half()), samples=60_000, certificate=40_000, seed=2)
    assert json.dumps(again.to_json()) == json.dumps(found.to_json())


@pytest.mark.check
def test_a_certificate_says_when_rollouts_leave_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: without growing a pool is found wanting."""
    monkeypatch.setattr("saddleback.solving.prepare.may_grow", lambda problem: False)
    problem, model = problem_on(left_half(end=0.85))
    found = solve(problem, model, samples=60_000, certificate=40_000, seed=2)
    assert found.certificate is not None and found.certificate.leverage is not None
    assert found.certificate.leverage.seen > 1.5 * found.certificate.leverage.candidates
    assert "leverage" in [remark.kind for remark in found.certificate.remarks]


def test_least_squares_that_grow_without_bound_are_an_error_not_a_policy() -> None:
    """The paper's own mode takes the candidates as they are; with these, iterates explode."""
    with pytest.raises(NumericalError, match="candidates"):
        solve(*problem_on(left_half()), samples=60_000, mode="literal", iterations=50)


def uniform_starts(number: int, rng: np.random.Generator) -> Any:
    return rng.random((number, 1)) * 0.4


def truth(policy_of: Any, model: GenerativeModel, number: int = 20_000) -> float:
    """The discounted reward of a mixture by plain simulation from fresh starts."""
    rng = np.random.default_rng(99)
    states, total = uniform_starts(number, rng), 0.0
    members = rng.choice(len(policy_of.weights), size=number, p=policy_of.weights)
    for t in range(60):
        actions = np.empty(number, dtype=np.int64)
        for k, member in enumerate(policy_of.members):
            mine = members == k
            if mine.any():
                actions[mine] = member.act(states[mine], rng)
        total += 0.8**t * states[:, 0].mean()
        states = walk(states, actions, rng)
    return total


@pytest.mark.check
def test_start_samplers_give_limits_for_the_distribution_itself() -> None:
    problem, model = problem_on(start=Start.sampled(uniform_starts, 200))
    found = solve(problem, model, samples=60_000, certificate=60_000, seed=5)
    assert found.certificate is not None and found.certificate.value is not None and found.mixture is not None
    low, high = found.certificate.value
    value = truth(found.mixture, model)
    assert low - 0.01 <= value <= high + 0.01
    known = dataclasses.replace(problem, start=Start(problem.start.states, problem.start.weights))
    narrow = solve(known, model, samples=60_000, certificate=60_000, seed=5).certificate
    assert narrow is not None and narrow.value is not None
    assert high - low > narrow.value[1] - narrow.value[0]  # what a sample of ρ may hide is in the limits


def test_a_sampler_that_leaves_the_space_is_named() -> None:
    def wild(number: int, rng: np.random.Generator) -> Any:
        return rng.random((number, 1)) * (0.4 if number < 1000 else 3.0)

    problem, model = problem_on(start=Start.sampled(wild, 200))
    with pytest.raises(SimulatorError, match="start sampler"):
        solve(problem, model, samples=20_000, certificate=20_000)
