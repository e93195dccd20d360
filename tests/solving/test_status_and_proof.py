"""A status says what is proved, no more and no less, wherever it is read; and nothing is proved twice with one seed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import saddleback
from certificates.test_known_limits import toll
from cli.command_line import quietly
from helpers import random_table
from saddleback import InputError, Method, Solution, Table, frontier, issue_certificate, save_table, solve, zoo
from saddleback.certificates.bounds import Bound
from saddleback.certificates.certificate import ROUNDING, Certificate, verdict
from saddleback.exact import solve_exactly
from saddleback.instances.zoo import BY_NAME as ZOO
from saddleback.method.slater import Slater
from saddleback.problem.cmdp import Start
from saddleback.runs.verdict import Reason, Safest, Status, Verdict
from saddleback.runs.words import sentence
from saddleback.solving.prepare import prepare_from
from saddleback.solving.prepared import parts_of
from saddleback.solving.solution import forecast_times, out_of_reach, presented, proof_times
from saddleback.solving.strict import with_certificate
from sampling.streamed_runs import fill, square

# ---- refuted, and proved ---------------------------------------------------------------------------------------------


def misjudged() -> Table:
    """Two states that the features do not tell apart: the good one, which is left at once, is taken for all there is."""
    P = np.tile([0.05, 0.95], (2, 2, 1))
    good = np.array([[1.0, 0.8], [0.0, 0.0]])
    rewards = np.array([[0.0, 1.0], [0.0, 1.0]])
    phi = np.tile(np.eye(2), (2, 1, 1))
    return Table.of(
        P, rewards, [good], [5.0], gamma=0.9, rho=[1.0, 0.0], phi=phi, ranges=[(0.0, 1.0)], names=["quality"]
    )


def test_a_policy_that_its_certificate_refutes_is_refuted_wherever_it_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In Python, in JSON, on the screen, in the run folder, in its log, and on the report page; the exit code is 6."""
    table = misjudged()
    save_table(table, tmp_path / "misjudged.npz")
    events: list[dict[str, Any]] = []
    found = solve(table.problem(), table.simulator(), samples=20_000, callbacks=[events.append])
    assert found.certificate is not None and found.certificate.feasible == "refuted"
    assert found.status is Status.REFUTED and found.status.exit_code == 6
    assert "refutes this policy: 'quality' is missed by" in found.message
    assert events[-1]["status"] == "refuted" and ": refuted. Its own certificate" in str(found)
    run, page = tmp_path / "run", tmp_path / "page.html"
    capsys.readouterr()
    options = ["--samples", 20_000, "--out", run, "--json"]
    assert quietly("solve", tmp_path / "misjudged.npz", *options) == 6
    printed = json.loads(capsys.readouterr().out)
    assert (printed["status"], printed["reason"]) == ("refuted", "refuted")
    stored = json.loads((run / "solution.json").read_text())
    assert stored["status"] == json.loads((run / "run.json").read_text())["status"] == "refuted"
    log = [json.loads(line) for line in (run / "trace.jsonl").read_text().splitlines()]
    assert log[-1]["status"] == "refuted"
    assert quietly("report", run, "--out", page) == 0
    text = page.read_text()
    assert "refuted" in text and "proved to be missed" in text
    assert quietly("certify", run, "--recheck") == 0
    with pytest.raises(saddleback.UnmetError, match="refuted"):
        found.require("solved")


@pytest.fixture(scope="module")
def loose() -> Solution:
    """A relaxed answer whose constraint is far from binding, with its proof."""
    table = dataclasses.replace(random_table(1), thresholds=np.array([0.5]))
    return solve(table.problem(), table.simulator(), samples=20_000, feasibility="relaxed")


def test_what_is_proved_is_said_to_be(loose: Solution) -> None:
    assert loose.status is Status.SOLVED and loose.verdict.reason is Reason.HOLDS_PROVED
    assert loose.message == "every constraint is proved to hold"


@pytest.mark.parametrize(
    ("reason", "status", "feasible", "becomes"),
    [
        (Reason.FEASIBILITY_OPEN, Status.UNDECIDED, "certified", Status.SOLVED),
        (Reason.NO_FEASIBLE_MIXTURE, Status.UNDECIDED, "certified", Status.SOLVED),
        (Reason.FEATURES_CANNOT_TELL, Status.UNDECIDED, "certified", Status.SOLVED),
        (Reason.MULTIPLIER_AT_CAP, Status.UNDECIDED, "certified", Status.UNDECIDED),
        (Reason.DUAL_GAP_OPEN, Status.BUDGET_EXHAUSTED, "certified", Status.BUDGET_EXHAUSTED),
        (Reason.FEASIBILITY_OPEN, Status.UNDECIDED, "undecided", Status.UNDECIDED),
        (Reason.FEASIBILITY_OPEN, Status.UNDECIDED, "refuted", Status.REFUTED),
        (Reason.STILL_MISSED, Status.BUDGET_EXHAUSTED, "refuted", Status.REFUTED),
        (Reason.HOLDS_BY_ESTIMATES, Status.SOLVED, "refuted", Status.REFUTED),
        (Reason.HOLDS_BY_ESTIMATES, Status.SOLVED, "undecided", Status.SOLVED),
    ],
)
def test_a_proof_settles_what_it_shows_and_nothing_else(
    loose: Solution, reason: Reason, status: Status, feasible: Any, becomes: Status
) -> None:
    assert loose.certificate is not None
    before = dataclasses.replace(
        loose, verdict=Verdict(status, reason, constraint="c", cap=1.0, iterations=3), certificate=None
    )
    proof = dataclasses.replace(loose.certificate, feasible=feasible)
    after = with_certificate(before, proof)
    assert after.status is becomes and after.message
    if becomes is Status.REFUTED and status is not Status.SOLVED:
        assert sentence(before.verdict) in after.message, "what to do about it is still said"
    allowed = dataclasses.replace(proof, allowance=(0.1,))
    if feasible == "certified":
        assert with_certificate(before, allowed).status is status, "what holds up to an allowance is not proved to hold"


# ---- the safest policy -----------------------------------------------------------------------------------------------


def test_a_strict_answer_that_earns_no_more_than_the_safest_policy_says_so() -> None:
    problem, simulator = toll()
    answer = solve(problem, simulator, samples=4_000, feasibility="strict")
    assert answer.status is Status.SOLVED and answer.verdict.safest is not None and answer.verdict.safest.no_better
    said = "every constraint is proved to hold, but the reward, 4, is no better than the 4 of the safest policy found, and 20"
    assert answer.message.startswith(said) and answer.to_json()["message"] == answer.message
    relaxed = solve(problem, simulator, samples=4_000, feasibility="relaxed")
    assert relaxed.verdict.safest is None, "that is what strict is asked for"


def test_one_that_earns_more_does_not() -> None:
    table = random_table(1)
    answer = solve(table.problem(), table.simulator(), samples=60_000, feasibility="strict")
    assert answer.status is Status.SOLVED and answer.verdict.safest is None


def test_hardly_better_and_the_best_there_is() -> None:
    proved = Verdict(Status.SOLVED, Reason.HOLDS_PROVED)
    hardly = sentence(dataclasses.replace(proved, safest=Safest(1.004, 1.0, 2.0, False, False)))
    assert "1.004, is hardly better than the 1 of the safest policy found, and 2 is the best" in hardly
    best = sentence(dataclasses.replace(proved, safest=Safest(1.0, 1.0, 1.0, True, True)))
    assert best.endswith("by a policy whose reward, 1, is also the best found")


# ---- forecasts -------------------------------------------------------------------------------------------------------


def slater_of(estimate: float, width: float) -> Slater:
    room = np.array([estimate])
    return Slater(estimate, estimate - width, estimate + width, room, room, None, np.ones(1))  # type: ignore[arg-type]


def test_a_forecast_is_a_range_or_none() -> None:
    """ζ̂ = 1.5 standard errors: (1.96/2.5)² to (1.96/.5)² times; at one standard error and below nothing can be foreseen."""
    assert forecast_times(slater_of(1.5, 1.959964), 0.95) == (1.5, pytest.approx((1.959964 / 0.5) ** 2, rel=1e-5))
    assert forecast_times(slater_of(-1.5, 1.959964), 0.95) == forecast_times(slater_of(1.5, 1.959964), 0.95)
    for estimate in (0.0, 1e-9, 0.5, 1.0, 1.2):
        assert forecast_times(slater_of(estimate, 1.959964), 0.95) is None
    open_ = Verdict(Status.UNDECIDED, Reason.FEASIBILITY_OPEN, times=(1.5, 15.4))
    assert "by a forecast from these, 1.5 to 15 times as many samples should settle it" in sentence(open_)
    assert "cannot be foreseen from these" in sentence(dataclasses.replace(open_, times=None))


@pytest.mark.slow
def test_forecasts_of_growing_runs_do_not_run_away() -> None:
    """A threshold at the very edge of what can be reached: no number of samples settles it, and none is named (seeds 0 to 5)."""
    table = random_table(1)
    edge = solve_exactly(dataclasses.replace(table, thresholds=np.array([4.9]))).max_slack + 4.9
    problem = dataclasses.replace(table, thresholds=np.array([edge])).problem()
    told = []
    for seed in range(6):
        for samples in (2_000, 16_000):
            answer = solve(problem, table.simulator(), samples=samples, seed=seed, method=Method(certificate=0))
            if answer.verdict.reason is Reason.FEASIBILITY_OPEN and answer.verdict.times is not None:
                told.append(answer.verdict.times)
    print(f"{len(told)} forecasts of 12: {told}")
    assert all(high <= 100 * max(low, 1.5) for low, high in told)
    assert len(told) <= 6, "chance makes an estimate of 1.2 standard errors or more in 23 of 100 runs"


def test_what_would_prove_infeasibility_is_foreseen_on_tables() -> None:
    """By hand: the bound is .3 above the estimate, .1 of which would have to go: 3 times to 9 times as many."""
    table = dataclasses.replace(random_table(1), thresholds=np.array([4.2]))
    answer = solve(table.problem(), table.simulator(), samples=4_000, seed=0)
    assert answer.prepared is not None and answer.certificate is not None
    assert answer.verdict.reason is Reason.PROBABLY_NO_POLICY and answer.status is Status.UNDECIDED
    proof, design = answer.certificate, answer.prepared.design
    bound = proof.evidence.bound
    assert bound is not None and proof.slack_bound is not None
    by_hand = type(bound)(bound.kind, bound.sigma, 1.3, 1.0, bound.delta, bound.samples, bound.thresholds)
    evidence = type(proof.evidence)(bound=by_hand)
    shown = dataclasses.replace(proof, slack_bound=0.2, evidence=evidence)
    assert proof_times(shown, design) == (pytest.approx(3.0), pytest.approx(9.0))
    assert proof_times(dataclasses.replace(shown, slack_bound=0.28), design) is None, "too little to tell from chance"
    assert proof_times(dataclasses.replace(shown, slack_bound=0.4), design) is None, (
        "the samples suggest that one is feasible"
    )
    times = answer.verdict.times
    assert (
        times is not None
        and f"{times[0]:.2g} to {times[1]:.2g} times as many samples should settle it" in answer.message
    )
    more = solve(table.problem(), table.simulator(), samples=math.ceil(2 * times[1] * 4_000), seed=1)
    assert more.status is Status.INFEASIBLE


# ---- estimates -------------------------------------------------------------------------------------------------------


def inside(answer: Solution) -> bool:
    """Whether every estimate lies within its proved limits; and where none was replaced, the members make up the answer."""
    proof = answer.certificate
    if answer.value is None or proof is None or proof.value is None:
        return True
    told, limits = [answer.value, *(c.value for c in answer.constraints)], [proof.value, *proof.constraints]
    sums = [sum(m.weight * m.value for m in answer.members)]
    sums += [sum(m.weight * m.constraints[i] for m in answer.members) for i in range(len(answer.constraints))]
    near = 1e-8 * answer.problem.horizon * np.abs(answer.problem.scale)
    within = all(a - r <= x <= b + r for x, (a, b), r in zip(told, limits, near, strict=True))
    off = [not a - r <= y <= b + r for y, (a, b), r in zip(sums, limits, near, strict=True)]
    assert sum(r.kind == "estimate-replaced" for r in answer.remarks) == sum(off)
    rows = zip(told, sums, near, off, strict=True)
    return within and all(replaced or abs(x - y) <= r for x, y, r, replaced in rows)


def test_an_estimate_outside_its_proved_limits_is_replaced(loose: Solution) -> None:
    """Above and below; the members stay as the solve has estimated them, and the remark says so; what is inside stays."""
    assert loose.value is not None and loose.certificate is not None and loose.certificate.value is not None
    assert inside(loose) and presented(loose) == loose
    low, high = loose.certificate.value
    for limits, mean in (((high + 0.1, high + 0.3), high + 0.2), ((low - 0.3, low - 0.1), low - 0.2)):
        rollouts = loose.certificate.evidence.rollouts
        assert rollouts is not None
        moved = saddleback.certificates.certificate.RolloutEvidence(  # type: ignore[attr-defined]
            **{name: getattr(rollouts, name) for name in rollouts.__struct_fields__}
            | {"mean": (mean, rollouts.mean[1])}
        )
        evidence = type(loose.certificate.evidence)(rollouts=moved)
        proof = dataclasses.replace(loose.certificate, value=limits, evidence=evidence)
        shown = presented(dataclasses.replace(loose, certificate=proof))
        assert shown.value == pytest.approx(mean) and inside(shown) and shown.constraints == loose.constraints
        assert shown.members == loose.members
        texts = [r.text for r in shown.remarks if r.kind == "estimate-replaced"]
        assert len(texts) == 1 and f"the solve's estimate of reward, {loose.value:.6g}, lies outside" in texts[0]
        assert "those of the single policies are still the solve's" in texts[0]


def test_estimates_that_the_proof_disowns_make_nothing_solved() -> None:
    """By the features the constraint holds; by the proof's own estimate it does not, and that is open at 3,000 calls."""
    table = dataclasses.replace(misjudged(), thresholds=np.array([2.0]))
    answer = solve(table.problem(), table.simulator(), samples=6_000, feasibility="relaxed")
    proof = answer.certificate
    assert proof is not None and inside(answer)
    assert any(r.kind == "estimate-replaced" for r in answer.remarks)
    assert proof.feasible == "undecided" and answer.status is Status.UNDECIDED
    assert answer.verdict.reason is Reason.ESTIMATES_OFF
    assert "by the estimate of the proof itself 'quality' is missed by" in answer.message


def test_a_replaced_estimate_is_told_in_the_unit_of_its_constraint() -> None:
    """In the remark, in the verdict, and in the row, whose limits are in both units."""
    table = dataclasses.replace(misjudged(), thresholds=np.array([2.0]), units=("per-step",))
    answer = solve(table.problem(), table.simulator(), samples=6_000, feasibility="relaxed")
    proof, (row,) = answer.certificate, answer.constraints
    assert proof is not None and answer.verdict.reason is Reason.ESTIMATES_OFF and row.in_units is not None
    assert (row.low, row.high) == proof.constraints[0]
    assert (row.in_units.low, row.in_units.high) == pytest.approx([x / 10 for x in proof.constraints[0]])
    assert f"is missed by {-row.slack / 10:.4g} per step, which is not proved" in answer.message
    (text,) = (r.text for r in answer.remarks if r.kind == "estimate-replaced" and "'quality'" in r.text)
    low, high = proof.constraints[0]
    assert f"lies outside its proved limits, {low / 10:.6g} to {high / 10:.6g} per step" in text
    assert f"that of the proof, {row.value / 10:.6g} per step, is shown" in text


def test_a_strict_answer_without_a_certificate_is_not_said_to_hold() -> None:
    table = dataclasses.replace(random_table(1), thresholds=np.array([1.0]))
    answer = solve(table.problem(), table.simulator(), samples=20_000, method=Method(certificate=0))
    assert answer.status is Status.SOLVED and answer.verdict.reason is Reason.HOLDS_BY_LIMITS
    assert answer.message.startswith("every constraint should hold by its measured limits, which is not proved")


def test_reach_room_and_verdict_round_alike() -> None:
    """A threshold beyond H by less than rounding is within reach, and a bound that is as little below zero refutes nothing."""
    table = random_table(1)
    H, slack = table.problem().horizon, ROUNDING * table.problem().horizon
    for beyond, reached in ((0.5 * slack, True), (2 * slack, False)):
        problem = dataclasses.replace(table, thresholds=np.array([H + beyond])).problem()
        assert (out_of_reach(problem) is None) == reached
        b = problem.thresholds
        assert (verdict(problem, np.array([H]), np.array([H]), 0.0) == "certified") == reached
        bound = Bound(np.array([0.0, 1.0]), float(b[0]) - beyond, 0.0, "all pairs", 0.05, 1)
        certificate = Certificate(0.95, 1, 0, slack_bound=bound.on_slack(problem))
        assert certificate.infeasible != reached


SMALL: dict[str, dict[str, Any]] = {"queue-network": {"capacity": 6, "knots": 4}}
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, SMALL.get(name, {})) for name in ZOO),
    ("mountain-car", {"knots": 6, "speeds": 5}),
    ("mountain-car", {"spread": 0.1}),
    ("pendulum", {"knots": 5}),
    ("pendulum", {"budget": 0.5, "knots": 7}),
    ("linear-quadratic", {"gamma": 0.99}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_no_estimate_of_the_zoo_lies_outside_its_proved_limits(name: str, parameters: dict[str, Any]) -> None:
    instance = zoo.make(name, **parameters)
    answer = solve(instance.problem, instance.simulator, samples=40_000, seed=3)
    assert inside(answer)
    replaced = [r.text for r in answer.remarks if r.kind == "estimate-replaced"]
    print(f"{name} {parameters}: {answer.status.value}; {'; '.join(replaced) or 'nothing replaced'}")


# ---- seeds -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_seed_proves_one_thing(loose: Solution) -> None:
    """Through `reuse`, a frontier's band, certificates by hand and strict attempts: one register for the same samples."""
    problem = loose.problem
    table = dataclasses.replace(random_table(1), thresholds=np.array([0.5]))
    simulator, limit = table.simulator(), problem.constraints[0]

    def asking(threshold: float, feasibility: Any = "relaxed") -> Solution:
        other = dataclasses.replace(problem, constraints=[dataclasses.replace(limit, threshold=threshold)])
        return solve(other, simulator, samples=10_000, reuse=loose, feasibility=feasibility)

    assert loose.prepared is not None
    first = set(loose.prepared.used_seeds)
    second, third = asking(2.0), asking(2.1)
    strict = asking(2.2, feasibility="strict")
    seeds = [x.certificate.seed for x in (loose, second, third, strict) if x.certificate is not None]
    assert len(set(seeds)) == 4 and len(strict.certificate_seeds) > len(first)
    used = set(loose.prepared.used_seeds)
    for answer in (second, third, strict):
        assert answer.prepared is not None and answer.prepared.used_seeds is loose.prepared.used_seeds
    assert set(seeds) <= used and len(used) >= 4
    curve = frontier(second, num_points=3)
    for seed in sorted(used):
        with pytest.raises(InputError, match=r"`?seed`? must not have been used for a certificate of these samples"):
            curve.certified(simulator, samples=4_000, seed=seed)
    band = curve.certified(simulator, samples=20_000, seed=77)
    assert band.band is not None and 77 in loose.prepared.used_seeds
    with pytest.raises(InputError, match="used for a certificate"):
        issue_certificate(third, simulator, samples=4_000, seed=77)
    again = curve.certified(simulator, samples=20_000, seed=77)
    assert [(p.low, p.high) for p in again.points] == [(p.low, p.high) for p in band.points], "the same question"


def test_another_start_or_fewer_actions_are_another_question(loose: Solution) -> None:
    """Both change what a seed's samples prove, and what is asked may have been chosen in the light of the first proof."""
    assert loose.prepared is not None
    allowed = np.ones((6, 3), dtype=bool)
    allowed[0, 0] = False
    other_start = dataclasses.replace(loose.problem, start=Start.equally(np.array([0, 1])))
    for seed, problem in ((661, other_start), (662, dataclasses.replace(loose.problem, actions_allowed=allowed))):
        other = solve(problem, reuse=loose, feasibility="relaxed", method=Method(certificate=0)).prepared
        assert other is not None
        with loose.prepared.proving(seed, "the same policy"):
            pass
        with pytest.raises(InputError, match="used for a certificate"), other.proving(seed, "the same policy"):
            pass


def test_a_question_that_fails_uses_no_seed(loose: Solution) -> None:
    def broken(states: Any, actions: Any, rng: Any) -> Any:
        raise RuntimeError("out of order")

    with pytest.raises(saddleback.SimulatorError):
        issue_certificate(loose, broken, samples=1_000, seed=991)
    assert loose.prepared is not None and 991 not in loose.prepared.used_seeds


@pytest.mark.slow
def test_stored_samples_have_a_register_too(tmp_path: Path) -> None:
    problem, model, _ = square()
    design = parts_of(problem, Method())[4].design(problem)
    limit = problem.constraints[0]
    tighter = dataclasses.replace(problem, constraints=[dataclasses.replace(limit, threshold=limit.threshold + 0.01)])
    with fill(tmp_path / "s", problem, model, design, 300, streams=(0, 1)) as store:
        found = [solve(p, model, samples=4_000, seed=4, reuse=store) for p in (problem, tighter, problem)]
        seeds = [x.certificate.seed for x in found if x.certificate is not None]
        assert len(set(seeds)) == 3 and prepare_from(problem, store).used_seeds is store.used_seeds


@pytest.mark.slow
def test_the_remark_is_kept_in_the_run_and_the_answer_rechecks(tmp_path: Path) -> None:
    table = dataclasses.replace(misjudged(), thresholds=np.array([1.2]))
    save_table(table, tmp_path / "p.npz")
    quietly("solve", tmp_path / "p.npz", "--samples", 20_000, "--out", tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "solution.json").read_text())
    assert any("is shown in its place" in text for text in stored["remarks"])
    assert quietly("certify", tmp_path / "run", "--recheck") == 0
    assert quietly("report", tmp_path / "run", "--out", tmp_path / "page.html") == 0
    assert "is shown in its place" in (tmp_path / "page.html").read_text()
