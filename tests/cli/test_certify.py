"""``certify``: new samples for a stored policy, and the stored proof computed again."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli.command_line import Call, read, reseal, rewrite, words
from helpers import random_table
from saddleback import save_table, zoo
from saddleback.exact import mixture_values, solve_exactly
from saddleback.problem.policy_file import load_mixture


@pytest.mark.slow
def test_a_new_proof_of_the_stored_policy(run: Call, stored_runs: Path) -> None:
    """At confidence 1 − 1e-6 the truth lies within the new limits; nothing of the run is changed."""
    folder = stored_runs / "named"
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    code, out, _ = run("certify", folder, "--samples", 250_000, "--delta", "1e-6", "--json")
    answer = json.loads(out)
    proof, stored = answer["certificate"], answer["stored"]
    table = zoo.make("queue").table
    truth = mixture_values(table, load_mixture(folder / "policy.npz"))
    assert code == 0
    assert proof["value"][0] < truth[0] < proof["value"][1] < 12
    assert proof["constraints"][0][0] < truth[1] < proof["constraints"][0][1]
    assert solve_exactly(table).value < proof["upper_bound"]
    assert proof["seed"] not in (0, stored["seed"])
    assert stored == read(folder / "certificate.json")
    assert 50_000 < answer["pilot"] <= 62_500
    assert 0.9 * 250_000 < answer["samples"] == answer["pilot"] + proof["samples"] <= 250_000
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_the_same_seed_gives_the_same_proof(run: Call, stored_runs: Path) -> None:
    first, second, other = (
        json.loads(run("certify", stored_runs / "table", "--samples", 8_000, *seed, "--json")[1])["certificate"]
        for seed in ([], [], ["--seed", 5])
    )
    assert first == second
    assert first["value"] != other["value"]
    assert other["seed"] == 5


def test_a_table_is_found_in_the_run_itself(run: Call, from_table: Path) -> None:
    """The file that was solved is not needed any more: the copy is."""
    manifest = read(from_table / "run.json")
    manifest["target"]["name"] = "nowhere/problem.npz"
    reseal(from_table / "run.json", manifest)
    certificate = read(from_table / "certificate.json")
    certificate["problem"]["name"] = "problem"
    rewrite(from_table, "certificate.json", certificate)
    code, out, err = run("certify", from_table, "--samples", 8_000)
    assert code == 0, err
    assert out.startswith("problem, ")
    assert "Beside the stored proof" in out
    assert all(len(line) <= 80 for line in out.splitlines())


def test_exit_codes(run: Call, stored_runs: Path, from_table: Path) -> None:
    assert run("certify", stored_runs / "strict", "--samples", 80_000)[0] == 0  # certified
    assert run("certify", stored_runs / "strict", "--samples", 400)[0] == 4  # undecided, and strict
    assert run("certify", stored_runs / "table", "--samples", 400)[0] == 0  # undecided, and relaxed
    assert run("certify", stored_runs / "infeasible")[0] == 3
    assert run("certify", stored_runs / "infeasible", "--samples", 600)[0] == 4  # not proved
    # A policy that misses its constraint by far is refuted, relaxed or not: the worst action everywhere.
    worst = random_table(1).constraints[0].argmin(axis=1)
    file = io.BytesIO()
    np.savez(file, weights=np.ones(1), probabilities=np.eye(3)[worst][None])
    rewrite(from_table, "policy.npz", file.getvalue())
    code, out, _ = run("certify", from_table, "--samples", 40_000, "--json")
    assert (code, json.loads(out)["certificate"]["feasible"]) == (6, "refuted")


def test_an_infeasible_run_is_refuted_again(run: Call, stored_runs: Path) -> None:
    _, out, _ = run("certify", stored_runs / "infeasible")
    assert "Proved with 95 % confidence: no policy meets the constraints" in words(out)


@pytest.mark.slow
def test_what_is_likely_but_not_proved_is_undecided_and_checks_out(
    run: Call, stored_runs: Path, tmp_path: Path
) -> None:
    words_of = [
        "solve",
        stored_runs / "bad.npz",
        "--samples",
        "60000",
        "--certificate-samples",
        "600",
        "--out",
        tmp_path / "run",
    ]
    code, out, err = run(*words_of)
    assert code == 4 and "probably none does, which is not proved" in words(out), (out, err)
    assert run("certify", tmp_path / "run", "--recheck")[0] == 0


@pytest.mark.parametrize("name", ["named", "table", "strict", "infeasible"])
def test_a_stored_proof_checks_out(run: Call, stored_runs: Path, name: str) -> None:
    code, out, _ = run("certify", stored_runs / name, "--recheck")
    assert code == 0
    assert "follow from the stored numbers" in words(out) and "DISAGREES" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    code, out, _ = run("certify", stored_runs / name, "--recheck", "--json")
    answer = json.loads(out)
    assert (code, answer["agrees"]) == (0, True)
    assert all(c["passed"] for c in answer["checks"])


def narrower(c: dict[str, Any]) -> None:
    low, high = c["value"]
    c["value"] = [low + 1e-3 * (high - low), high]
    c["gap"] = c["upper_bound"] - c["value"][0]


def certified(c: dict[str, Any]) -> None:
    c["feasible"] = "certified"


def better(c: dict[str, Any]) -> None:
    c["upper_bound"] -= 0.01
    c["gap"] -= 0.01


def closer(c: dict[str, Any]) -> None:
    c["gap"] *= 0.99


def surer(c: dict[str, Any]) -> None:
    c["confidence"] = 0.99


def other_level(c: dict[str, Any]) -> None:
    c["evidence"]["rollouts"]["delta_of_each"] /= 2


def other_mean(c: dict[str, Any]) -> None:
    c["evidence"]["rollouts"]["mean"][0] += 1e-3


@pytest.mark.parametrize(
    ("forge", "culprit"),
    [
        (narrower, "limits of reward"),
        (certified, "verdict"),
        (better, "upper bound"),
        (closer, "gap"),
        (surer, "division of δ"),
        (other_level, "limits of reward"),
        (other_mean, "rollouts"),
    ],
)
def test_a_forged_proof_is_caught(run: Call, named: Path, forge: Any, culprit: str) -> None:
    """Each number changed alone, with the hashes made to agree: exit code 1, and the statement is named."""
    certificate = read(named / "certificate.json")
    forge(certificate)
    rewrite(named, "certificate.json", certificate)
    code, out, _ = run("certify", named, "--recheck", "--json")
    assert code == 1
    assert culprit in [c["name"] for c in json.loads(out)["checks"] if not c["passed"]]
    code, out, _ = run("certify", named, "--recheck")
    assert code == 1 and "DISAGREES" in out and "do not follow from the stored numbers" in words(out)


def test_forged_rollouts_are_caught(run: Call, named: Path) -> None:
    with np.load(named / "rollouts.npz", allow_pickle=False) as saved:
        parts = {name: saved[name] for name in saved}
    parts["values"] = parts["values"] + 0.05
    file = io.BytesIO()
    np.savez(file, **parts)
    rewrite(named, "rollouts.npz", file.getvalue())
    code, out, _ = run("certify", named, "--recheck", "--json")
    assert code == 1
    failed = [c["name"] for c in json.loads(out)["checks"] if not c["passed"]]
    assert {"rollouts", "limits of reward", "limits of number-in-system"} <= set(failed)


def spoil(run: Path, how: str) -> None:
    """One fault at a time."""
    manifest = read(run / "run.json")
    if how == "no manifest":
        (run / "run.json").unlink()
    elif how == "half a manifest":
        (run / "run.json").write_bytes((run / "run.json").read_bytes()[:200])
    elif how == "huge manifest":
        (run / "run.json").write_bytes(b" " * (1 << 21))
    elif how == "deep manifest":
        (run / "run.json").write_text("[" * 100_000)
    elif how == "twice":
        text = (run / "run.json").read_text()
        (run / "run.json").write_text(text.replace('"seed": 0,', '"seed": 0, "seed": 1,'))
    elif how == "not a number":
        text = (run / "run.json").read_text()
        (run / "run.json").write_text(text.replace('"seed": 0,', '"seed": NaN,'))
    elif how == "policy":
        data = bytearray((run / "policy.npz").read_bytes())
        data[len(data) // 2] ^= 1
        (run / "policy.npz").write_bytes(data)
    elif how == "cut":
        (run / "rollouts.npz").write_bytes((run / "rollouts.npz").read_bytes()[:-1])
    elif how == "gone":
        (run / "solution.json").unlink()
    elif how == "newer certificate":
        rewrite(run, "certificate.json", {**read(run / "certificate.json"), "schema": "saddleback-certificate/9"})
    elif how == "certificate field":
        rewrite(run, "certificate.json", {**read(run / "certificate.json"), "value": [2.0, 1.0]})
    elif how == "unknown field":
        rewrite(run, "certificate.json", {**read(run / "certificate.json"), "bonus": 1})
    elif how == "lists":
        rewrite(run, "certificate.json", {**read(run / "certificate.json"), "constraints": []})
    elif how == "solution":
        rewrite(run, "solution.json", {**read(run / "solution.json"), "multipliers": ["one"]})
    elif how == "policy size":
        file = io.BytesIO()
        np.savez(file, weights=np.ones(1), probabilities=np.full((1, 5, 2), 0.5))
        rewrite(run, "policy.npz", file.getvalue())
    else:
        change = {
            "format": {"format": "saddleback-run/7"},
            "no seed": {"seed": None},
            "strange file": {"files": {**manifest["files"], "../secret": {"bytes": 1, "sha256": "0"}}},
            "no entry": {"files": {k: v for k, v in manifest["files"].items() if k != "solution.json"}},
            "other problem": {"target": {"name": "queue", "settings": ["limit=1.4"]}},
            "no such problem": {"target": {"name": "quay", "settings": []}},
        }[how]
        reseal(run / "run.json", {**manifest, **change})


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no manifest", "run.json"),
        ("half a manifest", "readable JSON"),
        ("huge manifest", "at most 1,048,576 bytes"),
        ("deep manifest", "readable JSON"),
        ("twice", "given twice"),
        ("not a number", "NaN is not a number"),
        ("policy", "policy.npz` must be unchanged"),
        ("cut", "rollouts.npz` must have the"),
        ("gone", "solution.json` must be there"),
        ("newer certificate", "schema` must be 'saddleback-certificate/1'"),
        ("certificate field", "limits must be two numbers [low, high]"),
        ("unknown field", "unknown field `bonus`"),
        ("lists", "constraints must have 1 entries"),
        ("solution", "got `str` - at `$.multipliers[0]`"),
        ("policy size", "policy.npz` must have tables of shape (11, 2)"),
        ("format", "format` must be 'saddleback-run/1'"),
        ("no seed", "at `$.seed`"),
        ("strange file", "'../secret'"),
        ("no entry", "must name solution.json"),
        ("other problem", "must describe the problem as it was"),
        ("no such problem", "one of the zoo"),
    ],
)
@pytest.mark.parametrize("recheck", [[], ["--recheck"]])
def test_damaged_runs_are_refused(run: Call, named: Path, how: str, says: str, recheck: list[str]) -> None:
    spoil(named, how)
    code, out, err = run("certify", named, *recheck)
    assert (code, out) == (2, "")
    assert says in err and err.count("\n") == 1


def test_a_changed_table_is_refused(run: Call, from_table: Path) -> None:
    data = bytearray((from_table / "problem.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (from_table / "problem.npz").write_bytes(data)
    code, _, err = run("certify", from_table)
    assert code == 2
    assert "problem.npz` must be unchanged, with the SHA-256" in err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--seed", 0], "must not be one that the run used"),
        (["--seed", -1], "`seed` must be a whole number of at least 0"),
        (["--samples", -5], "`samples` must be at least 4"),
        (["--samples", 40], "a quarter of 40"),
        (["--delta", 0], "`delta` must lie in [1e-12, 1)"),
        (["--delta", 1.5], "`delta` must lie in [1e-12, 1)"),
        (["--recheck", "--seed", 3], "--seed` must not be given with --recheck"),
        (["--recheck", "--samples", 3], "--samples` must not be given with --recheck"),
        (["--samples", "many"], "--samples"),
    ],
)
def test_bad_words(run: Call, stored_runs: Path, options: list[Any], says: str) -> None:
    code, out, err = run("certify", stored_runs / "named", *options)
    assert code == 2
    assert says in out + err


def test_what_is_no_run(run: Call, tmp_path: Path) -> None:
    code, _, err = run("certify", tmp_path / "nowhere")
    assert code == 2 and "no such folder" in err
    (tmp_path / "file").touch()
    code, _, err = run("certify", tmp_path / "file")
    assert code == 2 and "a file" in err
    code, _, err = run("certify", tmp_path)
    assert code == 2 and "run.json" in err


def test_a_run_without_policy_or_prices(run: Call, tmp_path: Path) -> None:
    """A threshold out of reach needs no sample to be refuted, and none to be checked."""
    save_table(dataclasses.replace(random_table(1), thresholds=np.array([40.0])), tmp_path / "far.npz")
    assert run("solve", tmp_path / "far.npz", "--out", tmp_path / "run")[0] == 3
    code, _, err = run("certify", tmp_path / "run")
    assert code == 2 and "use --recheck" in err
    code, out, _ = run("certify", tmp_path / "run", "--recheck")
    assert code == 0 and "infeasibility" in out
