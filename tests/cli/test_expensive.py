"""Expensive simulators: budgets and time limits, costs that are said first, workers, and progress where there is no terminal."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from cli.command_line import Call, words
from saddleback import zoo
from saddleback.designs.exchange import Exchange
from saddleback.instances.problem_file.code import find
from saddleback.problem.phases import announced_by, phase
from saddleback.simulators.checks import run_checks
from saddleback.solving.progress import LogLines

SLOW = """
import time
import numpy as np

calls = []


def step(state, action, rng):
    calls.append(1)
    time.sleep({pause})
    return int(rng.integers(0, 4)) if action else max(state - 1, 0)


def count():
    return len(calls)
"""
PROBLEM = """
gamma = 0.9
states = 4
actions = 2
start = 0
[simulator]
function = "shop:step"
[reward]
values = [0, 1, 2, 3]
[[constraints]]
name = "cost"
values = [[0, 1], [0, 1], [0, 1], [0, 1]]
limit = "<= 5"
units = "discounted"
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return made(tmp_path, 0.0)


def made(folder: Path, pause: float) -> Path:
    (folder / "shop.py").write_text(SLOW.format(pause=pause))
    (folder / "shop.toml").write_text(PROBLEM)
    return folder / "shop.toml"


def calls_of(target: Path) -> int:
    """How often the simulator of the problem file was called in this process."""
    return int(find(str(target.parent), "shop:count")())


@pytest.mark.parametrize("budget", [100, 1000, 6000])
def test_check_keeps_to_its_budget_and_says_it_first(run: Call, shop: Path, budget: int) -> None:
    code, out, err = run("check", shop, "--budget", budget, "--json")
    report = json.loads(out)
    assert code == 0 and report["clean"]
    assert report["calls"] == calls_of(shop) <= budget
    assert "check: about" in err and "simulator calls" in err and "--time-limit" in words(err)
    assert (budget >= 4000) == (not any("agreement" in text for text in report["skipped"]))


def test_what_is_said_is_what_is_drawn() -> None:
    instance, said = zoo.make("queue"), list[str]()
    report = run_checks(instance.problem, instance.simulator, say=said.append)
    planned = int(said[0].split()[1].replace(",", ""))
    assert report.calls <= planned <= 1.05 * report.calls
    assert run_checks(instance.problem, instance.simulator, calls=200).calls <= 200


def test_a_mistake_is_found_with_few_calls() -> None:
    instance = zoo.make("queue")
    broken = run_checks(instance.problem, lambda s, a, rng: s + 1.5, calls=100)
    assert broken.errors and broken.calls <= 100


def test_check_ends_in_time(run: Call, tmp_path: Path) -> None:
    """20,000 calls of 5 ms would take 100 s."""
    target = made(tmp_path, 0.005)
    code, out, err = run("check", target, "--time-limit", "0.3", "--json")
    report = json.loads(out)
    assert code == 0 and "want of time" in report["skipped"][-1]
    assert report["calls"] == calls_of(target) < 2000  # at most one batch of 256 beyond the limit
    assert "s a call" in err


@pytest.mark.slow
def test_plan_keeps_to_its_budget(run: Call, shop: Path) -> None:
    code, _, err = run("plan", shop, "--epsilon", "5", "--budget", 6000, "--json")
    assert code in (0, 4)
    assert 3000 < calls_of(shop) <= 6000
    assert "plan: a pilot of about" in err
    code, _, err = run("plan", shop, "--epsilon", "5", "--budget", 100)
    assert code == 2 and "budget" in err
    assert run("plan", shop, "--epsilon", "5", "--budget", 6000, "--samples", 3000)[0] == 2


@pytest.mark.slow
def test_plan_keeps_to_its_time(run: Call, tmp_path: Path) -> None:
    """A default pilot takes 20,000 calls; at 0.2 ms and more a second is enough for 5,000 at most."""
    target = made(tmp_path, 0.0002)
    code, _, err = run("plan", target, "--epsilon", "5", "--time-limit", "1.5")
    assert code in (0, 2, 4)
    assert calls_of(target) <= 7600
    code, _, err = run("plan", target, "--epsilon", "5", "--time-limit", "0.001")
    assert code == 2 and "time limit" in err


def test_sample_by_number(run: Call, tmp_path: Path) -> None:
    place = tmp_path / "s"
    code, out, _ = run("sample", "queue", "--samples", 5000, "--out", place, "--json")
    drawn = json.loads(out)
    assert code == 0 and 4900 < drawn["samples"] == drawn["drawn_now"] <= 5000
    code, out, _ = run("sample", "queue", "--samples", 5000, "--out", place, "--json")
    again = json.loads(out)
    assert again["drawn_now"] == 0 and again["sha256"] == drawn["sha256"]
    assert run("solve", "queue", "--from", place, "--certificate-samples", 2000, "--json")[0] in (0, 4)
    for wrong in (["--samples", 9000], ["--samples", 5], ["--samples", 5000, "--rounds", 1]):
        code, _, err = run("sample", "queue", *wrong, "--out", place)
        assert code == 2 and "--samples" in err


@pytest.mark.slow
def test_workers_change_no_answer(run: Call, tmp_path: Path, shop: Path) -> None:
    assert run("solve", shop, "--samples", 20_000, "--out", tmp_path / "run", "--feasibility", "relaxed")[0] == 0
    verbs: dict[str, list[Any]] = {
        "check": [shop, "--budget", 5000],
        "plan": [shop, "--epsilon", "5", "--budget", 6000],
        "frontier": [shop, "--points", 3, "--samples", 8000, "--certificate-samples", 4000],
        "certify": [tmp_path / "run", "--samples", 6000, "--problem", shop],
    }
    for verb, rest in verbs.items():
        one, two = (run(verb, *rest, "--workers", n, "--json") for n in (1, 2))
        assert one[0] == two[0]
        first, second = (_without_times(json.loads(found[1])) for found in (one, two))
        assert first == second, verb


def _without_times(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            k: _without_times(v) for k, v in data.items() if "second" not in k and k not in ("worst_case", "adaptive")
        }
    return [_without_times(x) for x in data] if isinstance(data, list) else data


def test_a_long_phase_is_not_silent(capsys: pytest.CaptureFixture[str]) -> None:
    """A line now and then while nothing is counted, with what is being done and for how long."""
    before = threading.active_count()
    with announced_by(LogLines(seconds=0.05)):
        with phase("inverting a matrix") as advance:
            time.sleep(0.2)
            advance("half of it")
            with phase("a part of it"):
                time.sleep(0.2)
            time.sleep(0.2)
        capsys_lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("inverting a matrix, ") and line.endswith("s so far") for line in capsys_lines)
    assert any(line.startswith("a part of it") for line in capsys_lines)
    assert any("half of it" in line for line in capsys_lines)
    assert threading.active_count() == before


def test_a_quick_run_says_nothing(run: Call) -> None:
    assert run("solve", "queue", "--samples", 4000)[2] == ""


def test_a_design_says_how_far_it_is() -> None:
    """And what it costs, where there are many features."""
    told = list[str]()

    class Listener:
        def begin(self, what: str) -> None:
            told.append(what)

        def advance(self, note: str) -> None:
            told.append(note)

        def end(self) -> None:
            told.append("end")

    with announced_by(Listener()):
        Exchange().design(zoo.make("random-linear").problem)
    assert any(text.startswith("choosing where to sample: ") for text in told)
    assert any(text.startswith("round 1: ") and "wanted" in text for text in told)
    assert told[-1] == "end"
