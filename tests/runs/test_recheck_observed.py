"""Proofs about signals that only the simulator shows, checked again without the problem: what is observed is said, not guessed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import quietly
from forgery.forging import arrays_of, packed, write
from saddleback import CMDP, Constraint, InputError, solve
from saddleback.runs.recheck import bound as bound_check
from saddleback.runs.recheck.bound import least_bound
from saddleback.runs.recheck.check import Check
from saddleback.runs.recheck.whole_run import recheck_run
from saddleback.runs.run_folder import load_run
from saddleback.simulators.function import from_function

EVENTS = 0.02  # probability of one where action 1 is taken


def sample(states: Any, actions: Any, rng: np.random.Generator) -> Any:
    seen = (rng.random(len(states)) < np.where(actions == 1, EVENTS, 0.0)).astype(float)
    return rng.integers(0, 4, len(states)), seen


def problem_of(threshold: float) -> CMDP:
    pays = np.tile([0.2, 1.0], (4, 1))
    limit = Constraint("events", None, "<=", threshold, (0.0, 1.0))
    return CMDP(0.8, start=0, num_actions=2, states=4, reward=pays, constraints=[limit], reward_range=(0.0, 1.0))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that has events, with a bound over all policies."""
    model, place = from_function(sample, 4, signals=(None, "events"), batched=True), tmp_path_factory.mktemp("seen")
    solve(problem_of(0.05), model, samples=300_000, feasibility="relaxed", out=place / "run")
    return place / "run"


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def checks(run: Path) -> dict[str, Check]:
    return {check.name: check for check in recheck_run(load_run(run), None)}


def failed(run: Path) -> list[str]:
    return [check.name for check in checks(run).values() if not check.passed]


def proof(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "certificate.json").read_text())
    return found


@pytest.mark.slow
def test_what_is_observed_is_written_down(run: Path) -> None:
    assert failed(run) == []
    stored = load_run(run)
    assert stored.question is not None and stored.certificate is not None and stored.bound is not None
    assert stored.question.observed == stored.certificate.problem.observed == [False, True]
    assert stored.bound.rare is not None and stored.bound.rare.shape == (2, 8, 2)
    assert not stored.bound.rare[:, :, 0].any() and stored.bound.rare[1, :, 1].any()


def test_the_choice_between_two_limits_is_that_of_the_prover(run: Path) -> None:
    """To take the narrower at each pair after the fact proves less than it says: the bound is what the stored choice gives."""
    stored, arrays = load_run(run), arrays_of(run / "bound.npz")
    assert stored.certificate is not None and stored.bound is not None
    bound = stored.certificate.evidence.bound
    assert bound is not None and bound.sigma[1] > 0
    least, fault = least_bound(bound, stored.bound, stored.certificate.problem, None)
    assert not fault and least == pytest.approx(bound.value, abs=1e-6)
    other = stored.bound._replace(rare=1 - stored.bound.rare)  # type: ignore[operator]
    wider, fault = least_bound(bound, other, stored.certificate.problem, None)
    assert not fault and wider > least + 1e-6
    write(run, "bound.npz", packed({**arrays, "rare": 1 - arrays["rare"]}))
    assert failed(run) == ["bound over all policies"]
    for forged in (2 * arrays["rare"], arrays["rare"][:1], None):
        rest = {name: x for name, x in arrays.items() if name != "rare"}
        write(run, "bound.npz", packed(rest if forged is None else {**rest, "rare": forged}))
        if forged is None:
            assert failed(run) == ["bound over all policies"], "this version keeps the choice"
        else:
            with pytest.raises(InputError, match="must hold arrays that fit each other"):
                load_run(run)


def test_both_sides_have_the_shares_of_the_prover(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four fifths of a level above, a fifth below: together they are no more than the level."""
    levels = list[float]()

    def noted(mean: Any, noise: Any, n: Any, level: float, rare: Any) -> Any:
        levels.append(level)
        return np.zeros(len(n))

    monkeypatch.setattr(bound_check, "_error", noted)
    checks(run)
    level = proof(run)["evidence"]["bound"]["delta"] / 2 / 8
    assert levels == pytest.approx([0.8 * level, 0.2 * level])


def test_files_of_earlier_versions_are_read_by_their_rule(run: Path) -> None:
    """They say neither what is observed nor which limit was chosen: the narrower counts, and a half of δ on either side."""
    told, question = proof(run), json.loads((run / "problem.json").read_text())
    arrays = {name: x for name, x in arrays_of(run / "bound.npz").items() if name != "rare"}
    del told["problem"]["observed"], question["observed"]
    write(run, "certificate.json", told)
    write(run, "problem.json", question)
    write(run, "bound.npz", packed(arrays))
    assert failed(run) == []


def test_a_cost_of_which_no_event_was_seen_is_not_known(run: Path) -> None:
    """Nothing was seen to vary, so it counted as known, and limits without samples of (0, 0) passed for a proof."""
    told, arrays = proof(run), arrays_of(run / "bound.npz")
    arrays["signals"][:, 1], arrays["noise"][:, 1] = 1.0, 0.0  # in utilities: no event
    write(run, "bound.npz", packed(arrays))
    assert "limits without samples" not in failed(run)
    H = told["problem"]["horizon"]
    told = proof(run)
    low, high = told["evidence"]["rollouts"]["known"]
    assert (low[1], high[1]) == (0.0, H)
    told["evidence"]["rollouts"]["known"] = [[low[0], H], [high[0], H]]
    write(run, "certificate.json", told)
    assert "limits without samples" in failed(run)


def test_what_is_observed_cannot_be_said_in_one_place_alone(run: Path) -> None:
    told = proof(run)
    told["problem"]["observed"] = [False, False]
    write(run, "certificate.json", told)
    assert {"files", "bound over all policies"} <= set(failed(run))
    told["problem"]["observed"] = [True]
    write(run, "certificate.json", told)
    with pytest.raises(InputError, match="observed must have 2 entries"):
        load_run(run)


def test_the_run_is_read_without_its_code(run: Path, tmp_path: Path) -> None:
    """Of a problem without its code no signal is known; what is observed is what `problem.json` says."""
    assert quietly("export", run, "--to", "csv", "--out", tmp_path / "p.csv") == 0
    assert quietly("report", run, "--out", tmp_path / "page.html") == 0
    question = json.loads((run / "problem.json").read_text())
    write(run, "problem.json", {**question, "observed": [True, True]})
    assert quietly("report", run, "--out", tmp_path / "page.html") == 2
