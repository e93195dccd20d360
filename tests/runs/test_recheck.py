"""The checker that shares no code with the certificate: it finds the same limits, and every number that was moved."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleback
from helpers import random_table
from saddleback import Solution
from saddleback.certificates.values.intervals import betting, maurer_pontil
from saddleback.files.json_file import as_record
from saddleback.problem.start import Start
from saddleback.runs.certificate_file import CertificateRecord, certificate_fields
from saddleback.runs.evidence_file import RolloutValues
from saddleback.runs.recheck import Check, recheck
from saddleback.runs.recheck.check import Request
from saddleback.runs.recheck.limits import _lower, _maurer_pontil
from saddleback.runs.recheck.statements import check_verdict
from saddleback.runs.run_folder import load_run
from spelled_out import solve


def stored(solution: Solution) -> tuple[dict[str, Any], RolloutValues]:
    """As they would come out of a run folder."""
    proof = solution.certificate
    assert proof is not None
    data = json.loads(json.dumps(certificate_fields(proof, solution.problem)))
    told = data["evidence"]["rollouts"]
    limits = (np.array(told[k]) for k in ("low", "high", "tail"))
    return data, RolloutValues(proof.rollout_values, *limits)  # type: ignore[attr-defined]


LINEARITY = {"assumed": True, "passed": False, "failures": [], "samples": 0, "delta": 0.05, "tests": []}
ROW = {"name": "c", "sense": ">=", "threshold": 4.0, "base": 0.0, "scale": 1.0, "unit_threshold": 4.0}
PROBLEM = {"name": "p", "gamma": 0.8, "horizon": 5.0, "states": None, "actions": 2}
PROBLEM |= {"reward": {"base": 0.0, "scale": 1.0}, "constraints": [ROW]}
NOTHING = {"schema": "saddleback-certificate/1", "confidence": 0.95, "samples": 0, "seed": 0, "feasible": "undecided"}
NOTHING |= dict.fromkeys(("value", "upper_bound", "gap", "linearity", "linear"))
NOTHING |= {"constraints": [], "allowance": [], "by_start": [], "remarks": [], "assumes": {}, "evidence": {}}
NOTHING |= {"problem": PROBLEM}
"""A certificate that says nothing."""

TABLE = random_table(3, m=2)
SOLUTION = solve(TABLE.problem(), TABLE.simulator(), samples=20_000, certificate=20_000, seed=1)


def failed(data: dict[str, Any], rollouts: RolloutValues | None) -> list[str]:
    return [c.name for c in checks_of(data, rollouts) if not c.passed]


def checks_of(data: dict[str, Any], rollouts: RolloutValues | None) -> list[Check]:
    return recheck(as_record(data, CertificateRecord, "certificate.json", "look again"), rollouts)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(
    st.lists(st.floats(-3, 5), min_size=1, max_size=300),
    st.sampled_from([0.05, 0.01, 1e-6]),
    st.floats(0, 4),
    st.floats(0, 4),
)
def test_both_codes_find_the_same_interval(values: list[float], delta: float, below: float, above: float) -> None:
    """Bisection, bets and capital were written twice; the limits agree to a millionth of the width."""
    x = np.array(values)
    low, high = float(x.min()) - below, float(x.max()) + above + 1e-3
    y = (x - low) / (high - low)
    mine = _lower(y, delta / 2), 1 - _lower(1 - y, delta / 2)
    theirs = betting(x, low, high, delta)
    tolerance = 1e-5 * (theirs.high - theirs.low) + 1e-9
    assert low + (high - low) * mine[0] == pytest.approx(theirs.low, abs=tolerance)
    assert low + (high - low) * mine[1] == pytest.approx(theirs.high, abs=tolerance)
    plain, other = _maurer_pontil(y, delta), maurer_pontil(x, low, high, delta)
    assert low + (high - low) * plain[0] == pytest.approx(other.low, abs=1e-9)
    assert low + (high - low) * plain[1] == pytest.approx(other.high, abs=1e-9)


@pytest.mark.parametrize("interval", ["betting", "empirical-bernstein"])
def test_a_real_proof_follows(interval: str) -> None:
    from saddleback.solving.strict import issue_certificate, with_certificate

    seed = {"betting": 9, "empirical-bernstein": 10}[
        interval
    ]  # the choice between them may not follow from the samples
    proof = issue_certificate(SOLUTION, TABLE.simulator(), samples=10_000, seed=seed, interval=interval)
    data, rollouts = stored(with_certificate(SOLUTION, proof))
    checks = checks_of(data, rollouts)
    assert [c.name for c in checks if not c.passed] == []
    assert len(checks) == 18


@pytest.mark.parametrize("sampled", [False, True])
def test_a_proof_with_sampled_starts_follows_with_its_problem_and_without(sampled: bool, tmp_path: Path) -> None:
    """What the sampled starts may hide must be there where the problem tells of it, and may be there where nobody knows."""
    start = Start.sampled(lambda n, rng: rng.choice(TABLE.num_states, size=n, p=TABLE.rho)) if sampled else None
    problem = TABLE.problem() if start is None else dataclasses.replace(TABLE.problem(), start=start)
    answer = saddleback.solve(problem, TABLE.simulator(), samples=20_000, feasibility="relaxed", out=tmp_path / "run")
    assert answer.certificate is not None and bool(answer.certificate.by_start) is not sampled
    run = load_run(tmp_path / "run")
    record, rollouts = run.certificate, run.rollouts
    assert record is not None
    for known in (None, problem):
        found = recheck(record, rollouts, bound=run.bound, problem=known, policy=run.mixture, request=Request.of(run))
        assert [c.name for c in found if not c.passed] == [], known
    other = (
        TABLE.problem()
        if sampled
        else dataclasses.replace(problem, start=Start.sampled(lambda n, _: np.zeros(n, dtype=np.int64)))
    )
    wrong = [c.name for c in recheck(record, rollouts, bound=run.bound, problem=other) if not c.passed]
    assert "range of the rollouts" in wrong, "it is that of the other kind of start"


def move(data: dict[str, Any], path: str, change: Any) -> dict[str, Any]:
    """The certificate with one number changed."""
    data = copy.deepcopy(data)
    *outer, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    place: Any = data
    for name in outer:
        place = place[name]
    place[last] = change(place[last])
    return data


@pytest.mark.parametrize(
    ("path", "change", "culprit"),
    [
        ("value.0", lambda x: x + 1e-3, "limits of reward"),
        ("value.1", lambda x: x + 1e-3, "limits of reward"),
        ("constraints.1.0", lambda x: x + 1e-3, "limits of constraint-1"),
        ("constraints.0.1", lambda x: x - 1e-3, "limits of constraint-0"),
        ("upper_bound", lambda x: x - 1e-3, "upper bound"),
        ("upper_bound", lambda x: None, "upper bound"),
        ("gap", lambda x: x - 1e-6, "gap"),
        ("gap", lambda x: None, "gap"),
        ("feasible", lambda x: "refuted", "verdict"),
        ("feasible", lambda x: "certified", "verdict"),
        ("confidence", lambda x: x + 1e-6, "division of δ"),
        ("evidence.bound.value", lambda x: x - 1e-3, "upper bound"),
        ("evidence.bound.sigma", lambda x: x[::-1], "upper bound"),
        ("evidence.bound.delta", lambda x: 2 * x, "division of δ"),
        ("evidence.rollouts.delta_of_each", lambda x: 2 * x, "division of δ"),
        ("evidence.rollouts.delta_of_each", lambda x: x / 2, "limits of reward"),
        ("evidence.rollouts.mean.2", lambda x: x + 1e-6, "rollouts"),
        ("evidence.rollouts.high.0", lambda x: x - 1e-6, "rollouts"),
        ("evidence.rollouts.number", lambda x: x + 1, "rollouts"),
        ("problem.reward.scale", lambda x: 1.01 * x, "limits of reward"),
        ("problem.constraints.0.base", lambda x: x + 0.01, "limits of constraint-0"),
        ("linearity", lambda x: {**LINEARITY, "failures": ["something"]}, "linearity"),
    ],
)
def test_every_moved_number_is_found(path: str, change: Any, culprit: str) -> None:
    data, rollouts = stored(SOLUTION)
    assert data["feasible"] == "undecided" and failed(data, rollouts) == []
    assert culprit in failed(move(data, path, change), rollouts)


def test_moved_rollouts_are_found() -> None:
    data, rollouts = stored(SOLUTION)
    values = rollouts.values.copy()
    values[::2, 1] += 0.01
    assert {"rollouts", "limits of constraint-0"} <= set(failed(data, rollouts._replace(values=values)))
    assert failed(data, rollouts._replace(values=rollouts.values[::-1].copy()))  # the order counts: bets look back
    assert failed(data, None) == ["rollouts"]


@pytest.mark.parametrize("sense", [">=", "<="])
@pytest.mark.parametrize(
    ("limits", "allowance", "right"),
    [
        ((1.0, 2.0), 0.0, "undecided"),
        ((1.6, 2.0), 0.0, "certified"),
        ((1.0, 1.4), 0.0, "refuted"),
        ((1.4, 2.0), 0.2, "certified"),
        ((1.0, 1.4), 0.2, "undecided"),
    ],
)
def test_verdicts(sense: str, limits: tuple[float, float], allowance: float, right: str) -> None:
    """Against a threshold of 1.5, and mirrored for budgets."""
    sign = 1 if sense == ">=" else -1
    problem = {**PROBLEM, "constraints": [ROW | {"sense": sense, "threshold": sign * 1.5}]}
    ends, pair = sorted(sign * x for x in limits), [0.0, 1.0]
    told = {"number": 1, "steps": 1, "method": "betting", "delta_of_each": 0.01, "by_member": [1]}
    rollouts = {**told, "mean": pair, "variance": pair, "low": pair, "high": pair, "tail": [pair, pair]}
    known = {"constraints": [ends], "allowance": [allowance], "value": pair, "evidence": {"rollouts": rollouts}}
    for told in ("certified", "refuted", "undecided"):
        data = {**NOTHING, **known, "feasible": told, "problem": problem}
        record = as_record(data, CertificateRecord, "certificate.json", "look again")
        assert check_verdict(record).passed == (told == right)


def test_infeasibility() -> None:
    bound = {"kind": "all pairs", "sigma": [0.0, 1.0], "value": 3.5, "estimate": 3.4, "delta": 0.05, "samples": 9}
    needs = {"infeasible": "rewards and constraint signals within their declared ranges, independent simulator calls"}
    data = {**NOTHING, "slack_bound": -0.5, "infeasible": "proved", "evidence": {"bound": bound}, "assumes": needs}
    data |= {"samples": 9}
    assert failed(data, None) == []
    assert failed(data | {"slack_bound": -0.6}, None) == ["infeasibility"]
    assert failed(data | {"infeasible": "not proved"}, None) == ["infeasibility"]
    assert failed(data | {"evidence": {"bound": bound | {"sigma": [0.5, 0.5]}}}, None) == ["infeasibility"]
    assert failed(data | {"confidence": 0.99}, None) == ["division of δ"]
    beyond = {**PROBLEM, "constraints": [ROW | {"unit_threshold": 7.0}]}
    assert failed(data | {"evidence": {}, "problem": beyond, "slack_bound": -2.0}, None) == []
    assert failed(data | {"evidence": {}, "slack_bound": -2.0}, None) == ["infeasibility"]
