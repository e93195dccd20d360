"""A first-time user in an empty folder: a simulator of fifteen lines, a problem file, ``check``, ``solve``, ``frontier``.

Then the mistakes that such a user makes, one at a time: ``check`` finds each and names it. And no mistake where there is none.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call, words
from cli.first_projects import PROJECTS, STEP_CODE, write
from saddleback.instances.problem_file import load_problem
from saddleback.testing import check_simulator

MISTAKES: dict[str, tuple[str, list[tuple[str, str]], int, str, str]] = {
    # the mistake: project, edits (old, new), exit code, check that finds it, words that name it
    "draws from np.random": (
        "batch",
        [("arrives = rng.random", "arrives = np.random.random")],
        5,
        "replay",
        "draws from NumPy's or Python's own generator",
    ),
    "draws from random": (
        "step",
        [("def step", "import random\ndef step"), ("arrives = rng.random()", "arrives = random.random()")],
        5,
        "replay",
        "draws from NumPy's or Python's own generator",
    ),
    "has a generator of its own": (
        "batch",
        [("def sample", "OWN = np.random.default_rng(3)\n\ndef sample"), ("arrives = rng", "arrives = OWN")],
        5,
        "replay",
        "keeps something between calls, or has random numbers of its own",
    ),
    "seeds a generator in every call": (
        "batch",
        [("    arrives = rng", "    rng = np.random.default_rng(7)\n    arrives = rng")],
        5,
        "independence batches",
        "",
    ),
    "counts its calls": (
        "step",
        [
            ("def step", "calls = []\ndef step"),
            ("    arrives = rng.random() < 0.4", "    calls.append(1)\n    arrives = rng.random() < len(calls) % 7 / 7"),
        ],
        5,
        "replay",
        "keeps something between calls",
    ),
    "remembers the last question": (
        "batch",
        [
            ("def sample", "season = {'first': None, 'wet': 0}\n\ndef sample"),
            (
                "    after =",
                "    if waiting[0] != season['first']:\n"
                "        season.update(first=waiting[0], wet=1 - season['wet'])\n"
                "    arrives = arrives | bool(season['wet'])\n"
                "    after =",
            ),
        ],
        5,
        "memory",
        "remembers what it was asked before",
    ),
    "leaves the state space": ("step", [("return min(max(waiting - repaired, 0) + arrives, 10)", "return max(waiting - repaired, 0) + arrives")], 5, "conformance", "next state 11, which is outside the state space"),
    "goes below zero": ("batch", [("np.maximum(waiting - repaired, 0)", "(waiting - repaired)")], 5, "conformance", "next state -1, which is outside"),
    "observes NaN": (
        "batch",
        [("return after, 1 - waiting / 10", "return after, np.where(waiting > 9, np.nan, 1 - waiting / 10)")],
        5,
        "conformance",
        "returned the signal nan in column 0",
    ),
    "observes a reward outside its range": (
        "batch",
        [("1 - waiting / 10", "1 - waiting / 5")],
        5,
        "conformance",
        "for reward, outside its declared range [0, 1]",
    ),
    "knows a reward outside its range": (
        "step",
        [("1 - waiting / 10", "1 - waiting / 5")],
        5,
        "reward",
        "reward must be finite and within its declared range [0, 1], got -0.2",
    ),
    "has a reward that is NaN": (
        "step",
        [("return 1 - waiting / 10", 'return float("nan") if waiting > 9 else 1 - waiting / 10')],
        5,
        "reward",
        "must be finite",
    ),
    "returns the wrong shape": ("batch", [("return after,", "return after[:, None],")], 5, "conformance", "must be an integer array (n,), not int64 (1, 1)"),
    "returns too few": ("batch", [("return after,", "return after[:-1],")], 5, "conformance", "next states for"),
    "returns floats": ("batch", [("return after,", "return after * 1.0,")], 5, "conformance", "must be an integer array (n,), not float64"),
    "returns a float": ("step", [("return min(", "return 1.0 * min(")], 5, "conformance", "a float where an integer is wanted"),
    "raises at one state": (
        "step",
        [("    arrives", "    if waiting == 7:\n        raise KeyError('seven')\n    arrives")],
        5,
        "conformance",
        "raised KeyError: 'seven'",
    ),
    "reuses its output": (
        "batch",
        [
            ("def sample", "OUT = np.zeros(10_000, dtype=int)\n\ndef sample"),
            ("    return after,", "    OUT[: len(after)] = after\n    return OUT[: len(after)],"),
        ],
        0,
        "aliasing",
        "returns the same array again",
    ),
    "changes its inputs": (
        "batch",
        [("    after = np.minimum(np.maximum(waiting - repaired, 0) + arrives, 10)", "    waiting -= repaired & (waiting > 0)\n    after = np.minimum(waiting + arrives, 10)")],
        5,
        "inputs",
        "changes the states it is given",
    ),
    "one random number for a batch": (
        "batch",
        [("arrives = rng.random(len(waiting))", "arrives = rng.random()")],
        5,
        "independence",
        "rows of one batch hang together",
    ),
    "mirrors its random numbers": (
        "batch",
        [
            (
                "    arrives = rng.random(len(waiting)) < 0.4",
                "    u = rng.random(len(waiting))\n"
                "    half = len(u) // 2\n"
                "    u[len(u) - half :] = 1 - u[:half][::-1]\n"
                "    arrives = u < 0.4",
            )
        ],
        5,
        "independence",
        "the last mirror the first",
    ),
    "takes the first action for all": (
        "batch",
        [("np.array([0.3, 0.7])[action]", "np.array([0.3, 0.7])[action[0]]")],
        5,
        "batches",
        "answers otherwise in a batch of many pairs than alone",
    ),
    "mixes rows in a signal": (
        "step",
        [
            ('values = "shop:running"\n', 'values = "shop:running"\nkind = "batch"\n'),
            ("return 1 - waiting / 10", "return 1 - waiting / waiting.max().clip(1)"),
        ],
        5,
        "reward",
        "must be a function of each pair by itself",
    ),
    "features of another dimension": ("batch", [("dim = 8", "dim = 7")], 5, "features", "must return a float64 array (22, 7)"),
    "features that are NaN": (
        "batch",
        [("rows = np.eye(4)[waiting // 3]", "rows = np.eye(4)[waiting // 3] * np.where(waiting == 4, np.nan, 1)[:, None]")],
        5,
        "features",
        "must be finite",
    ),
    "features of low precision": ("batch", [("np.eye(4)", "np.eye(4, dtype=np.float32)")], 5, "features", "float32"),
    "features without the constant": (
        "batch",
        [("dim = 8", "dim = 7"), ("return np.hstack([rows *", "return np.hstack([rows[:, 1:] *")],
        5,
        "span",
        "the constant 1 is not in the span",
    ),
    "a budget in the wrong units": ("step", [('"<= 0.3"', '"<= 6"')], 0, "threshold of overtime", "every policy meets overtime <= 6 per step (120 as a discounted total)"),
    "a budget with the wrong sense": ("step", [('"<= 0.3"', '">= 6"')], 5, "threshold of overtime", "no policy can meet overtime >= 6"),
    "a limit that is none": ("step", [('"<= 0.3"', '"=< 0.3"')], 2, "", "shop.toml:17: constraints[0].limit` must be <= or >= and a number"),
    "no units": ("step", [('units = "per-step"\n', "")], 2, "", "constraints[0].units` must be given"),
    "a key that nobody knows": ("step", [("limit =", "limt =")], 2, "", "shop.toml:17: constraints[0].limt` must be a known key, got an unknown one; did you mean limit?"),
    "another word for gamma": ("step", [("gamma =", "discount =")], 2, "", "shop.toml:1: discount` must be a known key, got an unknown one; did you mean gamma?"),
    "no discount": ("step", [("gamma = 0.95", "gamma = 1.0")], 2, "", "shop.toml:1: gamma` must lie in [0, 1)"),
    "a start outside": ("step", [("start = 0", "start = 11")], 2, "", "shop.toml:4: start` must lie in the state space"),
    "a function that is not there": ("step", [('"shop:step"', '"shop:stepp"')], 2, "", "shop.toml:7: simulator.function` must name a function, got there is no stepp in shop, which has step"),
    "code that does not parse": ("step", [("def overtime(waiting, action):", "def overtime(waiting, action)")], 2, "", "shop.toml:7: simulator.function` must name code that can be imported, got SyntaxError"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named(mistake: str, run: Call, tmp_path: Path) -> None:
    project, edits, code, check, says = MISTAKES[mistake]
    found, out, err = run("check", write(tmp_path, project, *edits), "--json")
    assert found == code, out + err
    if code == 2:
        assert says in words(err)
        return
    findings = json.loads(out)["findings"]
    told = [f for f in findings if f["check"] in check.split() or f["check"] == check]
    assert told, findings
    assert says in told[0]["message"]
    if check.split()[0] not in ("threshold", "reward", "features", "span"):  # all else names the call that shows it
        assert None not in (told[0]["state"], told[0]["action"], told[0]["key"])


@pytest.mark.check
@pytest.mark.parametrize("project", PROJECTS)
def test_nothing_is_found_where_nothing_is_wrong(project: str, tmp_path: Path) -> None:
    """Twenty seeds; by the tests' exactness the chance of a false alarm is at most 2e-5 for all of them."""
    instance = load_problem(write(tmp_path, project))
    for seed in range(20):
        assert check_simulator(instance.problem, instance.simulator, calls=4000, seed=seed) == [], seed


@pytest.mark.study
@pytest.mark.parametrize("project", PROJECTS)
def test_no_false_alarm_in_many_runs(project: str, tmp_path: Path) -> None:
    instance = load_problem(write(tmp_path, project))
    for seed in range(1000):
        assert check_simulator(instance.problem, instance.simulator, seed=seed) == [], seed
    print(f"{project}: 1,000 checks with seeds 0 to 999, no finding")


def saddleback(folder: Path, *arguments: Any) -> str:
    """The command line as a user starts it, in that folder."""
    command = [sys.executable, "-m", "saddleback", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return words(done.stdout)


@pytest.mark.check
def test_the_path_of_a_first_time_user(tmp_path: Path) -> None:
    write(tmp_path, "step")
    assert len(STEP_CODE.splitlines()) <= 15
    assert "shop: no mistake found" in saddleback(tmp_path, "check", "shop.toml")
    told = saddleback(tmp_path, "solve", "shop.toml", "--samples", 40_000, "--workers", 2)
    assert "shop: solved" in told and "overtime <= 0.3 per step" in told
    assert "'overtime' <= threshold" in saddleback(
        tmp_path, "frontier", "shop.toml", "--samples", 20_000, "--points", 4
    )
