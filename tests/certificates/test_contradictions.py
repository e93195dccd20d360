"""Evidence that contradicts itself decides nothing, and every channel says so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest

from certificates.trap import trap_table
from cli.command_line import quietly, read, rewrite, words
from saddleback import Status, save_table, solve, zoo
from saddleback.certificates.bounds.bound import Bound
from saddleback.certificates.certificate import FittedEvidence
from saddleback.certificates.contradictions import find_contradictions
from saddleback.runs.recheck.check import Request
from saddleback.runs.recheck.statements import check_levels
from saddleback.runs.run_folder import load_run
from saddleback.solving.frontier import frontier

SAMPLES = 20_000


@pytest.fixture(scope="module")
def trapped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stored run of the trap."""
    folder = tmp_path_factory.mktemp("trap")
    save_table(trap_table(), folder / "trap.npz")
    assert quietly("solve", folder / "trap.npz", "--samples", SAMPLES, "--out", folder / "run") == 4
    return folder


@pytest.mark.slow
def test_every_channel_says_it(trapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quietly("solve", trapped / "trap.npz", "--samples", SAMPLES) == 4
    text = words(capsys.readouterr().out)
    assert "undecided" in text and "the evidence contradicts itself" in text and "run `saddleback check`" in text
    assert "what this policy loses to it no bound" in text and "in doubt" in text
    assert quietly("solve", trapped / "trap.npz", "--samples", SAMPLES, "--json") == 4
    answer = json.loads(capsys.readouterr().out)
    proof = answer["certificate"]
    assert (answer["status"], answer["reason"]) == ("undecided", "contradicted")
    assert (proof["feasible"], proof["gap"], proof["upper_bound"]) == ("undecided", None, None)
    assert len(proof["contradictions"]) == 2 and all(text in answer["message"] for text in proof["contradictions"])
    assert quietly("report", trapped / "run", "--out", trapped / "page.html") == 0
    page = (trapped / "page.html").read_text()
    assert "nothing is decided" in page and "All of this holds together" not in page and "in doubt" in page


@pytest.mark.slow
def test_a_new_proof_of_it_is_undecided_too(trapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quietly("certify", trapped / "run", "--samples", SAMPLES) == 4
    assert "Contradiction: " in words(capsys.readouterr().out)


@pytest.mark.slow
def test_an_honest_warning_is_no_refutation(trapped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert quietly("certify", trapped / "run", "--recheck", "--json") == 0
    checks = {c["name"]: c for c in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["contradiction"]["outcome"] == "warning"
    assert quietly("certify", trapped / "run", "--recheck") == 0
    assert "warning" in capsys.readouterr().out


def test_one_of_several_attempts_may_not_spend_all_of_delta(trapped: Path) -> None:
    """A strict solve that made one attempt has spent what it had; calls that are not in the parts are another attempt's."""
    proof = load_run(trapped / "run").certificate
    assert proof is not None and proof.evidence.rollouts is not None and proof.evidence.bound is not None
    spent = 2 * proof.evidence.rollouts.delta_of_each + proof.evidence.bound.delta
    told = msgspec.structs.replace(proof, confidence=1 - spent)
    more = msgspec.structs.replace(told, samples=told.samples + 1)
    assert check_levels(told, None, Request(spent, strict=True)).passed
    assert not check_levels(more, None, Request(spent, strict=True)).passed
    enough = msgspec.structs.replace(more, confidence=1 - spent / 0.8)
    assert check_levels(enough, None, Request(spent / 0.8, strict=True)).passed


@pytest.mark.parametrize("forge", ["silent", "certified", "with a bound"])
def test_a_contradiction_cannot_be_left_out(trapped: Path, tmp_path: Path, forge: str) -> None:
    run = Path(shutil.copytree(trapped / "run", tmp_path / "run"))
    told = read(run / "certificate.json")
    if forge == "silent":
        del told["contradictions"]
    elif forge == "certified":
        told["feasible"] = "certified"
    else:
        told |= {"upper_bound": 5.7, "gap": 0.0}
    rewrite(run, "certificate.json", told)
    assert quietly("certify", run, "--recheck") == 1


@pytest.mark.parametrize(
    "options", [{"feasibility": "strict", "samples": SAMPLES}, {"epsilon": 2.0, "max_samples": 60_000}]
)
def test_neither_strict_nor_adaptive_solves_trust_it(options: dict[str, object]) -> None:
    table = trap_table()
    found = solve(table.problem(), table.simulator(), **options)  # type: ignore[arg-type]
    assert found.status is Status.UNDECIDED and found.certificate is not None and found.certificate.contradictions


@pytest.mark.slow
def test_a_frontier_above_its_own_bound_has_none() -> None:
    table = trap_table()
    found = solve(table.problem(), table.simulator(), samples=SAMPLES)
    curve = frontier(found, num_points=3).certified(table.simulator(), samples=60_000, seed=8)
    assert curve.band is not None and curve.band.contradictions and np.all(np.isinf(curve.band.bounds))


def test_without_the_trap_nothing_is_said() -> None:
    """The negative control; limits fail together with probability 1e-6 at most."""
    table = trap_table(stay=0.0)
    found = solve(table.problem(), table.simulator(), samples=SAMPLES, delta=1e-6)
    assert found.status is Status.SOLVED and found.certificate is not None and found.certificate.gap is not None
    assert found.certificate.contradictions == () and found.certificate.evidence.fitted is not None


def test_the_rule() -> None:
    """By hand: H = 5, one constraint; the mixed bound speaks of every policy, feasible or not."""
    problem = zoo.make("queue").problem
    H = problem.horizon
    low, high = np.array([0.5 * H, 0.2 * H]), np.array([0.6 * H, 0.3 * H])
    sigma = np.array([0.5, 0.5])

    def bound(value: float) -> Bound:
        return Bound(sigma, value, value, "all pairs", 0.05, 10)

    assert not find_contradictions(problem, low, high, bound(0.36 * H), None)
    assert len(find_contradictions(problem, low, high, bound(0.34 * H), None)) == 1
    near = FittedEvidence((0.45 * H, 0.25 * H), (0.06 * H, 0.0))
    assert not find_contradictions(problem, low, high, None, near)
    assert (
        len(find_contradictions(problem, low, high, None, FittedEvidence((0.45 * H, 0.25 * H), (0.04 * H, 0.0)))) == 1
    )
    assert (
        len(find_contradictions(problem, low, high, None, FittedEvidence((0.55 * H, 0.4 * H), (0.04 * H, 0.05 * H))))
        == 1
    )
