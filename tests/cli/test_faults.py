"""Wrong input and other mishaps: one message each, the right exit code, and no traceback ever."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cli.command_line import arrays, reseal, words
from helpers import begun_and_killed, random_table
from saddleback.cli import solve as solve_verb

QUICK = ["--samples", "40000"]


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
        (["solve", "garnet", "--samples", "1000"], "500 of 1,000 are for the solve"),
        (["solve", "garnet", "--samples", "1"], "must be at least 2"),
        (["solve", "garnet", "--samples", "-5"], "must be at least 2"),
        (["solve", "garnet", "--samples", "30000000000"], "memory"),
        (["solve", "garnet", "--certificate-samples", "0"], "--certificate-samples` must be at least 1"),
        (["solve", "garnet", "--certificate-samples", "-3"], "--certificate-samples` must be at least 1"),
        (["solve", "garnet", "--samples", "9", "--certificate-samples", "9"], "must be less than --samples, 9"),
        (["solve", "garnet", "--epsilon", "1", "--samples", "900"], "--samples` must not be given with --epsilon"),
        (["solve", "garnet", "--epsilon", "1", "--certificate-samples", "9"], "must not be given with --epsilon"),
        (["solve", "garnet", "--epsilon", "1", "--batch-size", "4"], "--batch-size` must not be given with --epsilon"),
        (["solve", "garnet", "--epsilon", "1", "--mode", "literal"], "with epsilon"),
        (["solve", "garnet", "--epsilon", "-1"], "`epsilon` must be positive"),
        (["solve", "garnet", "--epsilon", "0"], "`epsilon` must be positive"),
        (["solve", "garnet", "--epsilon", "nan"], "`epsilon` must be positive"),
        (["solve", "garnet", "--epsilon", "1", "--max-samples", "1"], "--max-samples` must be at least 2"),
        (
            ["solve", "garnet", "--epsilon", "1", "--max-samples", "900"],
            "--max-samples` must give each of the 200 pairs",
        ),
        (["plan", "garnet", "--epsilon", "1", "--samples", "900"], "of a pilot of 812"),
        (["solve", "garnet", "--max-samples", "1000"], "--max-samples` must go with --epsilon"),
        (["solve", "garnet", "--delta", "0"], "delta"),
        (["solve", "garnet", "--iterations", "0"], "iterations"),
        (["solve", "garnet", "--out", "no/such/run"], "--out` must lie in an existing folder"),
        (["solve", "garnet", "--force"], "--force` must go with --out"),
        (["frontier", "garnet", "--seed", "-1"], "seed"),
        (["plan", "garnet", "--epsilon", "1", "--seed", "-1"], "seed"),
        (["plan", "garnet"], "--epsilon"),
        (["plan", "garnet", "--epsilon", "-1"], "`epsilon` must lie in (0, 10]"),
        (["plan", "garnet", "--epsilon", "11"], "`epsilon` must lie in (0, 10]"),
        (["plan", "garnet", "--epsilon", "1", "--delta", "2"], "delta"),
        (["plan", "garnet", "--epsilon", "1", "--samples", "1"], "samples"),
        (["plan", "garnet", "--epsilon", "1", "--feasibility", "maybe"], "feasibility"),
        (["plan", "nowhere.npz", "--epsilon", "1"], "nowhere.npz"),
        (["solve", "garnet", "--seed", "-1"], "seed"),
        (["solve", "garnet", "--batch-size", "0"], "batch_size"),
        (["solve", "garnet", "--allocation", "odd"], "allocation"),
        (["solve", "garnet", "--policy", "no/such/folder.npz"], "existing folder"),
        (["solve", "x" * 300 + ".npz"], "npz"),
        (["solve", "garnet", "--samples", "many"], "samples"),
        (["solve", "garnet", "--feasibility", "maybe"], "feasibility"),
        (["exact", "hard-instance", "--set", "dim=40"], "`TARGET` must be a problem whose table is known"),
        (["frobnicate"], "frobnicate"),
        (["solve", "garnet", "--set", "states=1000000000"], "must give a table of at most 4 GiB"),
        (["solve", "garnet", "--set", "states=1" + 80 * "0"], "must give a table of at most 4 GiB"),
        (["solve", "garnet", "--set", "states=1" + 400 * "0"], "at most 100 printable characters"),
        (["solve", "garnet", "--set", "seed=\x1b[2J"], "printable characters"),
        (["solve", "garnet", "--set", "=4"], "name=value"),
        (["frontier", "wireless", "--samples", "20000", "--points", "1" + 20 * "0"], "must be at most 10,000"),
        (["solve", "garnet", "--delta", "nan", "--out", "run"], "`delta` must lie in"),
        (["solve", "garnet", "--iterations", "1" + 30 * "0", "--out", "run"], "at `$.parts.iterations`"),
        (["solve", "hard-instance", "--set", "threshold=9"], "threshold"),
    ],
)
def test_bad_words(run, arguments, says):
    code, out, err = run(*arguments)
    assert code == 2
    assert says in out + err


@pytest.mark.check
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

    monkeypatch.setattr(solve_verb, "carry_out", interrupted)
    assert run("solve", "garnet")[0] == 130


def test_a_policy_is_not_written_in_place_of_a_folder(run, tmp_path):
    (tmp_path / "taken.npz").mkdir()
    code, out, err = run("solve", "garnet", *QUICK, "--policy", tmp_path / "taken.npz")
    assert (code, out) == (2, "")
    assert "taken.npz" in err


def test_a_run_is_not_overwritten(run, tmp_path):
    """Not without --force; and with it, nothing but a run is ever replaced."""
    place = tmp_path / "run"
    place.mkdir()  # an empty folder is as good as none
    assert run("solve", "queue", *QUICK, "--out", place)[0] == 0
    first = (place / "certificate.json").read_bytes()
    code, _, err = run("solve", "queue", *QUICK, "--seed", 1, "--out", place)
    assert code == 2 and "holds a run" in err and "--force" in err
    assert (place / "certificate.json").read_bytes() == first
    assert run("solve", "queue", *QUICK, "--seed", 1, "--out", place, "--force")[0] == 0
    assert (place / "certificate.json").read_bytes() != first
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    (place / "notes.txt").write_text("precious")
    code, _, err = run("solve", "queue", *QUICK, "--out", place, "--force")
    assert code == 2 and "notes.txt" in err
    assert (place / "notes.txt").read_text() == "precious"
    code, _, err = run("solve", "queue", *QUICK, "--out", place / "notes.txt", "--force")
    assert code == 2 and "must lie outside the folders of runs" in words(err)
    (tmp_path / "notes.txt").write_text("precious")
    code, _, err = run("solve", "queue", *QUICK, "--out", tmp_path / "notes.txt", "--force")
    assert code == 2 and "which is a file" in err
    assert (place / "notes.txt").read_text() == (tmp_path / "notes.txt").read_text() == "precious"


@pytest.mark.slow
def test_a_name_that_is_too_long_is_refused_before_the_first_sample(run, tmp_path):
    """Too long with what is added to it: for the work folder, for the page of a report, and while that is written."""
    for length in (242, 251, 300):
        code, out, err = run("solve", "queue", *QUICK, "--out", tmp_path / ("x" * length))
        assert (code, out) == (2, "") and "must be at most 241 bytes long" in words(err)
        assert run("sample", "queue", "--out", tmp_path / ("x" * length))[0] == 2
    assert list(tmp_path.iterdir()) == []
    assert run("solve", "queue", *QUICK, "--out", tmp_path / ("x" * 241))[0] == 0
    assert run("report", tmp_path / ("x" * 241))[0] == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_io_fault(run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    code, out, err = run("solve", "queue", *QUICK, "--out", tmp_path / "closed" / "run")
    assert (code, out) == (5, "")
    assert "read-only" in err


ODD_REQUESTS = {
    "no budget": lambda r: r["options"].pop("budget"),
    "another option": lambda r: r["options"]["parts"].update(extra=1),
    "text for a number": lambda r: r["options"]["budget"].update(samples="many"),
    "a seed below zero": lambda r: r["options"]["parts"].update(seed=-1),
    "another verb": lambda r: r.update(verb="delete"),
    "a huge problem": lambda r: r.update(settings=["states=1000000000"]),
    "a huge number": lambda r: r["options"]["budget"].update(samples=10**300),
    "a nameless setting": lambda r: r.update(settings=["=\x1b[2J"]),
    "another problem": lambda r: r.update(target="../secrets"),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", ODD_REQUESTS)
def test_a_strangers_request_is_refused_before_anything_is_drawn(run, tmp_path, change):
    """One that is as it should be is carried out, from the same folder."""
    place, folder = tmp_path / "run", tmp_path / "run.work"
    parts = {"feasibility": "relaxed", "mode": "default", "delta": 0.05, "seed": 0, "buffers": 2, "iterations": 1000}
    parts |= dict.fromkeys(("dual", "solver", "evaluator", "design", "allocation", "error", "batch_size"))
    options = {"budget": {"samples": 20_000, "certificate": 20_000}, "parts": {**parts, "resolution": -1}}
    begun_and_killed(place, "solve", "queue", [], options)
    good = (folder / "request.json").read_text()
    request = json.loads(good)
    ODD_REQUESTS[change](request)
    reseal(folder / "request.json", request)
    code, out, err = run("resume", place)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1 and "\x1b" not in err
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) in (["request.json"], [])
    if folder.is_dir():
        (folder / "request.json").write_text(good)
        assert run("resume", place)[0] == 0


def test_a_number_too_long_for_a_file_name_is_an_io_fault(run, tmp_path):
    code, _, err = run("solve", "queue", *QUICK, "--seed", "1" + 300 * "0", "--out", tmp_path / "run")
    assert code == 5 and "File name too long" in err
