"""``solve``: what it prints, what it counts, and the files it writes."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest

from cli.command_line import read, words
from helpers import random_table
from saddleback import load_policy, save_table, zoo
from saddleback.cli import solve as solve_verb
from saddleback.runs.targets import load_source

QUICK = ["--samples", "40000"]


def test_solve_json_contract(run):
    code, out, _ = run("solve", "garnet", *QUICK, "--check", "--json")
    answer = json.loads(out)
    assert code == {"solved": 0, "infeasible": 3}.get(answer["status"], 4)
    assert {"status", "message", "value", "constraints", "multipliers", "samples", "policy", "exact"} <= set(answer)
    assert set(answer["constraints"][0]) >= {"name", "value", "threshold", "sense", "slack"}
    assert sum(m["weight"] for m in answer["policy"]) == pytest.approx(1)
    assert answer["samples"] <= 40_000
    assert {"value", "constraints", "optimum"} <= set(answer["exact"])


def test_every_answer_has_its_certificate(run):
    """At confidence 1 − 1e-6 the truth lies within what was proved."""
    options = ["--samples", 400_000, "--for", "gap", "--delta", "1e-6", "--check", "--json"]
    code, out, _ = run("solve", "garnet", *options)
    answer = json.loads(out)
    proof, truth = answer["certificate"], answer["exact"]
    assert code == 0
    assert proof["schema"] == "saddleback-certificate/1"
    assert proof["confidence"] == 1 - 1e-6
    assert proof["feasible"] in ("certified", "refuted", "undecided")
    assert set(proof["assumes"]) == {"value", "constraints", "upper_bound", "gap"}
    assert proof["value"][0] < truth["value"] < proof["value"][1] < proof["value"][0] + 10  # not the whole range
    assert proof["constraints"][0][0] < truth["constraints"][0] < proof["constraints"][0][1]
    assert truth["optimum"]["value"] < proof["upper_bound"]
    assert proof["gap"] == pytest.approx(proof["upper_bound"] - proof["value"][0])


@pytest.mark.slow
def test_samples_are_counted_in_all(run, monkeypatch):
    """What is printed is what the simulator was asked, and no more than was allowed."""
    models = []

    def remembered(*arguments):
        instance = load_source(*arguments)
        models.append(instance.simulator)
        return instance

    monkeypatch.setattr(solve_verb, "load_source", remembered)
    shares = {}
    for certificate in (None, 50_000):
        more = [] if certificate is None else ["--certificate-samples", certificate]
        for feasibility in ("strict", "relaxed"):  # strict: what a second attempt does not need is not drawn
            options = ["--samples", 200_000, *more, "--feasibility", feasibility, "--json"]
            answer = json.loads(run("solve", "queue", *options)[1])
            assert answer["samples"] == models[-1].num_queries <= 200_000
        shares[certificate] = answer["certificate"]["samples"]
    assert 0.9 * 100_000 < shares[None] <= 100_000
    assert 0.8 * 50_000 < shares[50_000] <= 50_000


@pytest.mark.slow
def test_an_accuracy_is_proved(run):
    code, out, _ = run("solve", "random-linear", "--set", "states=30", "--epsilon", 1.5, "--json")
    answer = json.loads(out)
    assert (code, answer["status"]) == (0, "solved")
    assert answer["certificate"]["gap"] <= 1.5
    assert answer["certificate"]["feasible"] == "certified"
    assert answer["settings"]["epsilon"] == 1.5
    code, out, _ = run("solve", "queue", "--epsilon", 0.001, "--max-samples", 9_000, "--json")
    answer = json.loads(out)
    assert (code, answer["status"]) == (4, "budget-exhausted")
    assert answer["samples"] <= 9_000


def test_solve_text_reads_well(run):
    code, out, _ = run("solve", "queue", "--samples", "200000", "--check", "--feasibility", "relaxed")
    assert code == 0
    for said in ("queue: solved", "number-in-system", "discounted totals", "simulator calls", "optimum"):
        assert said in out
    for said in (
        "What is proved, with 95 % confidence",
        "reward of the best policy at most",
        "open: missed by at most",
    ):
        assert said in words(out)
    assert "likely range" not in out and "a-priori" not in out
    assert all(len(line) <= 80 for line in out.splitlines())
    code, out, _ = run("solve", "queue", "--samples", "200000")
    assert code == 0 and "queue: solved. Every constraint is proved to hold." in words(out)
    assert "reward of the best policy no bound" in words(out) and "none were spent on it" in words(out)
    assert all(len(line) <= 80 for line in out.splitlines())


def test_an_infeasible_problem_is_refuted_in_words(run, tmp_path):
    save_table(dataclasses.replace(random_table(1), thresholds=np.array([4.9])), tmp_path / "bad.npz")
    code, out, _ = run("solve", tmp_path / "bad.npz", "--samples", 60_000)
    assert code == 3
    assert (
        "Proved with 95 % confidence: no policy meets the constraints; every policy misses 'constraint-0' by"
        in words(out)
    )


def test_a_failed_linearity_test_is_told_in_words(run):
    _, out, _ = run("solve", "random-linear", "--set", "misspecification=0.5", *QUICK)
    text = words(out)
    assert "The problem is not linear in its features." in text
    assert "at state" in text and "off the fit" in text
    assert "reward of the best policy no bound" in text
    assert text.count("off the fit, where chance allows") == 1  # said once


def test_a_run_folder_holds_the_run(run, tmp_path, table_file):
    code, out, _ = run("solve", table_file, *QUICK, "--seed", 3, "--out", tmp_path / "run", "--json")
    assert code == 0
    answer = json.loads(out)
    stored = read(tmp_path / "run" / "solution.json")
    assert stored == {k: v for k, v in answer.items() if k not in ("certificate", "check_calls", "reproducible")}
    proof = read(tmp_path / "run" / "certificate.json")
    assert proof.pop("problem")["name"] == "problem"
    assert set(proof.pop("about")) == {"problem", "policy", "rollouts", "bound"}
    assert proof == answer["certificate"]
    manifest = read(tmp_path / "run" / "run.json")
    assert manifest["target"] == {"name": str(table_file), "settings": [], "path": str(table_file)}
    assert manifest["seed"] == 3
    assert (tmp_path / "run" / "problem.npz").read_bytes() == table_file.read_bytes()
    assert len(load_policy(tmp_path / "run" / "policy.npz").weights) == len(answer["policy"])


@pytest.mark.check
def test_a_disk_that_fails_ends_the_run_and_damages_nothing(tmp_path):
    """Files may not grow beyond four kilobytes, so samples cannot be kept: exit code 5, one message, no half-written run.

    Once there is room again the run is taken up and ends well.
    """
    code = (
        "import resource, sys; from saddleback.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        f"main(['solve', 'queue', '--samples', '20000', '--json', '--out', {str(tmp_path / 'run')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 5
    assert done.stdout == "" and "Traceback" not in done.stderr and "error:" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["run.work"]
    again = [sys.executable, "-m", "saddleback", "resume", str(tmp_path / "run"), "--json"]
    done = subprocess.run(again, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and json.loads(done.stdout)["status"] == "solved"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_policy_file_can_be_checked_by_anyone(run, tmp_path):
    """Values recomputed from the file with plain numpy equal what --check prints."""
    path = tmp_path / "policy.npz"
    _, out, _ = run("solve", "garnet", *QUICK, "--check", "--json", "--policy", path)
    answer = json.loads(out)
    with np.load(path, allow_pickle=False) as saved:
        weights, probabilities = saved["weights"], saved["probabilities"]
    table = zoo.make("garnet").table
    S, A = table.num_states, table.num_actions
    P = table.P.toarray().reshape(S, A, S)
    value = 0.0
    for w, pi in zip(weights, probabilities, strict=True):
        P_pi, r_pi = np.einsum("sa,sat->st", pi, P), (pi * table.reward).sum(axis=1)
        value += w * table.rho @ np.linalg.solve(np.eye(S) - table.gamma * P_pi, r_pi)
    assert value == pytest.approx(answer["exact"]["value"], abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["ls-mdvi", "ls-mdvi-burn-in", "mirror-descent", "gss", "gss-stopping"])
def test_every_linear_solver_by_name(run, solver):
    grid = ["--resolution", "20"] if solver == "gss-stopping" else []
    target = ["random-linear", "--set", "states=30", "--set", "gamma=0.6", "--set", "dim=3"]
    code, out, err = run(
        "solve",
        *target,
        "--samples",
        80_000,
        "--iterations",
        60,
        "--solver",
        solver,
        *grid,
        "--json",
        "--mode",
        "literal",
    )
    assert code in (0, 4, 6), err  # so few iterations may leave a policy that its own proof refutes
    assert json.loads(out)["settings"]["solver"] == solver


@pytest.mark.parametrize("solver", ["tabular-mdvi", "perturbed-model", "ls-mdvi", "mirror-descent", "gss"])
def test_every_tabular_solver_by_name(run, solver):
    target = ["garnet", "--set", "states=10", "--set", "gamma=0.6"]
    code, out, err = run(
        "solve", *target, "--samples", 40_000, "--iterations", 30, "--solver", solver, "--json", "--mode", "literal"
    )
    assert code in (0, 4, 6), err  # so few iterations may leave a policy that its own proof refutes
    assert json.loads(out)["settings"]["solver"] == solver


@pytest.mark.parametrize("design", ["frank-wolfe", "frank-wolfe-literal", "full"])
def test_every_design_by_name(run, design):
    target = ["random-linear", "--set", "states=20", "--set", "gamma=0.6"]
    code, out, err = run("solve", *target, *QUICK, "--design", design, "--json")
    assert code in (0, 4, 6), err  # so few iterations may leave a policy that its own proof refutes
    assert json.loads(out)["settings"]["design"] == design


def test_budget_exhausted_is_a_status(run):
    target = ["random-linear", "--set", "states=20"]
    code, out, _ = run("solve", *target, "--solver", "gss-stopping", "--resolution", 5, "--samples", 2000, "--json")
    assert code == 4
    assert json.loads(out)["status"] == "budget-exhausted"
