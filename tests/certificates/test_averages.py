"""Averages over time: against exact ones, within the calls that are set aside, and apart from every other sample."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from helpers import random_table
from saddleback import Constraint, resume
from saddleback import solve as plain_solve
from saddleback.certificates.values.averages import (
    SHARE,
    Average,
    Averages,
    ConstraintAverages,
    calls_for,
    differences,
    measure_averages,
    plan_averages,
)
from saddleback.problem.cmdp import CMDP
from saddleback.problem.policies import MixturePolicy, TabularPolicy, as_table
from saddleback.problem.spaces import Actions, States
from saddleback.runs.run_folder import load_run
from saddleback.simulators.table import Table
from saddleback.solving.recertify import recertify
from saddleback.solving.strict import issue_certificate
from spelled_out import solve

PER_STEP = dataclasses.replace(random_table(1), units=("per-step",))


def drifting() -> Table:
    """A process that drifts from a state that costs nothing to one that costs one a step: averages differ widely."""
    P = np.zeros((2, 2, 2))
    P[0], P[1] = [[0.9, 0.1], [0.95, 0.05]], [[0.05, 0.95], [0.2, 0.8]]
    cost, reward = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.6], [1.0, 0.2]])
    more = {"senses": ["<="], "names": ["bad"], "units": ("per-step",), "name": "drift"}
    return Table.of(P, reward, cost[None], [0.45 * 10], gamma=0.9, rho=[1.0, 0.0], **more)


def exact_averages(table: Table, mixture: MixturePolicy, begin: int, end: int) -> float:
    """Σ_k w_k of the mean cost over steps begin to end − 1, from powers of P_π."""
    P = table.P.toarray().reshape(table.num_states, table.num_actions, -1)
    total = 0.0
    for weight, member in zip(mixture.weights, mixture.members, strict=True):
        pi = as_table(member, table.num_states).probabilities(np.arange(table.num_states))
        step, cost = np.einsum("sa,sat->st", pi, P), np.einsum("sa,sa->s", pi, table.constraints[0])
        at, costs = table.rho, []
        for _ in range(end):
            costs.append(float(at @ cost))
            at = at @ step
        total += weight * float(np.mean(costs[begin:]))
    return total


def two_members(table: Table) -> MixturePolicy:
    members = [TabularPolicy.deterministic(np.full(table.num_states, a), table.num_actions) for a in (0, 1)]
    return MixturePolicy.of(members, np.array([0.7, 0.3]))


@pytest.mark.parametrize("table", [PER_STEP, drifting()])
def test_they_are_what_they_estimate(table: Table) -> None:
    # Seeds are fixed; five standard errors are left by a normal variable with probability 6e-7.
    mixture, problem = two_members(table), table.problem()
    found = measure_averages(problem, table.simulator(), mixture, 60_000, seed=3)
    assert found is not None and found.samples <= 60_000
    (row,) = found.constraints
    assert row.long_run is not None and found.long_run_steps is not None
    pairs = [(row.first, (0, found.first_steps)), (row.long_run, found.long_run_steps)]
    for average, window in pairs:
        truth = exact_averages(table, mixture, *window)
        assert 0 < average.error < 0.02 and abs(average.mean - truth) <= 5 * average.error
        # Negative control: the same check refuses an average that is off by a twentieth of the range.
        assert abs(average.mean - truth - 0.05) > 2 * average.error


def test_the_plan_keeps_to_its_calls() -> None:
    problem, mixture = PER_STEP.problem(), two_members(PER_STEP)
    for samples in (0, 10, 79, 80, 100, 479, 480, 1_000, 20_000, 10**6, 10**9):
        plans = plan_averages(problem, mixture, samples)
        assert (plans is None) == (samples < 80)  # eight rollouts of H = 5 steps, in half of the calls
        if plans is not None:
            calls = sum(plan.calls for plan in plans if plan is not None)
            assert calls <= min(samples, 500_000) and (plans[1] is None) == (samples < 480)
            for plan in plans:
                assert plan is None or {0, 1} == set(plan.members.tolist())


def test_many_members_are_played_by_their_weights() -> None:
    policies = [TabularPolicy.deterministic(np.full(6, k % 3), 3) for k in range(40)]
    mixture = MixturePolicy(policies, np.full(40, 1 / 40))
    plans = plan_averages(PER_STEP.problem(), mixture, 2_000)
    assert plans is not None and plans[1] is not None
    assert len(set(plans[1].members.tolist())) == len(plans[1].members)
    found = measure_averages(PER_STEP.problem(), PER_STEP.simulator(), mixture, 20_000, seed=1)
    assert found is not None and all(math.isfinite(row.first.error) for row in found.constraints)


def test_a_solve_measures_within_its_samples_and_counts_the_calls() -> None:
    calls, table = 0, drifting()

    def sample(states: States, actions: Actions, rng: np.random.Generator) -> States:
        nonlocal calls
        calls += len(states)
        return np.asarray(table.simulator().sample(states, actions, rng).next_states)

    found = plain_solve(table.problem(), sample, samples=80_000, seed=4)
    proof = found.certificate
    assert proof is not None and proof.averages is not None
    assert found.samples <= 80_000 and proof.averages.samples <= SHARE * 40_000
    assert proof.samples == proof.proof_samples + proof.averages.samples
    assert 0 <= calls - found.samples < 4_000  # a few more to see that answers can be repeated
    assert any(remark.kind == "average-differs" for remark in proof.remarks)


def test_no_other_sample_changes() -> None:
    steps, totals = drifting(), dataclasses.replace(drifting(), units=None)
    one = solve(steps.problem(), steps.simulator(), samples=10_000, certificate=20_000, seed=6)
    other = solve(totals.problem(), totals.simulator(), samples=10_000, certificate=19_000, seed=6)
    assert one.certificate is not None and other.certificate is not None
    assert one.certificate.averages is not None and other.certificate.averages is None
    assert one.certificate.value == other.certificate.value
    assert one.certificate.constraints == other.certificate.constraints
    assert one.certificate.proof_samples == other.certificate.samples


@pytest.mark.slow
def test_a_certificate_of_its_own_and_a_second_one_measure_too(tmp_path: Path) -> None:
    table = drifting()
    found = plain_solve(table.problem(), table.simulator(), samples=40_000, out=tmp_path / "run")
    again = issue_certificate(found, table.simulator(), samples=20_000, seed=99)
    assert again.averages is not None and again.samples <= 20_000
    stored = load_run(tmp_path / "run")
    assert stored.certificate is not None and stored.certificate.averages == found.certificate.averages
    new, pilot = recertify(stored, table.problem(), table.simulator(), samples=40_000, seed=7)
    assert new.averages is not None and new.samples + pilot <= 40_000
    assert new.averages != found.certificate.averages


@pytest.mark.slow
def test_a_kept_run_draws_them_once(tmp_path: Path) -> None:
    table = drifting()
    found = plain_solve(table.problem(), table.simulator(), samples=20_000, out=tmp_path / "run", seed=2)
    alone = plain_solve(table.problem(), table.simulator(), samples=20_000, seed=2)
    assert found.certificate.averages == alone.certificate.averages is not None
    read = resume(tmp_path / "run", table.problem(), table.simulator())
    assert read.certificate.averages == found.certificate.averages
    data = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert data["averages"]["constraints"][0]["name"] == "bad"


def test_totals_need_none() -> None:
    table = random_table(1)
    assert calls_for(table.problem(), 10**6) == 0 < calls_for(PER_STEP.problem(), 10**6)
    mixture = two_members(table)
    assert measure_averages(table.problem(), table.simulator(), mixture, 10**6, seed=0) is None


def test_only_averages_that_differ_are_remarked_on() -> None:
    signal = np.array([[0.0, 1.0]])
    limit = Constraint("late", signal, "<=", 0.1, (0.0, 1.0), "per-step")
    problem = CMDP(gamma=0.9, start=0, states=1, actions=2, reward=signal, constraints=[limit])

    def remarks(first: float, later: float, error: float) -> tuple[str, ...]:
        rows = ConstraintAverages("late", Average(first, error), Average(later, error))
        found = Averages(1000, 10, 8, (rows,), (30, 300), 8)
        return tuple(remark.text for remark in differences(problem, found, [(0.9, 1.0)]))

    assert remarks(0.095, 0.1, 0.001) == ()
    assert remarks(0.095, 0.3, 0.1) == ()  # which may be chance
    assert remarks(0.095, 0.0895, 1e-6) == ()  # which is not worth a word
    (text,) = remarks(0.02, 0.3, 0.01)
    assert "in the long run (steps 30 to 299) it is about 0.3, beyond the limit" in text
    assert "over the first 10 steps it is about 0.02 (estimates, not proved)" in text


def test_an_average_that_misses_its_limit_is_always_remarked_on() -> None:
    """However near: a limit of 0.9 is missed by 0.888, which is no twentieth of it; by three standard errors, not by two."""
    signal = np.array([[0.0, 1.0]])
    limit = Constraint("uptime", signal, ">=", 0.9, (0.0, 1.0), "per-step")
    problem = CMDP(gamma=0.9, start=0, states=1, actions=2, reward=signal, constraints=[limit])

    def remarks(later: float, error: float) -> tuple[str, ...]:
        rows = ConstraintAverages("uptime", Average(0.91, error), Average(later, error))
        found = Averages(1000, 10, 8, (rows,), (30, 300), 8)
        return tuple(remark.text for remark in differences(problem, found, [(9.02, 9.2)]))

    (text,) = remarks(0.8882, 0.002)
    assert text.endswith(
        "in the long run (steps 30 to 299) it is about 0.888, beyond the limit (estimates, not proved)"
    )
    assert remarks(0.8882, 0.006) == ()
    assert remarks(0.9 - 1e-12, 0.0) == ()  # rounding
    assert "about 0.89996, beyond the limit" in remarks(0.89996, 1e-6)[0]
    assert remarks(0.9019, 1e-6) == ()  # the limit is kept, and the difference small


def test_differences_are_measured_by_the_range_of_the_signal() -> None:
    """A temperature of 310 differs from 300 by little of 300, but by half of its range."""
    signal = np.array([[290.0, 310.0]])
    limit = Constraint("kelvin", signal, "<=", 311, (290.0, 310.0), "per-step")
    problem = CMDP(gamma=0.9, start=0, states=1, actions=2, reward=signal, constraints=[limit])
    rows = ConstraintAverages("kelvin", Average(300, 0.1), Average(306, 0.1))
    found = Averages(1000, 10, 8, (rows,), (30, 300), 8)
    (remark,) = differences(problem, found, [(2995, 3005)])
    assert "about 306 (estimates" in remark.text and "first" not in remark.text
