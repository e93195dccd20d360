"""What is known without samples: limits of rollouts are cut with it, and compared with thresholds up to rounding."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from helpers import random_table
from saddleback import Method, Table, solve
from saddleback.certificates.values.known import known_limits
from saddleback.exact import mixture_values
from saddleback.files.json_file import as_record
from saddleback.problem.cmdp import CMDP, Constraint
from saddleback.problem.policies import MixturePolicy, TabularPolicy
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields
from saddleback.runs.evidence_file import BoundArrays, RolloutValues
from saddleback.runs.recheck import recheck
from saddleback.runs.verdict import Status
from saddleback.simulators.generative_model import GenerativeModel
from statistical.rare_events import rare_events


def one_state(gamma: float, threshold: float, sense: str = ">=", signal: float = 1.0) -> Table:
    """A state whose two actions earn 0 and 1 and have the same signal."""
    return Table.of(
        np.ones((1, 2, 1)),
        [[0.0, 1.0]],
        [[[signal, signal]]],
        [threshold],
        gamma=gamma,
        rho=[1.0],
        senses=[sense],
        ranges=[(0.0, 1.0)],
    )


@pytest.mark.parametrize(("gamma", "threshold"), [(0.95, 20.0), (0.99, 100.0), (0.9, 10.0), (0.8, 5.0)])
def test_a_threshold_that_is_the_horizon_is_met(gamma: float, threshold: float) -> None:
    """1/(1 − .95) is 19.999999999999982; the only value there is meets 20."""
    table = one_state(gamma, threshold)
    for feasibility in ("relaxed", "strict"):
        answer = solve(table.problem(), table.simulator(), samples=2_000, feasibility=feasibility)  # type: ignore[arg-type]
        assert answer.certificate is not None and answer.certificate.feasible == "certified"
        assert answer.status is Status.SOLVED and "fails" not in str(answer)


def toll(num_states: int = 5) -> tuple[CMDP, GenerativeModel]:
    """A ring whose second action pays a toll and moves on; nothing may be paid, and waiting earns a little."""
    paid = np.tile([0.0, 3.0], (num_states, 1))
    problem = CMDP(
        gamma=0.95,
        start=0,
        actions=["wait", "pay"],
        states=num_states,
        reward=np.tile([0.2, 1.0], (num_states, 1)),
        constraints=[Constraint("toll", paid, "<=", 0.0)],
    )

    def sample(states: Any, actions: Any, rng: np.random.Generator) -> Any:
        return (states + (rng.random(len(states)) < 0.5 + 0.3 * actions)) % num_states

    return problem, GenerativeModel(sample, problem.states)


@pytest.mark.parametrize("feasibility", ["relaxed", "strict"])
def test_a_policy_that_never_pays_is_certified(feasibility: Any) -> None:
    problem, simulator = toll()
    answer = solve(problem, simulator, samples=4_000, feasibility=feasibility)
    proof = answer.certificate
    assert proof is not None and proof.constraints == ((0.0, 0.0),) and proof.feasible == "certified"
    assert answer.status is Status.SOLVED


def mixture_of(table: Table, seed: int, members: int = 3) -> MixturePolicy:
    rng, (S, A) = np.random.default_rng(seed), table.reward.shape
    tables = [TabularPolicy.stochastic(rng.dirichlet(np.ones(A), S)) for _ in range(members - 1)]
    tables.append(TabularPolicy.deterministic(rng.integers(0, A, S), A))
    return MixturePolicy.of(tables, rng.dirichlet(np.ones(members)))


@pytest.mark.parametrize("seed", range(10))
def test_the_truth_lies_within(seed: int) -> None:
    """By hand for each member and signal, and the exact values of the mixture within; tight where a signal is constant."""
    table = random_table(seed, m=2)
    table.constraints[1][:] = 0.25
    problem, mixture = table.problem(), mixture_of(table, seed)
    low, high = known_limits(problem, mixture)
    by_hand = np.zeros((2, 3))
    for w, member in zip(mixture.weights, mixture.members, strict=True):
        pi = member.probabilities(np.arange(6))
        earned = np.array([(pi * u).sum(axis=1) for u in (table.reward, *table.constraints)])
        by_hand += w * problem.horizon * np.array([earned.min(axis=1), earned.max(axis=1)])
    np.testing.assert_allclose([low, high], by_hand, rtol=1e-12)
    truth = problem.unit_values_of(mixture_values(table, mixture))
    assert np.all(low <= truth + 1e-9) and np.all(truth <= high + 1e-9)
    assert low[2] == pytest.approx(0.25 * problem.horizon) == high[2]


def test_nothing_is_known_of_what_is_observed() -> None:
    problem, _ = rare_events(0.005)
    low, high = known_limits(problem, MixturePolicy.of([TabularPolicy.deterministic(np.array([1, 0]), 2)], np.ones(1)))
    assert low[0] == high[0] == problem.horizon, "the reward is known, and always 1"
    assert (low[1], high[1]) == (0.0, problem.horizon)


def test_a_function_is_not_asked_beyond_the_candidates() -> None:
    """It may know no answer there; an array has one everywhere."""

    def paid(states: Any, actions: Any) -> Any:
        assert np.all(states < 3), "not one of the candidates"
        return 1.0 * actions

    plain, _ = toll()
    pool = np.repeat(np.arange(3), 2), np.tile([0, 1], 3)
    limits = [Constraint("fare", paid, "<=", 0.0, (0.0, 1.0)), *plain.constraints]
    problem = dataclasses.replace(plain, candidates=pool, constraints=limits)
    waits = MixturePolicy.of([TabularPolicy.deterministic(np.zeros(5, int), 2)], np.ones(1))
    low, high = known_limits(problem, waits)
    H = problem.horizon
    assert (low[1], high[1]) == (0.0, H) and low[2] == high[2] == H


def test_a_recheck_accepts_cut_limits_and_refuses_forged_ones() -> None:
    problem, simulator = toll()
    answer = solve(problem, simulator, samples=4_000, method=Method(certificate=2_000))
    proof, policy = answer.certificate, answer.mixture
    assert proof is not None and policy is not None
    fields = json.loads(json.dumps(certificate_fields(proof, problem)))
    arrays = proof.arrays["rollouts"]
    rollouts = RolloutValues(*(arrays[name] for name in ("values", "low", "high", "tail")))
    bound = BoundArrays(**proof.arrays["bound"])

    def wrong(told: dict[str, Any], **known: Any) -> list[str]:
        record = as_record(told, CertificateRecord, "certificate.json", "look again")
        return [c.name for c in recheck(record, rollouts, bound=bound, **known) if not c.passed]

    everything = {"problem": problem, "policy": policy}
    assert wrong(fields, **everything) == wrong(fields, policy=policy) == []
    payer = MixturePolicy.of([TabularPolicy.deterministic(np.ones(5, int), 2)], np.ones(1))
    for known in ({"problem": problem}, {}):
        assert wrong(fields, policy=payer, **known) == ["limits without samples"]
    # A cost of 1 to 2 is made of nothing, in the limits and in what is said to be known alike.
    forged = copy.deepcopy(fields)
    H = problem.horizon
    forged["evidence"]["rollouts"]["known"] = [[0.0, H - 2 / 3], [H, H - 1 / 3]]
    forged["constraints"], forged["feasible"] = [[1.0, 2.0]], "refuted"
    assert "limits without samples" in wrong(forged, **everything)
    assert "limits without samples" in wrong(forged, policy=policy)
    moved = copy.deepcopy(fields)
    moved["evidence"]["rollouts"]["known"][0][1] = 0.0
    assert wrong(moved, **everything), "limits that are no longer cut do not follow either"
