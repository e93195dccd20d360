"""What assumes linearity is never called proved, and says which misfit it withstands: a keyhole, and a law that is 3 % off.

A keyhole 0.01 wide makes the bound over all policies false by a factor of two while every test of linearity passes. Nothing can be done about
that but to say it: nothing false may stand under "proved", in the text, in the JSON, on the page or in a status.
"""

from __future__ import annotations

import dataclasses
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from certificates.keyhole import always_right, keyhole, step
from helpers import random_table
from saddleback import Solution, Status, UnmetError, frontier, report, solve, zoo
from saddleback.certificates.assumptions import Assumptions, rests_on
from saddleback.certificates.bounds.noise_forms import Sampled, Space
from saddleback.certificates.linearity.misfit import GRID, POWER, detectable, withstood
from saddleback.exact import mixture_values, solve_exactly
from saddleback.files.json_file import as_record
from saddleback.reports.text import frontier_json
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields, with_its_place
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import load_run
from saddleback.runs.verdict import Reason

KEYHOLE_SEEDS = 0, 1
"""Fixed beforehand; on both all tests of linearity pass, as they do on nearly all: the hole is met by one pair in a hundred."""


@cache
def through_the_hole(seed: int) -> Solution:
    return solve(keyhole(), step, samples=400_000, seed=seed, feasibility="relaxed")


@cache
def slightly_off(seed: int, samples: int = 70_000) -> Solution:
    """P = .97·linear + .03·Dirichlet, γ = .9."""
    off = zoo.make("random-linear", misspecification=0.03)
    return solve(off.problem, off.simulator, samples=samples, seed=seed, feasibility="relaxed")


def proved_part(text: str) -> str:
    """Of what is printed: all that stands before the heading of what is assumed."""
    return text[: text.index("(assumed, not")]


# ---- what is printed ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", KEYHOLE_SEEDS)
def test_nothing_false_is_proved_of_a_keyhole(seed: int) -> None:
    found = through_the_hole(seed)
    proof = found.certificate
    assert proof is not None and proof.linear is not None and proof.linearity is not None and proof.value is not None
    assert proof.linearity.passed, "the tests do not see it"
    assert proof.linear.upper_bound is not None and proof.linear.gap is not None
    assert proof.linear.upper_bound < always_right() - 5, "so that the bound is false, by far"
    assert proof.upper_bound is None and proof.gap is None, "and is not among what is proved"
    assert proof.value[0] <= 2.8 <= proof.value[1], "staying is worth 0.14 for 20 steps"
    text = " ".join(str(found).split())
    assert "If P is linear in the features and the candidate pairs stand for all pairs (assumed, not proved)" in text
    bound = f"at most {proof.linear.upper_bound:.4g}"
    assert bound in text and bound not in proved_part(text)
    assert "what this policy loses" not in proved_part(text)
    told = json.loads(json.dumps(found.to_json()))["certificate"]
    assert told["upper_bound"] is None and told["gap"] is None
    assert told["linear"]["upper_bound"] == proof.linear.upper_bound and told["linear"]["on_candidates"]


@pytest.mark.slow
def test_the_line_on_a_keyhole_warns() -> None:
    """The misfit is 1 in the hole; the bound withstands next to nothing, and the test, where it tries, would not see that little."""
    proof = through_the_hole(KEYHOLE_SEEDS[0]).certificate
    assert (
        proof is not None
        and proof.linear is not None
        and proof.linear.withstands is not None
        and proof.linearity is not None
    )
    each, seen = proof.linear.withstands, proof.linearity.detectable
    assert each.upper_bound is not None and seen is not None and 0 < each.upper_bound < seen < 1
    text = " ".join(str(through_the_hole(KEYHOLE_SEEDS[0])).split())
    assert f"notice ε = {seen:.4g} or more (nine times in ten) at the pairs that they try." in text
    assert f"{each.upper_bound:.2g}" in text


@pytest.mark.slow
def test_the_page_of_a_keyhole(tmp_path: Path) -> None:
    found = solve(keyhole(), step, samples=400_000, seed=0, feasibility="relaxed", out=tmp_path / "run")
    assert found.certificate is not None and found.certificate.linear is not None
    page = report(tmp_path / "run", tmp_path / "page.html")
    text = re.sub(r"<[^>]+>", " ", Path(page).read_text())
    shown = f"{found.certificate.linear.upper_bound:.4g}"
    proved = text[text.index("What is proved") : text.index("(assumed, not proved)", text.index("What is proved"))]
    assert shown in text and shown not in proved
    for sentence in re.split(r"(?<=[.])\s", " ".join(text.split())):
        assert not (shown in sentence and "proved" in sentence.replace("assumed, not proved", "")), sentence


@pytest.mark.slow
def test_a_law_that_is_slightly_off() -> None:
    """What is false of it is said under its heading, and withstands less than the 3 % that are there; what is proved is true."""
    off = zoo.make("random-linear", misspecification=0.03)
    table = off.table
    assert table is not None
    best, false = solve_exactly(table).value, 0
    for seed in (7, 8):
        found = slightly_off(seed, 300_000)
        proof, mixture = found.certificate, found.mixture
        assert proof is not None and mixture is not None and proof.linear is not None and proof.value is not None
        given, each = proof.linear, proof.linear.withstands
        assert each is not None and given.value is not None and proof.linearity is not None and proof.linearity.passed
        truth = off.problem.values_of(mixture_values(table, mixture))
        assert all(low <= x <= high for x, (low, high) in zip(truth, [proof.value, *proof.constraints], strict=True))
        assert proof.upper_bound is None and proof.gap is None
        rows = zip(truth, [given.value, *given.constraints], [each.value, *each.constraints], strict=True)
        stated = [(not low <= x <= high, e) for x, (low, high), e in rows]
        assert given.upper_bound is not None and given.gap is not None
        stated += [(given.upper_bound < best, each.upper_bound), (given.gap < best - truth[0], each.gap)]
        for wrong, withstands in stated:
            assert withstands is not None and (not wrong or withstands < 0.03)
            false += wrong
    print(f"seeds 7 and 8, 300,000 calls: {false} of 8 statements are false, all said to withstand less than .03")
    assert false > 0, "else this says nothing"


@pytest.mark.slow
def test_more_samples_see_more() -> None:
    few, many = (slightly_off(0, n).certificate for n in (30_000, 70_000))
    assert few is not None and many is not None and few.linearity is not None and many.linearity is not None
    assert few.linearity.detectable is not None and many.linearity.detectable is not None
    assert many.linearity.detectable < few.linearity.detectable


# ---- the misfit itself -------------------------------------------------------------------------------------------------


def test_the_largest_that_holds_is_found() -> None:
    for limit in (2.0, 1.0, 0.99, 0.03, 1e-6, 5e-7):
        tried = withstood(lambda e, limit=limit: e <= limit)
        assert tried == max([x for x in GRID if x <= limit], default=0.0)
    assert list(GRID) == sorted(GRID, reverse=True) and GRID[0] == 1 and GRID[-1] == 1e-6


def bent_table(epsilon: float, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray, Space]:
    """P that is ε away from linear at most, its features, a policy, and the space with a coreset of all pairs but some."""
    table = random_table(seed, S=12, A=3, d=3)
    assert table.phi is not None
    rng = np.random.default_rng(seed)
    linear = table.P.toarray()
    P = (1 - epsilon) * linear + epsilon * rng.dirichlet(np.full(12, 0.2), size=36)
    phi, chosen = table.phi.reshape(36, -1), rng.permutation(36)[:8]
    B = np.linalg.pinv(phi[chosen])
    space = Space(phi, B, table.gamma, np.full(12, 1 / 12), misfit=epsilon)
    assert np.allclose(phi @ B @ phi[chosen], phi)
    return P, P[chosen], rng.random(36), space


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5])
def test_what_is_carried_is_off_by_no_more(epsilon: float) -> None:
    """(1) of the module, for many functions; and with a fifth of it the limit is passed, so that it is not idle."""
    P, at_coreset, _, space = bent_table(epsilon)
    rng = np.random.default_rng(1)
    assert space.off is not None
    worst = 0.0
    for _ in range(2000):
        f = rng.integers(0, 2, 12).astype(float)
        worst = max(worst, float((np.abs(P @ f - space.carry(at_coreset @ f)) / space.off).max()) / max(np.ptp(f), 1))
    assert 0.1 < worst <= 1


@pytest.mark.parametrize("epsilon", [0.02, 0.2])
def test_values_and_advantages_are_off_by_no_more(epsilon: float) -> None:
    """With exact means at the coreset all that is left of the errors is the bias, which has its limits."""
    from saddleback.certificates.bounds.bias import Bias
    from saddleback.certificates.bounds.noise_forms import Chain, centred

    P, at_coreset, signal, space = bent_table(epsilon)
    policy = np.eye(3)[np.random.default_rng(2).integers(0, 3, 12)]
    chain = Chain(space, Sampled(at_coreset, np.full(8, 100.0)), policy)
    bias = Bias(space.gamma, space.off, policy, at_coreset)
    V_hat, Q_hat = chain.values(signal)
    P_pi, u = (policy[:, :, None] * P.reshape(12, 3, 12)).sum(axis=1), (policy * signal.reshape(12, 3)).sum(axis=1)
    V = np.linalg.solve(np.eye(12) - space.gamma * P_pi, u)
    A, A_hat = signal + space.gamma * P @ V - np.repeat(V, 3), Q_hat - np.repeat(V_hat, 3)
    span = float(np.ptp(V))
    off = np.abs(centred(V) - centred(V_hat)) / (span * bias.of_states(chain.state_rows))
    assert 0.001 < off.max() <= 1
    assert abs(space.start @ (V - V_hat)) <= span * bias.at_start(space.start, chain.start_row)
    assert np.all(np.abs(A - A_hat) <= span * bias.of_advantages(chain.advantage_rows) + 1e-12)


def test_what_the_test_would_see() -> None:
    """At the stated ε at least nine in ten are refuted: 2,000 tests of a coin, false alarm below 1e-6; a tenth of ε is not seen."""
    A, n, L = np.array([[1.0, -0.6, -0.4]]), 400, 9.0
    seen, rng = detectable(A, n, L), np.random.default_rng(3)
    assert 0 < seen < 1 and detectable(A, 4 * n, L) < seen

    def refuted(epsilon: float) -> int:
        from saddleback.certificates.values.intervals import deviation_limit

        shares = rng.binomial(n, [0.5 + epsilon, 0.5, 0.5], size=(2000, 3)) / n
        variance = (A**2 * shares * (1 - shares)).sum(axis=1) / (n - 1)
        limit = deviation_limit(variance, float(np.abs(A).max()) / (n - 1), L)
        return int((np.abs(shares @ A[0]) > limit).sum())

    assert refuted(seen) >= POWER * 2000
    assert refuted(seen / 10) < 0.1 * 2000


# ---- statuses and files ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_accuracy_under_linearity_is_not_proved() -> None:
    linear = zoo.make("random-linear")
    found = solve(linear.problem, linear.simulator, epsilon=0.5, seed=0)
    assert found.status is Status.SOLVED and found.verdict.reason is Reason.ACCURACY_IF_LINEAR
    assert "if P is linear in the features" in found.message and "which is not proved" in found.message
    assert "every constraint is proved to hold" in found.message, "which needs no linearity"
    assert found.require("solved") is found
    with pytest.raises(UnmetError, match="the accuracy is not proved"):
        found.require("proved")


@pytest.mark.slow
def test_infeasibility_under_linearity_is_undecided() -> None:
    linear = zoo.make("random-linear")
    c = linear.problem.constraints[0]
    best = 9.9 * (1 if c.sense == ">=" else 0.001)
    hard = dataclasses.replace(linear.problem, constraints=[dataclasses.replace(c, threshold=best)])
    found = solve(hard, linear.simulator, samples=100_000, seed=0)
    proof = found.certificate
    assert found.mixture is None and proof is not None and proof.linear is not None
    assert proof.linear.infeasible and not proof.infeasible and proof.slack_bound is None
    assert found.status is Status.UNDECIDED and found.status.exit_code == 4
    assert found.verdict.reason is Reason.NO_POLICY_IF_LINEAR and "which is proved" not in found.message
    assert "infeasible" not in found.to_json()["certificate"]  # type: ignore[operator]
    assert "If P is linear in the features (assumed, not proved), no policy meets the constraints" in " ".join(
        str(found).split()
    )
    assert proof.linear.withstands is not None and proof.linear.withstands.slack_bound is not None


@pytest.mark.slow
def test_a_stored_run_is_checked_again(tmp_path: Path) -> None:
    linear = zoo.make("random-linear", misspecification=0.03)
    found = solve(linear.problem, linear.simulator, samples=70_000, seed=0, feasibility="relaxed", out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    outcomes = {c.name: c.word for c in recheck_run(run, None)}
    assert "DISAGREES" not in outcomes.values() and outcomes["misfit withstood"] == "agrees"
    assert (
        found.certificate is not None
        and run.certificate is not None
        and run.certificate.linear == found.certificate.linear
    )


def test_a_record_of_before_is_put_in_its_place() -> None:
    """Where the bound stood among what is proved; a bound without linearity stays."""
    proof = slightly_off(0).certificate
    problem = zoo.make("random-linear", misspecification=0.03).problem
    assert proof is not None and proof.linear is not None
    fields = certificate_fields(proof, problem)
    told = {"upper_bound": proof.linear.upper_bound, "gap": proof.linear.gap}
    kept = {k: v for k, v in fields["linear"].items() if k in ("value", "constraints", "assumes")}
    old = as_record(fields | told | {"linear": kept}, CertificateRecord, "here", "again")
    new = with_its_place(old)
    assert new.upper_bound is None and new.gap is None and new.linear is not None
    assert (new.linear.upper_bound, new.linear.gap) == (proof.linear.upper_bound, proof.linear.gap)
    assert new.linear.withstands is None
    assert with_its_place(new) is new


def test_what_a_statement_rests_on() -> None:
    assert not rests_on("transition probabilities linear in the features", "linear"), "words are not looked through"
    assert not rests_on(Assumptions(), "linear")


@pytest.mark.slow
def test_a_band_under_linearity() -> None:
    linear = zoo.make("random-linear")
    found = solve(linear.problem, linear.simulator, samples=20_000, seed=0, feasibility="relaxed")
    curve = frontier(found, num_points=4).certified(linear.simulator, samples=60_000, seed=1)
    told = frontier_json(curve)
    assert told["band"]["if_linear"] and all(p["high"] is None for p in told["points"])
    assert all(p["if_linear"]["high"] is not None for p in told["points"])
