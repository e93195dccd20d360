"""Certificates as a whole: what they say, what they cost, and what they refuse to say."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from saddleback import Constraint, FeatureMatrix, GenerativeModel, InputError, issue_certificate, zoo
from saddleback.certificates import Certificate, Request, certify_guided, expect
from saddleback.exact import mixture_values
from saddleback.exact.values import state_values
from saddleback.runs.verdict import Status
from saddleback.solving.solution import Solution
from saddleback.solving.strict import guide_of
from spelled_out import solve


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


@pytest.mark.slow
def test_the_certificate_is_reproducible_and_its_streams_are_its_own() -> None:
    """Identity 32: the same seed gives the same numbers; another seed, other samples for the same policy."""
    instance = zoo.make("garnet")
    plain = solve(instance.problem, instance.simulator, samples=30_000, seed=5)
    first, again, other = (issue_certificate(plain, instance.simulator, samples=30_000, seed=s) for s in (5, 5, 6))
    assert json.dumps(first.to_json()) == json.dumps(again.to_json())
    assert first.evidence.rollouts.mean != other.evidence.rollouts.mean
    whole = solve(instance.problem, instance.simulator, samples=30_000, certificate=30_000, seed=5)
    assert json.dumps(whole.certificate.to_json()) == json.dumps(first.to_json())


def test_intervals_can_be_computed_again_from_the_rollouts() -> None:
    from saddleback.certificates.values.intervals import betting

    c = solved("wireless").certificate
    problem, rolled = zoo.make("wireless").problem, c.evidence.rollouts
    z = c.rollout_values
    assert z.shape == (rolled.number, 2)
    for j in range(2):
        low, high = betting(z[:, j], rolled.low[j], rolled.high[j], rolled.delta_of_each)
        ends = problem.values_of(np.array([[low + rolled.tail[0][j]] * 2, [high + rolled.tail[1][j]] * 2]))[:, j]
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


@pytest.mark.slow
def test_nonlinear_problems_get_no_bound_under_linearity() -> None:
    instance = zoo.make("random-linear", misspecification=0.2)
    solution = solve(instance.problem, instance.simulator, samples=200_000, certificate=200_000, seed=0)
    c = solution.certificate
    assert c.gap is None and c.upper_bound is None
    assert not c.linearity.passed
    assert "not-linear" in [remark.kind for remark in c.remarks]
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


@pytest.mark.slow
def test_widths_are_foreseen() -> None:
    solution = solved("queue", certificate=0)
    guide = guide_of(solution)
    expected, gap = expect(guide, Request(200_000, 3))
    c = certify_guided(guide, zoo.make("queue").simulator, Request(200_000, 3))
    got = np.array([(high - low) / 2 for low, high in [c.value, *c.constraints]]) / np.abs(solution.problem.scale)
    assert np.all(got <= 2 * expected) and np.all(expected <= 2 * got)
    assert 0.4 <= c.gap / float(solution.problem.scale[0]) / gap <= 2.5


def test_few_samples_say_little_but_never_fail() -> None:
    instance = zoo.make("wireless")
    plain = solve(instance.problem, instance.simulator, samples=60_000, seed=0)
    for samples in (1, 30, 300):
        c = issue_certificate(plain, instance.simulator, samples=samples, seed=samples)
        assert c.value[0] <= c.value[1]
        assert c.gap is None and c.remarks[0].kind == "no-bound" and "more samples" in c.remarks[0].text


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


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_infeasibility_is_not_proved_by_features_that_are_wrong(share: float) -> None:
    """A threshold that some policy meets, features that cannot see it: the bound would refute what is true."""
    instance = zoo.make("random-linear", misspecification=share, seed=5)
    limit = instance.problem.constraints[0]
    close = dataclasses.replace(limit, threshold=limit.threshold + instance.known["zeta"] - 0.05)
    problem = dataclasses.replace(instance.problem, constraints=[close])
    solution = solve(problem, instance.simulator, samples=200_000, certificate=200_000, seed=0)
    assert not solution.certificate.infeasible
    if solution.mixture is None:
        assert solution.certificate.slack_bound is None and not solution.certificate.linearity.passed


def test_candidates_that_do_not_span_the_features_give_no_bound() -> None:
    """All is linear, but the design never saw the third action: what the bound cannot see must not be proved absent."""
    instance = zoo.make("random-linear", dim=6, actions=3, states=40)
    phi = np.zeros((40, 3, 12))
    inner = instance.problem.features.all(np.arange(40))
    phi[:, :2, :6], phi[:, 2, 6:] = inner[:, :2], inner[:, 2]
    states, actions = instance.problem.pairs()
    seen = actions < 2
    problem = dataclasses.replace(
        instance.problem, features=FeatureMatrix(phi), candidates=(states[seen], actions[seen])
    )
    solution = solve(problem, instance.simulator, samples=100_000, certificate=100_000, seed=0)
    from saddleback.exact import solve_exactly

    bound = solution.certificate.upper_bound
    assert bound is None or bound >= solve_exactly(instance.table).value


def test_no_discount_and_no_future() -> None:
    instance = zoo.make("garnet", gamma=0.0)
    solution = solve(instance.problem, instance.simulator, samples=20_000, certificate=20_000, seed=0)
    c = solution.certificate
    assert c.value[1] - c.value[0] <= 0.2 and c.gap is not None and c.gap <= 0.3


def test_rewards_that_are_only_observed() -> None:
    """Noise of the rewards is in the limits; a large offset does not spoil their variance."""
    instance = zoo.make("garnet", states=8, actions=2)
    table, offset = instance.table, 1e6
    means = np.stack([table.reward.ravel(), table.constraints[0].ravel()], axis=1)

    def sample(states: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        following = instance.simulator.sample(states, actions, rng).next_states
        coins = (rng.random((len(states), 2)) < means[states * 2 + actions]).astype(float)
        return following, coins + offset

    limit = instance.problem.constraints[0]
    H = instance.problem.horizon
    problem = dataclasses.replace(
        instance.problem,
        reward=None,
        reward_range=(offset, offset + 1),
        constraints=[Constraint("c1", None, ">=", limit.threshold + offset * H, (offset, offset + 1))],
    )
    model = GenerativeModel(sample, instance.simulator.states, num_signals=2)
    solution = solve(problem, model, samples=150_000, certificate=150_000, seed=0)
    c, truth = solution.certificate, mixture_values(table, solution.mixture) + offset * H
    assert c.value[0] <= truth[0] <= c.value[1] <= c.upper_bound
    assert c.constraints[0][0] <= truth[1] <= c.constraints[0][1]
    assert c.gap <= 0.25 * H


@pytest.mark.slow
def test_a_second_question_gets_fresh_samples() -> None:
    instance = zoo.make("garnet")
    first = solve(instance.problem, instance.simulator, samples=30_000, certificate=30_000, seed=0)
    limit = instance.problem.constraints[0]
    problem = dataclasses.replace(
        instance.problem, constraints=[dataclasses.replace(limit, threshold=limit.threshold - 0.1)]
    )
    second = solve(problem, instance.simulator, reuse=first, certificate=30_000)
    assert second.certificate.seed != first.certificate.seed
    assert len(set(second.certificate_seeds)) == 2
    with pytest.raises(InputError, match="used for a certificate"):
        issue_certificate(second, instance.simulator, samples=1000, seed=first.certificate.seed)


def test_a_proof_is_not_called_unpromised() -> None:
    solution = solved("wireless")
    assert "a-priori" not in solution.message and not any("a-priori" in r.text for r in solution.remarks)
