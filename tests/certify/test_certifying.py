"""Certificates as a whole: what they say, what they cost, and what they refuse to say."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from saddleback import Constraint, InputError, issue_certificate, solve, zoo
from saddleback.certification import guide_of
from saddleback.certify import Certificate, Request, certify_guided, expect
from saddleback.exact import mixture_values
from saddleback.exact.values import state_values
from saddleback.solution import Solution, Status


def solved(name: str, samples: int = 60_000, certificate: int = 60_000, seed: int = 0, **more: object) -> Solution:
    instance = zoo.make(name)
    return solve(instance.problem, instance.simulator, samples=samples, certificate=certificate, seed=seed, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["wireless", "random-linear"])
def test_what_a_certificate_says(name: str) -> None:
    instance = zoo.make(name)
    before = instance.simulator.num_queries
    solution = solve(instance.problem, instance.simulator, samples=60_000, certificate=60_000, seed=0)
    c = solution.certificate
    assert isinstance(c, Certificate)
    assert solution.samples == instance.simulator.num_queries - before
    assert 0.9 * 60_000 <= c.samples <= 60_000
    truth = mixture_values(instance.table, solution.mixture)
    assert c.value[0] <= truth[0] <= c.value[1] <= c.upper_bound
    assert c.gap == pytest.approx(c.upper_bound - c.value[0])
    assert c.constraints[0][0] <= truth[1] <= c.constraints[0][1]
    assert c.confidence == 0.95
    assert ("linear" in c.assumes["gap"]) == (name == "random-linear")
    assert "linear" not in c.assumes["value"]
    data = json.loads(json.dumps(solution.to_json(), allow_nan=False))["certificate"]
    for key in ("confidence", "value", "constraints", "upper_bound", "gap", "feasible", "assumes", "samples"):
        assert key in data
    assert data["constraints"] == [list(c.constraints[0])]


def test_the_certificate_is_reproducible_and_its_streams_are_its_own() -> None:
    """Identity 32: the same seed gives the same numbers; another seed, other samples for the same policy."""
    instance = zoo.make("garnet")
    plain = solve(instance.problem, instance.simulator, samples=30_000, seed=5)
    first, again, other = (issue_certificate(plain, instance.simulator, samples=30_000, seed=s) for s in (5, 5, 6))
    assert json.dumps(first.to_json()) == json.dumps(again.to_json())
    assert first.evidence["rollouts"]["mean"] != other.evidence["rollouts"]["mean"]
    whole = solve(instance.problem, instance.simulator, samples=30_000, certificate=30_000, seed=5)
    assert json.dumps(whole.certificate.to_json()) == json.dumps(first.to_json())


def test_intervals_can_be_computed_again_from_the_rollouts() -> None:
    from saddleback.certify.intervals import betting

    c = solved("wireless").certificate
    problem, rolled = zoo.make("wireless").problem, c.evidence["rollouts"]
    z = c.rollout_values
    assert z.shape == (rolled["number"], 2)
    for j in range(2):
        low, high = betting(z[:, j], rolled["low"][j], rolled["high"][j], rolled["delta_of_each"])
        ends = problem.values_of(np.array([[low + rolled["tail"][0][j]] * 2, [high + rolled["tail"][1][j]] * 2]))[:, j]
        np.testing.assert_allclose(sorted(ends), [c.value, *c.constraints][j], rtol=1e-12)


def test_strict_is_proved_and_relaxed_says_what_is_missed() -> None:
    strict = solved("wireless", feasibility="strict", samples=100_000, certificate=100_000)
    assert strict.status is Status.SOLVED
    assert strict.certificate.feasible == "certified"
    assert "proved" in strict.message
    relaxed = solved("wireless", samples=100_000, certificate=100_000)
    assert relaxed.certificate.feasible == "undecided"
    assert relaxed.certificate.gap < strict.certificate.gap
    missed = relaxed.certificate.violation(relaxed.problem)
    assert 0 < missed[0] < 0.05 * relaxed.problem.horizon


def test_a_policy_that_breaks_the_constraint_is_refuted() -> None:
    instance = zoo.make("wireless")
    greedy = solve(instance.problem, instance.simulator, samples=60_000, seed=0, target=[0.0])
    c = issue_certificate(greedy, instance.simulator, samples=60_000, seed=0)
    assert c.feasible == "refuted"


def test_infeasibility_is_proved() -> None:
    instance = zoo.make("garnet")
    limit = instance.problem.constraints[0]
    raised = dataclasses.replace(limit, threshold=limit.threshold + instance.known["zeta"] + 0.6)
    problem = dataclasses.replace(instance.problem, constraints=[raised])
    solution = solve(problem, instance.simulator, samples=60_000, certificate=200_000, seed=0)
    assert solution.status is Status.INFEASIBLE
    assert solution.certificate.infeasible
    assert solution.certificate.to_json()["infeasible"] == "proved"
    assert "proved" in solution.message
    assert solution.certificate.value is None and solution.certificate.gap is None


def test_beyond_any_policys_reach_needs_no_sample() -> None:
    instance = zoo.make("wireless")
    c = instance.problem.constraints[0]
    problem = dataclasses.replace(instance.problem, constraints=[Constraint(c.name, c.signal, "<=", -1.0, c.range)])
    solution = solve(problem, instance.simulator, samples=1000, certificate=1000)
    assert solution.status is Status.INFEASIBLE and solution.certificate.infeasible
    assert solution.samples == 0


def test_nonlinear_problems_get_no_bound_under_linearity() -> None:
    instance = zoo.make("random-linear", misspecification=0.2)
    solution = solve(instance.problem, instance.simulator, samples=200_000, certificate=200_000, seed=0)
    c = solution.certificate
    assert c.gap is None and c.upper_bound is None
    assert not c.linearity.passed
    assert any("not linear" in remark for remark in c.remarks)
    truth = mixture_values(instance.table, solution.mixture)
    assert c.value[0] <= truth[0] <= c.value[1]  # what assumes nothing still stands


def test_values_by_start_state() -> None:
    instance = zoo.make("random-linear", states=4, dim=3, actions=2)
    solution = solve(instance.problem, instance.simulator, samples=40_000, certificate=80_000, seed=1)
    rows = solution.certificate.by_start
    assert len(rows) == 4
    for row in rows:
        truth = sum(
            w * state_values(instance.table, p)[row.state]
            for w, p in zip(solution.mixture.weights, solution.mixture.members, strict=True)
        )
        assert row.value[0] <= truth[0] <= row.value[1]
        assert row.constraints[0][0] <= truth[1] <= row.constraints[0][1]


def test_widths_are_foreseen() -> None:
    solution = solved("queue", certificate=0)
    guide = guide_of(solution)
    expected, gap = expect(guide, 200_000, 0.05)
    c = certify_guided(guide, zoo.make("queue").simulator, Request(200_000, 3))
    got = np.array([(high - low) / 2 for low, high in [c.value, *c.constraints]]) / np.abs(solution.problem.scale)
    assert np.all(got <= 2 * expected) and np.all(expected <= 2 * got)
    assert 0.4 <= c.gap / float(solution.problem.scale[0]) / gap <= 2.5


def test_few_samples_say_little_but_never_fail() -> None:
    instance = zoo.make("wireless")
    plain = solve(instance.problem, instance.simulator, samples=60_000, seed=0)
    for samples in (1, 30, 300):
        c = issue_certificate(plain, instance.simulator, samples=samples, seed=0)
        assert c.value[0] <= c.value[1]
        assert c.gap is None and "more samples" in c.remarks[0]


def test_wrong_input() -> None:
    instance = zoo.make("wireless")
    plain = solve(instance.problem, instance.simulator, samples=20_000, seed=0)
    with pytest.raises(InputError, match="samples"):
        issue_certificate(plain, instance.simulator, samples=0, seed=0)
    with pytest.raises(InputError, match="interval"):
        issue_certificate(plain, instance.simulator, samples=10, seed=0, interval="magic")
    with pytest.raises(InputError, match="hold its samples"):
        issue_certificate(dataclasses.replace(plain, prepared=None), instance.simulator, samples=10, seed=0)
    with pytest.raises(InputError, match="certificate"):
        solve(instance.problem, instance.simulator, samples=1000, certificate=-1)
