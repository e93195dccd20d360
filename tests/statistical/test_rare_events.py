"""Events that nobody may have seen: never called infeasible where they suffice, and proved where they cannot.

An ending is wrong with probability δ = .05 at most, and far less where the bound is wide: Chernoff's limit at a pair with four
pairs to share it fails once in 200. So "0 of 100" and "100 of 100" are what is seen with seeds 0 … 99, not a tail of chance.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest

from saddleback import solve
from saddleback.certificates.values.intervals import chernoff_upper
from saddleback.files.json_file import as_record
from saddleback.method.evaluators import LSTD
from saddleback.method.evaluators.rollouts import Measured
from saddleback.problem.policies import TabularPolicy
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields
from saddleback.runs.evidence_file import BoundArrays
from saddleback.runs.recheck import recheck
from saddleback.runs.settings import Method
from saddleback.solving.prepare import prepare
from statistical.rare_events import REACHABLE, endings, rare_events

REACHED, BEYOND = 0.5 * REACHABLE, 6 * REACHABLE


def check_endings(calls: int, runs: int) -> None:
    """Of a threshold that every policy meets, and of one that none can."""
    met, beyond = endings(REACHED, calls, runs), endings(BEYOND, calls, runs)
    print(f"{calls:,} + {calls:,} calls, seeds 0 to {runs - 1}: {dict(met)} where it is met, {dict(beyond)} where not")
    assert met["infeasible"] == 0 and met["refuted"] == 0
    assert beyond["solved"] == 0
    if calls >= 20_000:
        assert beyond["infeasible"] == runs


@pytest.mark.parametrize(("calls", "runs"), [(1_000, 2), (20_000, 1)])
def test_what_nobody_saw_is_not_infeasible(calls: int, runs: int) -> None:
    check_endings(calls, runs)


@pytest.mark.slow
@pytest.mark.parametrize("calls", [1_000, 4_000, 20_000])
def test_what_nobody_saw_is_not_infeasible_with_more_seeds(calls: int) -> None:
    check_endings(calls, 10)


@pytest.mark.study
@pytest.mark.parametrize("calls", [1_000, 4_000, 20_000])
def test_what_nobody_saw_is_not_infeasible_in_full(calls: int) -> None:
    check_endings(calls, 100)


def test_a_standard_error_is_not_zero_because_nothing_was_seen() -> None:
    """Seeds 0 to 19: where no event was seen at all, the measured limits still reach what is true."""
    problem, simulator = rare_events(REACHED)
    unseen = 0
    for seed in range(20):
        parts = prepare(problem, simulator, 400, seed, Method())
        buffer = parts.evaluation_buffer
        assert np.all(buffer.signal_noise(problem)[:, 1] ** 2 >= (0.5 - 1e-9) / buffer.counts)
        assert np.all(buffer.signal_noise(problem)[:, 0] == 0), "what is known has no noise"
        limits = LSTD().interval(parts.problem, buffer, TabularPolicy.deterministic(np.array([0, 1]), 2), 0.95)
        if not np.any(buffer.utilities(problem)[:, 1]):
            unseen += 1
            assert limits.low[1] == 0.0 and limits.high[1] >= REACHABLE
    assert unseen >= 5


def test_rollouts_that_saw_nothing_are_uncertain_too() -> None:
    problem, simulator = rare_events(REACHED)
    parts = prepare(problem, simulator, 4_000, 0, Method(evaluator="rollouts", resolution=2))
    policy, values = parts.oracle(np.array([0.0, 1.0]))
    assert values[1] == 0.0, "no event was seen"
    assert isinstance(parts.evaluator, Measured)
    played = parts.evaluator.played[policy.key()]
    assert played.error[1] == pytest.approx(np.sqrt(0.5) / played.num_rollouts)


def test_the_proof_of_infeasibility_is_found_again_and_a_forged_one_is_not() -> None:
    problem, simulator = rare_events(BEYOND)
    method = Method(certificate=20_000)
    answer = solve(problem, simulator, samples=40_000, seed=0, method=method)
    proof = answer.certificate
    assert proof is not None and proof.infeasible
    fields, arrays = certificate_fields(proof, problem), BoundArrays(**proof.arrays["bound"])

    def wrong(**changes: float) -> list[str]:
        told = copy.deepcopy(fields)
        told["evidence"]["bound"] |= changes
        if changes:
            told["slack_bound"] = told["evidence"]["bound"]["value"] - float(problem.thresholds[0])
        record = as_record(told, CertificateRecord, "certificate.json", "look again")
        return [c.name for c in recheck(record, None, bound=arrays, problem=problem) if not c.passed]

    value = fields["evidence"]["bound"]["value"]
    assert wrong() == [] and wrong(value=value + 1e-3) == []
    assert wrong(value=value - 1e-3) == ["bound over all policies"]


def test_chernoff_is_exact_where_nothing_was_seen_and_symmetric() -> None:
    """(1 − μ)^n = e^{−L} by hand; the mean itself at L = 0; 1 at most; and Bernoulli tails within it."""
    n, L = np.array([10, 1_000, 100_000]), 5.0
    np.testing.assert_allclose(chernoff_upper(np.zeros(3), n, L), -np.expm1(-L / n), rtol=1e-9)
    np.testing.assert_allclose(chernoff_upper(np.full(3, 0.25), n, 0.0), 0.25, atol=1e-9)
    np.testing.assert_array_equal(chernoff_upper(np.ones(3), n, L), 1.0)
    # The chance to see 3 of 1,000 or fewer at the limit is at most e^{−5}: the binomial sum, by hand.
    mu = float(chernoff_upper(np.array([0.003]), np.array([1_000]), L)[0])
    tail, term = 0.0, (1 - mu) ** 1_000
    for k in range(4):
        tail, term = tail + term, term * (1_000 - k) / (k + 1) * mu / (1 - mu)
    assert 0.05 * np.exp(-L) < tail <= np.exp(-L)
