"""What a proof is for decides where its samples go; and what is answered where nothing can be proved."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import quietly
from saddleback import InputError, Method, issue_certificate, solve
from saddleback.instances.zoo import make
from saddleback.runs.run_folder import load_run
from saddleback.solving.recertify import purpose_of

QUEUE = make("queue")


def widths(purpose: str) -> tuple[float, float | None]:
    """Of the constraint's limits, and the gap."""
    method = Method(purpose=purpose)  # type: ignore[arg-type]
    found = solve(QUEUE.problem, QUEUE.simulator, samples=400_000, feasibility="relaxed", method=method)
    assert found.certificate is not None
    low, high = found.certificate.constraints[0]
    return high - low, found.certificate.gap


@pytest.mark.slow
def test_rollouts_get_more_where_the_constraints_are_what_counts() -> None:
    wide, gap = widths("gap")
    narrow, other = widths("feasibility")
    assert narrow < 0.7 * wide
    assert gap is not None and other is not None and gap < other


@pytest.mark.slow
def test_a_bound_that_would_say_nothing_is_not_drawn() -> None:
    ward = make("ward", beds=5, waiting=8)
    found = solve(ward.problem, ward.simulator, samples=20_000, feasibility="relaxed")
    assert found.certificate is not None
    assert found.certificate.upper_bound is None and found.certificate.gap is None
    assert any("would say nothing" in remark.text for remark in found.certificate.remarks)


def test_the_best_candidate_is_returned_where_none_is_proved() -> None:
    """Far too few samples: the answer is what looks best, not the policy that never works."""
    machine = make("maintenance")
    found = solve(machine.problem, machine.simulator, samples=4_000, feasibility="strict", seed=1)
    assert found.status.value == "undecided" and found.mixture is not None
    assert found.certificate is not None
    low, high = found.certificate.constraints[0]
    assert low <= 17 <= high
    middles = np.mean(found.certificate.value or (0, 0)), (low + high) / 2
    assert all(np.isfinite(middles))


def test_purposes_by_name() -> None:
    with pytest.raises(InputError, match="purpose"):
        Method(purpose="speed")  # type: ignore[arg-type]


SMALL = make("queue", capacity=4, gamma=0.8)


def rolled(certificate: Any) -> float:
    """The share of the calls that the rollouts got: nearly all, unless the gap is what counts."""
    return float(certificate.evidence.rollouts.steps / certificate.samples)


@pytest.mark.slow
def test_a_further_certificate_is_for_what_the_first_was_for() -> None:
    found = {
        kind: solve(SMALL.problem, SMALL.simulator, samples=40_000, feasibility=kind) for kind in ("strict", "relaxed")
    }
    for kind, solution in found.items():
        again = issue_certificate(solution, SMALL.simulator, samples=20_000, seed=5)
        other = issue_certificate(solution, SMALL.simulator, samples=20_000, seed=6, purpose="gap")
        assert (rolled(again) > 0.85) == (kind == "strict") and rolled(other) < 0.85


@pytest.mark.slow
def test_a_stored_run_is_certified_for_what_it_was_solved_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = ["queue", "--set", "capacity=4", "--set", "gamma=0.8", "--samples", 40_000]
    assert quietly("solve", *queue, "--out", tmp_path / "strict") == 0
    assert quietly("solve", *queue, "--feasibility", "relaxed", "--out", tmp_path / "relaxed") == 0
    assert quietly("solve", *queue, "--for", "gap", "--out", tmp_path / "gap") in (0, 4)
    wanted = {"strict": "feasibility", "relaxed": "gap", "gap": "gap"}
    assert {name: purpose_of(load_run(tmp_path / name)) for name in wanted} == wanted
    forged = dataclasses.replace(load_run(tmp_path / "gap"), request={"purpose": "speed"})
    with pytest.raises(InputError, match="purpose"):
        purpose_of(forged)

    def shown(*arguments: Any) -> float:
        capsys.readouterr()
        assert quietly(*arguments, "--json") in (0, 4)
        proof = json.loads(capsys.readouterr().out)["certificate"]
        return float(proof["evidence"]["rollouts"]["steps"] / proof["samples"])

    export = ["export", tmp_path / "strict", "--to", "json", "--out", tmp_path / "p.json"]
    certify, calls = ["certify", tmp_path / "strict", "--samples", 20_000], ["--certificate-samples", 20_000]
    assert shown(*certify) > 0.85 > shown(*certify, "--seed", 9, "--for", "gap")
    assert shown(*export, *calls) > 0.85 > shown(*export, *calls, "--for", "gap")
    assert shown("certify", tmp_path / "relaxed", "--samples", 20_000) < 0.85
    for wrong in ([*certify, "--for", "speed"], [*export, "--for", "gap"], [*certify[:2], "--recheck", "--for", "gap"]):
        assert quietly(*wrong) == 2
