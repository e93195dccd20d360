"""The command line as a user meets it: output, files, exit codes, and no traceback ever."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from helpers import random_table
from saddleback import __version__, cli, save_table, zoo
from saddleback.exact import solve_exactly

QUICK = ["--samples", "40000"]


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return ended.value.code or 0, out, err

    return call


@pytest.fixture
def table_file(tmp_path):
    path = tmp_path / "problem.npz"
    save_table(random_table(1), path)
    return path


def arrays(table):
    return {
        "P": table.P.toarray().reshape(table.num_states, table.num_actions, -1),
        "reward": table.reward,
        "constraints": table.constraints,
        "thresholds": table.thresholds,
        "gamma": np.float64(table.gamma),
        "rho": table.rho,
    }


def test_zoo_lists_every_problem(run):
    code, out, _ = run("zoo")
    assert code == 0
    for name in zoo.BY_NAME:
        assert name in out
    _, out, _ = run("zoo", "--json")
    assert [p["name"] for p in json.loads(out)["problems"]] == list(zoo.BY_NAME)


def test_exact_json(run, table_file):
    code, out, _ = run("exact", table_file, "--json")
    answer = json.loads(out)
    truth = solve_exactly(random_table(1))
    assert code == 0
    assert answer["value"] == pytest.approx(truth.value)
    assert answer["constraints"][0]["slack"] >= -1e-9
    assert answer["multipliers"][0] >= 0
    assert answer["slater"] == pytest.approx(truth.slater)


@pytest.mark.parametrize("method", ["columns", "lp"])
def test_exact_by_either_method(run, method):
    code, out, _ = run("exact", "garnet", "--method", method, "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["method"] == method
    assert {"value", "constraints", "multipliers", "slater", "gap", "seconds"} <= set(answer)
    assert answer["value"] == pytest.approx(7.69697529672, abs=1e-5)
    assert answer["gap"] <= 1e-5


def test_exact_text(run):
    code, out, _ = run("exact", "garnet")
    assert code == 0
    assert "optimal value" in out


def test_solve_json_contract(run):
    code, out, _ = run("solve", "garnet", *QUICK, "--check", "--json")
    answer = json.loads(out)
    assert code == {"solved": 0, "infeasible": 3}.get(answer["status"], 4)
    assert {"status", "message", "value", "constraints", "multipliers", "samples", "policy", "exact"} <= set(answer)
    assert set(answer["constraints"][0]) >= {"name", "value", "threshold", "sense", "slack"}
    assert sum(m["weight"] for m in answer["policy"]) == pytest.approx(1)
    assert answer["samples"] <= 40_000
    assert {"value", "constraints", "optimum"} <= set(answer["exact"])


def test_solve_text_reads_well(run):
    code, out, _ = run("solve", "queue", "--samples", "200000", "--check")
    assert code == 0
    for words in ("queue: solved", "number-in-system", "discounted totals", "simulator calls", "optimum"):
        assert words in out


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
    assert code in (0, 4), err
    assert json.loads(out)["settings"]["solver"] == solver


@pytest.mark.parametrize("solver", ["tabular-mdvi", "perturbed-model", "ls-mdvi", "mirror-descent", "gss"])
def test_every_tabular_solver_by_name(run, solver):
    target = ["garnet", "--set", "states=10", "--set", "gamma=0.6"]
    code, out, err = run(
        "solve", *target, "--samples", 40_000, "--iterations", 30, "--solver", solver, "--json", "--mode", "literal"
    )
    assert code in (0, 4), err
    assert json.loads(out)["settings"]["solver"] == solver


@pytest.mark.parametrize("design", ["frank-wolfe", "frank-wolfe-literal", "full"])
def test_every_design_by_name(run, design):
    target = ["random-linear", "--set", "states=20", "--set", "gamma=0.6"]
    code, out, err = run("solve", *target, *QUICK, "--design", design, "--json")
    assert code in (0, 4), err
    assert json.loads(out)["settings"]["design"] == design


def test_budget_exhausted_is_a_status(run):
    target = ["random-linear", "--set", "states=20"]
    code, out, _ = run("solve", *target, "--solver", "gss-stopping", "--resolution", 5, "--samples", 2000, "--json")
    assert code == 4
    assert json.loads(out)["status"] == "budget-exhausted"


def spoiled(name):
    """One spoiled copy of a good table per kind of mistake, with what the message must name."""
    good = arrays(random_table(1))
    S, A = good["reward"].shape
    if name == "row sum":
        P = good["P"].copy()
        P[2, 1] *= 0.98
        return {**good, "P": P}, "P[state 2, action 1]", 2
    if name == "nan reward":
        reward = good["reward"].copy()
        reward[3, 2] = np.nan
        return {**good, "reward": reward}, "reward[3, 2]", 2
    if name == "gamma":
        return {**good, "gamma": np.float64(1.0)}, "gamma", 2
    if name == "threshold":
        return {**good, "thresholds": np.array([4.9])}, "constraint-0", 3
    if name == "threshold beyond range":
        return {**good, "thresholds": np.array([40.0])}, "constraint-0", 3
    if name == "phi shape":
        return {**good, "phi": np.ones((S, A + 1, 2))}, "phi", 2
    if name == "object array":
        return {**good, "reward": np.array([[None] * A] * S, dtype=object)}, "reward", 2
    sparse = random_table(1).P
    parts = {k: v for k, v in good.items() if k != "P"}
    indices = sparse.indices.copy()
    indices[4] = 99
    return {**parts, "P_data": sparse.data, "P_indices": indices, "P_indptr": sparse.indptr}, "99", 2


@pytest.mark.parametrize(
    "name",
    ["row sum", "nan reward", "gamma", "threshold", "threshold beyond range", "phi shape", "object array", "indices"],
)
def test_bad_files_name_the_culprit(run, tmp_path, name):
    data, culprit, expected = spoiled(name)
    path = tmp_path / "bad.npz"
    np.savez(path, **data)
    code, out, err = run("solve", path, "--samples", 200_000, "--iterations", 5)
    assert code == expected
    assert culprit in " ".join((out + err).split())
    assert "\n\n" not in err.strip()


def test_infeasible_adds_max_slack(run, tmp_path):
    data, _, _ = spoiled("threshold")
    path = tmp_path / "bad.npz"
    np.savez(path, **data)
    code, out, _ = run("solve", path, "--samples", 200_000, "--json")
    answer = json.loads(out)
    assert (code, answer["status"]) == (3, "infeasible")
    assert answer["max_slack"] < 0
    assert answer["value"] is None
    code, out, _ = run("exact", path, "--json")
    assert code == 3
    assert json.loads(out)["max_slack"] < 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["solve", "missing.npz"], "missing.npz"),
        (["solve", "no-such-problem"], "one of the zoo"),
        (["solve", "garnet", "--set", "gama=0.9"], "gama"),
        (["solve", "garnet", "--set", "gamma=high"], "gamma"),
        (["solve", "garnet", "--set", "gamma"], "name=value"),
        (["solve", "garnet", "--solver", "magic"], "solver"),
        (["solve", "garnet", "--samples", "3"], "samples"),
        (["solve", "garnet", "--samples", "30000000000"], "memory"),
        (["solve", "garnet", "--seed", "-1"], "seed"),
        (["solve", "garnet", "--batch-size", "0"], "batch_size"),
        (["solve", "garnet", "--allocation", "odd"], "allocation"),
        (["solve", "garnet", "--policy", "no/such/folder.npz"], "existing folder"),
        (["solve", "x" * 300 + ".npz"], "npz"),
        (["solve", "garnet", "--samples", "many"], "samples"),
        (["solve", "garnet", "--feasibility", "maybe"], "feasibility"),
        (["exact", "hard-instance", "--set", "dim=40"], "no table"),
        (["frobnicate"], "frobnicate"),
        (["solve", "hard-instance", "--set", "threshold=9"], "threshold"),
    ],
)
def test_bad_words(run, arguments, says):
    code, out, err = run(*arguments)
    assert code == 2
    assert says in out + err


@pytest.mark.parametrize("delay", [0.05, 6.0])
def test_ctrl_c_exits_130_without_a_traceback(delay):
    """A real SIGINT, while the package loads and while it solves."""
    command = [sys.executable, "-m", "saddleback", "solve", "random-linear", "--mode", "literal", "--resolution", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if delay > 1 or process.returncode == 130:  # earlier than this the interpreter itself may still be starting
        assert process.returncode == 130
        assert "Traceback" not in err


def test_interrupt_exits_130(run, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "solve_problem", interrupted)
    assert run("solve", "garnet")[0] == 130


def test_broken_policy_path_is_an_io_fault(run, tmp_path):
    (tmp_path / "taken.npz").mkdir()
    code, _, err = run("solve", "garnet", *QUICK, "--policy", tmp_path / "taken.npz")
    assert code == 5
    assert "taken.npz" in err


def test_installed_command_and_module():
    for command in ([sys.executable, "-m", "saddleback"],):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == __version__
